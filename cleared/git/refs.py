"""The branch that is checked out, and moving it by compare-and-swap: a kill at any instant leaves no doubt whether it
moved.

``git update-ref`` is driven step by step. It takes the lock and compares at ``prepare``, and moves the branch only at
``commit``. Where this process is killed before that, the pipe closes, and git lets go of the lock; where it is killed
afterwards, git holds the lock until it has moved the branch. So where there is no lock, the branch can be believed.

The last commit is remembered outside the branch and the tree. ``git reset --soft``, ``git update-ref`` and a commit of
yesterday's files take no lock: that the branch lost something by them can be seen only by who knows what it had. The
memory is a reference of this working tree alone (``refs/worktree/…``), neither pushed with the branches nor cloned. It
moves in one act with the branch, and keeps what it names from ``git gc``. There is one for each branch.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from cleared.base.clock import SystemClock
from cleared.base.errors import BusyError, WorkspaceError
from cleared.base.safe_files import sync_files
from cleared.git.git_process import Git, GitFailed, first_line
from cleared.git.object_reader import OID_PATTERN, ObjectReader, is_oid
from cleared.workspace.location import remembered_ref as remembered_ref

if TYPE_CHECKING:
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
            cast("IO[bytes]", process.stdin).close()
        process.stdin = None
        complaint = process.communicate()[1]
        if process.wait() < 0:  # killed, and its locks with nobody to let go of them
            with suppress(WorkspaceError, OSError):
                wait_for_ref_locks(self._repo, self._repo.branch.name, self._new)
        return complaint

    def _send(self, text: str) -> bool:
        to = cast("IO[bytes]", self._process.stdin)
        try:
            to.write(text.encode("utf-8", "surrogateescape"))
            to.flush()
        except BrokenPipeError:
            return False
        return True

    def _receives(self, wanted: str) -> bool:
        return cast("IO[bytes]", self._process.stdout).readline().decode().strip() == wanted

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


def current_branch_name(git: Git, git_dir: Path) -> str | None:
    """The full name of the branch that HEAD points to now; ``None`` where HEAD is detached."""
    text = _read_text(git_dir / "HEAD")
    if text.startswith("ref: ") and text != "ref: refs/heads/.invalid":
        return text.removeprefix("ref: ").strip()
    if is_oid(text):
        return None
    return git.run("symbolic-ref", "--quiet", "HEAD", check=False).decode().strip() or None


class Branch:
    """The branch ``name`` (in full, or ``HEAD`` where none is checked out) of one working tree.

    ``git_dir`` is the working tree's own directory, ``common_dir`` the one that all working trees share.
    """

    def __init__(self, git: Git, objects: ObjectReader, git_dir: Path, common_dir: Path, name: str) -> None:
        self.name = name
        self._git = git
        self._objects = objects
        self._git_dir = git_dir
        self._common_dir = common_dir

    @property
    def short_name(self) -> str:
        return self.name.removeprefix("refs/heads/")

    @property
    def is_detached(self) -> bool:
        return self.name == "HEAD"

    @property
    def remembered_ref(self) -> str:
        return remembered_ref(self.name)

    def find_commit(self) -> str | None:
        """The id of the branch's commit, read anew each time; ``None`` where it has none yet.

        Raises ``WorkspaceError`` where the branch's file is there and empty: what packed refs say of it is old.
        """
        # A loose ref outranks packed refs, so reading the files is what git would do; anything else git is asked for.
        file = (self._git_dir if self.is_detached else self._common_dir) / self.name
        text = _read_text(file)
        if is_oid(text):
            return text
        if not text.strip("\0") and file.is_file() and not _read_text(file).strip("\0"):
            raise self._damaged_error(file)
        if not text and not self.is_detached:
            line = rf"^({OID_PATTERN.pattern}) {re.escape(self.name)}$"
            packed = re.search(line, _read_text(self._common_dir / "packed-refs"), re.MULTILINE)
            if packed is not None:
                return packed[1]
        output = self._git.run("rev-parse", "--verify", "--quiet", f"{self.name}^{{commit}}", check=False)
        return output.decode().strip() or None

    def read_remembered_commit(self) -> str | None:
        """The last commit that this program made on the branch; ``None`` where none is known, or it is gone."""
        try:
            commit = (self._git_dir / self.remembered_ref).read_bytes().decode("ascii", "replace").strip()
        except OSError:
            if not (self._common_dir / "reftable").is_dir():
                return None
            output = self._git.run("rev-parse", "--verify", "--quiet", self.remembered_ref, check=False)
            commit = output.decode().strip()
        return commit if is_oid(commit) and self._objects.has_commit_tree(commit) else None

    def remove_damaged_ref(self) -> None:
        """Remove the remembering reference where a power cut left it empty: git could not move the branch with it."""
        path = self._git_dir / self.remembered_ref
        try:
            is_damaged = not is_oid(path.read_bytes().decode("ascii", "replace").strip())
        except OSError:
            return
        if is_damaged:
            path.unlink(missing_ok=True)

    def forget_remembered_commit(self) -> None:
        """Remember no commit of the branch. The caller holds the writer lock. Raises ``WorkspaceError``."""
        self.remove_damaged_ref()
        self._git.run("update-ref", "-d", self.remembered_ref)

    def _damaged_error(self, file: Path) -> WorkspaceError:
        """The error for a branch whose ``file`` a power cut left empty. It names the commit that the branch was at: the
        newest one that the reflog or the remembering reference has, and the repository still holds."""
        message = f"{file} is empty, as a power cut can leave it: git does not know the commit of {self.name}"
        last = self._find_last_commit()
        if last is None:
            return WorkspaceError(message, remedy="Fetch from a clone, or restore .git from a backup; git fsck --full.")
        commit, source = last
        return WorkspaceError(
            message,
            remedy=f"By {source} it was {commit}. Put it back: echo {commit} > '{file}'. Then: cleared check.",
        )

    def _find_last_commit(self) -> tuple[str, str] | None:
        """The commit that the branch was at last, and the name of where that is written."""
        logged, remembered = next(self._reflog_commits(), None), self.read_remembered_commit()
        if remembered is None:
            return (logged, "the reflog") if logged is not None else None
        if logged is not None and logged != remembered:
            try:
                self._git.run("merge-base", "--is-ancestor", remembered, logged)
            except GitFailed:
                pass
            else:
                return logged, "the reflog"
        return remembered, "what cleared has committed"

    def _reflog_commits(self) -> Iterator[str]:
        """Commits that the branch was at, newest first, as far as they can be read."""
        try:
            lines = (self._common_dir / "logs" / self.name).read_bytes().splitlines()
        except OSError:
            return
        for line in reversed(lines):
            commit = line.decode("utf-8", "replace").partition(" ")[2].partition(" ")[0]
            if is_oid(commit) and self._objects.has_commit_tree(commit):
                yield commit


def _read_text(path: Path) -> str:
    """The file's text without surrounding white space; empty where it cannot be read."""
    try:
        return path.read_bytes().decode("utf-8", "replace").strip()
    except OSError:
        return ""
