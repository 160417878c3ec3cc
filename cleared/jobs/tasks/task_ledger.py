"""The task ledger: ``docs/current/task-status.jsonl``. Everybody may read it; one appender at a time adds to it.

A line is added under a lock and is on the disk before the call returns. Readers take no lock: what has no newline at
the end of the file is being written, or was torn by a crash.

An index, which can be lost, says where the newest line of each task is. The ledger itself decides: what was added since
is read, and where the beginning is not what was indexed (another commit was checked out, somebody edited the file) all
is read again, from the end.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from cleared.base.clock import Clock
from cleared.base.errors import ClearedError, Place, WorkspaceError
from cleared.base.safe_files import describe_os_error
from cleared.base.safe_names import resolve_inside
from cleared.jobs.tasks.ledger_lines import end_of_lines, find_line, find_newest, parse_line, render_line
from cleared.jobs.tasks.task_states import StatusLine
from cleared.workspace.database import connect_in_memory, connect_to_write
from cleared.workspace.lock import ensure_state_dir, writer_lock

LEDGER: Final = "docs/current/task-status.jsonl"
LOCK_NAME: Final = "task-ledger.lock"
TORN_NAME: Final = "task-ledger.torn"
"""In ``.cleared``: the torn ends that were taken off the ledger."""
_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_MAX_TORN: Final = 1 << 20

STEPS: Final = ("ledger-locked", "ledger-mended", "ledger-written", "ledger-synced")
"""The instants between which an append can be killed, in order."""


class TaskLedger:
    """The ledger of one workspace. ``show_message`` gets a line about a torn end."""

    def __init__(
        self,
        root: Path,
        *,
        clock: Clock,
        wait_seconds: float = 60.0,
        show_message: Callable[[str], None] = lambda _: None,
        on_step: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._root, self._clock, self._wait = root, clock, wait_seconds
        self.show_message, self.report_step = show_message, on_step
        self.index = LedgerIndex(root / ".cleared")

    @property
    def path(self) -> Path:
        """The file. Raises ``PolicyError`` where a link leads out of the workspace."""
        return resolve_inside(self._root, str(Path(LEDGER).parent)) / Path(LEDGER).name

    def require(self) -> None:
        """Raises ``WorkspaceError`` where there is no ledger."""
        self._open(os.O_RDONLY).close()

    def read_latest(self, task_id: str) -> StatusLine | None:
        """The newest line of one task; None where it has none. Raises ``WorkspaceError`` where there is no ledger."""
        with self._open(os.O_RDONLY) as file:
            return self._read_lines(file, task_id).get(task_id)

    def read_all(self) -> dict[str, StatusLine]:
        """The newest line of each task, by id, sorted. Raises ``WorkspaceError`` where there is no ledger."""
        with self._open(os.O_RDONLY) as file:
            return dict(sorted(self._read_lines(file, None).items()))

    @contextmanager
    def open_for_appending(self, activity: str) -> Iterator[LedgerWriter]:
        """The ledger for the only appender there is now. A torn end is set aside first, and reported.

        ``activity`` is shown to others that wait. Raises ``BusyError`` where it is not free in time.
        """
        state_dir = self._root / ".cleared"
        with writer_lock(state_dir, self._wait, activity, clock=self._clock, name=LOCK_NAME):
            self.report_step("ledger-locked")
            with self._open(os.O_RDWR | os.O_APPEND) as file:
                self._mend(file, state_dir)
                self.report_step("ledger-mended")
                yield LedgerWriter(self, file)

    def _open(self, flags: int) -> BinaryIO:
        try:
            descriptor = os.open(self.path, flags | _NOFOLLOW | getattr(os, "O_NONBLOCK", 0))
        except FileNotFoundError:
            raise WorkspaceError(
                "there is no task ledger", place=Place(LEDGER), remedy="Make one: cleared task init."
            ) from None
        except OSError as error:
            raise WorkspaceError(
                f"the task ledger cannot be opened: {describe_os_error(error)}", place=Place(LEDGER)
            ) from None
        return os.fdopen(descriptor, "r+b" if flags & os.O_RDWR else "rb")

    def _read_lines(self, file: BinaryIO, task_id: str | None) -> dict[str, StatusLine]:
        for attempt in (1, 2):
            lines: dict[str, StatusLine] = {}
            for name, (start, length) in self.index.locate_lines(file, task_id).items():
                file.seek(start)
                record = parse_line(file.read(length))
                if record is None or record.id != name:
                    break
                lines[name] = record
            else:
                last = parse_line(_read_end(file))  # a whole record without its newline
                if last is not None and task_id in (None, last.id):
                    lines[last.id] = last
                return lines
            if attempt == 1:
                self.index.drop()
        raise WorkspaceError("the task ledger is being rewritten", place=Place(LEDGER), remedy="Try again.")

    def _mend(self, file: BinaryIO, state_dir: Path) -> None:
        """End the last line, or set aside what is torn: the next line must not become part of it."""
        torn = _read_end(file)
        if not torn:
            return
        if parse_line(torn) is not None:
            file.write(b"\n")
            file.flush()
            os.fsync(file.fileno())
            return
        ensure_state_dir(state_dir)
        with (state_dir / TORN_NAME).open("ab") as aside:
            aside.write(torn[:_MAX_TORN] + b"\n")
            aside.flush()
            os.fsync(aside.fileno())
        file.truncate(end_of_lines(file))
        os.fsync(file.fileno())
        self.show_message(
            f"{LEDGER}: its last line was torn ({len(torn)} bytes); it is set aside in .cleared/{TORN_NAME}"
        )


class LedgerWriter:
    """The open ledger, while its lock is held."""

    def __init__(self, ledger: TaskLedger, file: BinaryIO) -> None:
        self._ledger, self._file = ledger, file

    def read_latest(self, task_id: str) -> StatusLine | None:
        """The newest line of one task."""
        return self._ledger._read_lines(self._file, task_id).get(task_id)

    def read_all(self) -> dict[str, StatusLine]:
        """The newest line of each task."""
        return self._ledger._read_lines(self._file, None)

    def read_bytes(self, most: int) -> bytes | None:
        """The whole file; None where it is larger than ``most``."""
        if os.fstat(self._file.fileno()).st_size > most:
            return None
        self._file.seek(0)
        return self._file.read()

    def append(self, *lines: StatusLine) -> None:
        """Add lines; they are on the disk when this returns. Raises ``WorkspaceError``; then none is added."""
        self.append_bytes(b"".join(map(render_line, lines)))

    def append_bytes(self, data: bytes) -> None:
        """Add rendered lines, likewise."""
        size = os.fstat(self._file.fileno()).st_size
        try:
            self._file.write(data)
            self._file.flush()
            self._ledger.report_step("ledger-written")
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(size)
            raise WorkspaceError(
                f"the task ledger cannot be written: {describe_os_error(error)}", place=Place(LEDGER)
            ) from None
        self._ledger.report_step("ledger-synced")


def _read_end(file: BinaryIO) -> bytes:
    """What stands behind the last newline."""
    start = end_of_lines(file)
    file.seek(start)
    return file.read(_MAX_TORN)


INDEX_NAME: Final = "task-ledger.db"
_SCHEMA: Final = """
CREATE TABLE newest (id TEXT PRIMARY KEY, start INTEGER NOT NULL, length INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE covered (
  only INTEGER PRIMARY KEY CHECK (only = 1), start INTEGER NOT NULL, bytes INTEGER NOT NULL, digest TEXT NOT NULL);
"""
"""What is indexed lies between ``start`` and ``bytes``; the newest line of each task that occurs there."""
_VERSION: Final = 2
_STEP: Final = 16 << 20
"""Bytes that a call indexes which asks for one task: a ledger of which nothing is known is indexed bit by bit, from the
end, and no call waits for all of it."""
_SAMPLE: Final = 32 << 10
"""Bytes at both ends of what is indexed that must be as they were."""


class LedgerIndex:
    """The index of one ledger; ``state_dir``: the workspace's ``.cleared``."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / INDEX_NAME

    def locate_lines(self, file: BinaryIO, task_id: str | None = None) -> dict[str, tuple[int, int]]:
        """Id → offset and bytes of its newest whole line; of all tasks, or of one."""
        try:
            db = connect_to_write(self._path, _SCHEMA, _VERSION)
        except (ClearedError, sqlite3.Error, OSError):  # a disk that takes nothing: built for this call
            db = connect_in_memory(_SCHEMA)
        with closing(db):
            start = self._catch_up(db, file, is_whole=task_id is None)
            query = "SELECT id, start, length FROM newest"
            rows = db.execute(f"{query} WHERE id = ?", (task_id,)) if task_id else db.execute(query)
            located = {name: (begin, length) for name, begin, length in rows}
        if task_id is not None and not located and start > 0:
            found = find_line(file, start, task_id)
            return {task_id: found} if found is not None else {}
        return located

    def drop(self) -> None:
        """Have it built again."""
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self._path}{suffix}").unlink(missing_ok=True)

    def _catch_up(self, db: sqlite3.Connection, file: BinaryIO, *, is_whole: bool) -> int:
        """Take in what was added since, and more of what is before: all of it where ``is_whole``. From where on all is
        indexed."""
        row = db.execute("SELECT start, bytes, digest FROM covered").fetchone()
        size, end = os.fstat(file.fileno()).st_size, end_of_lines(file)
        is_known = row is not None and row[1] <= size and _digest_ends(file, row[1]) == row[2] and end - row[1] <= _STEP
        low, high = (row[0], row[1]) if is_known else (end, end)
        start = 0 if is_whole else _find_line_start(file, max(0, low - _STEP))
        if is_known and (start, end) == (low, high):
            return int(low)
        added = find_newest(file, high, end)
        before = {name for (name,) in db.execute("SELECT id FROM newest")} if is_known else set()
        older = find_newest(file, start, low, before | added.keys())
        try:
            with db:
                if not is_known:
                    db.execute("DELETE FROM newest")
                db.executemany(
                    "INSERT OR REPLACE INTO newest VALUES (?, ?, ?)",
                    ((name, at, length) for name, (at, length) in {**older, **added}.items()),
                )
                db.execute("INSERT OR REPLACE INTO covered VALUES (1, ?, ?, ?)", (start, end, _digest_ends(file, end)))
        except sqlite3.OperationalError:
            # Another process is at it, or the disk is full: this call gets its answer all the same.
            memory = connect_in_memory(_SCHEMA)
            with closing(memory):
                start = self._catch_up(memory, file, is_whole=is_whole)
                rows = memory.execute("SELECT id, start, length FROM newest").fetchall()
            db.execute("CREATE TEMP TABLE newest (id TEXT PRIMARY KEY, start INTEGER, length INTEGER)")
            db.executemany("INSERT INTO temp.newest VALUES (?, ?, ?)", rows)
        return int(start)


def _find_line_start(file: BinaryIO, at: int) -> int:
    """The first beginning of a line from there on."""
    file.seek(max(0, at - 1))
    return at if at == 0 else at - 1 + len(file.readline())


def _digest_ends(file: BinaryIO, end: int) -> str:
    """Of the first and the last bytes before ``end``."""
    file.seek(0)
    digest = hashlib.sha256(file.read(min(_SAMPLE, end)))
    file.seek(max(0, end - _SAMPLE))
    digest.update(file.read(min(_SAMPLE, end)))
    return f"{end}:{digest.hexdigest()}"
