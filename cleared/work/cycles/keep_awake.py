"""Keeping the machine awake while cycles run: caffeinate(8) on macOS, systemd-inhibit(1) on Linux."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cleared.base.errors import UsageError
from cleared.base.programs import find_program
from cleared.processes.program import Program, RunningProgram


@contextmanager
def keep_awake(wanted: bool) -> Iterator[None]:
    """Keep the machine awake in this block. Raises ``UsageError`` where no program for it is installed."""
    if not wanted:
        yield
        return
    command = _inhibitor_command(os.getpid())
    running = RunningProgram(Program(command, Path("/"), os.environ), bool)
    try:
        yield
    finally:
        running.end("it is over")
        while running.step():
            pass
        running.settle()


def _inhibitor_command(pid: int) -> list[str]:
    name = "caffeinate" if sys.platform == "darwin" else "systemd-inhibit"
    program = find_program(name)
    if program is None:
        raise UsageError(
            f"{name} is not installed, so the machine cannot be kept awake; nothing was started",
            remedy="Leave --awake out, or install it.",
        )
    if name == "caffeinate":
        return [program, "-i", "-w", str(pid)]
    return [program, "--what=idle:sleep", "--who=cleared", "--why=AI cycles run", "sleep", "infinity"]
