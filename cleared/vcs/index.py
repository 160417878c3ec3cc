"""The user's index, brought up to a commit in the entries of a few paths; all else he staged stays.

It is git's own protocol (hold ``index.lock``, then replace ``index``), but the lock is ours and says so: after
a kill it can be told from one that a git of the user holds, which may be waiting for his editor.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from cleared.vcs.command import Git, GitFailed
from cleared.vcs.objects import encoded
from cleared.vcs.repository import Repository

_MARK = b"held by cleared\n"
_NAME = "cleared-index-"


def update_index(
    repo: Repository, entries: Mapping[str, tuple[str, str] | None], commit: str, *, rebuild: bool
) -> tuple[bool, str | None]:
    """Sets the entry of each path to ``(mode, id)``, or removes it (``None``).

    Whether that is done, and what the user should know. ``rebuild`` sets a damaged index aside and starts
    from ``commit``. Never raises for what the index or the disk is like: the commit is the truth.
    """
    if not entries:
        return True, None
    index, lock = repo.git_dir / "index", repo.git_dir / "index.lock"
    own = repo.git_dir / f"{_NAME}{secrets.token_hex(8)}"
    note = None
    try:
        own.mkdir()
        private, call = own / "index", _Private(repo, own)
        if not _take(lock, own / "mark"):
            return False, f"the index is locked by another git command ({lock})"
        try:
            if index.exists():
                shutil.copy2(index, private)
            else:
                call.run("read-tree", commit)
            try:
                _set(call, repo, entries)
            except GitFailed as error:
                if not rebuild or b"index" not in error.stderr.splitlines()[-1]:
                    raise
                aside = repo.git_dir / "index.damaged"
                shutil.copy2(index, aside)
                private.unlink()
                call.run("read-tree", commit)
                note = f"the damaged index was rebuilt (the old one is {aside})"
            if note is None and index.exists():
                # With its old time: git tells by it which entries it cannot trust to be unchanged, and as it
                # did not see the files just now, it knows no better than before.
                shutil.copystat(index, private)
            private.replace(index)
        finally:
            lock.unlink(missing_ok=True)
    except (OSError, GitFailed) as error:
        return False, f"the index could not be updated: {getattr(error, 'strerror', None) or error}"
    finally:
        shutil.rmtree(own, ignore_errors=True)
    return True, note


def sweep_index(repo: Repository) -> None:
    """Removes what a killed ``update_index`` left: its lock and its copies. Only while nobody else seals."""
    lock = repo.git_dir / "index.lock"
    with suppress(OSError):
        if lock.read_bytes() == _MARK:
            lock.unlink()
    with suppress(OSError), os.scandir(repo.git_dir) as found:
        for entry in found:
            if entry.name.startswith(_NAME):
                shutil.rmtree(entry.path, ignore_errors=True)


class _Private:
    """git on a copy of the index, in an empty working tree.

    When git writes an index it looks at the files that changed in the same instant as the index did, and for
    that it runs the user's clean filters. Where there are no files, there is nothing to run them on.
    """

    def __init__(self, repo: Repository, own: Path) -> None:
        nothing = own / "nothing"
        nothing.mkdir()
        self._git = Git(nothing)
        self._env = {
            "GIT_DIR": str(repo.git_dir),
            "GIT_WORK_TREE": str(nothing),
            "GIT_INDEX_FILE": str(own / "index"),
        }

    def run(self, *args: str, input: bytes | None = None) -> None:
        self._git.run(*args, input=input, env=self._env)


def _set(call: _Private, repo: Repository, entries: Mapping[str, tuple[str, str] | None]) -> None:
    none = "0" * (40 if repo.hash_name == "sha1" else 64)
    # Removals first: a file may make place for a folder of its name.
    lines = [f"0 {none}\t".encode() + encoded(path) for path, entry in entries.items() if entry is None]
    for path, entry in entries.items():
        if entry is not None:
            lines.append(f"{entry[0]} {entry[1]}\t".encode() + encoded(path))
    call.run("update-index", "--replace", "-z", "--index-info", input=b"".join(x + b"\0" for x in lines))


def _take(lock: Path, marked: Path) -> bool:
    # A link appears with its content, so that even a kill right here leaves a lock that is known as ours.
    marked.write_bytes(_MARK)
    try:
        os.link(marked, lock)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        try:
            with lock.open("xb") as file:
                file.write(_MARK)
        except FileExistsError:
            return False
    return True
