"""The files of a directory that git does not pass over, whatever the index of the repository holds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from cleared.git.git_process import Git
from cleared.git.repository import Repository


def list_unignored_files(repo: Repository, root: Path) -> frozenset[str]:
    """Every file below ``root`` but the ignored ones, relative to it; a repository in it as a folder with a slash.

    ``root``: the repository's own, or another directory with files of it. What is ignored is decided by the
    repository's own files: what another directory has in its ``.gitignore`` or ``.git`` plays no part.
    """
    if root.resolve() == repo.root.resolve():
        return _list_own_files(repo)
    files = list(_walk(root))
    text = b"".join(os.fsencode(path.rstrip("/")) + b"\0" for path in files)
    output = Git(repo.root).run("check-ignore", "--no-index", "--stdin", "-z", input=text, check=False)
    ignored = frozenset(os.fsdecode(path) for path in output.split(b"\0"))
    return frozenset(path for path in files if path.rstrip("/") not in ignored)


def _list_own_files(repo: Repository) -> frozenset[str]:
    no_index = {"GIT_INDEX_FILE": str(repo.git_dir / "no-such-index")}
    output = Git(repo.root).run("ls-files", "--others", "--exclude-standard", "-z", env=no_index)
    return frozenset(os.fsdecode(path) for path in output.split(b"\0") if path)


def _walk(root: Path) -> Iterator[str]:
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        try:
            entries = list(os.scandir(root / prefix))
        except OSError:
            continue  # whoever compares it with the commit finds it unreadable, too
        if prefix and any(entry.name == ".git" for entry in entries):
            yield prefix
            continue
        for entry in entries:
            path = f"{prefix}{entry.name}"
            if path == ".git":
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(f"{path}/")
            else:
                yield path
