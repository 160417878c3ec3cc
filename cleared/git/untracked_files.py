"""The files of a directory that git does not pass over, whatever the index of the repository holds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from cleared.git.git_process import Git, GitFailed
from cleared.git.repository import Repository

_COMPILED: Final = "__pycache__"
_NO_LITERAL: Final = {"GIT_LITERAL_PATHSPECS": "0"}
"""``check-ignore`` knows no literal paths, and ends where it is told to take them so."""


def list_unignored_files(repo: Repository, root: Path) -> frozenset[str]:
    """Every file below ``root`` but the ignored ones, relative to it; a repository in it as a folder with a slash.

    ``root``: the repository's own, or another directory with files of it. What is ignored is decided by the
    repository's own files: what another directory has in its ``.gitignore`` or ``.git`` plays no part.
    """
    if root.resolve() == repo.root.resolve():
        return _list_own_files(repo)
    files = list(_walk(root))
    ignored = find_ignored(repo, (path.rstrip("/") for path in files))
    return frozenset(path for path in files if path.rstrip("/") not in ignored)


def find_ignored(repo: Repository, paths: Iterable[str]) -> set[str]:
    """Which of these paths the repository's own files let git pass over. Folders have no slash at their end. What
    Python compiles counts as ignored everywhere."""
    listed = {path for path in paths if path}
    compiled = {path for path in listed if _COMPILED in path.split("/")}
    # Git refuses all of them for one below a link.
    links = {folder for folder in {Path(path).parent for path in listed} if _is_below_link(repo.root, folder)}
    asked = [path for path in listed - compiled if Path(path).parent not in links]
    # With a dot in front, a name that begins with a colon is a name.
    text = b"".join(b"./" + os.fsencode(path) + b"\0" for path in asked)
    try:
        output = Git(repo.root).run("check-ignore", "--no-index", "--stdin", "-z", input=text, env=_NO_LITERAL)
    except GitFailed as failed:
        if failed.returncode != 1:  # it ends so where it ignores none
            raise
        output = b""
    return compiled | {os.fsdecode(path).removeprefix("./") for path in output.split(b"\0") if path}


def _is_below_link(root: Path, folder: Path) -> bool:
    return any((root / part).is_symlink() for part in (folder, *folder.parents))


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
