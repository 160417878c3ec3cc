"""Every call to a model, with its tokens and what it cost, in ``.cleared/llm.db`` (SQLite, WAL).

A call is recorded as begun before it is sent, at what it may cost, so that a process that is killed, or another one
beside it, has its share of the budget. Losing the file loses the sums, no books.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from decimal import ROUND_UP, Decimal
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from cleared.workspace.database import connect_to_read, connect_to_write

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS calls (
  id INTEGER PRIMARY KEY, began TEXT NOT NULL, day TEXT NOT NULL, ended TEXT, provider TEXT NOT NULL,
  model TEXT NOT NULL, purpose TEXT NOT NULL, session TEXT NOT NULL, input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL DEFAULT 0, cached_tokens INTEGER NOT NULL DEFAULT 0, nano_dollars INTEGER NOT NULL,
  outcome TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS calls_by_day ON calls (day);
CREATE INDEX IF NOT EXISTS calls_by_session ON calls (session);
"""
_VERSION: Final = 1
_NANO: Final = Decimal(1_000_000_000)
_MOST_NANO: Final = 10**15
"""A million dollars: sums of such stay within SQLite's integers."""


class BegunCall(Struct, frozen=True):
    """A call that is about to be sent. ``day`` is in the business's time zone; ``cost`` what it may come to."""

    began: str
    day: str
    provider: str
    model: str
    purpose: str
    session: str
    input_tokens: int
    cost: Decimal


class EndedCall(Struct, frozen=True):
    """What came of it. ``cost`` in US dollars. ``outcome``: ``ok``, or in a word what went wrong."""

    ended: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: Decimal
    outcome: str


class Spent(Struct, frozen=True):
    """US dollars of the session, and of the day."""

    session: Decimal
    day: Decimal


class UsageRow(Struct, frozen=True):
    """Calls of one day, model and purpose. ``unfinished``: calls whose process ended before they did."""

    day: str
    provider: str
    model: str
    purpose: str
    calls: int
    failed: int
    unfinished: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    nano_dollars: int

    @property
    def cost(self) -> Decimal:
        """US dollars."""
        return _from_nano(self.nano_dollars)


class UsageStore:
    """The calls of one workspace. Several threads and processes may use it at once.

    Methods raise ``BusyError`` or ``WorkspaceError`` where the file cannot be used.
    """

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / "llm.db"
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None

    def close(self) -> None:
        """Close the file; it is opened again when it is needed."""
        with self._lock:
            db, self._db = self._db, None
            if db is not None:
                db.close()

    def begin_call(self, call: BegunCall, check: Callable[[Spent], None]) -> int:
        """Record a call that is about to be sent, and return its number.

        ``check`` gets what was spent before; what it raises is passed on, and nothing is recorded. No other process
        can begin a call in between.
        """
        with self._lock:
            db = self._connect()
            db.execute("BEGIN IMMEDIATE")
            try:
                check(_sum_spent(db, call.session, call.day))
                row = db.execute(
                    "INSERT INTO calls (began, day, provider, model, purpose, session, input_tokens, nano_dollars,"
                    " outcome) VALUES (?,?,?,?,?,?,?,?,'begun')",
                    (
                        call.began,
                        call.day,
                        call.provider,
                        call.model,
                        call.purpose,
                        call.session,
                        call.input_tokens,
                        _to_nano(call.cost),
                    ),
                )
                db.execute("COMMIT")
            except BaseException:
                db.execute("ROLLBACK")
                raise
            return int(row.lastrowid or 0)

    def end_call(self, number: int, call: EndedCall) -> None:
        """Record what came of a call."""
        with self._lock:
            self._connect().execute(
                "UPDATE calls SET ended=?, input_tokens=?, output_tokens=?, cached_tokens=?, nano_dollars=?, outcome=?"
                " WHERE id=?",
                (
                    call.ended,
                    call.input_tokens,
                    call.output_tokens,
                    call.cached_tokens,
                    _to_nano(call.cost),
                    call.outcome[:100],
                    number,
                ),
            )

    def sum_spent(self, session: str, day: str) -> Spent:
        """What a session and a day have cost so far, calls under way included."""
        if not self.path.exists():
            return Spent(Decimal(0), Decimal(0))
        with closing(connect_to_read(self.path)) as db:
            return _sum_spent(db, session, day)

    def list_usage(self, first_day: str) -> list[UsageRow]:
        """What was used from a day on, newest day first."""
        if not self.path.exists():
            return []
        with closing(connect_to_read(self.path)) as db:
            rows = db.execute(
                "SELECT day, provider, model, purpose, COUNT(*), SUM(outcome NOT IN ('ok', 'begun')),"
                " SUM(outcome = 'begun'), SUM(input_tokens), SUM(output_tokens), SUM(cached_tokens), SUM(nano_dollars)"
                " FROM calls WHERE day >= ? GROUP BY day, provider, model, purpose"
                " ORDER BY day DESC, provider, model, purpose",
                (first_day,),
            ).fetchall()
        return [UsageRow(*row) for row in rows]

    def _connect(self) -> sqlite3.Connection:
        if self._db is None:
            self._db = connect_to_write(self.path, SCHEMA, _VERSION, check_same_thread=False, isolation_level=None)
        return self._db


def _sum_spent(db: sqlite3.Connection, session: str, day: str) -> Spent:
    def total(column: str, value: str) -> Decimal:
        row: Any = db.execute(f"SELECT SUM(MAX(nano_dollars, 0)) FROM calls WHERE {column} = ?", (value,)).fetchone()
        return _from_nano(row[0])

    return Spent(total("session", session), total("day", day))


def _to_nano(cost: Decimal) -> int:
    return max(0, min(int((cost * _NANO).to_integral_value(ROUND_UP)), _MOST_NANO))


def _from_nano(nano: int | None) -> Decimal:
    return Decimal(nano or 0) / _NANO
