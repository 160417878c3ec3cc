"""What the system tells of a process (Linux, proc(5)); nothing of one that is gone or another user's."""

from __future__ import annotations

from pathlib import Path
from typing import Final

STATE: Final = 0
PARENT: Final = 1
SESSION: Final = 3
START: Final = 19
"""Places in ``stat``: fields 3, 4, 6 and 22 of ``/proc/<pid>/stat``."""


def stat(pid: int) -> list[str] | None:
    """What follows the name in ``/proc/<pid>/stat``."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return text.rsplit(")", 1)[1].split()


def environment(pid: int) -> list[bytes]:
    """``NAME=value`` each, as when the process was started."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
