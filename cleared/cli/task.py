"""``cleared task …``: tasks with a ledger of their states, verified and committed by the host."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from msgspec.structs import asdict

from cleared.base.errors import ExitCode
from cleared.base.terminal import print_fields, print_json, print_line, print_message, print_table
from cleared.changes.host import current_user
from cleared.cli.command_groups import new_group
from cleared.cli.guiding import take_guiding_texts
from cleared.cli.loop_options import ENGINE_CHOICE, AllowEngineOption
from cleared.cli.options import JsonOption, WorkspaceOption, open_host, open_host_once
from cleared.cli.showing import DigestOption
from cleared.cli.task_output import outcome_data, print_outcome, print_recorded, safe_output
from cleared.cli.task_plan import add_task, plan_tasks, renumber_tasks
from cleared.jobs.tasks.task_ledger import LEDGER
from cleared.trust.person_only import refuse_in_job
from cleared.work.task_runs import task_archive, task_checks, task_claims, task_decisions, task_planning, task_reports
from cleared.work.task_runs.task_recording import list_skill_files, read_task_set
from cleared.work.task_runs.task_reports import describe_task, find_next, write_briefing

app = new_group()
TaskId = Annotated[str, typer.Argument(metavar="TASK", help="Its id, such as T-001.")]
Summary = Annotated[str, typer.Option("--summary", metavar="TEXT", help="What the ledger's line says.")]


@app.command("init")
def begin_ledger(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Begin the ledger of tasks, an empty file, with the skill that reads it. What is there stays as it is."""
    is_new, commit = task_planning.begin_ledger(open_host(workspace))
    if json:
        print_json({"ledger": LEDGER, "new": is_new, "commit": commit})
        return
    print_line(LEDGER)
    print_message("Next: cleared task add FILE." if is_new else "It was there already; nothing of it was changed.")


app.command("plan")(plan_tasks)
app.command("add")(add_task)
app.command("renumber")(renumber_tasks)


@app.command("list")
def list_tasks(
    status: Annotated[str | None, typer.Option("--status", metavar="STATUS", help="Only those of this state.")] = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """List the tasks and their newest states, in the order of their ids."""
    rows = task_reports.list_tasks(open_host(workspace), status)
    if json:
        print_json(rows)
        return
    print_table(
        ["task", "status", "title", "requires", "since", "summary"],
        (
            (
                r["id"],
                r["status"] or "not in the ledger",
                r["title"],
                ", ".join(r["requires"]),
                (r["updated_at"] or "")[:16].replace("T", " "),
                r["summary"],
            )
            for r in rows
        ),
        wrap=["title", "summary", "requires"],
        empty="There are no tasks: cleared task add FILE.",
    )


@app.command("show")
def show_task(
    task: TaskId,
    briefing: Annotated[
        bool, typer.Option("--briefing", help="Print what a worker is given, and nothing else.")
    ] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show a task: its definition, its newest line, whether it is sealed here, how large its briefing is."""
    host = open_host(workspace)
    if briefing:
        text = write_briefing(host, task)
        sys.stdout.write(safe_output(text) if sys.stdout.isatty() else text)
        return
    found = describe_task(host, task)
    if json:
        print_json(found)
    else:
        print_fields(found.items())


@app.command("next")
def show_next(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Print the id of the task that comes next. Exits 6 where all are completed, 7 where none is ready."""
    found = find_next(open_host(workspace))
    if json:
        print_json({"state": found.state, "id": found.task_id, "reasons": list(found.reasons)})
    elif found.task_id is not None:
        print_line(found.task_id)
    elif found.state == "done" and not found.reasons:
        print_message("Every task is completed.")
    for reason in () if found.task_id or json else found.reasons:
        print_message(reason)
    sys.stdout.flush()
    raise typer.Exit({"ready": ExitCode.DONE, "done": ExitCode.ALL_DONE, "blocked": ExitCode.BLOCKED}[found.state])


@app.command("claim")
def claim_task(
    task: TaskId,
    by: Annotated[str | None, typer.Option("--as", metavar="NAME", help="Who works on it, if it is not you.")] = None,
    pid: Annotated[
        int | None, typer.Option("--pid", min=1, help="The process that works on it: when it ends, the claim does.")
    ] = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Claim a task that is ready, to work on it in this workspace; then: cleared task done."""
    refuse_in_job()
    made = task_claims.claim_task(open_host(workspace), task, by or current_user(), worker_pid=pid)
    if json:
        print_json({key: value for key, value in asdict(made).items() if key != "token"})
        return
    print_line(f"{task} is {made.by}'s since {made.at}, on {made.base[:10]}")
    if made.dirty:
        print_message(
            f"Changed before it, and not its own as long as it stays so: {', '.join(sorted(made.dirty)[:10])}"
        )
    print_message(f"When it is done: cleared task verify {task}, cleared task done {task}.")


@app.command("verify")
def verify_task(task: TaskId, json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Run a task's verification command over what would be committed. Records nothing; exits 1 where it fails.

    It runs in a copy with the changed files, without network, for ten minutes at most, and can write only there.
    """
    from cleared.work.task_runs.task_completion import verify_task as verify

    refuse_in_job()
    result, delta = verify(open_host(workspace), task)
    if json:
        print_json(
            {
                "id": task,
                "passed": result.passed,
                "exit_code": result.exit_code,
                "reason": result.reason or None,
                "output": result.output,
                "output_bytes": result.total,
                "confined": result.is_confined,
                "delta": delta.to_json_object(),
            }
        )
    else:
        sys.stdout.write(safe_output(result.output))
        print_message(f"{task}: {'passed' if result.passed else 'not passed'} ({result.summary})")
    sys.stdout.flush()
    raise typer.Exit(ExitCode.DONE if result.passed else ExitCode.FAILED)


@app.command("done")
def finish_task(
    task: TaskId, summary: Summary = "", json: JsonOption = False, workspace: WorkspaceOption = None
) -> None:
    """Verify a claimed task and record it: completed with what it changed, in one commit; else failed, and exits 1.

    Scripts, settings, tests, rules and templates among the changes become a proposal.
    """
    from cleared.work.task_runs.task_completion import complete_task

    refuse_in_job()
    print_outcome(complete_task(open_host(workspace), task, summary=summary), json)


@app.command("fail")
def fail_task(task: TaskId, summary: Summary = "", json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Record that a task failed, or that a completed one no longer holds: what requires it waits."""
    from cleared.work.task_runs.task_completion import fail_task as fail

    refuse_in_job()
    host = open_host(workspace)
    read_task_set(host).require_task(task)
    outcome = fail(host, task, summary or f"Failed, says {current_user()}")
    if json:
        print_json({"id": task, "status": outcome.status, "summary": outcome.summary, "commit": outcome.commit})
    else:
        print_line(f"{task} has failed ({str(outcome.commit)[:10]})")


@app.command("retry")
def retry_task(
    task: TaskId, summary: Summary = "", json: JsonOption = False, workspace: WorkspaceOption = None
) -> None:
    """Have a failed or blocked task tried again, or take a claim back: it is pending."""
    print_recorded(task_decisions.retry_task(open_host_once(workspace, json=json), task, summary), json)


@app.command("skip")
def skip_task(task: TaskId, summary: Summary = "", json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Leave a task, with a reason (--summary): it is blocked, and what requires it waits until somebody retries it."""
    print_recorded(task_decisions.skip_task(open_host(workspace), task, summary), json)


@app.command("archive")
def archive_tasks(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Move the completed tasks into docs/tasks/ARCHIVE.jsonl, where there are more than ten; they go on counting."""
    moved, commit = task_archive.archive_tasks(open_host(workspace))
    if json:
        print_json({"archived": moved, "commit": commit})
    else:
        print_line(f"archived: {', '.join(moved)}" if moved else "nothing was to be archived")


@app.command("check")
def check_tasks(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Check the task files, what they require and name, their seals, and every line of the ledger; exits 1 for any."""
    findings = task_checks.check_tasks(open_host(workspace))
    if json:
        print_json([{"file": p.file, "line": p.line, "field": p.field, "message": text} for p, text in findings])
    else:
        for place, text in findings:
            print_line(f"{place}: {text}")
        print_message(f"{len(findings)} to put right" if findings else "Tasks and ledger are in order.")
    sys.stdout.flush()
    raise typer.Exit(ExitCode.FAILED if findings else ExitCode.DONE)


@app.command("run")
def run_tasks(
    command: Annotated[
        str | None, typer.Option("--command", metavar="COMMAND", help="The worker: a shell command (tasks.command).")
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="NAME", help="The worker: an agent (tasks.agent).")
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option("--engine", metavar="ENGINE", help=f"The worker: {ENGINE_CHOICE} (tasks.engine)."),
    ] = None,
    allow_ai: AllowEngineOption = False,
    most: Annotated[int | None, typer.Option("--max", min=1, help="How many tasks at the most.")] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", min=1, max=16, help="How many tasks at once (tasks.workers)."),
    ] = None,
    digest: DigestOption = "",
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Have a worker do the tasks: claim, brief, work, verify, record. Ends when all are done or none is ready.

    One at a time, or with --workers several whose context.files do not meet. It works in a private clone; only an
    engine has the network. What tells an engine what to do (skills, rules/, AGENTS.md …) and is not known here yet is
    shown in full, and you are asked. Exits 6 where all are done, 7 where none is ready, 0 after --max.
    """
    import signal

    from cleared.work.task_runs.engine_worker import EngineWorker
    from cleared.work.task_runs.task_run import run_tasks as run
    from cleared.work.task_runs.workers import choose_worker

    refuse_in_job()
    host = open_host(workspace)
    worker = choose_worker(host, command, agent, engine, allow_ai=allow_ai)
    if isinstance(worker, EngineWorker):
        take_guiding_texts(host, digest, f"cleared task run --engine {worker.engine}", more=list_skill_files(host))
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        report = run(host, worker, most=most, workers=workers or host.config.tasks.workers)
    finally:
        signal.signal(signal.SIGTERM, before)
    if json:
        print_json(
            {
                "state": report.state,
                "reasons": list(report.reasons),
                "tasks": [outcome_data(outcome) for outcome in report.outcomes],
            }
        )
    else:
        for outcome in report.outcomes:
            print_line(f"{outcome.task_id} {outcome.status}")
        for reason in report.reasons:
            print_message(reason)
    sys.stdout.flush()
    codes = {"done": ExitCode.ALL_DONE, "limit": ExitCode.DONE}
    raise typer.Exit(codes.get(report.state, ExitCode.BLOCKED))
