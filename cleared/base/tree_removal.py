"""Deleting a folder that somebody else has filled, whatever they left in it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def remove_tree(folder: Path) -> None:
    """Delete a folder with all that is in it, whatever their rights and however deep; links are removed, not followed.

    Raises ``OSError``.
    """
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
