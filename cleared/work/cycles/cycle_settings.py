"""The settings of AI cycles: a flag beats an environment variable, which beats the approved ``config.yaml``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct

from cleared.base.errors import Place, PolicyError, UsageError
from cleared.work.cycles.engines import load_engine
from cleared.work.cycles.engines.engine import Engine, LaunchOptions
from cleared.work.loop.loop_settings import OPT_IN_VARIABLE as OPT_IN_VARIABLE
from cleared.workspace.settings.ai_cycle_section import ENGINE_NAMES, LoopAi
from cleared.workspace.settings.model import Config
from cleared.workspace.settings.value_checks import CHECKS

OVERRIDES: Final = {
    "engine": ("--engine", ""),
    "interval_seconds": ("--interval", "LOOP_INTERVAL"),
    "cycle_timeout_seconds": ("--timeout", "CYCLE_TIMEOUT_SECONDS"),
    "max_consecutive_errors": ("--max-errors", "MAX_CONSECUTIVE_ERRORS"),
    "max_no_progress": ("--max-no-progress", "MAX_NO_PROGRESS"),
    "cooldown_seconds": ("--cooldown", "COOLDOWN_SECONDS"),
    "limit_wait_seconds": ("--limit-wait", "LIMIT_WAIT_SECONDS"),
    "max_logs": ("--max-logs", "MAX_LOGS"),
    "model": ("--model", "MODEL"),
    **{f"{name}_bin": (f"--{name}-bin", f"{name.upper()}_BIN") for name in ENGINE_NAMES},
    "codex_sandbox_mode": ("--sandbox-mode", "CODEX_SANDBOX_MODE"),
    "max_cycles": ("--max-cycles", ""),
    "cost_cap": ("--cost-cap", ""),
}
"""Setting → the flag and the environment variable that say it for one start, as the documented scripts name them."""
_NUMBERS: Final = {"max_consecutive_errors": int, "max_no_progress": int, "max_logs": int}
_UNSET: Final = "Set it right, or unset it."


class CycleSettings(Struct, frozen=True):
    """The settings that hold for one start. Times in seconds, ``cost_cap`` in US dollars; 0: no cap."""

    engine: Engine
    binary: str
    launch: LaunchOptions
    interval_seconds: float
    cycle_timeout_seconds: float
    max_consecutive_errors: int
    max_no_progress: int
    cooldown_seconds: float
    limit_wait_seconds: float
    max_logs: int
    max_output_bytes: int
    max_cycles: int | None
    cost_cap: Decimal
    max_tokens: int
    max_minutes: int
    program_folders: tuple[str, ...]
    environment: tuple[str, ...]
    """Names of variables, or what they begin with and a ``*``."""


def read_cycle_settings(
    config: Config, flags: Mapping[str, Any], environment: Mapping[str, str] | None = None
) -> CycleSettings:
    """The settings from flags (None: not given), environment and configuration. Raises ``UsageError``."""
    environment = os.environ if environment is None else environment
    section = config.loop.ai
    values = {name: _read_value(section, name, flags, environment) for name in OVERRIDES}
    engine = load_engine(values["engine"])
    return CycleSettings(
        engine=engine,
        binary=values[f"{engine.name}_bin"] or engine.binary,
        launch=LaunchOptions(values["model"], values["codex_sandbox_mode"]),
        interval_seconds=values["interval_seconds"],
        cycle_timeout_seconds=values["cycle_timeout_seconds"],
        max_consecutive_errors=values["max_consecutive_errors"],
        max_no_progress=values["max_no_progress"],
        cooldown_seconds=values["cooldown_seconds"],
        limit_wait_seconds=values["limit_wait_seconds"],
        max_logs=values["max_logs"],
        max_output_bytes=section.max_output_mb << 20,
        max_cycles=values["max_cycles"],
        cost_cap=values["cost_cap"],
        max_tokens=section.max_tokens,
        max_minutes=section.max_minutes,
        program_folders=section.program_folders,
        environment=section.environment,
    )


def require_opt_in(config: Config, allow_ai: bool, environment: Mapping[str, str] | None = None) -> None:
    """Raises ``PolicyError`` where AI cycles are not switched on in the approved settings, or not for this start.

    ``config``: with the protected settings as approved; an unapproved ``config.yaml`` switches nothing on.
    """
    environment = os.environ if environment is None else environment
    if not config.loop.ai.enabled:
        raise PolicyError(
            "AI cycles are not switched on in the approved settings; nothing was started",
            place=Place("config.yaml", field="loop.ai.enabled"),
            remedy="Read docs/work/cycles.md, then: cleared config set loop.ai.enabled true, and approve it.",
        )
    if not allow_ai and environment.get(OPT_IN_VARIABLE, "").strip() != "1":
        raise PolicyError(
            "an engine may change everything in its clone and use the network, and this start does not allow it; "
            "nothing was started",
            remedy=f"Pass --allow-ai, or set {OPT_IN_VARIABLE}=1.",
        )


def _read_value(section: LoopAi, name: str, flags: Mapping[str, Any], environment: Mapping[str, str]) -> Any:
    given, (flag, variable) = flags.get(name), OVERRIDES[name]
    if given is not None:
        return _check_value(name, given, flag, "Give another.")
    text = environment.get(variable, "").strip() if variable else ""
    if not text:
        return getattr(section, name)
    if not isinstance(getattr(section, name), int | float):
        return _check_value(name, text, variable, _UNSET)
    try:
        number = _NUMBERS.get(name, float)(text)
    except ValueError:
        wanted = "a whole number" if name in _NUMBERS else "a number of seconds"
        raise UsageError(f"{text[:60]!r} is not {wanted}", place=Place(field=variable), remedy=_UNSET) from None
    return _check_value(name, number, variable, _UNSET)


def _check_value(name: str, value: Any, where: str, remedy: str) -> Any:
    """The value, checked as the same key of the configuration. Raises ``UsageError``."""
    check = CHECKS.get((LoopAi, name))
    complaint = check(value) if check else None
    if complaint:
        raise UsageError(complaint, place=Place(field=where), remedy=remedy)
    return value
