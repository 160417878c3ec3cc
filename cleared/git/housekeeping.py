"""Keeping git's store small: the loose objects of many commits become one pack, in the background.

A loose object is a whole file, of which the next commit's differs by a line: a pack holds it as that line. Packs are
joined as they grow (``--geometric``), so that an object is packed anew about as often as their size doubles. No object
is ever removed, nor any lock of git's taken: a person's git is not held up.
"""

from __future__ import annotations

import os
import subprocess
import threading
from contextlib import suppress
from typing import Final

from cleared.base.clock import SystemClock
from cleared.base.errors import WorkspaceError
from cleared.git.repository import Repository

_SAMPLE: Final = ("17", "5a", "a3", "e1", "0c", "38", "7d", "c6")
"""Of the 256 folders of loose objects: git spreads these evenly."""
_MANY: Final = 16
"""Loose objects in these from which they are packed: 512 in all, those of some forty commits."""
_LARGE: Final = 2 << 20
"""Bytes of all loose objects from which they are packed, where they are more than the packs have."""
_FEWEST: Final = 3
"""Objects in these from which their bytes say something of all: one large file alone is no reason."""
_PAUSE_SECONDS: Final = 5.0
"""So long after packing began it is not begun again: what no branch names stays loose, however often it is tried."""
LOCK: Final = "cleared-repack.lock"
"""The file in git's folder that is locked while git packs."""
REPACK: Final = ("repack", "-d", "-q", "--geometric=2", "--no-write-bitmap-index", "--threads=1")
"""The command of git."""


def start_packing_if_due(repo: Repository) -> bool:
    """Start packing in the background where there are many loose objects. Returns whether it was started.

    Never waits and never fails. Where the user has switched git's own packing off (``gc.auto=0``), nothing is done.
    """
    objects = f"{repo.common_dir}{os.sep}objects"
    sizes: dict[str, list[int]] = {}
    for name in (*_SAMPLE, "pack"):
        with suppress(OSError), os.scandir(f"{objects}{os.sep}{name}") as entries:
            sizes[name] = [entry.stat().st_size for entry in entries]
    packed = sum(sizes.pop("pack", ()))
    loose = [size for folder in sizes.values() for size in folder]
    is_large = len(loose) >= _FEWEST and sum(loose) * 256 // len(_SAMPLE) >= max(_LARGE, packed)
    if len(loose) < _MANY and not is_large:
        return False
    with suppress(WorkspaceError, OSError):
        *values, _ = repo.git.run("config", "--get-all", "gc.auto").split()  # the last is that of our own call
        if values[-1:] == [b"0"]:
            return False
        return _start_packing(repo)
    return False


def _start_packing(repo: Repository) -> bool:
    lock = repo.common_dir / LOCK
    is_first = not lock.exists()
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        now = SystemClock().now().timestamp()
        is_soon = not is_first and now - os.fstat(descriptor).st_mtime < _PAUSE_SECONDS
        if is_soon or not _take_lock(descriptor):
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
