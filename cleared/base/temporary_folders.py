"""A folder for a while, such as for bank files and journals that a rehearsal looks at: nothing of it stays behind.

It goes with the ``with`` block. Whoever is killed leaves it; the next process that needs one removes it, as nobody
holds its lock any more.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from cleared.base.tree_removal import remove_tree

_PREFIX: Final = "cleared-temporary-"


@contextlib.contextmanager
def open_temporary_folder(purpose: str) -> Iterator[Path]:
    """A new folder of this user alone, below the system's for temporary files. ``purpose``: a word of its name. Raises
    ``OSError``."""
    prefix = f"{_PREFIX}{purpose}-"
    if sys.platform == "win32":  # no folder can be locked there
        with tempfile.TemporaryDirectory(prefix=prefix) as name:
            yield Path(name)
        return
    _remove_abandoned_folders(tempfile.gettempdir())
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        with _lock_folder(folder, waits=True) as is_ours:
            if not is_ours:  # taken for an abandoned one in the moment before it was locked
                continue
            try:
                yield folder
            finally:
                with contextlib.suppress(OSError):  # what cannot be deleted now is abandoned: the next one tries
                    remove_tree(folder)
            return


@cache
def _remove_abandoned_folders(parent: str) -> None:
    """Once for each process and folder for temporary files, as that may have very many entries."""
    for folder in Path(parent).glob(f"{_PREFIX}*"):
        with _lock_folder(folder, waits=False) as is_ours:
            if is_ours:
                with contextlib.suppress(OSError):
                    remove_tree(folder)


@contextlib.contextmanager
def _lock_folder(folder: Path, *, waits: bool) -> Iterator[bool]:
    """Hold the lock of a folder of this user: whether it is held, and the folder still there. Where the file system
    knows no locks, the one who ``waits`` has it, and nobody else."""
    assert sys.platform != "win32"
    import fcntl

    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        except OSError:
            yield waits
            return
        yield folder.exists() and os.fstat(descriptor).st_uid == os.getuid()
    finally:
        os.close(descriptor)
