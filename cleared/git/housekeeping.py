"""Keeping git's store small: the packs of many commits, and loose objects with them, become one in the background.

Each commit has a pack of whole objects, which differ from those of the next by a line: joined they are kept as that
line. Packs are joined as they grow (``--geometric``), so that an object is packed anew about as often as their size
doubles. No object is ever removed, nor any lock of git's taken: a person's git is not held up.
"""

from __future__ import annotations

import os
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from cleared.base.clock import SystemClock
from cleared.base.errors import WorkspaceError
from cleared.git.object_writer import KEEP_SUFFIX, KEEP_TEXT
from cleared.git.repository import Repository

_MANY: Final = 24
"""Packs from which they are joined. From 50 on git would do so itself, and wait for it."""
_TOO_MANY: Final = 200
"""Packs from which they are joined whatever git's settings say."""
_LARGE: Final = 512 << 10
"""Bytes of all packs but the largest from which they are joined, where they are more than that has."""
_FEWEST: Final = 3
"""Packs from which their bytes say something of all: one large file alone is no reason."""
_PAUSE_SECONDS: Final = 5.0
"""So long after packing began it is not begun again, where git may find nothing to join."""
_CROWD: Final = 2 * _MANY
"""Packs of which git joins some for certain: then there is no pause, as commits come faster than it can take."""
_ABANDONED_SECONDS: Final = 3600.0
LOCK: Final = "cleared-repack.lock"
"""The file in git's folder that is locked while git packs."""
REPACK: Final = ("repack", "-d", "-q", "--geometric=2", "--no-write-bitmap-index", "--threads=1")
"""The command of git."""


def start_packing_if_due(repo: Repository) -> bool:
    """Start packing in the background where there are many packs. Returns whether it was started.

    Never waits and never fails. Where the user has switched git's own packing off (``gc.auto=0``), nothing is done
    until there are so many that each command would be slow.
    """
    packs: dict[str, int] = {}
    kept: list[str] = []
    with suppress(OSError), os.scandir(f"{repo.common_dir}{os.sep}objects{os.sep}pack") as entries:
        for entry in entries:
            if entry.name.endswith(".pack"):
                packs[entry.name.removesuffix(".pack")] = entry.stat().st_size
            elif entry.name.endswith(KEEP_SUFFIX):
                kept.append(entry.name.removesuffix(KEEP_SUFFIX))
                _remove_abandoned(Path(entry.path))
    sizes = sorted(size for name, size in packs.items() if name not in kept)  # git joins no others
    is_large = len(sizes) >= _FEWEST and sum(sizes[:-1]) >= max(_LARGE, sizes[-1])
    if len(sizes) < _MANY and not is_large:
        return False
    with suppress(WorkspaceError, OSError):
        return _start_packing(repo, len(sizes))
    return False


def _remove_abandoned(keep: Path) -> None:
    """Remove what a killed commit has left to keep its pack: that would never be joined."""
    old = SystemClock().now().timestamp() - _ABANDONED_SECONDS
    with suppress(OSError):
        if keep.stat().st_mtime < old and keep.read_bytes() == KEEP_TEXT:
            keep.unlink()


def _start_packing(repo: Repository, packs: int) -> bool:
    lock = repo.common_dir / LOCK
    is_first = not lock.exists()
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if is_first:
            os.utime(descriptor, (0, 0))  # its time is when packing began last
        is_soon = SystemClock().now().timestamp() - os.fstat(descriptor).st_mtime < _PAUSE_SECONDS
        if (is_soon and packs < _CROWD) or not _take_lock(descriptor):
            return False
        *values, _ = repo.git.run("config", "--get-all", "gc.auto").split()  # the last is that of our own call
        if values[-1:] == [b"0"] and packs < _TOO_MANY:
            return False
        os.utime(descriptor)
        # The lock goes with the input of the process, so that it is held until that ends, whatever becomes of this one.
        process = repo.git.start(REPACK, stdin=descriptor, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    finally:
        os.close(descriptor)
    threading.Thread(target=process.wait, daemon=True).start()
    return True


def _take_lock(descriptor: int) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
