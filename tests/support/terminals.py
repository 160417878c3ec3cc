"""Commands on a terminal of their own, with somebody who types."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from patience import PATIENCE
from preloaded import Preloaded


def run_on_terminal(root: Path, argv: Sequence[str], answers: Sequence[tuple[str, str]]) -> tuple[int, str]:
    """Run ``cleared`` on a terminal of its own and type each answer once its prompt is there; exit code and output."""
    terminal, its = pty.openpty()
    process: Preloaded = Preloaded(
        argv, function=f"{__name__}:run_command", stdin=its, stdout=its, stderr=its, cwd=root
    )
    os.close(its)
    shown, at, waiting = "", 0, list(answers)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                part = os.read(terminal, 65536)
            except OSError:
                break
            if not part:
                break
            shown += part.decode("utf-8", "replace")
        if waiting and waiting[0][0] in shown[at:]:
            prompt, typed = waiting.pop(0)
            at = shown.index(prompt, at) + len(prompt)
            os.write(terminal, typed.encode() + b"\n")
    else:
        process.kill()
    os.close(terminal)
    return process.wait(), shown


def run_command() -> Any:
    """In the process: make the terminal that it was given the one that controls its session, then do the command."""
    from cleared.cli import main

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    return main()
