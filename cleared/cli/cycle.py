"""``cleared cycle …``: AI cycles. A coding engine works in a private clone; what it changed goes through the gate."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from cleared.base.terminal import escape_lines, print_fields, print_json, print_line, print_message, print_table
from cleared.changes.host import Host
from cleared.cli.command_groups import new_group
from cleared.cli.guiding import take_guiding_texts
from cleared.cli.log_following import follow_logs
from cleared.cli.loop_options import ENGINE_CHOICE, AllowEngineOption
from cleared.cli.options import JsonOption, PrintOption, WorkspaceOption, open_host
from cleared.cli.service_manager import choose_manager, install_unit, uninstall_unit
from cleared.cli.showing import DigestOption
from cleared.work.cycles.consensus import ConsensusFile
from cleared.work.cycles.cycle_control import list_history, read_status, set_paused, stop_loop
from cleared.work.cycles.cycle_files import make_cycle_files
from cleared.work.cycles.cycle_log import list_cycle_logs, list_main_logs, remove_old_logs
from cleared.work.cycles.cycle_settings import OPT_IN_VARIABLE, OVERRIDES, read_cycle_settings, require_opt_in
from cleared.work.cycles.engines import load_engine

app = new_group()

EngineOption = Annotated[
    str | None, typer.Option("--engine", metavar="ENGINE", help=f"{ENGINE_CHOICE} (loop.ai.engine).")
]


def _overriding(name: str, metavar: str, least: float | None = None) -> Any:
    """The option that says a setting of ``loop.ai`` for one start."""
    flag, variable = OVERRIDES[name]
    return typer.Option(flag, metavar=metavar, help=f"{variable}." if variable else "End after N.", min=least)


@app.command("init")
def init_cycles(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Make PROMPT.md, memories/consensus.md, scripts/core/ and the Makefile. Files that are there stay as they are."""
    made, kept = make_cycle_files(open_host(workspace).root)
    if json:
        print_json({"made": made, "kept": kept})
        return
    for path in made:
        print_line(path)
    if kept:
        print_message(f"Left as they are: {', '.join(kept)}.")
    print_message("Say what you want in PROMPT.md, commit it, then: cleared cycle start --allow-ai.")


@app.command("start")
def start_cycles(
    context: typer.Context,
    engine: EngineOption = None,
    allow_ai: AllowEngineOption = False,
    awake: Annotated[bool, typer.Option("--awake", help="Keep the machine awake meanwhile.")] = False,
    max_cycles: Annotated[int | None, _overriding("max_cycles", "N", least=1)] = None,
    model: Annotated[str | None, _overriding("model", "NAME")] = None,
    interval_seconds: Annotated[float | None, _overriding("interval_seconds", "S")] = None,
    cycle_timeout_seconds: Annotated[float | None, _overriding("cycle_timeout_seconds", "S")] = None,
    max_consecutive_errors: Annotated[int | None, _overriding("max_consecutive_errors", "N")] = None,
    max_no_progress: Annotated[int | None, _overriding("max_no_progress", "N")] = None,
    cooldown_seconds: Annotated[float | None, _overriding("cooldown_seconds", "S")] = None,
    limit_wait_seconds: Annotated[float | None, _overriding("limit_wait_seconds", "S")] = None,
    max_logs: Annotated[int | None, _overriding("max_logs", "N")] = None,
    codex_sandbox_mode: Annotated[str | None, _overriding("codex_sandbox_mode", "MODE")] = None,
    codex_bin: Annotated[str | None, _overriding("codex_bin", "PATH")] = None,
    qwen_bin: Annotated[str | None, _overriding("qwen_bin", "PATH")] = None,
    opencode_bin: Annotated[str | None, _overriding("opencode_bin", "PATH")] = None,
    claude_bin: Annotated[str | None, _overriding("claude_bin", "PATH")] = None,
    digest: DigestOption = "",
    workspace: WorkspaceOption = None,
) -> None:
    """Run AI cycles in the foreground, one after another, until stopped. Off unless the approved settings allow it.

    The engine works in a private clone, with the network and its own credential. It cannot write this workspace, the
    books or your keys. Changes of agents and settings are proposed; other files wait on a branch with a card. The name
    in capitals behind an option is the environment variable that says the same. What tells the engine what to do
    (PROMPT.md, the consensus, rules/, AGENTS.md …) and is not known here yet is shown in full, and you are asked. Exits
    1 where the last of --max-cycles failed, or the loop had to end.
    """
    import os

    from cleared.work.cycles.cycle_loop import CycleLoop
    from cleared.work.cycles.engine_confinement import describe_freedom, find_binary
    from cleared.work.cycles.guiding_texts import read_own_texts
    from cleared.work.cycles.keep_awake import keep_awake
    from cleared.work.cycles.pending_work import commit_start

    host = open_host(workspace)
    host.refuse_invalid_policy()
    require_opt_in(host.config, allow_ai)
    settings = read_cycle_settings(host.config, context.params)
    own = read_own_texts(host.root)
    binary = find_binary(settings, host.root, os.environ)
    take_guiding_texts(host, digest, "cleared cycle start", commit=commit_start(host), own=own)
    for line in describe_freedom(settings, binary):
        print_message(line)
    with keep_awake(awake):
        raise typer.Exit(CycleLoop(host, settings, binary).run())


@app.command("stop")
def stop_cycles(
    now: Annotated[bool, typer.Option("--now", help="End the engine that works, too.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Stop the loop of cycles, whatever its engine: after the cycle that runs, or now."""
    print_message(stop_loop(open_host(workspace), now=now))


@app.command("status")
def show_cycle_status(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Show what the loop of cycles does now, its last cycle, and the consensus."""
    host = open_host(workspace)
    state = read_status(host.root)
    if json:
        print_json(state)
        return
    last = state["last_cycle"] or {}
    print_fields(
        [
            ("status", state["status"]),
            ("engine", state["engine"] or "none yet"),
            ("process", state["pid"]),
            ("until", state["until"]),
            ("reason", state["reason"]),
            ("cycles", state["cycle"]),
            ("failures in a row", state["consecutive_errors"]),
            ("cost", f"{state['total_cost']} USD, {state['total_tokens']:,} tokens"),
            ("time", f"{state['total_seconds'] / 60:.0f} min of work"),
            ("last cycle", f"{last.get('number')}: {last.get('outcome')}: {last.get('summary')}" if last else "none"),
        ]
    )
    print_line("")
    print_line(escape_lines(ConsensusFile(host.root).read().decode("utf-8", "replace").rstrip() or "No consensus yet."))


@app.command("cycles")
def list_cycles(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """List the cycles whose logs are kept."""
    rows = list_history(open_host(workspace).root)
    if json:
        print_json(rows)
        return
    print_table(
        ["cycle", "engine", "began", "bytes", "log"],
        ((r["number"], r["engine"], r["began"], r["bytes"], r["log"]) for r in rows),
        empty="No cycle yet.",
    )


@app.command("last")
def show_last_cycle(workspace: WorkspaceOption = None) -> None:
    """Print the whole output of the last cycle."""
    logs = list_cycle_logs(open_host(workspace).root)
    if not logs:
        print_message("No cycle yet.")
        return
    print_line(escape_lines(logs[-1].read_text("utf-8", "replace").rstrip()))


@app.command("monitor")
def follow_log(workspace: WorkspaceOption = None) -> None:
    """Follow the log of the loop of cycles, until Ctrl-C."""
    follow_logs(list_main_logs(open_host(workspace).root), 20, follow=True)


@app.command("pause")
def pause_cycles(workspace: WorkspaceOption = None) -> None:
    """Begin no further cycle until `cleared cycle resume`, also after a restart of the machine."""
    set_paused(open_host(workspace).root, True)
    print_message("Paused: no further cycle begins. Go on with: cleared cycle resume.")


@app.command("resume")
def resume_cycles(workspace: WorkspaceOption = None) -> None:
    """Let cycles begin again."""
    set_paused(open_host(workspace).root, False)
    print_message("Cycles begin again.")


@app.command("install")
def install_cycles(
    engine: EngineOption = None,
    allow_ai: AllowEngineOption = False,
    only_print: PrintOption = False,
    digest: DigestOption = "",
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Have the system (systemd, launchd) run cycles now and at each login, and again when they fail.

    A loop that was stopped, or that gave up with a reason, stays stopped. The permission to run an engine is recorded
    in the file only where --allow-ai or CLEARED_ALLOW_AI=1 is given now. Texts that would guide an engine are shown
    first, as by cleared cycle start: the service could ask nobody.
    """
    import os

    from cleared.work.cycles.guiding_texts import read_own_texts
    from cleared.work.cycles.pending_work import commit_start

    host = open_host(workspace)
    require_opt_in(host.config, allow_ai)
    if not only_print:
        own = read_own_texts(host.root)
        take_guiding_texts(host, digest, "cleared cycle install", commit=commit_start(host), own=own)
    allowed = allow_ai or os.environ.get(OPT_IN_VARIABLE, "").strip() == "1"
    manager = _choose_manager(host, engine, {OPT_IN_VARIABLE: "1"} if allowed else {})
    install_unit(manager, only_print=only_print, json=json)


@app.command("uninstall")
def uninstall_cycles(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Stop that service and remove its file."""
    uninstall_unit(_choose_manager(open_host(workspace), None, {}), json=json)


def _choose_manager(host: Host, engine: str | None, variables: dict[str, str]) -> Any:
    name = load_engine(engine or host.config.loop.ai.engine).name
    return choose_manager(
        host.root,
        30,
        arguments=("cycle", "start", "--engine", name),
        installed_by="cleared cycle",
        variables={**_engine_variables(name), **variables},
    )


def _engine_variables(name: str) -> dict[str, str]:
    """What says where the engine and the folders of its credential are."""
    import os

    engine = load_engine(name)
    names = (engine.binary_variable, "MODEL", "PATH", *(variable for variable, _ in engine.folder_variables))
    return {key: os.environ[key] for key in names if os.environ.get(key)}


@app.command("clean-logs")
def clean_logs(workspace: WorkspaceOption = None) -> None:
    """Remove the logs of cycles. The main log stays."""
    removed = remove_old_logs(open_host(workspace).root, 0)
    print_message(f"Removed {removed} {'log' if removed == 1 else 'logs'}.")


@app.command("reset-consensus")
def reset_consensus(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False, workspace: WorkspaceOption = None
) -> None:
    """Begin the consensus anew, and count costs from zero. The old one is kept beside it."""
    from cleared.work.cycles.cycle_control import reset_consensus

    host = open_host(workspace)
    if not yes and not sys.stdin.isatty():
        raise typer.BadParameter("there is no terminal to ask on: pass --yes (make reset-consensus ARGS=--yes)")
    if not yes and not typer.confirm("Replace memories/consensus.md by the initial one?", err=True):
        raise typer.Exit(1)
    kept = reset_consensus(host)
    print_message(f"The consensus is the initial one. The old one is {kept}." if kept else "There was none to keep.")
