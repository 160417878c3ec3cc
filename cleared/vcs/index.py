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

from cleared.vcs.command import GitFailed
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
    private = repo.git_dir / f"{_NAME}{secrets.token_hex(8)}"
    note = None
    try:
        if not _take(lock, private):
            return False, f"the index is locked by another git command ({lock})"
        try:
            env = {"GIT_INDEX_FILE": str(private)}
            if index.exists():
                # With its time: git tells by it which of the entries it cannot trust to be unchanged.
                shutil.copy2(index, private)
            else:
                repo.git.run("read-tree", commit, env=env)
            try:
                _set(repo, entries, env)
            except GitFailed as error:
                if not rebuild or b"index" not in error.stderr.splitlines()[-1]:
                    raise
                aside = repo.git_dir / "index.damaged"
                shutil.copy2(index, aside)
                private.unlink()
                repo.git.run("read-tree", commit, env=env)
                note = f"the damaged index was rebuilt (the old one is {aside})"
            _sync(private)
            private.replace(index)
        finally:
            lock.unlink(missing_ok=True)
    except (OSError, GitFailed) as error:
        return False, f"the index could not be updated: {getattr(error, 'strerror', None) or error}"
    finally:
        with suppress(OSError):
            private.unlink(missing_ok=True)
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
                Path(entry.path).unlink(missing_ok=True)


def _set(repo: Repository, entries: Mapping[str, tuple[str, str] | None], env: Mapping[str, str]) -> None:
    none = "0" * (40 if repo.hash_name == "sha1" else 64)
    # Removals first: a file may make place for a folder of its name.
    lines = [f"0 {none}\t".encode() + encoded(path) for path, entry in entries.items() if entry is None]
    for path, entry in entries.items():
        if entry is not None:
            lines.append(f"{entry[0]} {entry[1]}\t".encode() + encoded(path))
    repo.git.run("update-index", "--replace", "-z", "--index-info", input=b"".join(x + b"\0" for x in lines), env=env)


def _take(lock: Path, private: Path) -> bool:
    # A link appears with its content, so that even a kill right here leaves a lock that is known as ours.
    marked = private.with_name(private.name + ".mark")
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
    finally:
        marked.unlink(missing_ok=True)
    return True


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
