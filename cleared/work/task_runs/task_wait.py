"""Until when the loop's turns at tasks wait, and how many have failed in a row: kept from one turn to the next."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from cleared.base.errors import ClearedError
from cleared.base.safe_files import read_stable, write_atomic
from cleared.changes.host import Host
from cleared.workspace.location import Layout
from cleared.workspace.lock import ensure_state_dir

_FILE: Final = "task-wait.json"
_MAX_BYTES: Final = 64 << 10


class TaskWait(Struct, frozen=True):
    """``until``: UTC, None where the next turn may begin at once."""

    failures: int = 0
    until: datetime | None = None
    reason: str = ""


def read_wait(root: Path) -> TaskWait:
    """What the last turn left; nothing where it cannot be read."""
    try:
        found = msgspec.json.decode(read_stable(root / Layout.state / _FILE, _MAX_BYTES, shown=_FILE)[0], type=TaskWait)
    except (ClearedError, OSError, ValueError, RecursionError):
        return TaskWait()
    return found if found.until is None or found.until.tzinfo is not None else TaskWait()


def note_wait(host: Host, wait: TaskWait) -> None:
    """Keep it; what says nothing is forgotten."""
    path = host.layout.state_dir / _FILE
    if wait == TaskWait():
        path.unlink(missing_ok=True)
        return
    ensure_state_dir(host.layout.state_dir)
    write_atomic(path, msgspec.json.encode(wait), mode=0o600)
