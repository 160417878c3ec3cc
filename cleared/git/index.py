"""Git's index, brought up to a commit in the entries of a few paths; all else that the user staged stays.

It follows git's own protocol (hold ``index.lock``, then replace ``index``), but the lock carries a mark. After a kill
it can be told from a lock that a git of the user holds, which may be waiting for an editor. While it is held, no git
of the user stages, commits what is staged, or writes the working tree.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from cleared.base.clock import SystemClock
from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import sync_files
from cleared.base.terminal import count_noun
from cleared.git.git_process import Git, GitFailed
from cleared.git.index_entries import Entries, encode_name, find_unmerged, replace_entries
from cleared.git.refs import GitBusy
from cleared.git.repository import Repository

_MARK: Final = b"held by cleared\n"
_NAME: Final = "cleared-index-"
_POLL_SECONDS: Final = 0.05
_TRIES: Final = 20
_UPDATE_INDEX: Final = ("update-index", "--replace", "-z", "--index-info")


class IndexLock:
    """``index.lock``, held by this process, and the new index, prepared beside it.

    After an error before ``release`` it is still held, for ``recover_interrupted_commit``. The caller holds the writer
    lock: a lock with the mark is one that a killed process left, and is taken over.
    """

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._index, self._lock = repo.git_dir / "index", lock_file(repo)
        self.folder = repo.git_dir / f"{_NAME}{os.urandom(8).hex()}"
        """For what the commit needs before it is made: ``release`` removes it, or whoever finishes a killed commit."""
        self._new, self._before = self.folder / "index", self.folder / "before"
        self.held = self._placed = False

    def make_folder(self) -> Path:
        """The folder, made where it is not there yet. Raises ``OSError``."""
        self.folder.mkdir(exist_ok=True)
        return self.folder

    def acquire(self, note: bytes = b"", wait_seconds: float = 0.0, also: Sequence[Path] = ()) -> None:
        """Take the lock. ``note`` is kept in it, to be read after a kill; files ``also`` are made durable with it.
        Raises ``GitBusy`` where another git holds the index for longer than ``wait_seconds``, ``OSError`` where the
        lock cannot be made."""
        self.make_folder()
        marked = self.folder / "mark"
        marked.write_bytes(_MARK + note)
        sync_files([marked, *also])
        while not link_lock(marked, self._lock):
            if is_marked(self._lock):
                marked.replace(self._lock)
                break
            wait_for_index(self._repo, wait_seconds)
        self.held = True

    def prepare_index(self, entries: Entries, commit: str | None, *, rebuild: bool = False) -> str | None:
        """Prepare the new index: the one that is there, with these entries. Returns a message for the user or ``None``.

        ``rebuild``: where the index is damaged, keep a copy of it and begin with ``commit``; without, ``Damaged`` is
        raised. Raises ``OSError`` or ``GitFailed`` where the index cannot be made.
        """
        message, old = None, None
        with suppress(FileNotFoundError):
            old = self._index.read_bytes()
            self._before.unlink(missing_ok=True)
            _link_or_copy(self._index, self._before)
        new = replace_entries(old, entries, self._repo.hash_name) if old is not None or commit is None else None
        if new is not None:
            self._new.write_bytes(new)
        else:
            message = self._prepare_by_git(entries, commit, rebuild)
        if message is None and self._before.exists():
            # With its old time: by it git knows which entries it cannot trust to be unchanged, and it did not see the
            # files just now.
            shutil.copystat(self._before, self._new)
        return message

    def _prepare_by_git(self, entries: Entries, commit: str | None, rebuild: bool) -> str | None:
        private = _PrivateIndex(self._repo, self.folder)
        if self._before.exists():
            shutil.copy2(self._before, self._new)
        elif commit is not None:
            private.run("read-tree", commit)
        try:
            private.set_entries(entries, self._repo.hash_name)
        except GitFailed:
            if not self._before.exists() or private.can_read(self._before):
                raise
            if not rebuild:
                raise Damaged("git cannot read its index") from None
            aside = self._repo.git_dir / "index.damaged"
            shutil.copy2(self._before, aside)
            self._new.unlink(missing_ok=True)
            if commit is not None:
                private.run("read-tree", commit)
            return f"the damaged index was rebuilt (the old one is {aside})"
        return None

    def list_unsynced(self) -> list[Path]:
        """The prepared index: to be made durable before it is installed."""
        return [self._new] if self._new.exists() else []

    def install_index(self) -> None:
        """Replace git's index by the prepared one."""
        if self._new.exists():
            self._placed = True
            self._new.replace(self._index)

    def discard_prepared(self) -> None:
        """Drop the prepared index."""
        self._new.unlink(missing_ok=True)

    def restore_index(self) -> None:
        """Put back the index that was there before: nobody else can have changed it meanwhile."""
        if self._placed and self._before.exists():
            self._before.replace(self._index)
        elif self._placed:
            self._index.unlink(missing_ok=True)
        self._placed = False

    def release(self) -> None:
        """Let go of the lock, and of the folder. Harmless where it is not held."""
        if self.held and is_marked(self._lock):
            self._lock.unlink(missing_ok=True)
        self.held = False
        shutil.rmtree(self.folder, ignore_errors=True)


class Damaged(WorkspaceError):
    """Git cannot read its index; no git of the user can either."""


def list_unmerged_paths(repo: Repository) -> list[str]:
    """Paths that git could not join, and waits for somebody to settle; none where it cannot read its index."""
    try:
        index = (repo.git_dir / "index").read_bytes()
    except OSError:
        return []
    found = find_unmerged(index, repo.hash_name)
    if found is None:
        output = repo.git.run("ls-files", "--unmerged", "-z", check=False).decode("utf-8", "surrogateescape")
        found = sorted({row.partition("\t")[2] for row in output.split("\0") if row})
    return found


def lock_file(repo: Repository) -> Path:
    """Where git's lock on its index lies."""
    return repo.git_dir / "index.lock"


def read_stale_lock(repo: Repository) -> bytes | None:
    """The note in a lock that a killed process of this program left; ``None`` where there is none.

    The caller holds the writer lock.
    """
    with suppress(OSError):
        data = lock_file(repo).read_bytes()
        if data.startswith(_MARK):
            return data.removeprefix(_MARK)
    return None


def remove_stale_copies(repo: Repository) -> None:
    """Remove the copies that a killed process of this program left. The caller holds the writer lock."""
    with suppress(OSError), os.scandir(repo.git_dir) as entries:
        for entry in entries:
            if entry.name.startswith(_NAME):
                for _ in range(_TRIES):  # a git that the killed process started may still be writing into it
                    shutil.rmtree(entry.path, ignore_errors=True)
                    if not os.path.lexists(entry.path):
                        break
                    time.sleep(_POLL_SECONDS)


def describe_lock_holder(repo: Repository) -> str | None:
    """Which lock of the index another git command holds, and for how long; ``None`` where none does."""
    lock = lock_file(repo)
    try:
        since = lock.stat().st_mtime
    except OSError:
        return None
    if is_marked(lock):
        return None
    age = max(0, round(SystemClock().now().timestamp() - since))
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
        if age >= size or size == 1:
            count = age // size
            return f"another git command holds {lock} (for {count_noun(count, unit)})"
    raise AssertionError("unreachable")


def wait_for_index(repo: Repository, seconds: float, show_message: Callable[[str], None] | None = None) -> None:
    """Wait until no git of the user holds the index. Raises ``GitBusy`` after ``seconds``.

    ``show_message`` gets one line where there is something to wait for.
    """
    clock = SystemClock()
    started, is_shown = clock.monotonic(), False
    while (holder := describe_lock_holder(repo)) is not None:
        if clock.monotonic() - started >= seconds:
            raise GitBusy(
                f"{holder}; nothing was changed",
                remedy="Let it end: git commit holds it while its editor is open. If no git is running here, one that "
                f"was killed has left it: remove {lock_file(repo)}.",
            )
        if show_message is not None and not is_shown:
            show_message(f"waiting: {holder}")
            is_shown = True
        time.sleep(_POLL_SECONDS)


class _PrivateIndex:
    """Git on a copy of the index, in an empty working tree.

    When git writes an index, it looks at files that changed in the same instant, and runs the user's clean filters on
    them. Where there are no files, there is nothing to run them on.
    """

    def __init__(self, repo: Repository, own: Path) -> None:
        empty = own / "nothing"
        empty.mkdir(exist_ok=True)
        self._git = Git(empty)
        self._env = {
            "GIT_DIR": str(repo.git_dir),
            "GIT_WORK_TREE": str(empty),
            "GIT_INDEX_FILE": str(own / "index"),
        }

    def run(self, *args: str, input: bytes | None = None) -> None:
        self._git.run(*args, input=input, env=self._env)

    def can_read(self, index: Path) -> bool:
        """Whether git can read that index at all."""
        try:
            self._git.run(*_UPDATE_INDEX, input=b"", env={**self._env, "GIT_INDEX_FILE": str(index)})
        except GitFailed:
            return False
        return True

    def set_entries(self, entries: Entries, hash_name: str) -> None:
        none = "0" * (40 if hash_name == "sha1" else 64)
        # Removals first: a file may make place for a folder of its name.
        lines = [f"0 {none}\t".encode() + encode_name(path) for path, entry in entries.items() if entry is None]
        for path, entry in entries.items():
            if entry is not None:
                lines.append(f"{entry[0]} {entry[1]}\t".encode() + encode_name(path))
        self.run(*_UPDATE_INDEX, input=b"".join(x + b"\0" for x in lines))


def _link_or_copy(file: Path, copy: Path) -> None:
    """Keep a file under another name: nobody writes into git's index, it is replaced."""
    try:
        os.link(file, copy)
    except FileNotFoundError:
        raise
    except OSError:  # a file system without links
        shutil.copy2(file, copy)


def link_lock(marked: Path, lock: Path) -> bool:
    """Make a lock with the content of another file; whether there was none. Raises ``OSError``."""
    # A link appears with its content, so that even a kill at this instant leaves a lock with the mark.
    try:
        os.link(marked, lock)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        try:
            with lock.open("xb") as file:
                file.write(marked.read_bytes())
        except FileExistsError:
            return False
    return True


def is_marked(lock: Path) -> bool:
    """Whether a lock is one of this program."""
    try:
        with lock.open("rb") as file:
            return file.read(len(_MARK)) == _MARK
    except OSError:
        return False
