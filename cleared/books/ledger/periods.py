"""Closed periods (``books/periods.csv``, append-only): nothing new is dated inside one."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

from msgspec import Struct

from cleared.base.csv_text import CsvDamage, format_record, read_records
from cleared.base.errors import Place, RestoreRemedy, WorkspaceError
from cleared.books.ledger.bank_lines import append_rows

HEADER: Final = ("through", "state", "by", "at", "reason", "digest")
STATES: Final = ("open", "closed", "filed")


class PeriodMark(Struct, frozen=True):
    """``state`` closed or filed: all days up to and including ``through`` are shut. ``open``: all after ``through``
    are open again."""

    through: date
    state: str
    by: str
    at: str
    reason: str
    digest: str
    """SHA-256 of the trial balance at ``through`` when it was closed."""


class Periods(Struct, frozen=True):
    """The marks in order; the last one is in force."""

    marks: tuple[PeriodMark, ...] = ()

    @property
    def closed_through(self) -> date | None:
        """The last closed day, or None where everything is open."""
        return self.marks[-1].through if self.marks and self.marks[-1].through > date.min else None

    @property
    def filed_through(self) -> date | None:
        """The last day that was marked as filed, and not reopened since; None where there is none."""
        filed: date | None = None
        for mark in self.marks:
            if mark.state == "filed":
                filed = max(mark.through, filed or date.min)
            elif mark.state == "open" and filed is not None and mark.through < filed:
                filed = mark.through if mark.through > date.min else None
        return filed

    def is_closed(self, day: date) -> bool:
        last = self.closed_through
        return last is not None and day <= last

    def first_open(self, day: date) -> date:
        """``day`` itself if open, else the first day of the earliest open period: where a correction is dated."""
        last = self.closed_through
        return day if last is None or day > last else last + timedelta(days=1)


def parse_periods(data: bytes | None, file: str) -> Periods:
    """Read the marks; raises ``WorkspaceError`` with the line of the first that is wrong."""
    if data is None:
        return Periods()
    marks = []
    try:
        for line, row in read_records(data, HEADER):
            try:
                through = date.fromisoformat(row[0]) if row[0] else date.min
            except ValueError:
                raise _period_error(file, line, "through", f"{row[0]!r} is not a date") from None
            if row[1] not in STATES:
                raise _period_error(file, line, "state", f"{row[1]!r} is not one of {', '.join(STATES)}")
            marks.append(PeriodMark(through, row[1], row[2], row[3], row[4], row[5]))
    except CsvDamage as e:
        raise _period_error(file, e.line, None, str(e)) from None
    return Periods(tuple(marks))


def append_mark(data: bytes | None, mark: PeriodMark) -> bytes:
    through = "" if mark.through == date.min else mark.through.isoformat()
    return append_rows(data, HEADER, [format_record((through, mark.state, mark.by, mark.at, mark.reason, mark.digest))])


def _period_error(file: str, line: int, field: str | None, message: str) -> WorkspaceError:
    return WorkspaceError(message, place=Place(file, line, field=field), remedy=RestoreRemedy(file))
