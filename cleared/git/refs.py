"""Moving a branch by compare-and-swap, so that a kill at any instant leaves no doubt whether it moved.

``git update-ref`` is driven step by step. It takes the lock and compares at ``prepare``, and moves the branch only at
``commit``. Where this process is killed before that, the pipe closes, and git lets go of the lock; where it is killed
afterwards, git holds the lock until it has moved the branch. So where there is no lock, the branch can be believed.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from cleared.base.clock import SystemClock
from cleared.base.errors import BusyError, WorkspaceError
from cleared.git.branch import remembered_ref
from cleared.git.git_process import Git, first_line
from cleared.git.object_writer import sync_files
from cleared.git.repository import Repository

#: Git holds these locks for milliseconds; one that does not change for so many seconds has no owner.
_PATIENCE = 2.0


class GitBusy(BusyError):
    """Another git command is at work here, or has been; nothing was changed."""


class HeadMoved(GitBusy):
    """The branch is not where the draft was based: somebody committed, or checked out, meanwhile."""


class RefMove:
    """One move of ``repo.branch`` away from ``old`` (``None``: it must not exist yet).

    Made early, it lets git start while the objects are being written; it does nothing before ``prepare``.
    """

    def __init__(self, repo: Repository, git: Git, old: str | None, log: str, env: Mapping[str, str]) -> None:
        self._repo = repo
        self._old, self._new = old, ""
        args = ["update-ref", "-m", log, "--stdin"]
        self._process: subprocess.Popen[bytes] = git.start(args, stdin=subprocess.PIPE, env=env)

    def prepare(self, new: str) -> None:
        """Locks and compares. Raises ``HeadMoved``, ``GitBusy`` where another holds the lock, ``WorkspaceError``."""
        self._new = new
        old = self._old or "0" * len(new)
        branch = self._repo.branch
        branch.remove_damaged_ref()
        remember = f"update {branch.remembered_ref} {new}\n"
        order = f"start\nupdate {branch.name} {new} {old}\n{remember}prepare\n"
        if not (self._send(order) and self._receives("start: ok") and self._receives("prepare: ok")):
            raise self._refusal()
        if self._repo.has_switched_branch():
            raise head_moved_error("another branch was checked out")

    def commit(self) -> None:
        """Moves it. An error means that it has not moved; when this is interrupted, nobody knows."""
        if self._send("commit\n") and self._receives("commit: ok"):
            self.close()
        elif not self._repo.has_in_history(self._new):
            raise self._refusal()

    def close(self) -> bytes:
        """Let go of the lock if it is held. Returns what git complained of. Can be called again."""
        process = self._process
        if process.returncode is not None:
            return b""
        with suppress(BrokenPipeError):
            cast(IO[bytes], process.stdin).close()
        process.stdin = None
        complaint = process.communicate()[1]
        if process.wait() < 0:  # killed, and its locks with nobody to let go of them
            with suppress(WorkspaceError, OSError):
                wait_for_ref_locks(self._repo, self._repo.branch.name, self._new)
        return complaint

    def _send(self, text: str) -> bool:
        to = cast(IO[bytes], self._process.stdin)
        try:
            to.write(text.encode("utf-8", "surrogateescape"))
            to.flush()
        except BrokenPipeError:
            return False
        return True

    def _receives(self, wanted: str) -> bool:
        return cast(IO[bytes], self._process.stdout).readline().decode().strip() == wanted

    def _refusal(self) -> GitBusy | WorkspaceError:
        complaint = first_line(self.close())
        if self._repo.find_head() != self._old:
            return head_moved_error("the branch has a new commit")
        refused = GitBusy if "File exists" in complaint else WorkspaceError
        return refused(
            f"git could not move the branch, nothing was changed: {complaint}",
            remedy="Let other git commands end, and try again. If there is none, remove the file that ends in .lock."
            if refused is GitBusy
            else "Put that right and try again.",
        )


def sync_branch(repo: Repository) -> None:
    """Make the branch and its reflog durable, also where git itself does not: a commit that is reported as made
    survives a power cut. Raises ``OSError``."""
    refs = [repo.common_dir / repo.branch.name, repo.git_dir / repo.branch.remembered_ref]
    logs = [repo.common_dir / "logs" / repo.branch.name, repo.git_dir / "logs/HEAD"]
    sync_files([path for each in (*refs, *logs) for path in (each, each.parent) if path.exists()])


def head_moved_error(why: str) -> HeadMoved:
    """The error for a branch that is not where the draft was based."""
    return HeadMoved(f"{why} while this was being prepared; nothing was changed", remedy="Run the command again.")


def wait_for_ref_locks(repo: Repository, branch: str, commit: str) -> bool:
    """Wait until no git that was moving ``branch`` to ``commit`` is still at it.

    Returns whether a lock that a killed git left was removed. Raises ``GitBusy`` where another git is at work.
    """
    removed = False
    for lock in (
        repo.common_dir / f"{branch}.lock",
        repo.git_dir / f"{remembered_ref(branch)}.lock",
        repo.git_dir / "HEAD.lock",
        repo.common_dir / "reftable" / "tables.list.lock",
    ):
        removed |= _wait_for_lock(lock, commit)
    return removed


def _wait_for_lock(lock: Path, commit: str) -> bool:
    clock = SystemClock()
    started, seen = clock.monotonic(), _lock_state(lock)
    while seen is not None:
        time.sleep(0.005)
        now = _lock_state(lock)
        if now != seen:
            started, seen = clock.monotonic(), now
        elif clock.monotonic() - started > _PATIENCE:
            if seen[2] not in ("", commit):
                raise GitBusy(
                    f"another git command holds {lock.name}",
                    remedy=f"Let it end. If there is none, remove {lock}.",
                )
            lock.unlink(missing_ok=True)
            return True
    return False


def _lock_state(lock: Path) -> tuple[int, int, str] | None:
    try:
        status = lock.stat()
        return status.st_ino, status.st_mtime_ns, lock.read_bytes().decode("utf-8", "replace").strip()
    except OSError:
        return None
