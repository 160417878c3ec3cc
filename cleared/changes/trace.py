"""Full traces of runs in ``.cleared/runs.db`` (SQLite, WAL). Losing it loses no books; it is made anew, empty.

There is one transaction when a run begins and one when it ends: a call costs the run nothing here.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from itertools import chain
from pathlib import Path
from typing import Any, Final

from cleared.base.bounds import MAX_TRACE_BYTES, MAX_TRACES_BYTES
from cleared.base.errors import WorkspaceError
from cleared.base.json_values import to_json
from cleared.base.short_text import shorten_text
from cleared.changes.traced_calls import CallSum
from cleared.primitives.dispatch import Call
from cleared.workspace.database import can_write, connect_to_read, connect_to_write, set_database_aside
from cleared.workspace.settings.secrets import Redactor

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS runs (
  id TEXT PRIMARY KEY, agent TEXT NOT NULL, status TEXT NOT NULL, dry_run INTEGER NOT NULL, started_at TEXT NOT NULL,
  duration_ms INTEGER, event TEXT, script TEXT, head TEXT, result TEXT, error TEXT, message TEXT, commits TEXT,
  entries TEXT, cards TEXT, log TEXT, pid INTEGER);
CREATE TABLE IF NOT EXISTS calls (
  run_id TEXT NOT NULL, number INTEGER NOT NULL, depth INTEGER NOT NULL, name TEXT NOT NULL, arguments TEXT NOT NULL,
  result TEXT, error TEXT, file TEXT, line INTEGER, col INTEGER, at_ms REAL NOT NULL, duration_ms REAL NOT NULL,
  PRIMARY KEY (run_id, number)) WITHOUT ROWID;
"""
KEEP_RUNS: Final = 1_000
MAX_VALUE: Final = 2_000
_MAX_LOG: Final = 1 << 20
"""Characters of a run's log that are kept here; the agent log has all of it."""
_VERSION: Final = 1
_NO_DEPTH: Final = -1
"""Marks a row of ``calls`` as a sum: another table would set the traces of an earlier version aside."""


class TraceStore:
    """The trace database of one workspace. Losing it loses no entry, card or decision."""

    def __init__(self, state_dir: Path, *, redactor: Redactor | None = None, stays_open: bool = False) -> None:
        """``redactor`` removes secrets from what is written. ``stays_open``: the connection for runs stays open until
        ``close``; for one thread at a time."""
        self._clean = (redactor or Redactor()).redact_text
        self.state_dir = state_dir
        self.path = state_dir / "runs.db"
        self._stays_open = stays_open
        self._of_run: sqlite3.Connection | None = None
        """Open at least from ``begin_run`` to ``end_run``: closing it waits for the disk."""
        self._file: tuple[int, int] | None = None

    @contextmanager
    def _open(self, *, create: bool) -> Iterator[sqlite3.Connection | None]:
        if not create and not self.path.exists():
            yield None
            return
        db = self._connect() if create else self._connect_to_read()
        try:
            with db:
                yield db
        finally:
            db.close()

    def _connect(self) -> sqlite3.Connection:
        return connect_to_write(self.path, SCHEMA, _VERSION, check_same_thread=not self._stays_open)

    def _connect_to_read(self) -> sqlite3.Connection:
        if can_write(self.path):
            with suppress(WorkspaceError):  # a full disk
                return self._connect()
        return connect_to_read(self.path)

    def find_damage(self) -> str | None:
        """What SQLite finds wrong with the file; ``None`` where it is sound."""
        try:
            db = connect_to_read(self.path)
            try:
                result = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
                db.execute("SELECT id, status FROM runs LIMIT 1")
            finally:
                db.close()
        except sqlite3.Error as e:
            return str(e)
        return None if result == "ok" else result

    def rebuild(self) -> Path | None:
        """Make a new, empty database. Returns where the old file lies now. The caller holds the writer lock."""
        aside = None
        if self.path.exists():
            aside = self.path.with_name(f"runs.set-aside-{os.urandom(4).hex()}.db")
            set_database_aside(self.path, aside)
        with self._open(create=True):
            pass
        return aside

    def begin_run(self, run: Mapping[str, Any]) -> None:
        """Record that a run begins; the row stays if the process is killed."""
        db = self._connection_for_run()
        with db:
            db.execute(
                "INSERT OR REPLACE INTO runs (id, agent, status, dry_run, started_at, event, script, head, pid)"
                " VALUES (?,?,?,?,?,?,?,?,?)",
                (
                    run["id"],
                    run["agent"],
                    "running",
                    int(run["dry_run"]),
                    run["started_at"],
                    self._dump_json(run["event"]),
                    run["script"],
                    run["head"],
                    os.getpid(),
                ),
            )
        self._of_run = db

    def end_run(
        self,
        run_id: str,
        outcome: Mapping[str, Any],
        calls: Iterable[Call],
        origin: float,
        sums: Iterable[CallSum] = (),
    ) -> None:
        """Record how a run ended, with its calls, and the sums of those that are not kept. ``origin``: the instant of
        the calls' clock at which it began."""
        db = self._connection_for_run()
        with nullcontext() if self._stays_open else closing(db), db:
            db.execute(
                "UPDATE runs SET status=?, duration_ms=?, result=?, error=?, message=?, commits=?, entries=?, cards=?,"
                " log=? WHERE id=?",
                (
                    outcome["status"],
                    outcome["duration_ms"],
                    self._dump_json(outcome["result"]),
                    self._dump_json(outcome["error"]),
                    outcome["message"] and self._clean(outcome["message"]),
                    *(self._dump_json(outcome[key]) for key in ("commits", "entries", "cards")),
                    self._dump_json(_limit_rows(outcome["log"], _MAX_LOG)),
                    run_id,
                ),
            )
            db.executemany(
                "INSERT OR REPLACE INTO calls VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
                chain(_call_rows(run_id, calls, origin, self._clean), _sum_rows(run_id, sums, origin)),
            )
            _delete_old_runs(db)
        self._of_run = db if self._stays_open else None

    def _dump_json(self, value: Any) -> str:
        return self._clean(json.dumps(to_json(value), ensure_ascii=False, default=str))

    def _connection_for_run(self) -> sqlite3.Connection:
        """The open connection, or a new one where the file is another by now: it may be deleted at any time."""
        db, self._of_run = self._of_run, None
        if db is not None:
            if self._file == _file_identity(self.path):
                return db
            db.close()
            if not self.path.exists():  # its remains must not be read into the next file
                for suffix in ("-wal", "-shm"):
                    Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        db = self._connect()
        self._file = _file_identity(self.path)
        return db

    def close(self) -> None:
        """Close the connection that is kept open."""
        db, self._of_run = self._of_run, None
        if db is not None:
            db.close()

    def list_runs(self, limit: int, agent: str | None = None) -> list[dict[str, Any]]:
        """The last runs, newest first; of one agent, or of all."""
        with self._open(create=False) as db:
            if db is None:
                return []
            where, values = ("WHERE agent=?", [agent]) if agent else ("", [])
            rows = db.execute(f"SELECT * FROM runs {where} ORDER BY rowid DESC LIMIT ?", [*values, limit])
            return [_decode_run(rows, row) for row in rows]

    def list_last_runs(self) -> dict[str, dict[str, Any]]:
        """Agent → its last run that was no rehearsal."""
        with self._open(create=False) as db:
            if db is None:
                return {}
            newest = "SELECT max(rowid) FROM runs WHERE NOT dry_run GROUP BY agent"
            rows = db.execute(f"SELECT * FROM runs WHERE rowid IN ({newest})")
            return {run["agent"]: run for run in (_decode_run(rows, row) for row in rows)}

    def find_run_ids(self, text: str) -> list[str]:
        """The ids of the runs for which ``text`` is the id, its beginning, or its last part."""
        with self._open(create=False) as db:
            if db is None or not text:
                return []
            query = "SELECT id FROM runs WHERE substr(id, 1, ?)=? OR substr(id, -?)=?"
            ending = f"-{text}"
            return [row[0] for row in db.execute(query, (len(text), text, len(ending), ending))]

    def find_run(self, run_id: str) -> dict[str, Any] | None:
        """A run by its id, with its calls; ``None`` where there is none. ``more_calls``: the sums of those that are not
        in ``calls``."""
        with self._open(create=False) as db:
            if db is None:
                return None
            rows = db.execute("SELECT * FROM runs WHERE id=?", (run_id,))
            for row in rows:
                run = _decode_run(rows, row)
                calls = db.execute("SELECT * FROM calls WHERE run_id=? ORDER BY number", (run_id,))
                rows_of_calls = [_decode_call(calls, call) for call in calls]
                run["calls"] = [call for call in rows_of_calls if call["depth"] >= 0]
                run["more_calls"] = [_decode_sum(call) for call in rows_of_calls if call["depth"] < 0]
                return run
            return None


def render_calls(calls: Iterable[Call], redactor: Redactor) -> list[dict[str, Any]]:
    """Calls as a trace has them, but for their times."""
    names = ("number", "depth", "name", "arguments", "result", "error", "file", "line", "column")
    return [dict(zip(names, row[1:], strict=False)) for row in _call_rows("", calls, 0.0, redactor.redact_text)]


def _call_rows(
    run_id: str, calls: Iterable[Call], origin: float, clean: Callable[[str], str]
) -> Iterator[tuple[Any, ...]]:
    """A row for each call. Once those of a run are large together, arguments and results are left out."""
    room = MAX_TRACE_BYTES
    for c in calls:
        arguments = shorten_text(clean(_compact({"args": c.args, "kwargs": c.kwargs})), MAX_VALUE)
        result = shorten_text(clean(_compact(c.result)), MAX_VALUE) if c.error is None else None
        room -= len(arguments) + len(result or "")
        if room < 0:
            arguments, result = '"…"', '"…"' if result is not None else None
        yield (
            run_id,
            c.number,
            c.depth,
            c.name,
            arguments,
            result,
            c.error and clean(c.error),
            c.place.file,
            c.place.line,
            c.place.column,
            (c.started - origin) * 1000,
            c.duration * 1000,
        )


def _sum_rows(run_id: str, sums: Iterable[CallSum], origin: float) -> Iterator[tuple[Any, ...]]:
    """A row for each sum, with the number of its first call and no depth."""
    for s in sums:
        yield (
            run_id,
            s.first.number,
            _NO_DEPTH,
            s.first.name,
            _compact({"calls": s.calls, "last": s.last_number}),
            None,
            None,
            s.first.place.file,
            s.first.place.line,
            s.first.place.column,
            (s.first.started - origin) * 1000,
            s.duration * 1000,
        )


def _decode_sum(call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = json.loads(call["arguments"])
    return {
        "name": call["name"],
        "file": call["file"],
        "line": call["line"],
        "column": call["column"],
        "calls": arguments["calls"],
        "first_number": call["number"],
        "last_number": arguments["last"],
        "duration_ms": call["duration_ms"],
    }


def _limit_rows(rows: Iterable[list[str]], most: int) -> list[list[str]]:
    """The first rows that have no more than ``most`` characters together."""
    limited = []
    for row in rows:
        most -= sum(map(len, row))
        if most < 0:
            break
        limited.append(row)
    return limited


def _delete_old_runs(db: sqlite3.Connection) -> None:
    """Delete the oldest runs, where there are too many, or they take too much space."""
    keep = KEEP_RUNS
    while True:
        old = db.execute("SELECT id FROM runs ORDER BY rowid DESC LIMIT -1 OFFSET ?", (keep,)).fetchall()
        db.executemany("DELETE FROM calls WHERE run_id=?", old)
        db.executemany("DELETE FROM runs WHERE id=?", old)
        pages, free, size = (
            db.execute(f"PRAGMA {of}").fetchone()[0] for of in ("page_count", "freelist_count", "page_size")
        )
        runs = db.execute("SELECT count(*) FROM runs").fetchone()[0]
        if (pages - free) * size <= MAX_TRACES_BYTES or runs <= 1:
            return
        keep = runs * 3 // 4


def _decode_run(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    data = dict(zip((c[0] for c in cursor.description), row, strict=True))
    for key in ("event", "result", "error", "commits", "entries", "cards", "log"):
        data[key] = json.loads(data[key]) if data[key] is not None else None
    data["dry_run"] = bool(data["dry_run"])
    if data["status"] == "running" and not _is_alive(data["pid"]):
        data["status"] = "killed"
    return data


def _decode_call(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    data = dict(zip((c[0] for c in cursor.description), row, strict=True))
    del data["run_id"]
    data["column"] = data.pop("col")
    return data


def find_gap(trace: Mapping[str, Any]) -> str:
    """Why a trace has not all calls of its run, in words; empty where it has."""
    if trace["duration_ms"] is None:  # they are written when it ends
        return "the run was killed before its trace was written"
    return "it made more calls than its trace keeps" if trace["more_calls"] else ""


def _file_identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _encode_value(value: Any) -> Any:
    return format(value, "f") if type(value).__name__ == "Decimal" else str(value)


# Made once: a run of a thousand calls encodes two thousand values.
_compact = json.JSONEncoder(ensure_ascii=False, default=_encode_value, separators=(",", ":")).encode
