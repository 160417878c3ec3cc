"""What the sandbox tests share: document 003's script, a shorter way to run, the worker's process id."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from cleared.sandbox.executor import ScriptRun
from cleared.sandbox.limits import Limits
from cleared.sandbox.monty import Sandbox
from cleared.sandbox.script_failure import Position

INGEST = Path(__file__).with_name("document_003_ingest.txt").read_text(encoding="utf-8")
"""Document 003's ``agents/ingest.py``, verbatim (not .py: it is no Python module, its last expression is a result)."""

NOW = datetime(2025, 2, 1, 6, 0, tzinfo=UTC)
FILE = "agents/sample.py"


class Host:
    """Primitives as a dict of functions; keeps what was called from where."""

    def __init__(self, **functions: Callable[..., object]) -> None:
        self.functions = functions
        self.calls: list[tuple[str, tuple[object, ...], dict[str, object], Position]] = []

    def __call__(self, name: str, args: tuple[object, ...], kwargs: dict[str, object], position: Position) -> object:
        self.calls.append((name, args, kwargs, position))
        return self.functions[name](*args, **kwargs)


def run(sandbox: Sandbox, source: str, host: Host | None = None, **given: object) -> object:
    host = host or Host()
    options: dict[str, object] = {"file": FILE, "now": NOW, "seed": "seed", "limits": Limits(seconds=60)}
    options |= {"call": host, "names": host.functions.keys()} | given
    return sandbox.run(ScriptRun(source, **options))  # type: ignore[arg-type]


def worker_pids() -> list[int]:
    """The processes that this one has started and that run the interpreter."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            name, rest = stat.split("(", 1)[1].rsplit(")", 1)
            state, parent = rest.split()[:2]
            if name == "monty" and int(parent) == os.getpid() and state != "Z":
                found.append(int(entry.name))
    return found
