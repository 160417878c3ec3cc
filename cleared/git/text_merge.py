"""Merging two changes of one file, as git does."""

from __future__ import annotations

from cleared.base.temporary_folders import open_temporary_folder
from cleared.git.git_process import Git, GitFailed


def merge_versions(old: bytes | None, ours: bytes | None, theirs: bytes | None) -> tuple[bytes | None, bool]:
    """What becomes of a file that was ``old`` where one side made ``ours`` of it and the other ``theirs``, and whether
    both fit together; None stands for no file. Where they do not fit it stays ours."""
    if theirs in (old, ours):
        return ours, True
    if ours == old:
        return theirs, True
    if old is None or ours is None or theirs is None:
        return ours, False
    with open_temporary_folder("merge") as folder:
        for name, data in (("ours", ours), ("old", old), ("theirs", theirs)):
            (folder / name).write_bytes(data)
        try:
            return Git(folder).run("merge-file", "-p", "-q", "ours", "old", "theirs"), True
        except GitFailed:  # lines that both have changed, or no text
            return ours, False
