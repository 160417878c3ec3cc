"""C1, C2 (the reckoning; that runs follow from it is tested with the service): when schedules come due.

What is expected is worked out by hand, or by looking at every minute of 400 days.
"""

from __future__ import annotations

import random
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import product
from typing import Literal
from zoneinfo import ZoneInfo

import croniter
import pytest

from cleared.base.errors import UsageError
from cleared.sandbox import header_values
from cleared.sandbox.schedule import Schedule, correct_mark, find_due_times, jitter_seconds

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
CatchUp = Literal["none", "latest", "all"]
MODES: tuple[CatchUp, ...] = ("none", "latest", "all")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def fires(expression: str, timezone: str, after: str, hours: float) -> list[str]:
    """What comes due, as ``29T01:00`` of UTC."""
    found = Schedule(expression, timezone).times_between(at(after), at(after) + hours * HOUR)
    return [f"{instant:%dT%H:%M:%S}".removesuffix(":00") for instant in found]


# --- where clocks are set -------------------------------------------------------------------------------------------

LONDON_MARCH = ("Europe/London", "2026-03-28T12:00", 48)  # 29th: 01:00 GMT is 02:00 BST
LONDON_OCTOBER = ("Europe/London", "2026-10-24T12:00", 48)  # 25th: 02:00 BST is 01:00 GMT, at 01:00 UTC


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("30 1 * * *", ["29T01:00", "30T00:30"]),
        ("*/10 1 * * *", ["29T01:00", "30T00:00", "30T00:10", "30T00:20", "30T00:30", "30T00:40", "30T00:50"]),
        ("30 1,2 * * *", ["29T01:00", "29T01:30", "30T00:30", "30T01:30"]),
        ("0 1,2 * * *", ["29T01:00", "30T00:00", "30T01:00"]),
        ("59 0 * * *", ["29T00:59", "29T23:59"]),
        ("30 1 29 3 *", ["29T01:00"]),
        ("30 1 * * * 15", ["29T01:00", "30T00:30:15"]),
    ],
)
def test_C2_a_local_time_that_is_skipped_comes_due_when_the_clocks_have_gone_forward(
    expression: str, expected: list[str]
) -> None:
    assert fires(expression, *LONDON_MARCH) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("30 1 * * *", ["25T00:30", "26T01:30"]),
        ("0 1,2 * * *", ["25T00:00", "25T02:00", "26T01:00", "26T02:00"]),
        ("59 0 * * *", ["24T23:59", "26T00:59"]),
        ("59 1 25 10 *", ["25T00:59"]),
        ("0 0-22 25 10 *", ["24T23:00", "25T00:00", *(f"25T{hour:02}:00" for hour in range(2, 23))]),
    ],
)
def test_C2_a_local_time_that_happens_twice_comes_due_the_first_time(expression: str, expected: list[str]) -> None:
    assert fires(expression, *LONDON_OCTOBER) == expected


@pytest.mark.parametrize("expression", ["30 * * * *", "30 */1 * * *", "30 0-23 * * *"])
def test_C2_every_hour_goes_by_elapsed_time(expression: str) -> None:
    for zone, day in (
        (LONDON_MARCH[0], "2026-03-29"),
        (LONDON_OCTOBER[0], "2026-10-25"),
        ("America/New_York", "2026-11-01"),
    ):
        assert fires(expression, zone, f"{day}T00:00", 5) == [f"{day[-2:]}T{hour:02}:30" for hour in range(5)]
    assert fires("@hourly", "America/New_York", "2026-03-08T05:30", 3) == ["08T06:00", "08T07:00", "08T08:00"]


@pytest.mark.parametrize(
    ("zone", "expression", "after", "hours", "expected"),
    [
        # 8 March: 02:00 EST is 03:00 EDT, at 07:00 UTC. 1 November: 02:00 EDT is 01:00 EST, at 06:00 UTC.
        ("America/New_York", "30 2 * * *", "2026-03-07T00:00", 72, ["07T07:30", "08T07:00", "09T06:30"]),
        ("America/New_York", "30 1 * * *", "2026-10-31T00:00", 72, ["31T05:30", "01T05:30", "02T06:30"]),
        ("America/New_York", "0 */2 * * *", "2026-03-08T04:00", 5, ["08T05:00", "08T07:00", "08T08:00"]),
        # Half an hour. 5 April: 02:00 (+11) is 01:30 (+10:30), at 15:00 UTC. 4 October: 02:00 is 02:30, at 15:30 UTC.
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04T00:00", 48, ["04T14:45", "05T15:15"]),
        ("Australia/Lord_Howe", "45 * * * *", "2026-04-04T14:00", 2.5, ["04T14:45", "04T15:15", "04T16:15"]),
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03T00:00", 48, ["03T15:30", "04T15:15"]),
        ("Australia/Lord_Howe", "15 * * * *", "2026-10-03T14:00", 3, ["03T14:45", "03T16:15"]),
        # There is no 30 December 2011: 24:00 of the 29th (-10) is 00:00 of the 31st (+14), at 10:00 UTC.
        ("Pacific/Apia", "0 12 * * *", "2011-12-29T00:00", 72, ["29T22:00", "30T10:00", "30T22:00", "31T22:00"]),
        ("Pacific/Apia", "@daily", "2011-12-28T00:00", 96, ["28T10:00", "29T10:00", "30T10:00", "31T10:00"]),
        ("Pacific/Apia", "0 6 30 12 *", "2011-12-28T00:00", 96, ["30T10:00"]),
        ("Pacific/Apia", "0 * 30 12 *", "2011-12-28T00:00", 120, []),
        # Standard time is in summer, so that DST is negative.
        ("Europe/Dublin", "30 1 * * *", "2026-03-28T12:00", 48, ["29T01:00", "30T00:30"]),
        ("Europe/Dublin", "30 1 * * *", "2026-10-24T12:00", 48, ["25T00:30", "26T01:30"]),
        # Back for Ramadan: on 15 February 03:00 (+1) is 02:00 (+0), on 22 March 02:00 is 03:00; both at 02:00 UTC.
        ("Africa/Casablanca", "30 2 * * *", "2026-02-14T12:00", 48, ["15T01:30", "16T02:30"]),
        ("Africa/Casablanca", "30 2 * * *", "2026-03-21T00:00", 60, ["21T02:30", "22T02:00", "23T01:30"]),
        # No midnight. 6 September: 00:00 is 01:00, at 04:00 UTC. 4 April: 24:00 is 23:00, at 03:00 UTC of the 5th.
        ("America/Santiago", "@daily", "2026-09-05T00:00", 60, ["05T04:00", "06T04:00", "07T03:00"]),
        ("America/Santiago", "@daily", "2026-04-04T00:00", 60, ["04T03:00", "05T04:00", "06T04:00"]),
        ("America/Santiago", "30 23 * * *", "2026-04-04T12:00", 48, ["05T02:30", "06T03:30"]),
        ("Asia/Beirut", "@daily", "2026-03-28T00:00", 60, ["28T22:00", "29T21:00"]),
        # Back over midnight: 7 November 2010 at 00:01 (-2:30) is 23:01 of the 6th (-3:30).
        ("America/St_Johns", "@daily", "2010-11-06T00:00", 60, ["06T02:30", "07T02:30", "08T03:30"]),
        ("America/St_Johns", "30 23 * * *", "2010-11-06T12:00", 48, ["07T02:00", "08T03:00"]),
        # Forward for a week only, at midnight: on 8 October 2000 at 03:00 UTC, back on the 15th at 02:00 UTC.
        (
            "America/Recife",
            "@daily",
            "2000-10-07T00:00",
            216,
            ["07T03:00", "08T03:00", *(f"{day:02}T02:00" for day in range(9, 15)), "15T03:00"],
        ),
        # Two hours.
        ("Antarctica/Troll", "30 1 * * *", "2026-03-28T12:00", 48, ["29T01:00", "29T23:30"]),
        ("Antarctica/Troll", "30 2 * * *", "2026-10-24T12:00", 48, ["25T00:30", "26T02:30"]),
    ],
)
def test_C2_odd_zones(zone: str, expression: str, after: str, hours: float, expected: list[str]) -> None:
    assert fires(expression, zone, after, hours) == expected
    for instant in Schedule(expression, zone).times_between(at(after), at(after) + hours * HOUR):
        assert Schedule(expression, zone).next_after(instant - timedelta(microseconds=1)) == instant


# --- the calendar ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 0 31 * *", ["2026-01-31", "2026-03-31", "2026-05-31", "2026-07-31"]),
        ("0 0 L * *", ["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30"]),
        ("0 0 15,L * *", ["2026-01-15", "2026-01-31", "2026-02-15", "2026-02-28"]),
        ("0 0 29 2 *", ["2028-02-29", "2032-02-29", "2036-02-29", "2040-02-29"]),
        ("0 0 * * 5#2", ["2026-01-09", "2026-02-13", "2026-03-13", "2026-04-10"]),
        ("0 0 1,15 * 5#2", ["2026-01-09", "2026-01-15", "2026-02-01", "2026-02-13"]),
        ("0 0 * * L5", ["2026-01-30", "2026-02-27", "2026-03-27", "2026-04-24"]),
        ("0 0 * * 1#5", ["2026-03-30", "2026-06-29", "2026-08-31", "2026-11-30"]),
        ("0 0 * * 7", ["2026-01-04", "2026-01-11", "2026-01-18", "2026-01-25"]),
        ("0 0 * feb,apr mon", ["2026-02-02", "2026-02-09", "2026-02-16", "2026-02-23"]),
        ("0 0 ? * sat-sun", ["2026-01-03", "2026-01-04", "2026-01-10", "2026-01-11"]),
        # Day of month and weekday: either will do.
        ("0 0 13 * 5", ["2026-01-02", "2026-01-09", "2026-01-13", "2026-01-16"]),
        ("0 0 1-31 * 5", ["2026-01-02", "2026-01-03", "2026-01-04", "2026-01-05"]),
        ("0 0 31 2 1", ["2026-02-02", "2026-02-09", "2026-02-16", "2026-02-23"]),
        ("0 0 20 * 1#1", ["2026-01-05", "2026-01-20", "2026-02-02", "2026-02-20"]),
        # As cron has it, both must match where one of them begins with a star.
        ("0 0 */2 * 1", ["2026-01-05", "2026-01-19", "2026-02-09", "2026-02-23"]),
        ("0 0 13 * */5", ["2026-02-13", "2026-03-13", "2026-09-13", "2026-11-13"]),
        ("0 0 */1 * 5", ["2026-01-02", "2026-01-09", "2026-01-16", "2026-01-23"]),
        ("0 0 * * 1,*", ["2026-01-02", "2026-01-03", "2026-01-04", "2026-01-05"]),
        ("@yearly", ["2027-01-01", "2028-01-01", "2029-01-01", "2030-01-01"]),
        ("@annually", ["2027-01-01", "2028-01-01", "2029-01-01", "2030-01-01"]),
        ("@monthly", ["2026-02-01", "2026-03-01", "2026-04-01", "2026-05-01"]),
        ("@weekly", ["2026-01-04", "2026-01-11", "2026-01-18", "2026-01-25"]),
        ("@midnight", ["2026-01-02", "2026-01-03", "2026-01-04", "2026-01-05"]),
    ],
)
def test_C1_days(expression: str, expected: list[str]) -> None:
    schedule = Schedule(expression, "UTC")
    found, instant = [], at("2026-01-01T00:00")
    for _ in expected:
        following = schedule.next_after(instant)
        assert following is not None
        found.append(f"{following:%Y-%m-%d}")
        instant = following
    assert found == expected


def test_croniter_reads_these_days_otherwise() -> None:
    """Why ``Schedule`` finds its times itself: where croniter does as cron does, the reason is gone."""
    new_year = at("2026-01-01T00:00")
    with pytest.raises(croniter.CroniterBadDateError):  # the 1st and the 15th are never a second Friday
        croniter.croniter("0 0 1,15 * 5#2", new_year).get_next(datetime)
    assert croniter.croniter("0 0 */2 * 1", new_year).get_next(datetime) == at("2026-01-03T00:00")  # a Saturday


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("* * * * * */20", ["01T00:00:20", "01T00:00:40", "01T00:01"]),
        ("30 6 * * * 15", ["01T06:30:15", "02T06:30:15", "03T06:30:15"]),
        ("*/25 8-9 * * *", ["01T08:00", "01T08:25", "01T08:50"]),
        ("5/20 * * * *", ["01T00:05", "01T00:25", "01T00:45"]),
        ("0 22-2 * * *", ["01T01:00", "01T02:00", "01T22:00"]),
        ("5,* * * * *", ["01T00:01", "01T00:02", "01T00:03"]),
        ("0\u00a06\t* * *", ["01T06:00", "02T06:00", "03T06:00"]),
    ],
)
def test_C1_times_of_day(expression: str, expected: list[str]) -> None:
    assert fires(expression, "UTC", "2026-01-01T00:00", 55)[:3] == expected


def test_C1_from_one_29_February_to_the_next_over_a_year_without() -> None:
    assert Schedule("0 0 29 2 *", "UTC").next_after(at("2096-03-01T00:00")) == at("2104-02-29T00:00")


def test_C1_none_where_nothing_comes_for_eight_years() -> None:
    sunday = Schedule("0 0 29 2 */7", "UTC")
    assert sunday.next_after(at("2026-01-01T00:00")) == at("2032-02-29T00:00")
    assert sunday.next_after(at("2032-02-29T00:00")) is None  # 2060
    assert Schedule("@daily", "UTC").next_after(datetime.max.replace(tzinfo=UTC)) is None


def test_C1_next_is_strictly_after_and_any_aware_time_will_do() -> None:
    daily = Schedule("0 6 * * *", "Europe/London")
    six = at("2026-07-01T05:00")
    assert daily.next_after(six - timedelta(microseconds=1)) == six
    assert daily.next_after(six) == daily.next_after(six + timedelta(microseconds=1)) == six + DAY
    found = daily.next_after(datetime(2026, 7, 1, 0, 0, tzinfo=ZoneInfo("Europe/London")))
    assert found == six and found is not None and found.tzinfo is UTC


def test_C2_of_too_many_the_newest_are_listed_and_all_are_counted() -> None:
    every = Schedule("* * * * * *", "America/New_York")
    start, end = at("2016-01-01T00:00"), at("2026-01-01T00:00")
    found = every.times_between(start, end)
    assert len(found) == 10_000 and found[0] == end - timedelta(seconds=9_999) and found[-1] == end
    assert every.count_between(start, end) == (end - start) // timedelta(seconds=1)
    assert every.times_between(start, end, limit=2) == [end - timedelta(seconds=1), end]
    assert every.times_between(start, end, limit=0) == every.times_between(end, start) == []
    assert every.count_between(end, start) == 0


@pytest.mark.parametrize(
    "expression",
    [
        "R * * * *",
        "0 ? * * *",
        "r(0-9) 6 * * *",
        "* R/3 * * *",
        "H H * * *",
        "0 0 15W * *",
        "5-5 * * * *",
        "0 6 * * mon-MON",
        "0 6 * *",
        "0 6 * * * 0 2030",
        "61 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "* * * * * 60",
        "*/0 * * * *",
        "* * * * 1#6",
        "* * * * 1,3#2",
        "@dayly",
        "@reboot",
        "every day at six o'clock",
        "",
    ],
)
def test_C1_what_is_no_schedule_or_another_one_each_time_is_refused(expression: str) -> None:
    with pytest.raises(UsageError) as refused:
        Schedule(expression, "UTC")
    assert refused.value.remedy
    with pytest.raises(header_values.BadValue):
        header_values.read_cron(expression)


def test_C1_a_zone_that_does_not_exist_is_refused() -> None:
    for zone in ("Mars/Base", "../etc/passwd", ""):
        with pytest.raises(UsageError, match="not an IANA time zone"):
            Schedule("@daily", zone)


@pytest.mark.parametrize(
    ("expression", "happens"),
    [
        ("0 9 15 * 1#2", True),
        ("0 0 31 2 1", True),
        ("0 0 */31 2 1", True),
        ("0 0 31 2 *", False),
        ("0 0 31 2 */7", False),
        ("0 0 30 2 1#1", True),
    ],
)
def test_A1_the_header_takes_what_happens_and_only_that(expression: str, happens: bool) -> None:
    assert (Schedule(expression, "UTC").next_after(at("2024-01-01T00:00")) is not None) is happens
    if happens:
        assert header_values.read_cron(expression) == expression
    else:
        with pytest.raises(header_values.BadValue, match="never happens"):
            header_values.read_cron(expression)


def test_C1_ten_thousand_schedules_are_made_and_asked_in_a_second() -> None:
    drawn = random.Random(4)
    zones = ("Europe/London", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia", "UTC")
    rows = [
        (f"{drawn.randrange(60)} {drawn.randrange(24)} {drawn.randrange(1, 29)} * {drawn.randrange(7)}", zone)
        for zone in drawn.choices(zones, k=10_000)
    ]
    started = time.process_time()
    assert all(Schedule(*row).next_after(at("2026-06-01T00:00")) for row in rows)
    assert time.process_time() - started < 3  # with room for a slow machine


# --- what is due now ------------------------------------------------------------------------------------------------


def test_C1_the_clock_crossing_six_fires_once() -> None:
    schedule = Schedule("0 6 * * *", "Europe/London")
    six = at("2026-07-01T05:00")
    mark = alive = six - HOUR
    fired = []
    for seconds in (-1, -0.001, 0, 0.001, 1, 60, 3600):
        found = find_due_times(schedule, mark, six + timedelta(seconds=seconds), alive, "latest")
        fired += found.times
        mark = found.mark
        assert found.missed == 0
    assert fired == [six] and mark == six + HOUR


@pytest.mark.parametrize(
    ("expression", "none", "latest", "every"),
    [("@hourly", 0, 1, 48), ("0 6 * * *", 0, 1, 2), ("*/5 * * * *", 0, 1, 576), ("0 6 * * 1", 0, 0, 0)],
)
def test_C2_48_hours_down_by_catch_up(expression: str, none: int, latest: int, every: int) -> None:
    schedule = Schedule(expression, "America/New_York")
    mark, now = at("2026-07-01T12:31"), at("2026-07-03T12:31")  # Wednesday to Friday
    for catch_up, expected in zip(MODES, (none, latest, every), strict=True):
        found = find_due_times(schedule, mark, now, now, catch_up)
        assert (len(found.times), found.missed, found.mark) == (expected, every - expected, now)
        assert list(found.times) == schedule.times_between(mark, now)[every - expected :]
        assert find_due_times(schedule, found.mark, now, now, catch_up).times == ()


def test_C2_48_hours_down_over_a_change_of_clocks() -> None:
    for start, hours in (("2026-03-28T12:30", 48), ("2026-10-24T12:30", 48)):
        found = find_due_times(
            Schedule("@hourly", "Europe/London"), at(start), at(start) + 2 * DAY, at(start) + 2 * DAY, "all"
        )
        assert len(found.times) == len(set(found.times)) == hours
        for expression in ("30 1 * * *", "0 1 * * *", "59 1 * * *"):
            schedule = Schedule(expression, "Europe/London")
            assert len(find_due_times(schedule, at(start), at(start) + 2 * DAY, at(start) + 2 * DAY, "all").times) == 2


def test_C2_what_is_on_time_runs_and_the_latest_is_not_made_up_for_beside_it() -> None:
    schedule = Schedule("@hourly", "UTC")
    mark, alive, now = at("2026-07-01T00:30"), at("2026-07-01T05:00"), at("2026-07-01T06:10")
    on_time = (at("2026-07-01T05:00"), at("2026-07-01T06:00"))
    late = tuple(at(f"2026-07-01T0{hour}:00") for hour in (1, 2, 3, 4))
    assert find_due_times(schedule, mark, now, alive, "none").times == on_time
    assert find_due_times(schedule, mark, now, alive, "latest").times == on_time
    assert find_due_times(schedule, mark, now, alive, "latest").missed == 4
    assert find_due_times(schedule, mark, now, alive, "all").times == late + on_time
    assert find_due_times(schedule, mark, now, now, "latest").times == on_time[1:]
    assert find_due_times(schedule, mark, now, now, "latest").missed == 5


def test_C2_all_makes_up_for_ten_thousand_and_says_how_many_more_there_were() -> None:
    schedule = Schedule("* * * * *", "UTC")
    mark, now = at("2026-07-01T00:00"), at("2026-07-11T00:00")
    found = find_due_times(schedule, mark, now, now + MINUTE, "all")
    assert (len(found.times), found.missed, found.times[-1]) == (10_000, 4_400, now)
    awake = find_due_times(schedule, mark, now, mark, "all")
    assert (len(awake.times), awake.missed) == (14_400, 0)


def test_C2_a_clock_set_back_a_little_waits_and_one_that_was_wrong_starts_over() -> None:
    schedule = Schedule("@hourly", "UTC")
    mark = at("2026-07-02T12:10")
    for back in (timedelta(seconds=1), HOUR, 24 * HOUR):
        found = find_due_times(schedule, mark, mark - back, mark - back, "all")
        assert (found.times, found.missed, found.mark) == ((), 0, mark) and correct_mark(mark, mark - back) == mark
    there = find_due_times(schedule, mark, mark + HOUR, mark - HOUR, "all")
    assert there.times == (at("2026-07-02T13:00"),)
    back = mark - 24 * HOUR - timedelta(seconds=1)
    found = find_due_times(schedule, mark, back, back, "all")
    assert (found.times, found.missed, found.mark) == ((), 0, back) and correct_mark(mark, back) == back
    assert find_due_times(schedule, back, back + HOUR, back, "all").times == (at("2026-07-01T13:00"),)


def test_C2_a_clock_set_forward_is_time_that_was_missed() -> None:
    schedule = Schedule("@hourly", "UTC")
    mark, now = at("2026-07-01T00:30"), at("2026-07-03T00:30")
    assert correct_mark(mark, now) == mark
    assert [len(find_due_times(schedule, mark, now, now, catch_up).times) for catch_up in MODES] == [0, 1, 48]


def test_C1_jitter_is_drawn_once_for_all() -> None:
    six = at("2026-07-01T06:00")
    drawn = [jitter_seconds(f"agent{number}", six, 60.0) for number in range(2_000)]
    assert drawn == [jitter_seconds(f"agent{number}", six, 60.0) for number in range(2_000)]
    assert all(0 <= seconds < 60 for seconds in drawn) and len(set(drawn)) == 2_000
    assert 27 < sum(drawn) / 2_000 < 33 and min(drawn) < 1 and max(drawn) > 59
    assert jitter_seconds("a", six, 60.0) == jitter_seconds("a", six.astimezone(ZoneInfo("Asia/Tokyo")), 60.0)
    assert len({jitter_seconds("a", six + day * DAY, 60.0) for day in range(100)}) == 100
    assert jitter_seconds("a", six, 0.0) == 0.0


# --- 400 days, minute by minute -------------------------------------------------------------------------------------

START = at("2026-01-15T00:00")
END = START + 400 * DAY
ZONES = ("Europe/London", "America/New_York", "Australia/Lord_Howe")


@dataclass(frozen=True)
class Expected:
    """An expression, and the same said as the hours and minutes it names and a test of the local day."""

    expression: str
    hours: range | tuple[int, ...]
    minutes: range | tuple[int, ...]
    day: Callable[[datetime], bool] = field(default=lambda local: True)


EVERY_HOUR = range(24)
DOZEN = (
    Expected("*/5 * * * *", EVERY_HOUR, range(0, 60, 5)),
    Expected("@hourly", EVERY_HOUR, (0,)),
    Expected("45 0-23 * * *", EVERY_HOUR, (45,)),
    Expected("15 * * * 1-5", EVERY_HOUR, (15,), lambda local: local.weekday() < 5),
    Expected("@daily", (0,), (0,)),
    Expected("15 2 * * *", (2,), (15,)),
    Expected("45 1 * * *", (1,), (45,)),
    Expected("*/10 1-2 * * *", (1, 2), range(0, 60, 10)),
    Expected("0 6 * * mon-fri", (6,), (0,), lambda local: local.weekday() < 5),
    Expected("59 23 L * *", (23,), (59,), lambda local: (local + DAY).day == 1),
    Expected("30 1 29 3 *", (1,), (30,), lambda local: (local.day, local.month) == (29, 3)),
    Expected("0 12 13 * 5", (12,), (0,), lambda local: local.day == 13 or local.weekday() == 4),
    Expected("0 2 */2 * 7", (2,), (0,), lambda local: local.day % 2 == 1 and local.weekday() == 6),
    Expected("0 9 * * 5#2", (9,), (0,), lambda local: 8 <= local.day <= 14 and local.weekday() == 4),
)


@cache
def shown(zone: str) -> tuple[dict[tuple[int, int], list[tuple[datetime, datetime]]], ...]:
    """By what the clock shows: when it shows that, at each minute; and when it first shows that or more."""
    info = ZoneInfo(zone)
    each: dict[tuple[int, int], list[tuple[datetime, datetime]]] = {}
    first: dict[tuple[int, int], list[tuple[datetime, datetime]]] = {}
    instant = START
    latest = (START - MINUTE).astimezone(info).replace(tzinfo=None)
    while instant < END:
        local = instant.astimezone(info).replace(tzinfo=None, fold=0)
        each.setdefault((local.hour, local.minute), []).append((instant, local))
        while latest < local:
            latest += MINUTE
            first.setdefault((latest.hour, latest.minute), []).append((instant, latest))
        instant += MINUTE
    return each, first


def oracle(expected: Expected, zone: str) -> list[datetime]:
    each, first = shown(zone)
    clock = each if len(expected.hours) == 24 else first
    found = {
        instant
        for shows in product(expected.hours, expected.minutes)
        for instant, local in clock[shows]
        if expected.day(local)
    }
    return sorted(found - {START})


def wakes(drawn: random.Random) -> Iterator[list[datetime]]:
    """Times at which the service looks, session by session, the first of each being its start; then it is down."""
    now = START
    while now < END:
        session = [now]
        awake = now + drawn.choice((HOUR, 12 * HOUR, 5 * DAY, 12 * DAY)) * drawn.random()
        while now < min(awake, END):
            now += drawn.choice((timedelta(seconds=40), HOUR, DAY, 2 * DAY)) * drawn.random()
            session.append(now)
        yield session
        now += drawn.choice((MINUTE, HOUR, DAY, 4 * DAY, 20 * DAY)) * drawn.random()


@pytest.mark.parametrize("zone", ZONES)
def test_C2_400_days_of_sleep_and_downtime_over_every_change_of_clocks(zone: str) -> None:
    changes = {(START + day * DAY).astimezone(ZoneInfo(zone)).utcoffset() for day in range(400)}
    assert len(changes) == 2
    for number, expected in enumerate(DOZEN):
        schedule = Schedule(expected.expression, zone)
        sessions = list(wakes(random.Random(f"{zone} {number}")))
        last = sessions[-1][-1]
        wanted = [instant for instant in oracle(expected, zone) if instant <= last]
        assert schedule.times_between(START, min(last, END - MINUTE), limit=10**6) == wanted
        for catch_up in MODES:
            mark, ran, missed = START, [], 0
            for session in sessions:
                for now in session:
                    found = find_due_times(schedule, mark, min(now, END - MINUTE), session[0], catch_up)
                    mark = found.mark
                    ran += found.times
                    missed += found.missed
            assert ran == by_hand(wanted, sessions, catch_up), (expected.expression, catch_up)
            assert len(ran) + missed == len(wanted)
            assert len(set(ran)) == len(ran)


def by_hand(wanted: list[datetime], sessions: list[list[datetime]], catch_up: CatchUp) -> list[datetime]:
    """What runs: all, or what falls into a session, and by ``latest`` the newest before it."""
    if catch_up == "all":
        return wanted
    ran: list[datetime] = []
    decided = 0
    for session in sessions:
        started = max(decided, bisect_left(wanted, session[0]))
        ended = max(decided, bisect_right(wanted, session[-1]))
        on_time_at_once = started < ended and wanted[started] == session[0]
        if catch_up == "latest" and decided < started and not on_time_at_once:
            ran.append(wanted[started - 1])
        ran += wanted[started:ended]
        decided = ended
    return ran
