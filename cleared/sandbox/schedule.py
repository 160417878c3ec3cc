"""When schedules come due: a cron expression in a time zone, which of its times to run now, and how many were missed.

Pure: no clock, no file. All calculations are in whole seconds since 1970, of UTC or of a local clock. croniter reads
the fields and checks that a schedule ever happens (``sandbox.header_values``); the times are found by
``Schedule._search``, whose docstring says why.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from calendar import monthrange
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

from msgspec import Struct

from cleared.base.errors import UsageError
from cleared.sandbox import header_values

MAX_TIMES = 10_000
"""So many times at most are made up for at once, or listed."""
MAX_SET_BACK = timedelta(hours=24)
"""A clock that is set back by more than this was wrong before, not is wrong now."""

_DAY = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_TICK = timedelta(microseconds=1)
# Eight years and some: from one 29 February to the next over 2100, which has none.
_HORIZON = 3_000 * _DAY
_LAST_SECOND = (date(9000, 1, 1).toordinal() - _EPOCH_DAY) * _DAY
# No clock was ever set by more than a day (islands that changed sides of the date line), so what was longer ago
# than two has no part in what is due now.
_OFFSET_LOOK_BACK = 2 * _DAY
# zoneinfo does not tell when clocks are set, so it is looked for in steps; no zone since 1970 had two changes within
# six days. What was found is kept in blocks.
_SEARCH_STEP = 5 * _DAY
_BLOCK_SECONDS = 20 * _SEARCH_STEP


class Schedule:
    """When a cron expression in a time zone comes due.

    Where clocks are set, in any zone and by any amount, nothing is lost and nothing comes twice:

    - Where the hour field names hours (anything that does not cover all 24), the expression names local times. One
      that is skipped, as clocks go forward, comes due at the first instant after; several that fall together there
      are one. One that happens twice, as clocks go back, comes due the first time only.
    - Where every hour is meant (``*``, ``@hourly``), it goes by elapsed time: it is due at each instant at which the
      local clock shows a time that matches. In an hour that happens twice it is due in both; for an hour that is
      skipped no time has passed, so it is not due.

    Days are cron's: where day of month and weekday are both given, either will do; where one begins with ``*`` (also
    ``*/2``), both must match. "L" is the last day of a month, "5#2" its second Friday, "L5" its last one; a
    sixth field is seconds.

    Cheap to make: equal expressions and zones are shared. Safe to use from several threads.
    """

    __slots__ = ("_calendar", "_zone", "expression", "timezone")

    def __init__(self, expression: str, timezone: str) -> None:
        """``expression``: 5 or 6 fields or an ``@`` alias; ``timezone``: an IANA name.

        Raises ``UsageError`` where one of them is not.
        """
        self.expression = expression
        self.timezone = timezone
        try:
            self._calendar = _parse_expression(expression)
            self._zone = _load_zone(timezone)
        except header_values.BadValue as bad:
            raise UsageError(bad.message, remedy=bad.remedy) from None

    def next_after(self, after: datetime) -> datetime | None:
        """The first time strictly after ``after``, in UTC; ``None`` where there is none in the next eight years."""
        start = _to_second(after) + 1
        second = next(self._search(start, start + _HORIZON), None)
        return None if second is None else _to_instant(second)

    def times_between(self, after: datetime, until: datetime, limit: int = MAX_TIMES) -> list[datetime]:
        """The times after ``after`` up to and with ``until``, in UTC, oldest first; the newest ``limit`` of them."""
        seconds = self._search(_to_second(after) + 1, _to_second(until) + 1, newest_first=True)
        return [_to_instant(second) for second in islice(seconds, limit)][::-1]

    def count_between(self, after: datetime, until: datetime) -> int:
        """How many times there are after ``after`` up to and with ``until``, without listing them."""
        count = 0
        for piece in self._stretches_between(_to_second(after) + 1, _to_second(until) + 1):
            sizes = (end - begin for _, begin, end in self._calendar.named_times(piece.low, piece.high))
            count += any(sizes) if piece.skipped else sum(sizes)
        return count

    def _search(self, start: int, end: int, newest_first: bool = False) -> Iterator[int]:
        """The times in ``[start, end)``, as seconds of UTC: in place of croniter's iteration, which

        - goes wrong where clocks are set: it skips or repeats a run, depending on the zone and the direction;
        - joins days of the month and an nth weekday (``0 0 1,15 * 5#2``) by *and* where cron means *or*, and
          ``*/2`` and a weekday (``0 0 */2 * 1``) by *or* where cron means *and*;
        - cannot count or go backwards without visiting each time, and takes a hundred times as long, which matters
          where ten thousand schedules are looked at.

        What a field means is croniter's own reading (``_parse_field``).
        """
        stretches: Iterable[_Stretch] = self._stretches_between(start, end)
        for stretch in reversed(list(stretches)) if newest_first else stretches:
            yield from self._times_in(stretch, newest_first)

    def _stretches_between(self, start: int, end: int) -> Iterator[_Stretch]:
        """The local times whose turn comes in ``[start, end)`` of UTC, in stretches that no change of clocks divides.

        Oldest first. Begins earlier than ``start``, to know which local times have had their turn.
        """
        end = min(end, _LAST_SECOND)
        at = start - _OFFSET_LOOK_BACK
        if start >= end:
            return
        offset = self._zone.offset_at(at)
        turn = at + offset  # local times from here on have not had their turn
        for change, following in self._zone.changes_between(at, end):
            if max(turn, start + offset) < change + offset:
                yield _Stretch(max(turn, start + offset), change + offset, offset)
            if self._calendar.every_hour:
                turn = change + following
            else:
                turn = max(turn, change + offset)
                if turn < change + following:
                    # With the first time after the gap, as that is when the skipped ones come due.
                    if change >= start:
                        yield _Stretch(turn, change + following + 1, following, skipped=True)
                    turn = change + following + 1
            offset = following
        if max(turn, start + offset) < end + offset:
            yield _Stretch(max(turn, start + offset), end + offset, offset)

    def _times_in(self, piece: _Stretch, newest_first: bool = False) -> Iterator[int]:
        """When the named times of ``piece`` come due, in seconds of UTC."""
        for day, begin, end in self._calendar.named_times(piece.low, piece.high, newest_first):
            if piece.skipped:
                yield piece.high - 1 - piece.offset
                return
            ranks = range(begin, end)
            for rank in reversed(ranks) if newest_first else ranks:
                yield day + self._calendar.time_of_rank(rank) - piece.offset


class DueTimes(Struct, frozen=True):
    """What of a schedule is to be run at a moment."""

    times: tuple[datetime, ...]
    """To be run, oldest first, in UTC."""
    missed: int
    """How many more were due and are not made up for."""
    mark: datetime
    """Everything up to here is decided."""


def find_due_times(
    schedule: Schedule, mark: datetime, now: datetime, alive_from: datetime, catch_up: Literal["none", "latest", "all"]
) -> DueTimes:
    """What came due after ``mark`` up to and with ``now``.

    What came due since ``alive_from`` is on time, and all of it runs. What came due before, while nobody was awake,
    was missed: ``none`` drops it, ``latest`` makes up for the newest of it if nothing is on time, ``all`` makes up
    for all of it (the newest 10,000). Where the clock was set back, ``correct_mark`` says from where it goes on.
    """
    mark = correct_mark(mark, now)
    woke = max(mark, min(alive_from - _TICK, now))
    on_time = schedule.times_between(woke, now, limit=sys.maxsize)
    most = {"none": 0, "latest": 0 if on_time else 1, "all": MAX_TIMES}[catch_up]
    late = schedule.times_between(mark, woke, limit=most)
    return DueTimes((*late, *on_time), schedule.count_between(mark, woke) - len(late), max(mark, now))


def correct_mark(mark: datetime, now: datetime) -> datetime:
    """The mark to go on from, where the clock may have been set.

    Set back by up to 24 hours, the mark stays: what ran is not run again, and the schedule waits until the clock is
    there again. Set back by more, it was wrong before, and the mark becomes ``now``. Set forward, the mark stays: what
    lies between was missed.
    """
    return now if mark - now > MAX_SET_BACK else mark


def jitter_seconds(agent: str, at: datetime, seconds: float) -> float:
    """By how many seconds the run of ``agent`` that is due ``at`` is put off: at least 0, less than ``seconds``.

    Always the same for the same agent and time, so that a restart does not draw again; 0 where ``seconds`` is 0.
    """
    drawn = blake2b(f"{agent}\0{(at - _EPOCH) // _TICK}".encode(), digest_size=4).digest()
    return int.from_bytes(drawn, "big") / 2**32 * seconds


class _Stretch(NamedTuple):
    """The local times in ``[low, high)``: each is due ``offset`` earlier in UTC.

    Where they were ``skipped``, all are due as one: at the last of them, which is the first that exists.
    """

    low: int
    high: int
    offset: int
    skipped: bool = False


class _LocalTimes:
    """The local times that an expression names, whatever the zone."""

    __slots__ = ("_days", "_hours", "_minutes", "_per_hour", "_seconds", "_size", "every_hour")

    def __init__(
        self, hours: tuple[int, ...], minutes: tuple[int, ...], seconds: tuple[int, ...], days: _CalendarDays
    ) -> None:
        self._hours, self._minutes, self._seconds, self._days = hours, minutes, seconds, days
        self._per_hour = len(minutes) * len(seconds)
        self._size = len(hours) * self._per_hour
        self.every_hour = len(hours) == 24

    def named_times(self, low: int, high: int, newest_first: bool = False) -> Iterator[tuple[int, int, int]]:
        """What is named in ``[low, high)`` of the local clock, day by day: when the day begins, and the ranks among
        its times, from and up to."""
        for number in self._days.days_between(low // _DAY, (high - 1) // _DAY, newest_first):
            day = number * _DAY
            begin, end = self._rank_of_time(low - day), self._rank_of_time(high - day)
            if begin < end:
                yield day, begin, end

    def time_of_rank(self, rank: int) -> int:
        """The time of day of that rank, in seconds."""
        hour, rest = divmod(rank, self._per_hour)
        minute, second = divmod(rest, len(self._seconds))
        return self._hours[hour] * 3600 + self._minutes[minute] * 60 + self._seconds[second]

    def _rank_of_time(self, time: int) -> int:
        """How many times of a day come before that second of it."""
        if time <= 0:
            return 0
        if time >= _DAY:
            return self._size
        minute, second = divmod(time, 60)
        hour, minute = divmod(minute, 60)
        hours = bisect_left(self._hours, hour)
        rank = hours * self._per_hour
        if hours == len(self._hours) or self._hours[hours] != hour:
            return rank
        minutes = bisect_left(self._minutes, minute)
        rank += minutes * len(self._seconds)
        if minutes == len(self._minutes) or self._minutes[minutes] != minute:
            return rank
        return rank + bisect_left(self._seconds, second)


class _CalendarDays:
    """The days that day of month, month and weekday name; days and months are counted from 1970 and from year 0."""

    __slots__ = ("_days_of_month", "_either", "_month_days", "_months", "_nth", "_weekdays")

    def __init__(self, month_day: str, month: str, weekday: str) -> None:
        self._month_days = frozenset(_parse_field(2, month_day).values)
        self._months = frozenset(_parse_field(3, month).values)
        self._weekdays = frozenset(_parse_field(4, weekday).values)
        self._nth = _parse_field(4, weekday).nth
        self._either = not month_day.startswith(("*", "?")) and not weekday.startswith(("*", "?"))
        self._days_of_month: dict[int, tuple[int, ...]] = {}

    def days_between(self, first: int, last: int, newest_first: bool) -> Iterator[int]:
        """Those from ``first`` up to and with ``last``."""
        months = range(_month_number(first), _month_number(last) + 1)
        for month in reversed(months) if newest_first else months:
            if month % 12 + 1 not in self._months:
                continue
            days = self._days_of_month.get(month)
            if days is None:
                days = self._days_of_month[month] = tuple(self._find_days(*divmod(month, 12)))
            for day in reversed(days) if newest_first else days:
                if first <= day <= last:
                    yield day

    def _find_days(self, year: int, month: int) -> Iterator[int]:
        monday_based, length = monthrange(year, month + 1)
        before = date(year, month + 1, 1).toordinal() - _EPOCH_DAY - 1
        for day in range(1, length + 1):
            weekday = (monday_based + day) % 7  # Sunday is 0
            by_month = day in self._month_days or ("l" in self._month_days and day == length)
            if self._nth:
                numbers = self._nth.get(weekday, frozenset())
                by_week = (day + 6) // 7 in numbers or ("l" in numbers and day + 7 > length)
            else:
                by_week = weekday in self._weekdays
            if (by_month or by_week) if self._either else (by_month and by_week):
                yield before + day


class _ZoneOffsets:
    """How far a zone's clocks are from UTC, and when they are set."""

    __slots__ = ("_blocks", "_info")

    def __init__(self, name: str) -> None:
        self._info = ZoneInfo(name)
        self._blocks: dict[int, tuple[tuple[int, int], ...]] = {}

    def offset_at(self, second: int) -> int:
        """Local time less UTC, in seconds, at a second of UTC."""
        offset = _to_instant(second).astimezone(self._info).utcoffset()
        assert offset is not None
        return offset // timedelta(seconds=1)

    def changes_between(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """When clocks are set after ``start`` and before ``end``, and the offset from then on; oldest first.

        The ends of blocks are among them, though nothing changes there, so that a caller can stop early.
        """
        for number in range(start // _BLOCK_SECONDS, (end - 1) // _BLOCK_SECONDS + 1):
            block = self._blocks.get(number)
            if block is None:
                block = self._blocks[number] = tuple(self._find_changes(number * _BLOCK_SECONDS))
            yield from (change for change in block if start < change[0] < end)

    def _find_changes(self, start: int) -> Iterator[tuple[int, int]]:
        before = self.offset_at(start)
        for low in range(start, start + _BLOCK_SECONDS, _SEARCH_STEP):
            after = self.offset_at(low + _SEARCH_STEP)
            if after != before:
                old, new = low, low + _SEARCH_STEP
                while new - old > 1:
                    middle = (old + new) // 2
                    old, new = (middle, new) if self.offset_at(middle) == before else (old, middle)
                yield new, after
            before = after
        yield start + _BLOCK_SECONDS, before


class _CronField(NamedTuple):
    values: tuple[int | str, ...]
    nth: dict[int, frozenset[int | str]]


@lru_cache(maxsize=4096)
def _parse_field(position: int, text: str) -> _CronField:
    """What one field names, by croniter: read field by field, as ten thousand expressions share a few hundred fields.

    Raises ``BadValue`` where it is no field.
    """
    import croniter

    fields = ["*"] * 6
    fields[position] = text
    try:
        expanded, nth = croniter.croniter.expand(" ".join(fields))
    except (croniter.CroniterError, ValueError, KeyError, TypeError, IndexError) as error:
        raise header_values.BadValue(
            "cron", f"{text[:60]!r} is not a field of a cron expression: {error}", header_values.CRON
        ) from None
    numbers = expanded[position]
    low, high = croniter.croniter.RANGES[position]
    named = tuple(range(low, high + 1)) if "*" in numbers else tuple(numbers)
    return _CronField(named, {weekday: frozenset(which) for weekday, which in nth.items()})


@lru_cache(maxsize=4096)
def _parse_days(month_day: str, month: str, weekday: str) -> _CalendarDays:
    return _CalendarDays(month_day, month, weekday)


@lru_cache(maxsize=16_384)
def _parse_expression(expression: str) -> _LocalTimes:
    minute, hour, month_day, month, weekday, *second = header_values.cron_fields(expression)
    minutes, hours, seconds = (
        tuple(number for number in _parse_field(position, text).values if isinstance(number, int))
        for position, text in ((0, minute), (1, hour), (5, second[0] if second else "0"))
    )
    return _LocalTimes(hours, minutes, seconds, _parse_days(month_day, month, weekday))


@lru_cache(maxsize=1024)
def _load_zone(name: str) -> _ZoneOffsets:
    return _ZoneOffsets(header_values.read_timezone(name))


def _to_second(instant: datetime) -> int:
    """The second of UTC that ``instant`` is in; nothing is due before 1970."""
    return max((instant - _EPOCH) // timedelta(seconds=1), -1)


def _to_instant(second: int) -> datetime:
    return _EPOCH + timedelta(seconds=second)


def _month_number(day: int) -> int:
    first = date.fromordinal(day + _EPOCH_DAY)
    return first.year * 12 + first.month - 1
