"""What runs a script: the sandbox in this process, or one behind a bridge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from cleared.sandbox.limits import Limits
from cleared.sandbox.script_failure import Position


class Executor(Protocol):
    """Runs one script after another, each in a fresh session."""

    def run(
        self,
        source: str,
        *,
        file: str,
        call: Callable[[str, tuple[object, ...], dict[str, object], Position], object],
        names: Any,
        limits: Limits,
        now: Any,
        timezone: str,
        seed: str,
        inputs: Mapping[str, object] | None,
        on_print: Callable[[str], None] | None,
        deadline: float | None,
    ) -> object: ...
