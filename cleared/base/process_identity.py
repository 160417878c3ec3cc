"""What the system knows of a process; nothing of one that is gone or another user's.

The system gives a number again to another process one day, so a process is identified by its number and start time.
Linux says both in proc(5); elsewhere ``ps`` is asked.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

_STATE: Final = 0
PARENT: Final = 1
SESSION: Final = 3
_THREADS: Final = 17
START: Final = 19
"""Places in ``stat``: fields 3, 4, 6, 20 and 22 of ``/proc/<pid>/stat``."""


def read_stat(pid: int) -> list[str] | None:
    """What follows the name in ``/proc/<pid>/stat``."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return text.rsplit(")", 1)[1].split()


def has_ended(fields: Sequence[str]) -> bool:
    """Whether a process is dead by its ``stat``. One whose first thread alone has ended is called a zombie, too."""
    return fields[_STATE] in "ZX" and int(fields[_THREADS]) <= 1


def read_environment(pid: int) -> list[bytes]:
    """``NAME=value`` each, as when the process was started."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def process_start(pid: int) -> str | None:
    """When the process began, as a text that no other of its number has; None where there is none, or it is dead."""
    if sys.platform != "linux":
        return _started_by_ps(pid)
    else:
        fields = read_stat(pid)
        return None if fields is None or has_ended(fields) else f"{_boot_id()}:{fields[START]}"


def _started_by_ps(pid: int) -> str | None:
    result = subprocess.run(
        ["ps", "-o", "lstart=,stat=", "-p", str(pid)], capture_output=True, text=True, check=False, env={"LC_ALL": "C"}
    )
    text = " ".join(result.stdout.split())
    return None if not text or text.rsplit(" ", 1)[-1].startswith("Z") else text.rsplit(" ", 1)[0]


def is_alive(pid: int, since: str) -> bool:
    """Whether the process that had this number then is still there."""
    return process_start(pid) == since


def find_session(pid: int, since: str) -> int:
    """The session that this process led, now that it is gone; -1 where the number may be somebody else's by now."""
    return pid if since and is_of_this_boot(since) and process_start(pid) is None else -1


def is_of_this_boot(since: str) -> bool:
    """Whether the machine has been on ever since that process began; what was not synced is then still there."""
    return sys.platform != "linux" or since.startswith(f"{_boot_id()}:")


@cache
def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()[:8]
    except OSError:
        return ""


def restore_handlers(earlier: Mapping[signal.Signals, Any]) -> None:
    """Put signal handlers back in a process that is about to end: a further signal must not kill it, which would change
    its exit code."""
    for number, handler in earlier.items():
        signal.signal(number, signal.SIG_IGN if handler == signal.SIG_DFL else handler)
