"""Moving the branch by compare-and-swap: a kill at any instant leaves no doubt whether it moved.

Where the branch is a plain file, the files are moved here, by git's own protocol: its locks are held, the value is
compared, the logs get their line, the lock becomes the branch. After a kill the locks are left, ``HEAD.lock`` with the
mark of ``index.lock``: whoever finishes the commit removes them.

Elsewhere (a new branch, one that points to another, references in tables, logs switched off) ``git update-ref`` does
it, driven step by step: it takes the lock and compares at ``prepare``, and moves at ``commit``. Where this process is
killed before that, the pipe closes, and git lets go of the lock; where it is killed afterwards, git holds it until the
branch has moved. So where there is no lock, the branch can be believed.
"""

from __future__ import annotations

import os
import stat
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Final, cast

from cleared.base.clock import SystemClock
from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import sync_files
from cleared.git.commit_text import Author
from cleared.git.git_process import first_line
from cleared.git.index import is_marked, link_lock, lock_file
from cleared.git.object_reader import is_oid
from cleared.git.refs import GitBusy, head_moved_error, remembered_ref
from cleared.git.repository import Repository

#: Locks are held for milliseconds; one that does not change for so many seconds has no owner.
_PATIENCE: Final = 2.0
_WAIT_SECONDS: Final = 1.0
"""So long another git is waited for that is moving the branch."""
_POLL_SECONDS: Final = 0.005
_BUSY_REMEDY: Final = "Let other git commands end, and try again. If there is none, remove the file that ends in .lock."


class RefMove(ABC):
    """One move of ``repo.branch`` away from ``old`` (``None``: it must not exist yet)."""

    def __init__(self, repo: Repository, old: str | None, log: str, author: Author, when: datetime) -> None:
        self._repo, self._old, self._new = repo, old, ""
        self._log, self._author, self._when = " ".join(log.split()), author, when
        branch = repo.branch
        self._refs = repo.common_dir / branch.name, repo.git_dir / branch.remembered_ref
        self._logs = repo.git_dir / "logs" / "HEAD", repo.common_dir / "logs" / branch.name

    @abstractmethod
    def prepare(self, new: str) -> None:
        """Locks and compares. Raises ``HeadMoved``, ``GitBusy`` where another holds the lock, ``WorkspaceError``. The
        caller holds the index."""

    @abstractmethod
    def list_prepared(self) -> list[Path]:
        """What has to be made durable before the move."""

    @abstractmethod
    def commit(self) -> None:
        """Moves it. An error means that it has not moved; when this is interrupted, nobody knows."""

    @abstractmethod
    def close(self) -> object:
        """Let go of the lock if it is held. Can be called again."""

    @abstractmethod
    def list_unsynced(self) -> list[Path]:
        """What has to be made durable after the move, so that a commit that is reported as made survives a power
        cut."""


def start_move(repo: Repository, old: str | None, log: str, author: Author, when: datetime) -> RefMove:
    """The move, in the way that is right here. It does nothing before ``prepare``."""
    move = _FileMove(repo, old, log, author, when)
    return move if move.is_possible() else _GitMove(repo, old, log, author, when)


class _FileMove(RefMove):
    """Moves the branch's file, and with it the reference that remembers the commit."""

    def __init__(self, repo: Repository, old: str | None, log: str, author: Author, when: datetime) -> None:
        super().__init__(repo, old, log, author, when)
        self._head_lock = repo.git_dir / "HEAD.lock"
        self._held: list[Path] = []
        self._logged: list[tuple[Path, int]] = []

    def is_possible(self) -> bool:
        """Whether branch and logs are plain files, or the branch is one that ``git pack-refs`` has packed."""
        file = self._refs[0]
        try:
            is_plain = is_oid(file.read_bytes().decode("ascii", "replace").strip()) and not file.is_symlink()
        except FileNotFoundError:
            is_plain = self._old is not None and not (self._repo.common_dir / "reftable").exists()
        except OSError:
            return False
        return is_plain and all(log.is_file() for log in self._logs)

    def prepare(self, new: str) -> None:
        self._new = new
        self._repo.branch.remove_damaged_ref()
        try:
            self._lock_head()
            for file in self._refs:
                self._lock_ref(file)
            if self._repo.find_head() != self._old:
                raise head_moved_error("the branch has a new commit")
            if self._repo.has_switched_branch():
                raise head_moved_error("another branch was checked out")
        except BaseException:
            self.close()
            raise

    def _lock_head(self) -> None:
        # With the mark of the index: a lock of HEAD that has it is one that a killed commit left.
        if is_marked(self._head_lock):
            self._head_lock.unlink()
        self._take_lock(self._head_lock, lambda: link_lock(lock_file(self._repo), self._head_lock))

    def _lock_ref(self, file: Path) -> None:
        lock = _name_lock(file)
        file.parent.mkdir(parents=True, exist_ok=True)
        self._take_lock(lock, lambda: _create_file(lock, f"{self._new}\n".encode("ascii")))
        with suppress(FileNotFoundError):
            lock.chmod(stat.S_IMODE(file.stat().st_mode))

    def _take_lock(self, lock: Path, take: Callable[[], bool]) -> None:
        clock = SystemClock()
        until = clock.monotonic() + _WAIT_SECONDS
        while not take():
            if clock.monotonic() > until:
                raise self._busy_error(lock)
            time.sleep(_POLL_SECONDS)
        self._held.append(lock)

    def _busy_error(self, lock: Path) -> GitBusy:
        if self._repo.find_head() != self._old:
            return head_moved_error("the branch has a new commit")
        return GitBusy(f"another git command is at work, nothing was changed: {lock} is there", remedy=_BUSY_REMEDY)

    def list_prepared(self) -> list[Path]:
        return [_name_lock(file) for file in self._refs]

    def commit(self) -> None:
        line = f"{self._old} {self._new} {self._author.header_line(self._when)}\t{self._log}\n"
        for log in self._logs:
            with log.open("ab") as opened:
                self._logged.append((log, opened.tell()))
                opened.write(line.encode("utf-8", "replace"))
        branch, remembered = self._refs
        self._place_lock(branch)
        self._logged.clear()  # it is true now
        with suppress(OSError):
            self._place_lock(remembered)
        self.close()

    def _place_lock(self, file: Path) -> None:
        """Make the lock the file. From then on a lock there is somebody else's."""
        lock = _name_lock(file)
        lock.replace(file)
        self._held.remove(lock)

    def close(self) -> None:
        for log, size in self._logged:
            with suppress(OSError):
                os.truncate(log, size)
        self._logged.clear()
        for lock in reversed(self._held):
            with suppress(OSError):
                lock.unlink()
        self._held.clear()

    def list_unsynced(self) -> list[Path]:
        return [*(file.parent for file in self._refs), *self._logs]


class _GitMove(RefMove):
    """Has git move it. Made early, it lets git start while the objects are being written."""

    def __init__(self, repo: Repository, old: str | None, log: str, author: Author, when: datetime) -> None:
        super().__init__(repo, old, log, author, when)
        args, env = ["update-ref", "-m", self._log, "--stdin"], author.reflog_environment(when)
        self._process: subprocess.Popen[bytes] = repo.git.start(args, stdin=subprocess.PIPE, env=env)

    def prepare(self, new: str) -> None:
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

    def list_prepared(self) -> list[Path]:
        return []  # git has done it

    def commit(self) -> None:
        if self._send("commit\n") and self._receives("commit: ok"):
            self.close()
        elif not self._repo.has_in_history(self._new):
            raise self._refusal()

    def close(self) -> bytes:
        """As for any. Returns what git complained of."""
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

    def list_unsynced(self) -> list[Path]:
        return [path for file in (*self._refs, *self._logs) for path in (file, file.parent)]

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
        message = f"git could not move the branch, nothing was changed: {complaint}"
        if "File exists" in complaint:
            return GitBusy(message, remedy=_BUSY_REMEDY)
        return WorkspaceError(message, remedy="Put that right and try again.")


def _name_lock(file: Path) -> Path:
    return file.with_name(f"{file.name}.lock")


def _create_file(path: Path, data: bytes) -> bool:
    """Whether there was none. Raises ``OSError``."""
    try:
        file = path.open("xb")
    except FileExistsError:
        return False
    try:
        with file:
            file.write(data)
    except BaseException:
        path.unlink()
        raise
    return True


def sync_move(move: RefMove) -> None:
    """Make a move durable. Raises ``OSError``."""
    sync_files([path for path in move.list_unsynced() if path.exists()])


def wait_for_ref_locks(repo: Repository, branch: str, commit: str) -> bool:
    """Wait until no git that was moving ``branch`` to ``commit`` is still at it; locks that a killed commit of this
    program left are removed. The caller holds the writer lock.

    Returns whether a lock that a killed git left was removed. Raises ``GitBusy`` where another git is at work.
    """
    head_lock = repo.git_dir / "HEAD.lock"
    is_ours = is_marked(head_lock)
    removed = False
    for lock in (
        repo.common_dir / f"{branch}.lock",
        repo.git_dir / f"{remembered_ref(branch)}.lock",
        repo.common_dir / "reftable" / "tables.list.lock",
    ):
        state = _lock_state(lock)
        if is_ours and state is not None and state[2] == commit:
            lock.unlink(missing_ok=True)
        else:
            removed |= _wait_for_lock(lock, commit)
    if is_ours:
        head_lock.unlink(missing_ok=True)
    return removed | _wait_for_lock(head_lock, commit)


def _wait_for_lock(lock: Path, commit: str) -> bool:
    clock = SystemClock()
    started, seen = clock.monotonic(), _lock_state(lock)
    while seen is not None:
        time.sleep(_POLL_SECONDS)
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
