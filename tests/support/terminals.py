"""Commands on a terminal of their own, with somebody who types."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path


def run_on_terminal(root: Path, argv: Sequence[str], answers: Sequence[tuple[str, str]]) -> tuple[int, str]:
    """Run ``cleared`` on a terminal of its own and type each answer once its prompt is there; exit code and output."""
    pid, terminal = pty.fork()
    if pid == 0:  # pragma: no cover
        os.chdir(root)
        os.execv(sys.executable, [sys.executable, "-m", "cleared", *argv])
    shown, at, waiting = "", 0, list(answers)
    deadline = time.monotonic() + 120
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
        os.kill(pid, signal.SIGKILL)
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), shown
