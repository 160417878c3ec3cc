"""``cleared meta …``: have a model write or change agents. It proposes; a person decides."""

from __future__ import annotations

import shlex
import sys
from decimal import Decimal
from typing import Annotated, Any, Final

import typer

from cleared.base.errors import UsageError
from cleared.base.terminal import print_fields, print_json, print_line, print_message, print_table
from cleared.changes.host import Host
from cleared.cli.command_groups import CommandGroup
from cleared.cli.options import JsonOption, WorkspaceOption, open_host
from cleared.cli.session_output import SessionPrinter, format_step, print_outcome
from cleared.meta import session_store
from cleared.meta.model_session import (
    Session,
    SessionOptions,
    describe_session,
    describe_sessions,
    find_asking_session,
    read_events,
    refuse_ended_session,
    resume_session,
    start_session,
)
from cleared.meta.session_loop import Outcome
from cleared.meta.system_prompt import build_system_prompt, read_shipped_template
from cleared.meta.transcript import read_transcript

_REQUEST: Final = "request"


class RequestGroup(CommandGroup):
    """``cleared meta "…"`` is ``cleared meta request "…"``: what names no command is a request."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command's name before a request."""
        is_help = not args or args[0] in ("-h", "--help")
        if not is_help and args[0] not in self.list_commands(ctx):
            _refuse_mistyped_command(ctx, args[0], self.list_commands(ctx))
            args = [_REQUEST, *args]
        return super().parse_args(ctx, args)


def _refuse_mistyped_command(ctx: Any, word: str, commands: list[str]) -> None:
    """One word that is nearly a command is not sent to a model, which costs money."""
    import difflib  # only ever wanted for a mistake

    near = difflib.get_close_matches(word.lower(), commands, 1, 0.75)
    if near:
        raise typer.BadParameter(
            f"there is no command {word!r}; did you mean {near[0]}? To ask a model just that: "
            f"cleared meta {_REQUEST} {shlex.quote(word)}",
            ctx=ctx,
        )


app = typer.Typer(cls=RequestGroup, no_args_is_help=True, rich_markup_mode=None)

JsonlOption = Annotated[
    bool, typer.Option("--jsonl", help="Print each step as a JSON object on a line, and nothing else.")
]
CostOption = Annotated[
    str | None,
    typer.Option(
        "--max-cost",
        metavar="USD",
        help="The most this start may cost, beside llm.session_budget and llm.daily_budget.",
    ),
]
SessionArgument = Annotated[str | None, typer.Argument(metavar="SESSION", help="Its id (default: the newest).")]


@app.command(_REQUEST)
def request_change(
    request: Annotated[
        str | None, typer.Argument(metavar="REQUEST", help="What you want, in your own words; - reads standard input.")
    ] = None,
    instruction: Annotated[str | None, typer.Option("--instruction", metavar="TEXT", help="The same.")] = None,
    jsonl: JsonlOption = False,
    max_cost: CostOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Ask for a change in your own words, or ask a question. A change ends as a proposal with a card.

    The model reads this workspace and writes into a draft of its own. Nothing is live before you approve it. Exits 0
    where it is done (there is a proposal) or answered, 7 where the model asks you something (cleared meta reply), 1
    where it cannot, or a limit was reached (the reason is printed).
    """
    if (request is None) == (instruction is None):
        raise typer.BadParameter("say what you want, once", param_hint="REQUEST")
    text = request if request is not None else instruction
    if text == "-":
        text = sys.stdin.read()
    run_request(open_host(workspace), text or "", jsonl, max_cost)


def run_request(host: Host, text: str, jsonl: bool = False, max_cost: str | None = None) -> None:
    """A session for a request, from its beginning to its end; leaves with its exit code."""
    with start_session(host, text, "meta", _make_options(jsonl, max_cost)) as session:
        _finish(host, session, session.run(None), jsonl)


@app.command("resume")
def resume(
    session: SessionArgument = None,
    jsonl: JsonlOption = False,
    max_cost: CostOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Go on with a session that was interrupted, killed, or stopped by a limit. No step is done twice."""
    host = open_host(workspace)
    with resume_session(host, session, _make_options(jsonl, max_cost)) as resumed:
        refuse_ended_session(host, resumed.id)
        _finish(host, resumed, resumed.run(None), jsonl)


@app.command("reply")
def reply(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[SESSION] TEXT",
            help="Your answer, quoted; - reads standard input. SESSION: which one, if several ask.",
        ),
    ],
    jsonl: JsonlOption = False,
    max_cost: CostOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Answer what a session asks you; it goes on with all that it knows. An answer is taken once.

    Exits as `cleared meta request` does.
    """
    if len(words) > 2:
        raise typer.BadParameter("put your answer into quotes", param_hint="TEXT")
    host, text = open_host(workspace), words[-1]
    if text == "-":
        text = sys.stdin.read()
    session = words[0] if len(words) == 2 else find_asking_session(host)
    with resume_session(host, session, _make_options(jsonl, max_cost)) as resumed:
        _finish(host, resumed, resumed.reply(text), jsonl)


@app.command("sessions")
def list_sessions(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """List the sessions, newest first."""
    rows = describe_sessions(open_host(workspace))
    if json:
        print_json(rows)
        return
    print_table(
        ["session", "status", "proposal", "USD", "request"],
        ((r["id"], r["status"], r["proposal"], r["cost"], " ".join(r["request"].split())) for r in rows),
        wrap=["request"],
        empty="No session yet.",
    )


@app.command("show")
def show_session(session: SessionArgument = None, json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Show one session: what was asked, every step, how it ended."""
    host = open_host(workspace)
    stores = session_store.list_sessions(host.layout.state_dir)
    if session is None and not stores:
        raise UsageError("there is no session yet", remedy='Start one: cleared meta "…"')
    store = session_store.open_session(host.layout.state_dir, session) if session is not None else stores[-1]
    facts, events = describe_session(store), read_events(store)
    if json:
        print_json({**facts, "events": events})
        return
    print_fields([(key, value) for key, value in facts.items() if value is not None and key != "asks"])
    print_line("")
    for step in read_transcript(events):
        print_line(f"{step.at}  {format_step(step)}")


@app.command("prompt")
def show_prompt(
    template: Annotated[
        bool, typer.Option("--template", help="The text before it is filled in, to begin templates/meta.md with.")
    ] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Print what a model is told at the start of a session. Your own text goes into templates/meta.md."""
    if template:
        print_line(read_shipped_template().rstrip())
        return
    prompt = build_system_prompt(open_host(workspace))
    for notice in prompt.notices:
        print_message(notice)
    print_line(prompt.text.rstrip())


def _make_options(jsonl: bool, max_cost: str | None) -> Any:
    return SessionOptions(read_cost_limit(max_cost), print_event if jsonl else SessionPrinter().show_event)


def read_cost_limit(text: str | None) -> Decimal | None:
    """An amount of dollars above zero. Raises ``BadParameter``."""
    if text is None:
        return None
    from decimal import InvalidOperation

    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(0)
    if not amount.is_finite() or amount <= 0:
        raise typer.BadParameter(f"{text!r} is not an amount of dollars such as 0.50", param_hint="--max-cost")
    return amount


def print_event(event: dict[str, Any]) -> None:
    """An event as a line of JSON on stdout, at once."""
    import json

    sys.stdout.write(json.dumps(event, ensure_ascii=True, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def _finish(host: Host, session: Session, outcome: Outcome, jsonl: bool) -> None:
    """Print how a request ended, and leave with its exit code."""
    if not jsonl:
        print_outcome(host, session.id, outcome)
    raise typer.Exit(outcome.exit_code)
