"""The engines: one module each. A fifth is one new module, and its name in ``ENGINE_NAMES`` with the settings."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from cleared.base.errors import Place, UsageError
from cleared.work.cycles.engines.engine import Engine
from cleared.workspace.settings.ai_cycle_section import ENGINE_NAMES


@cache
def load_engine(name: str) -> Engine:
    """``ENGINE`` of the module of this name. Raises ``UsageError`` where there is none."""
    if name not in ENGINE_NAMES:
        raise UsageError(
            f"there is no engine {name[:40]!r}", place=Place(field="engine"), remedy=f"Use {', '.join(ENGINE_NAMES)}."
        )
    engine: Engine = import_module(f"cleared.work.cycles.engines.{name}").ENGINE
    return engine
