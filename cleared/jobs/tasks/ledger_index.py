"""Where the newest line of each task is in the ledger: an index that can be lost, and is built again.

The ledger itself decides: what was added since is read, and where the beginning is not what was indexed (another
commit was checked out, somebody edited the file) all is read again, from the end.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, Final

from cleared.base.errors import ClearedError
from cleared.jobs.tasks.ledger_lines import end_of_lines, find_newest
from cleared.workspace.database import connect_in_memory, connect_to_write

INDEX_NAME: Final = "task-ledger.db"
_SCHEMA: Final = """
CREATE TABLE newest (id TEXT PRIMARY KEY, start INTEGER NOT NULL, length INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE covered (only INTEGER PRIMARY KEY CHECK (only = 1), bytes INTEGER NOT NULL, digest TEXT NOT NULL);
"""
_VERSION: Final = 1
_RECENT: Final = 2 << 20
"""Bytes: where more than these are not indexed yet, a line is first looked for among the last of them."""
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
            if task_id is not None and not _is_near(db, file):
                recent = _find_recent(file, task_id)
                if recent is not None:
                    return {task_id: recent}
            self._catch_up(db, file)
            query = "SELECT id, start, length FROM newest"
            rows = db.execute(f"{query} WHERE id = ?", (task_id,)) if task_id else db.execute(query)
            return {name: (start, length) for name, start, length in rows}

    def drop(self) -> None:
        """Have it built again."""
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self._path}{suffix}").unlink(missing_ok=True)

    def _catch_up(self, db: sqlite3.Connection, file: BinaryIO) -> None:
        """Take in what was added since, or everything."""
        row = db.execute("SELECT bytes, digest FROM covered").fetchone()
        size = os.fstat(file.fileno()).st_size
        begin = row[0] if row is not None and row[0] <= size and _digest_ends(file, row[0]) == row[1] else 0
        if begin == size and row is not None:
            return
        end = end_of_lines(file)
        if row is not None and begin == end:
            return
        newest = find_newest(file, begin, end)
        try:
            with db:
                if begin == 0:
                    db.execute("DELETE FROM newest")
                db.executemany(
                    "INSERT OR REPLACE INTO newest VALUES (?, ?, ?)",
                    ((name, start, length) for name, (start, length) in newest.items()),
                )
                db.execute("INSERT OR REPLACE INTO covered VALUES (1, ?, ?)", (end, _digest_ends(file, end)))
        except sqlite3.OperationalError:
            # Another process is at it, or the disk is full: this call gets its answer all the same.
            memory = connect_in_memory(_SCHEMA)
            with closing(memory):
                self._catch_up(memory, file)
                rows = memory.execute("SELECT id, start, length FROM newest").fetchall()
            db.execute("CREATE TEMP TABLE newest (id TEXT PRIMARY KEY, start INTEGER, length INTEGER)")
            db.executemany("INSERT INTO temp.newest VALUES (?, ?, ?)", rows)


def _is_near(db: sqlite3.Connection, file: BinaryIO) -> bool:
    """Whether little is left to be indexed."""
    row = db.execute("SELECT bytes, digest FROM covered").fetchone()
    size = os.fstat(file.fileno()).st_size
    begin = row[0] if row is not None and row[0] <= size and _digest_ends(file, row[0]) == row[1] else 0
    return size - begin <= _RECENT


def _find_recent(file: BinaryIO, task_id: str) -> tuple[int, int] | None:
    """Where the newest line of the task is, if it is among the last bytes: these are read without any index."""
    end = end_of_lines(file)
    file.seek(max(0, end - _RECENT))
    start = file.tell() + len(file.readline()) if end > _RECENT else 0
    return find_newest(file, start, end).get(task_id)


def _digest_ends(file: BinaryIO, end: int) -> str:
    """Of the first and the last bytes before ``end``."""
    file.seek(0)
    digest = hashlib.sha256(file.read(min(_SAMPLE, end)))
    file.seek(max(0, end - _SAMPLE))
    digest.update(file.read(min(_SAMPLE, end)))
    return f"{end}:{digest.hexdigest()}"
