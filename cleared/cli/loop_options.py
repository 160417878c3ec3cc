"""Options that the commands of ``cleared loop`` share, and opening the loop's directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cleared.base.short_text import join_words
from cleared.changes.host import Host
from cleared.cli.options import open_host
from cleared.work.loop.loop_settings import LoopSettings, read_settings
from cleared.workspace.settings.ai_cycle_section import ENGINE_NAMES

RuntimeOption = Annotated[
    Path | None,
    typer.Option(
        "--runtime-dir",
        metavar="DIR",
        show_default=False,
        help="Where the loop's files are (SINGLE_AGENT_RUNTIME_DIR, loop.runtime_dir; else .cleared/loop).",
    ),
]
LogOption = Annotated[
    Path | None, typer.Option("--log-dir", metavar="DIR", help="Where its log is (SINGLE_AGENT_LOG_DIR).")
]
SleepOption = Annotated[
    float | None,
    typer.Option(
        "--sleep",
        metavar="S",
        min=0,
        max=86_400,
        help="Seconds between cycles when no job waits (SINGLE_AGENT_SLEEP_SECONDS).",
    ),
]
CyclesOption = Annotated[
    int | None, typer.Option("--max-cycles", metavar="N", min=1, help="End after N cycles (SINGLE_AGENT_MAX_CYCLES).")
]
RotateOption = Annotated[
    bool | None,
    typer.Option(
        "--auto-rotate/--no-auto-rotate",
        help="When no job waits, enqueue the next of loop.rotation.",
        show_default=False,
    ),
]
InitOption = Annotated[
    bool | None,
    typer.Option(
        "--init/--no-init",
        help="Begin with a fresh state; the old one is archived (SINGLE_AGENT_INIT_ON_START).",
        show_default=False,
    ),
]
AllowOption = Annotated[
    bool | None,
    typer.Option(
        "--allow-ai-turn/--no-allow-ai-turn",
        help="Let ai_single_turn_bridge do anything at all (SINGLE_AGENT_ALLOW_AI_TURN).",
        show_default=False,
    ),
]
ENGINE_CHOICE = join_words(ENGINE_NAMES, "or")
AllowEngineOption = Annotated[
    bool, typer.Option("--allow-ai", help="Let an engine run, for this start (CLEARED_ALLOW_AI=1).")
]
DryOption = Annotated[
    bool | None,
    typer.Option(
        "--ai-dry-run/--no-ai-dry-run",
        help="Have it write what it would ask, and ask nobody (SINGLE_AGENT_AI_DRY_RUN).",
        show_default=False,
    ),
]
SessionOption = Annotated[
    str | None,
    typer.Option("--session", metavar="NAME", help="The tmux session to run in (SINGLE_AGENT_TMUX_SESSION)."),
]
JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="Its id, as cleared loop jobs shows it.")]


def open_loop(workspace: Path | None, **flags: Any) -> tuple[Host, LoopSettings]:
    host = open_host(workspace)
    for name in ("runtime_dir", "log_dir"):  # as typed: below the directory one is in, not below the workspace
        if flags.get(name) is not None:
            flags[name] = Path(flags[name]).absolute()
    return host, read_settings(host.root, host.config, flags)
