"""``cleared task plan``, ``add``, ``renumber``: which tasks there are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from cleared.base.errors import UsageError
from cleared.base.safe_files import read_stable
from cleared.base.terminal import print_json, print_line, print_message
from cleared.changes.host import Host
from cleared.cli.guiding import take_guiding_texts
from cleared.cli.loop_options import ENGINE_CHOICE, AllowEngineOption
from cleared.cli.options import JsonOption, WorkspaceOption, open_host
from cleared.cli.showing import DigestOption
from cleared.cli.task_output import print_planned
from cleared.cli.task_sealing import sealing_shown
from cleared.jobs.tasks.task_definition import parse_task
from cleared.trust.person_only import refuse_in_job
from cleared.work.task_runs import task_planning
from cleared.work.task_runs.task_planning import MAX_PLAN_BYTES, read_plan, read_proposed_task
from cleared.work.task_runs.task_renumbering import renumber_tasks as renumber


def plan_tasks(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="A JSON list of tasks, or - for standard input.")
    ] = None,
    text: Annotated[
        str | None, typer.Option("--from", metavar="TEXT", help="Instead: a text, from which the list is written.")
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine", metavar="ENGINE", help=f"Who writes it: {ENGINE_CHOICE} (tasks.engine), else the model."
        ),
    ] = None,
    allow_ai: AllowEngineOption = False,
    digest: DigestOption = "",
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Take in a JSON list of tasks, all or none; without FILE those that lie in docs/tasks, as they are there.

    With it you take their verification commands: this machine will run them. So each that is new or changed is shown,
    and you are asked; in a script what a commit brought needs its digest. A task that was altered since, or came from
    elsewhere, is refused until you say this again. With --from an engine, or the language model of the settings, writes
    the list from a text; nothing of it is taken before you were shown it and said yes.
    """
    host = open_host(workspace)
    if text is not None:
        if file is not None:
            raise typer.BadParameter("give FILE, or --from TEXT")
        draft = _write_plan(host, text, engine or host.config.tasks.engine, allow_ai, digest)
        digest = ""  # it was that of the text
        file = draft.relative_to(Path.cwd()).as_posix() if draft.is_relative_to(Path.cwd()) else str(draft)
        print_message(f"The list is in {file}; nothing of it is taken yet.")
    tasks = None if file is None else read_plan(_read_input(file), Path(file).name)
    command = f"cleared task plan{f' {file}' if file is not None else ''}"
    with sealing_shown(host, tasks, digest, command, json=json, file=file or "", is_new=text is not None):
        planned = task_planning.plan_tasks(host, tasks)
    print_planned(planned, json)


def add_task(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="The JSON file of one task, or - for standard input.")
    ] = None,
    card: Annotated[
        str | None, typer.Option("--card", metavar="CARD", help="Instead: the card of a task that a script proposes.")
    ] = None,
    digest: DigestOption = "",
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Take in one new task. With it you take its verification command: this machine will run it."""
    if (file is None) == (card is None):
        raise typer.BadParameter("give FILE, or --card CARD")
    host = open_host(workspace)
    if file is not None:
        task, card_id = parse_task(_read_input(file), Path(file).name), None
    else:
        task, card_id = read_proposed_task(host, str(card))
    command = f"cleared task add {file if file is not None else f'--card {card}'}"
    with sealing_shown(host, [task], digest, command, json=json, file=file or ""):
        planned = task_planning.add_task(host, task, card=card_id)
    print_planned(planned, json)


def renumber_tasks(
    commit: Annotated[
        str, typer.Argument(metavar="[COMMIT]", help="The other clone's last commit, as fetched.", show_default=True)
    ] = "@{upstream}",
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Give the tasks of this clone new ids that another clone has made, too: say it before you merge.

    The other clone's keep theirs. Lines of the ledger, what requires them and your seals go along.
    """
    ids, made = renumber(open_host(workspace), commit)
    if json:
        print_json({"renumbered": ids, "commit": made})
        return
    for old, new in ids.items():
        print_line(f"{old} is {new} now: another clone has made {old}, too")
    print_message("Next: merge." if ids else "No id was given twice.")


def _write_plan(host: Host, text: str, engine: str | None, allow_ai: bool, digest: str) -> Path:
    """Have the list written from a text. One that a commit brought guides an engine once a person knows it."""
    from cleared.work.task_runs.engine_worker import EngineWorker
    from cleared.work.task_runs.plan_drafting import EngineAuthor, ModelAuthor, draft_plan

    refuse_in_job()
    data = _read_input(text)
    author: EngineAuthor | ModelAuthor = ModelAuthor()
    if engine is not None:
        author = EngineAuthor(EngineWorker(engine, allow_ai))
        place = Path(text).resolve()
        inner = place.relative_to(host.root).as_posix() if place.is_relative_to(host.root) else ""
        command = f"cleared task plan --from {text} --engine {engine} --allow-ai"
        take_guiding_texts(host, digest, command, own={inner: data} if inner else None)
    return draft_plan(host, author, data.decode("utf-8", "replace"), Path(text).name)


def _read_input(file: str) -> bytes:
    if file != "-":
        return read_stable(Path(file), MAX_PLAN_BYTES)[0]
    data = sys.stdin.buffer.read(MAX_PLAN_BYTES + 1)
    if len(data) > MAX_PLAN_BYTES:
        raise UsageError(f"standard input has more than {MAX_PLAN_BYTES:,} bytes")
    return data
