"""The temporary folder of a worker, in which multiprocessing has its socket. What a killed worker has left of its own
is removed by the next one."""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from functools import cache
from multiprocessing.util import get_temp_dir
from pathlib import Path
from typing import Final

_MARK: Final = "cleared-worker"
"""The file in it that its worker holds locked."""


@cache
def mark_folder() -> None:
    """Make that folder, and mark it as this process's until that ends. Folders of workers that have ended go."""
    folder = Path(get_temp_dir())
    for mark in folder.parent.glob(f"pymp-*/{_MARK}"):
        with suppress(OSError):  # another user's, or of a worker that is up
            _remove_abandoned(mark)
    new = folder / f"{_MARK}.new"
    descriptor = os.open(new, os.O_RDWR | os.O_CREAT, 0o600)  # never closed
    with suppress(OSError):  # where there are no locks, nothing is removed either
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    new.rename(new.with_name(_MARK))  # now it is seen, and locked already


def _remove_abandoned(mark: Path) -> None:
    descriptor = os.open(mark, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_uid == mark.parent.lstat().st_uid == os.getuid():
            shutil.rmtree(mark.parent)
    finally:
        os.close(descriptor)
