"""The engines: one module each. A fifth is one new module, and its name in ``ENGINE_MODULES``."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

from cleared.base.errors import Place, UsageError
from cleared.work.cycles.engines.engine import Engine

ENGINE_MODULES: Final = ("codex", "qwen", "opencode", "claude")
"""Modules of this package; each has ``ENGINE``, of the same name."""


@cache
def load_engine(name: str) -> Engine:
    """The engine of this name. Raises ``UsageError`` where there is none."""
    if name not in ENGINE_MODULES:
        raise UsageError(
            f"there is no engine {name[:40]!r}", place=Place(field="engine"), remedy=f"Use {', '.join(ENGINE_MODULES)}."
        )
    engine: Engine = import_module(f"cleared.work.cycles.engines.{name}").ENGINE
    return engine
