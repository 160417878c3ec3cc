"""The settings of a loop: a flag beats an environment variable, which beats ``config.yaml``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from cleared.base.errors import Place, UsageError
from cleared.jobs.runtime_directory import RuntimeDirectory, locate_runtime, own_runtime
from cleared.workspace.settings.model import Config
from cleared.workspace.settings.model import Loop as Section
from cleared.workspace.settings.value_checks import CHECKS

VARIABLES: Final = {
    "runtime_dir": "SINGLE_AGENT_RUNTIME_DIR",
    "max_cycles": "SINGLE_AGENT_MAX_CYCLES",
    "sleep_seconds": "SINGLE_AGENT_SLEEP_SECONDS",
    "init_on_start": "SINGLE_AGENT_INIT_ON_START",
    "tmux_session": "SINGLE_AGENT_TMUX_SESSION",
    "allow_ai_turn": "SINGLE_AGENT_ALLOW_AI_TURN",
    "ai_dry_run": "SINGLE_AGENT_AI_DRY_RUN",
    "log_dir": "SINGLE_AGENT_LOG_DIR",
}
FLAGS: Final = {
    "runtime_dir": "--runtime-dir",
    "max_cycles": "--max-cycles",
    "sleep_seconds": "--sleep",
    "init_on_start": "--init",
    "tmux_session": "--session",
    "allow_ai_turn": "--allow-ai-turn",
    "ai_dry_run": "--ai-dry-run",
    "log_dir": "--log-dir",
}
OPT_IN_VARIABLE: Final = "CLEARED_ALLOW_AI"
"""Set to 1 it says the same as ``--allow-ai``."""
_UNSET: Final = "Set it right, or unset it."
_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


class LoopSettings(Struct, frozen=True):
    """The settings that hold for one loop."""

    runtime: RuntimeDirectory
    is_own: bool
    """Whether this is the workspace's own loop, which runs the jobs that scripts request."""
    sleep_seconds: float
    max_cycles: int | None
    init_on_start: bool
    auto_rotate: bool
    tmux_session: str | None
    allow_ai_turn: bool
    ai_dry_run: bool
    allow_ai: bool
    """Whether job types with ``opt_in`` are run: AI cycles."""


def read_settings(root: Path, config: Config, flags: Mapping[str, Any]) -> LoopSettings:
    """The settings from flags (None: not given), environment and configuration.

    Raises ``UsageError`` for a wrong flag or variable, ``PolicyError`` for a folder that cannot be the loop's.
    """
    values: dict[str, Any] = {}
    for name, variable in VARIABLES.items():
        flag = flags.get(name)
        text = os.environ.get(variable, "")
        if flag is not None:
            values[name] = _check_value(name, flag, FLAGS[name], "Give another.")
        elif text.strip():
            values[name] = _read_variable(name, variable, text.strip())
        else:
            values[name] = getattr(config.loop, name)
    rotate = flags.get("auto_rotate")
    place = locate_runtime(root, config, values["runtime_dir"], values["log_dir"])
    return LoopSettings(
        runtime=place,
        is_own=place.folder == own_runtime(root, config).folder,
        sleep_seconds=values["sleep_seconds"],
        max_cycles=values["max_cycles"],
        init_on_start=values["init_on_start"],
        auto_rotate=config.loop.auto_rotate if rotate is None else rotate,
        tmux_session=values["tmux_session"],
        allow_ai_turn=values["allow_ai_turn"],
        ai_dry_run=values["ai_dry_run"],
        allow_ai=bool(flags.get("allow_ai")) or os.environ.get(OPT_IN_VARIABLE, "").strip() == "1",
    )


def _read_variable(name: str, variable: str, text: str) -> Any:
    """The value of an environment variable, checked as the same key of the configuration. Raises ``UsageError``."""
    value: Any = text
    try:
        if name == "max_cycles":
            value = int(text)
        elif name == "sleep_seconds":
            value = float(text)
        elif isinstance(getattr(Section(), name), bool):
            lower = text.lower()
            if lower not in _TRUE | _FALSE:
                raise ValueError
            value = lower in _TRUE
    except ValueError:
        expected = {"max_cycles": "a whole number", "sleep_seconds": "a number of seconds"}.get(name, "1 or 0")
        raise UsageError(f"{text[:60]!r} is not {expected}", place=Place(field=variable), remedy=_UNSET) from None
    return _check_value(name, value, variable, _UNSET)


def _check_value(name: str, value: Any, where: str, remedy: str) -> Any:
    """The value, checked as the same key of the configuration. Raises ``UsageError`` that names flag or variable."""
    check = CHECKS.get((Section, name))
    complaint = check(str(value) if isinstance(value, Path) else value) if check else None
    if complaint:
        raise UsageError(complaint, place=Place(field=where), remedy=remedy)
    return value
