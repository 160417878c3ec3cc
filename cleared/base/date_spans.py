"""Spans of days as people write them: ``2025``, ``2025-Q1``, ``2025-03``, ``2025-01..2025-03``, ``FY2025``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

from msgspec import Struct

from cleared.base.days import parse_month
from cleared.base.errors import UsageError

_YEAR: Final = re.compile(r"(FY)?([0-9]{4})(?:-?Q([1-4]))?", re.ASCII | re.IGNORECASE)
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
REMEDY: Final = "Write 2025, 2025-Q1, 2025-03, 2025-03-31, 2025-01..2025-03, or FY2025 for a fiscal year."


class DateSpan(Struct, frozen=True):
    """Some days. ``label``: as it is written."""

    start: date
    end: date
    """The last day."""
    label: str

    @property
    def months(self) -> list[tuple[int, int]]:
        """The months that have days of it, in order."""
        first, last = count_months(self.start), count_months(self.end)
        return [(n // 12, n % 12 + 1) for n in range(first, last + 1)]

    @property
    def is_whole_months(self) -> bool:
        return self.start.day == 1 and (self.end == date.max or (self.end + timedelta(days=1)).day == 1)

    def split_months(self) -> Iterator[DateSpan]:
        """The span month by month."""
        for year, month in self.months:
            whole = month_span(year, month)
            yield DateSpan(max(self.start, whole.start), min(self.end, whole.end), whole.label)

    def previous(self) -> DateSpan:
        """The span of the same length just before it. Raises ``UsageError`` before the year 1."""
        if not self.is_whole_months:
            days = (self.end - self.start).days
            end = _shift_days(self.start, -1)
            return _describe(_shift_days(end, -days), end)
        return self._shift_months(-len(self.months))

    def year_before(self) -> DateSpan:
        """The same span a year earlier. Raises ``UsageError`` before the year 1."""
        if self.is_whole_months:
            return self._shift_months(-12)
        return _describe(_shift_year(self.start), _shift_year(self.end))

    def _shift_months(self, by: int) -> DateSpan:
        months = self.months
        first, last = (_month_at(y * 12 + m - 1 + by) for y, m in (months[0], months[-1]))
        return _describe(first.start, last.end)


def month_span(year: int, month: int) -> DateSpan:
    """A whole month."""
    start = date(year, month, 1)
    end = date.max if (year, month) == (9999, 12) else date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)
    return DateSpan(start, end, f"{year:04d}-{month:02d}")


def fiscal_year_of(day: date, start_month: int) -> DateSpan:
    """The fiscal year that a day lies in; it is called by the year in which it ends."""
    year = day.year + (start_month > 1 and day.month >= start_month)
    return parse_span(f"{year:04d}" if start_month == 1 else f"FY{year:04d}", start_month)


def parse_span(text: str, start_month: int = 1) -> DateSpan:
    """The days that are meant. ``start_month``: first month of the fiscal year. Raises ``UsageError``."""
    first, dots, last = text.strip().partition("..")
    if not dots:
        return _parse_one(first, start_month)
    start, end = _parse_one(first, start_month).start, _parse_one(last, start_month).end
    if end < start:
        raise UsageError(f"the period {text[:40]!r} ends before it begins", remedy=REMEDY)
    return DateSpan(start, end, text.strip())


def _parse_one(text: str, start_month: int) -> DateSpan:
    match = _YEAR.fullmatch(text)
    try:
        if match and int(match[2]):
            begins = start_month if match[1] else 1
            first = int(match[2]) * 12 + begins - 1 - (12 if begins > 1 else 0)
            if match[3]:
                first += 3 * (int(match[3]) - 1)
            last = first + (2 if match[3] else 11)
            return DateSpan(_month_at(first).start, _month_at(last).end, text.upper())
        if _DAY.fullmatch(text):
            day = date.fromisoformat(text)
            return DateSpan(day, day, text)
        return month_span(*parse_month(text))
    except (ValueError, UsageError):
        raise UsageError(f"{text[:40]!r} is not a period", remedy=REMEDY) from None


def count_months(day: date) -> int:
    """The number of a day's month, so that months can be counted on: January of the year 0 is 0."""
    return day.year * 12 + day.month - 1


def _month_at(number: int) -> DateSpan:
    if not 12 <= number < 120_000:
        raise UsageError("that is before the year 1 or after 9999", remedy=REMEDY)
    return month_span(number // 12, number % 12 + 1)


def _describe(start: date, end: date) -> DateSpan:
    """A span by the shortest way to write it."""
    months = DateSpan(start, end, "").months
    if DateSpan(start, end, "").is_whole_months:
        (year, first), (last_year, last) = months[0], months[-1]
        if len(months) == 1:
            return month_span(year, first)
        if year == last_year and len(months) == 12:
            return DateSpan(start, end, f"{year:04d}")
        if year == last_year and len(months) == 3 and first % 3 == 1:
            return DateSpan(start, end, f"{year:04d}-Q{first // 3 + 1}")
        return DateSpan(start, end, f"{year:04d}-{first:02d}..{last_year:04d}-{last:02d}")
    return DateSpan(start, end, start.isoformat() if start == end else f"{start}..{end}")


def _shift_days(day: date, by: int) -> date:
    try:
        return day + timedelta(days=by)
    except OverflowError:
        raise UsageError("there is no period before that one", remedy=REMEDY) from None


def _shift_year(day: date) -> date:
    if day.year == 1:
        raise UsageError("there is no year before that one", remedy=REMEDY)
    return day.replace(year=day.year - 1, day=28 if (day.month, day.day) == (2, 29) else day.day)
