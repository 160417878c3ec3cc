"""Calls of webhooks that were accepted: on the disk before they are answered, there until their run has ended.

They lie in the git directory and not in ``.cleared/``, which may be deleted at any time: nothing else has them. The
server adds calls, the service takes them; they may be two processes.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from cleared.base.errors import BusyError, ClearedError, WorkspaceError
from cleared.workspace.database import connect_to_read, connect_to_write
from cleared.workspace.location import find_git_folders

FOLDER: Final = "cleared-webhooks"
FILE: Final = "calls.db"
MAX_WAITING: Final = 10_000
"""Calls that may wait for their runs; more are not taken."""
KEEP_FOR: Final = timedelta(days=14)
"""How long the id of a call is remembered after its run, to refuse a replay. A signature counts for minutes."""
_MAX_RESULT: Final = 64 << 10
_VERSION: Final = 2
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS calls (
  number INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL,
  received REAL NOT NULL, settled REAL, result TEXT NOT NULL DEFAULT '',
  ordering_key TEXT NOT NULL, UNIQUE (agent, id));
CREATE INDEX IF NOT EXISTS waiting ON calls (number) WHERE settled IS NULL;
"""


class WebhookCall(Struct, frozen=True):
    """An accepted call: its sender's id for it, and its body, a JSON text."""

    agent: str
    id: str
    body: str
    received: datetime
    ordering_key: str = ""
    """Calls with the same one are run in the order they came; a call without one waits for no other."""

    @property
    def key(self) -> str:
        """The key of its event."""
        return event_key(self.id)


class _PendingCall(Struct):
    call: WebhookCall
    outcome: Literal["", "new", "known", "full"] = ""
    """Empty: not stored."""


class CallState(Struct, frozen=True):
    """What became of a call. ``result``: of its last run, as ``agent run --json`` prints it."""

    is_settled: bool
    result: dict[str, Any] | None


def event_key(call_id: str) -> str:
    """The key of the event of a call. No other kind of trigger has such keys."""
    return f"hook/{call_id}"


def calls_folder(root: Path) -> Path:
    """Where the calls of this workspace lie. Raises ``WorkspaceError`` where it is no git repository."""
    folders = find_git_folders(root)
    if folders is None:
        raise WorkspaceError(f"{root} is not a git repository", remedy="Make it one: git init.")
    return folders[0] / FOLDER


def count_waiting_calls(root: Path) -> int:
    """How many calls wait for their runs."""
    try:
        path = calls_folder(root) / FILE
        if not path.exists():
            return 0
        db = connect_to_read(path)
    except ClearedError:
        return 0
    try:
        return int(db.execute("SELECT count(*) FROM calls WHERE settled IS NULL").fetchone()[0])
    except sqlite3.Error:
        return 0
    finally:
        db.close()


class CallKeeper(Protocol):
    """Where a server keeps the calls that it accepts. Thread-safe."""

    def add_call(self, call: WebhookCall) -> bool:
        """Take a call in; False where its agent has had one of this id. It is kept when this returns."""

    def find_state(self, agent: str, call_id: str) -> CallState | None:
        """What became of a call; None where it is not known."""

    def count_waiting(self) -> int:
        """How many calls wait for their runs."""


@dataclass
class WebhookCalls:
    """The calls of one workspace. Thread-safe. Raises ``ClearedError`` where the disk refuses."""

    root: Path
    _pending: list[_PendingCall] = field(default_factory=list)
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _writing: threading.Lock = field(default_factory=threading.Lock)
    _db: sqlite3.Connection | None = None

    def close(self) -> None:
        with self._writing:
            if self._db is not None:
                self._db.close()
                self._db = None

    def add_call(self, call: WebhookCall) -> bool:
        """Take a call in; False where its agent has had one of this id. It is on the disk when this returns.

        Calls that come at once share the wait for the disk. Raises ``BusyError`` where too many wait.
        """
        mine = _PendingCall(call)
        with self._guard:
            self._pending.append(mine)
        with self._writing:
            if not mine.outcome:
                with self._guard:
                    batch, self._pending = self._pending, []
                self._store_calls(batch)
        if mine.outcome == "full":
            raise BusyError(f"{MAX_WAITING:,} calls wait for their runs already", remedy="Is cleared up running?")
        if not mine.outcome:  # another thread's write failed, and this call with it
            raise WorkspaceError("the call could not be stored", remedy="Send it again.")
        return mine.outcome == "new"

    def _store_calls(self, batch: Sequence[_PendingCall]) -> None:
        db = self._connect()
        outcomes: list[Literal["new", "known", "full"]] = []
        try:
            db.execute("BEGIN IMMEDIATE")
            room = MAX_WAITING - db.execute("SELECT count(*) FROM calls WHERE settled IS NULL").fetchone()[0]
            for call in (each.call for each in batch):
                if room <= 0 and not self._is_known(db, call):
                    outcomes.append("full")
                    continue
                row = (call.agent, call.id, call.body, call.received.timestamp(), call.ordering_key)
                columns = "agent, id, body, received, ordering_key"
                added = db.execute(f"INSERT OR IGNORE INTO calls ({columns}) VALUES (?,?,?,?,?)", row)
                outcomes.append("new" if added.rowcount else "known")
                room -= added.rowcount
            db.execute("COMMIT")
        except sqlite3.Error as error:
            self._abandon(db)
            raise WorkspaceError(f"the call could not be stored: {error}", remedy="Send it again.") from None
        for each, outcome in zip(batch, outcomes, strict=True):
            each.outcome = outcome

    def _is_known(self, db: sqlite3.Connection, call: WebhookCall) -> bool:
        found = db.execute("SELECT 1 FROM calls WHERE agent=? AND id=?", (call.agent, call.id))
        return found.fetchone() is not None

    def find_state(self, agent: str, call_id: str) -> CallState | None:
        """What became of a call; None where it is not known."""
        with self._writing:
            row = (
                self._connect()
                .execute("SELECT settled, result FROM calls WHERE agent=? AND id=?", (agent, call_id))
                .fetchone()
            )
        return CallState(row[0] is not None, json.loads(row[1]) if row[1] else None) if row else None

    def count_waiting(self) -> int:
        """How many calls wait for their runs."""
        return count_waiting_calls(self.root)

    def list_ended(self) -> dict[tuple[str, str], CallState]:
        """Agent and id of the calls that are settled, or had a run → what became of them."""
        with self._writing:
            rows = (
                self._connect()
                .execute("SELECT agent, id, settled, result FROM calls WHERE settled IS NOT NULL OR result<>''")
                .fetchall()
            )
        return {
            (agent, call_id): CallState(settled is not None, json.loads(result) if result else None)
            for agent, call_id, settled, result in rows
        }

    def list_waiting(self, after: int, most: int) -> list[tuple[int, WebhookCall]]:
        """The calls whose runs have not ended, with their numbers, oldest first, from the number after ``after`` on."""
        with self._writing:
            rows = (
                self._connect()
                .execute(
                    "SELECT number, agent, id, body, received, ordering_key FROM calls"
                    " WHERE settled IS NULL AND number>? ORDER BY number LIMIT ?",
                    (after, most),
                )
                .fetchall()
            )
        return [(row[0], WebhookCall(row[1], row[2], row[3], _from_timestamp(row[4]), row[5])) for row in rows]

    def record_result(self, agent: str, key: str, result: dict[str, Any]) -> None:
        """A run for the call with this event key has ended so."""
        text = json.dumps(result, default=str)
        if len(text) > _MAX_RESULT:
            text = json.dumps({name: result.get(name) for name in ("run_id", "agent", "status", "commits", "error")})
        self._update("UPDATE calls SET result=? WHERE agent=? AND id=?", text, agent, _call_id(key))

    def settle_call(self, agent: str, key: str, now: datetime) -> None:
        """Nothing more will come of the call with this event key. Its body is forgotten."""
        self._update(
            "UPDATE calls SET settled=?, body='' WHERE agent=? AND id=? AND settled IS NULL",
            now.timestamp(),
            agent,
            _call_id(key),
        )

    def remove_old(self, now: datetime) -> None:
        """Forget calls that were settled long ago."""
        self._update("DELETE FROM calls WHERE settled<?", (now - KEEP_FOR).timestamp())

    def _update(self, statement: str, *values: object) -> None:
        with self._writing:
            db = self._connect()
            try:
                db.execute(statement, values)
            except sqlite3.Error as error:
                self._abandon(db)
                raise WorkspaceError(f"the end of a call could not be stored: {error}") from None

    def _connect(self) -> sqlite3.Connection:
        """The open database. The caller holds the lock."""
        if self._db is None:
            path = calls_folder(self.root) / FILE
            self._db = connect_to_write(
                path, _TABLES, _VERSION, durable=True, isolation_level=None, check_same_thread=False
            )
        return self._db

    def _abandon(self, db: sqlite3.Connection) -> None:
        self._db = None
        db.close()


def _call_id(key: str) -> str:
    return key.removeprefix("hook/")


def _from_timestamp(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
