"""Keeping the machine awake while cycles run: caffeinate(8) on macOS, systemd-inhibit(1) on Linux."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from cleared.base.errors import UsageError
from cleared.base.programs import find_program

_GRACE_SECONDS: Final = 2.0
"""Between SIGTERM and SIGKILL."""


@contextmanager
def keep_awake(wanted: bool) -> Iterator[None]:
    """Keep the machine awake in this block. Raises ``UsageError`` where no program for it is installed."""
    if not wanted:
        yield
        return
    process = subprocess.Popen(
        _inhibitor_command(os.getpid()),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        _end_inhibitor(process)


def _end_inhibitor(process: subprocess.Popen[bytes]) -> None:
    """End the program and what it started, also where it ignores SIGTERM (as this process may have been told to)."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
            return


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
