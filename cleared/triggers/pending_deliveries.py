"""The deliveries that wait to be run on this machine: ``.cleared/inbox.db``.

Losing it loses no event: schedules go on from the history's trailers, files are found where they lie, emitted events
are read off the commits again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct

from cleared.base.errors import ClearedError
from cleared.runs.attempt import Event, parse_event
from cleared.workspace.database import connect_to_read, connect_to_write

DeliveryState = Literal["waiting", "held"]
_VERSION: Final = 2
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS marks (agent TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS deliveries (
  id INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL, key TEXT NOT NULL, event TEXT NOT NULL,
  created REAL NOT NULL, not_before REAL NOT NULL, failures INTEGER NOT NULL DEFAULT 0,
  starts INTEGER NOT NULL DEFAULT 0, state TEXT NOT NULL DEFAULT 'waiting', why TEXT NOT NULL DEFAULT '',
  ordering_key TEXT NOT NULL, UNIQUE (agent, key));
CREATE INDEX IF NOT EXISTS deliveries_of ON deliveries (agent, ordering_key, id);
CREATE TABLE IF NOT EXISTS done (agent TEXT, key TEXT, at REAL NOT NULL, PRIMARY KEY (agent, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files (
  agent TEXT, sha256 TEXT, path TEXT NOT NULL, version TEXT NOT NULL, PRIMARY KEY (agent, sha256)) WITHOUT ROWID;
"""
_FIRST: Final = "SELECT min(id) FROM deliveries WHERE state='waiting' GROUP BY agent, ordering_key"
COMMITS_CURSOR: Final = "cursor"
"""The cursor's key: the commit up to which events were read."""
DONE_SECONDS: Final = 14 * 86_400
"""Seconds for which it is remembered that an event was dealt with, beside what the history says."""


class Delivery(Struct, frozen=True):
    """One event for one agent, waiting to be run."""

    id: int
    agent: str
    event: Event
    created: datetime
    not_before: datetime
    failures: int
    """Runs for it that failed."""
    starts: int
    """Runs for it that were begun, also those of which no end is known: the process was killed."""
    state: DeliveryState
    why: str
    """Of one that is held: what it waits for. Of one that failed: of what."""


class Inbox:
    """The deliveries of one workspace, in the order they came. One process uses it at a time, from one thread."""

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / "inbox.db"
        self._db = connect_to_write(self.path, _TABLES, _VERSION, isolation_level=None)

    def close(self) -> None:
        self._db.close()

    @property
    def file_exists(self) -> bool:
        """Whether the file is still where others would look for it: ``.cleared/`` may be deleted at any time."""
        return self.path.exists()

    @property
    def is_new(self) -> bool:
        """Whether no events were read into it yet: which of them were delivered before is in the history only."""
        return self.read_cursor(COMMITS_CURSOR) is None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything within is one SQLite transaction."""
        self._db.execute("BEGIN")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    # --- cursors -----------------------------------------------------------------------------------------------

    def read_cursor(self, key: str) -> str | None:
        row = self._db.execute("SELECT value FROM meta WHERE key=?", (key,)).fetchone()
        return str(row[0]) if row else None

    def set_cursor(self, key: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?,?)", (key, value))

    def schedule_marks(self) -> dict[str, datetime]:
        """Agent → the time up to which its schedule is decided."""
        return {agent: _from_timestamp(at) for agent, at in self._db.execute("SELECT agent, at FROM marks")}

    def schedule_mark(self, agent: str) -> datetime | None:
        """The time up to which one agent's schedule is decided."""
        row = self._db.execute("SELECT at FROM marks WHERE agent=?", (agent,)).fetchone()
        return _from_timestamp(row[0]) if row else None

    def set_schedule_marks(self, marks: Iterable[tuple[str, datetime]]) -> None:
        self._db.executemany(
            "INSERT OR REPLACE INTO marks VALUES (?,?)", [(agent, at.timestamp()) for agent, at in marks]
        )

    # --- deliveries --------------------------------------------------------------------------------------------

    def add_delivery(
        self,
        agent: str,
        event: Event,
        now: datetime,
        *,
        not_before: datetime | None = None,
        failures: int = 0,
        why: str = "",
        ordering_key: str = "",
    ) -> bool:
        """Take an event in for an agent; False where it waits already, or was dealt with. Those of one agent with one
        ``ordering_key`` have their turns in the order they came; those with others do not wait for them."""
        assert event.key is not None
        if self._db.execute("SELECT 1 FROM done WHERE agent=? AND key=?", (agent, event.key)).fetchone():
            return False
        inserted = self._db.execute(
            "INSERT OR IGNORE INTO deliveries (agent, key, event, created, not_before, failures, why, ordering_key)"
            " VALUES (?,?,?,?,?,?,?,?)",
            (
                agent,
                event.key,
                json.dumps(event.to_record(), default=str),
                now.timestamp(),
                (not_before or now).timestamp(),
                failures,
                why,
                ordering_key,
            ),
        )
        return inserted.rowcount == 1

    def was_settled(self, agent: str, key: str) -> bool:
        """Whether an event was dealt with for an agent, within the last two weeks."""
        return bool(self._db.execute("SELECT 1 FROM done WHERE agent=? AND key=?", (agent, key)).fetchone())

    def next_delivery(self, now: datetime, besides: Collection[str] = ()) -> Delivery | None:
        """The delivery whose turn it is: the oldest of those that are the first of their agent and ordering key, and
        due. Agents that are in ``besides`` have no turn."""
        rows = self._db.execute(
            f"SELECT * FROM deliveries WHERE id IN ({_FIRST})"
            " AND not_before<=? AND agent NOT IN (SELECT value FROM json_each(?)) ORDER BY id LIMIT 1",
            (now.timestamp(), json.dumps(list(besides))),
        ).fetchall()
        return _delivery_from_row(rows[0]) if rows else None

    def next_due_at(self, besides: Collection[str] = ()) -> datetime | None:
        """When the turn of the next delivery comes that is of none of the agents in ``besides``."""
        row = self._db.execute(
            f"SELECT min(not_before) FROM deliveries WHERE id IN ({_FIRST})"
            " AND agent NOT IN (SELECT value FROM json_each(?))",
            (json.dumps(list(besides)),),
        ).fetchone()
        return _from_timestamp(row[0]) if row[0] is not None else None

    def deliveries_of(self, agent: str) -> list[Delivery]:
        """All that waits for an agent, oldest first."""
        rows = self._db.execute("SELECT * FROM deliveries WHERE agent=? ORDER BY id", (agent,))
        return [_delivery_from_row(row) for row in rows.fetchall()]

    def has_deliveries(self, agent: str) -> bool:
        """Whether anything waits for the agent."""
        return self._db.execute("SELECT 1 FROM deliveries WHERE agent=? LIMIT 1", (agent,)).fetchone() is not None

    def count_start(self, delivery: Delivery) -> None:
        """Count the start of a run, so that a crash of the process during it is noticed."""
        self._db.execute("UPDATE deliveries SET starts=starts+1 WHERE id=?", (delivery.id,))

    def finish_delivery(
        self, delivery: Delivery, now: datetime, files: Iterable[tuple[str, str]] = (), version: str = ""
    ) -> None:
        """It is dealt with, and so are these of its files, which are still there."""
        assert delivery.event.key is not None
        with self.transaction():
            self.add_handled_files(delivery.agent, files, version)
            self._db.execute("DELETE FROM deliveries WHERE id=?", (delivery.id,))
            self._db.execute(
                "INSERT OR REPLACE INTO done VALUES (?,?,?)", (delivery.agent, delivery.event.key, now.timestamp())
            )

    def retry_delivery(self, delivery: Delivery, at: datetime, why: str, *, failed: bool) -> None:
        """Try it again at ``at``; ``failed``: the run counts as one that failed."""
        self._db.execute(
            "UPDATE deliveries SET not_before=?, why=?, failures=failures+?, starts=0, state='waiting' WHERE id=?",
            (at.timestamp(), why[:1_000], int(failed), delivery.id),
        )

    def hold_delivery(self, delivery: Delivery, why: str) -> None:
        """Keep it until ``release``: it cannot be run as things are."""
        self._db.execute("UPDATE deliveries SET state='held', why=?, starts=0 WHERE id=?", (why[:1_000], delivery.id))

    def release_held(self, now: datetime) -> None:
        """Things have changed: what is held is tried again."""
        self._db.execute("UPDATE deliveries SET state='waiting', not_before=? WHERE state='held'", (now.timestamp(),))

    def restart_deliveries(self, agent: str, now: datetime) -> None:
        """The agent is another one now: what failed, or is held, is tried at once, and from the beginning."""
        self._db.execute(
            "UPDATE deliveries SET state='waiting', not_before=?, failures=0, starts=0 WHERE agent=? AND why<>''",
            (now.timestamp(), agent),
        )

    def shift_deliveries(self, by: timedelta, now: datetime) -> None:
        """The clock was set back by that much: what waits for a time waits no longer for it than it would have."""
        self._db.execute(
            "UPDATE deliveries SET not_before=max(not_before-?, ?) WHERE not_before>?",
            (by.total_seconds(), now.timestamp(), now.timestamp()),
        )

    def limit_waiting(self, latest: datetime, now: datetime) -> None:
        """What waits for longer was put off by a clock that was wrong: its turn is now."""
        self._db.execute("UPDATE deliveries SET not_before=? WHERE not_before>?", (now.timestamp(), latest.timestamp()))

    def drop_delivery(self, delivery: Delivery) -> None:
        """Delete it, without a record that it was handled."""
        self._db.execute("DELETE FROM deliveries WHERE id=?", (delivery.id,))

    # --- files -------------------------------------------------------------------------------------------------

    def handled_files(self, agent: str) -> dict[str, tuple[str, str]]:
        """SHA-256 → (path, version of the agent and its settings) of the files that were dealt with and are still
        there."""
        rows = self._db.execute("SELECT sha256, path, version FROM files WHERE agent=?", (agent,))
        return {sha: (path, version) for sha, path, version in rows.fetchall()}

    def add_handled_files(self, agent: str, files: Iterable[tuple[str, str]], version: str) -> None:
        """These (path, SHA-256) are dealt with."""
        self._db.executemany(
            "INSERT OR REPLACE INTO files VALUES (?,?,?,?)", [(agent, sha, path, version) for path, sha in files]
        )

    def remove_handled_files(self, agent: str, digests: Iterable[str]) -> None:
        """These are gone: the same content is new when it comes again."""
        self._db.executemany("DELETE FROM files WHERE agent=? AND sha256=?", [(agent, sha) for sha in digests])

    def remove_obsolete(self, now: datetime, agents: Mapping[str, Any]) -> None:
        """Forget what is of no use any more: old ends, and what belongs to agents that are gone."""
        with self.transaction():
            self._db.execute("DELETE FROM done WHERE at<?", (now.timestamp() - DONE_SECONDS,))
            for table in ("marks", "files"):
                gone = [a for (a,) in self._db.execute(f"SELECT DISTINCT agent FROM {table}") if a not in agents]
                self._db.executemany(f"DELETE FROM {table} WHERE agent=?", [(a,) for a in gone])


def peek_deliveries(state_dir: Path) -> tuple[dict[str, int], list[Delivery]]:
    """How many deliveries wait and are held, and the first of them, for whoever asks beside the service."""
    path = state_dir / "inbox.db"
    try:
        db = connect_to_read(path)
        try:
            counts = dict(db.execute("SELECT state, count(*) FROM deliveries GROUP BY state").fetchall())
            rows = db.execute("SELECT * FROM deliveries ORDER BY id LIMIT 1000").fetchall()
        finally:
            db.close()
    except (sqlite3.Error, ClearedError):
        return {}, []
    return counts, [_delivery_from_row(row) for row in rows]


def _from_timestamp(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _delivery_from_row(row: tuple[Any, ...]) -> Delivery:
    identity, agent, _, event, created, not_before, failures, starts, state, why, _ = row
    return Delivery(
        identity,
        agent,
        parse_event(json.loads(event)),
        _from_timestamp(created),
        _from_timestamp(not_before),
        failures,
        starts,
        state,
        why,
    )
