"""Deleting a folder that somebody else has filled, whatever they left in it."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path
from typing import Final

_PASSES: Final = 100
_IN_MOTION: Final = (errno.ENOENT, errno.ENOTEMPTY)


def remove_tree(folder: Path) -> None:
    """Delete a folder with all that is in it, whatever their rights and however deep; links are removed, not followed.

    A program whose starter was killed may still write in it, as git does for a moment, and another process may delete
    the same folder: neither is in the way. Raises ``OSError``.
    """
    for left in reversed(range(_PASSES)):
        try:
            return _remove_once(folder)
        except OSError as error:
            if error.errno not in _IN_MOTION or not left:
                raise


def _remove_once(folder: Path) -> None:
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
        return
    if not folder.exists():
        return
    folder.chmod(0o700)
    while entries := list(os.scandir(folder)):
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                Path(entry).unlink()
                continue
            Path(entry).chmod(0o700)
            for below in list(os.scandir(entry)):
                if below.is_dir(follow_symlinks=False):  # moved up, as a path has its limit; to a name that is free
                    Path(below).chmod(0o700)
                    Path(below).rename(folder / f"removed-{secrets.token_hex(8)}")
                else:
                    Path(below).unlink()
            Path(entry).rmdir()
    folder.rmdir()
