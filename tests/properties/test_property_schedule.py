"""C1, C2: whatever the expression, the zone and the time, nothing comes due twice, and nothing gets lost in between."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise
from typing import Any
from zoneinfo import ZoneInfo

import croniter
from hypothesis import assume, example, given
from hypothesis import strategies as st

from cleared.sandbox import header_values
from cleared.sandbox.schedule import Schedule, find_due_times

DAY = timedelta(days=1)
# Where clocks are set by an hour, half an hour, two hours, a day; at midnight, over it; around Ramadan; never.
ZONES = (
    "Europe/London",
    "America/New_York",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "Pacific/Apia",
    "America/Santiago",
    "Asia/Beirut",
    "America/St_Johns",
    "Africa/Casablanca",
    "Europe/Dublin",
    "Asia/Gaza",
    "Antarctica/Casey",
    "America/Sao_Paulo",
    "Asia/Kathmandu",
    "UTC",
)


def parts(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    rising = st.tuples(number, number).filter(lambda pair: pair[0] < pair[1]).map("{0[0]}-{0[1]}".format)
    step = st.integers(1, high).map("/{}".format)
    return st.one_of(
        st.just("*"),
        number.map(str),
        rising,
        st.builds(str.__add__, st.just("*"), step),
        st.builds(str.__add__, rising, step),
        st.lists(number.map(str), min_size=2, max_size=4).map(",".join),
    )


# Without nth weekdays: croniter, which is compared with, takes them and a day of the month for both, not either.
plain = st.builds(
    lambda *fields: " ".join(field for field in fields if field),
    parts(0, 59),
    parts(0, 23),
    parts(1, 31) | st.sampled_from(("L", "15,L", "*", "*", "*")),
    parts(1, 12) | st.sampled_from(("*", "*", "feb", "jan-mar")),
    parts(0, 6) | st.sampled_from(("*", "*", "*", "mon-fri", "7")),
    st.just("") | st.just("") | parts(0, 59),
)
expressions = plain | st.sampled_from(
    ("0 0 * * 1#2", "30 1 * * L0", "0 2 13 * 5#3", "@daily", "@hourly", "@weekly", "@monthly")
)
instants = st.datetimes(datetime(1990, 1, 1), datetime(2045, 1, 1)).map(lambda naive: naive.replace(tzinfo=UTC))


@st.composite
def near_a_change(draw: st.DrawFn) -> tuple[str, datetime]:
    """A zone and a time; mostly one within a day of when its clocks are set."""
    zone, instant = draw(st.sampled_from(ZONES)), draw(instants)
    info = ZoneInfo(zone)
    for day in range(draw(st.sampled_from((0, 400, 400, 400)))):
        if (instant + day * DAY).astimezone(info).utcoffset() != (instant + (day + 1) * DAY).astimezone(
            info
        ).utcoffset():
            return zone, instant + day * DAY - timedelta(minutes=draw(st.integers(-1500, 1500)))
    return zone, instant


def of(expression: str, zone: str) -> Schedule:
    try:
        header_values.read_cron(expression)
    except header_values.BadValue:
        assume(False)
    return Schedule(expression, zone)


@given(expressions, near_a_change())
def test_C1_next_rises_and_between_is_next_again_and_again(expression: str, where: tuple[str, datetime]) -> None:
    zone, start = where
    schedule = of(expression, zone)
    found, instant = [], start
    for _ in range(30):
        following = schedule.next_after(instant)
        if following is None:
            break
        assert following > instant and following.tzinfo is UTC and not following.microsecond
        assert schedule.next_after(following - timedelta(microseconds=1)) == following
        found.append(following)
        instant = following
    assert schedule.times_between(start, instant) == found
    assert schedule.count_between(start, instant) == len(found)
    for late in (1, 7, 29):
        assert schedule.times_between(start, instant, limit=late) == found[-late:]


@given(expressions, near_a_change(), st.lists(st.integers(0, 5 * 86_400_000_000), max_size=8))
def test_C2_however_an_interval_is_divided_the_same_comes_due(
    expression: str, where: tuple[str, datetime], cuts: list[int]
) -> None:
    zone, start = where
    schedule = of(expression, zone)
    points = [start, *(start + timedelta(microseconds=cut) for cut in sorted(cuts)), start + 5 * DAY]
    whole = schedule.times_between(start, points[-1], limit=10**6)
    assert all(earlier < later for earlier, later in pairwise(whole))
    assert [t for a, b in pairwise(points) for t in schedule.times_between(a, b, limit=10**6)] == whole
    assert sum(schedule.count_between(a, b) for a, b in pairwise(points)) == len(whole)
    mark, ran = start, []
    for now in points:
        decided = find_due_times(schedule, mark, now, start, "none")
        mark = decided.mark
        ran += decided.times
    assert ran == [instant for instant in whole if instant > start]


@given(expressions, near_a_change(), st.integers(0, 2**32))
def test_C2_clocks_that_are_set_back_and_forth_make_nothing_run_twice(
    expression: str, where: tuple[str, datetime], seed: int
) -> None:
    zone, start = where
    schedule = of(expression, zone)
    drawn = random.Random(seed)
    mark, now, ran = start, start, []
    for _ in range(20):
        now += drawn.choice((1, 1, 1, -1)) * timedelta(hours=6) * drawn.random()
        now = max(now, mark - DAY)
        decided = find_due_times(schedule, mark, now, start, "all")
        mark = decided.mark
        ran += decided.times
        assert not decided.missed
    assert ran == schedule.times_between(start, mark, limit=10**6)


@given(near_a_change())
@example(("Pacific/Apia", datetime(2011, 12, 25, tzinfo=UTC)))
@example(("America/St_Johns", datetime(2010, 11, 1, tzinfo=UTC)))
@example(("America/St_Johns", datetime(2000, 10, 29, 2, 30, tzinfo=UTC)))
@example(("America/Santiago", datetime(2026, 9, 1, tzinfo=UTC)))
def test_C2_every_day_that_there_is_has_its_daily_once(where: tuple[str, datetime]) -> None:
    zone, start = where
    info = ZoneInfo(zone)
    start = start.replace(second=0, microsecond=0)
    before, shown = (
        {(start + timedelta(minutes=minute)).astimezone(info).date() for minute in minutes}
        for minutes in (range(-2 * 1440, 1), range(1, 12 * 1440 + 1))
    )
    fired = [
        instant.astimezone(info).date() for instant in Schedule("@daily", zone).times_between(start, start + 12 * DAY)
    ]
    assert fired == sorted(shown - before)


@given(plain, near_a_change())
def test_C2_where_local_times_are_named_each_local_day_has_them_once(
    expression: str, where: tuple[str, datetime]
) -> None:
    """Against the days of croniter, each local time converted by the rule for itself."""
    zone, start = where
    schedule = of(expression, zone)
    hours = Schedule(" ".join(("0", expression.split()[1], "* * *")), "UTC").count_between(start, start + DAY)
    assume(hours < 24)
    info = ZoneInfo(zone)
    local = start.astimezone(info).replace(tzinfo=None, microsecond=0) - 2 * DAY
    wanted = set()
    for naive in islice(naive_times(expression, local), 3_000):
        if naive > local + 6 * DAY:
            break
        wanted.add(first_shown_from(naive, info))
    else:
        assume(False)
    end = start + 3 * DAY
    assert schedule.times_between(start, end) == sorted(instant for instant in wanted if start < instant <= end)


def naive_times(expression: str, start: datetime) -> Iterator[datetime]:
    search: Any = croniter.croniter(expression, start, datetime, implement_cron_bug=True, max_years_between_matches=9)
    return search.all_next(datetime)


def first_shown_from(naive: datetime, info: ZoneInfo) -> datetime:
    """When a clock first shows ``naive``, or more than that where it is skipped."""
    instant = naive.replace(tzinfo=info, fold=0).astimezone(UTC)
    if instant.astimezone(info).replace(tzinfo=None) == naive:
        return instant
    before, after = instant - 2 * DAY, instant + 2 * DAY
    while after - before > timedelta(seconds=1):
        middle = (before + (after - before) / 2).replace(microsecond=0)
        before, after = (middle, after) if middle.astimezone(info).replace(tzinfo=None) < naive else (before, middle)
    return after


@given(plain, st.dates(date(1995, 1, 1), date(2090, 1, 1)))
def test_C1_in_UTC_it_is_what_croniter_says(expression: str, day: date) -> None:
    start = datetime(day.year, day.month, day.day)
    schedule = of(expression, "UTC")
    instant = start.replace(tzinfo=UTC)
    for naive in islice(naive_times(expression, start), 20):
        following = schedule.next_after(instant)
        if following is None:
            assert naive > start + 8 * 365 * DAY
            break
        assert following.replace(tzinfo=None) == naive
        instant = following
