"""CARD 1: when an agent runs stands on its card in words; what has no short ones comes with its next times."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from cleared.sandbox.schedule import Schedule
from cleared.sandbox.schedule_words import describe_schedule, find_words

START = datetime(2026, 11, 26, 11, 0, tzinfo=UTC)
WORDS = {
    "0 8 * * 5": "Fridays at 08:00",
    "0 6 * * *": "every day at 06:00",
    "@daily": "every day at 00:00",
    "@hourly": "every hour",
    "@weekly": "Sundays at 00:00",
    "@yearly": "each year on 1 January at 00:00",
    "*/15 * * * *": "every 15 minutes",
    "* * * * *": "every minute",
    "5 * * * *": "every hour, at minute 5",
    "0 */6 * * *": "every day at 00:00, 06:00, 12:00 and 18:00",
    "0 */2 * * *": "every 2 hours",
    "*/15 9-17 * * 1-5": "every 15 minutes from 09:00 to 17:45, Mondays to Fridays",
    "0 9-17 * * MON-FRI": "every hour from 09:00 to 17:00, Mondays to Fridays",
    "30 8,17 * * 1,4": "Mondays and Thursdays at 08:30 and 17:30",
    "0 10 * * 6,7": "Saturdays and Sundays at 10:00",
    "0 7 1 * *": "on day 1 of each month at 07:00",
    "0 7 1,15 * *": "on days 1 and 15 of each month at 07:00",
    "0 7 L * *": "on the last day of each month at 07:00",
    "0 7 5 1,4,7,10 *": "on day 5 of January, April, July and October at 07:00",
    "0 7 * * 5#2": "on the second Friday of each month at 07:00",
    "0 7 * * L5": "on the last Friday of each month at 07:00",
    "0 7 * 12 1": "Mondays in December at 07:00",
    "0 8 * * 5 0": "Fridays at 08:00",
}
NONE = ("0 7 1 * 5", "*/7 * * * *", "1,2,4,8,9 * * * *", "0 7 1-20 * *", "0 8 * * 5 30", "0 7 */2 * 1")


@pytest.mark.parametrize("expression", WORDS)
def test_a_common_schedule_is_said_in_words(expression: str) -> None:
    assert find_words(expression) == WORDS[expression]
    assert describe_schedule(expression, "America/New_York", START) == f"{WORDS[expression]}, America/New_York"


@pytest.mark.parametrize("expression", [each for each in WORDS if " at 0" in WORDS[each] or " at 1" in WORDS[each]])
def test_the_words_name_the_times_at_which_it_comes_due(expression: str) -> None:
    schedule, at = Schedule(expression, "America/New_York"), START
    for _ in range(6):
        due = schedule.next_after(at)
        assert due is not None
        local = due.astimezone(ZoneInfo("America/New_York"))
        assert f"{local:%H:%M}" in WORDS[expression]
        assert not WORDS[expression].split(" ")[0].endswith("days") or f"{local:%A}s" in WORDS[expression]
        at = due


@pytest.mark.parametrize("expression", NONE)
def test_any_other_schedule_is_said_with_its_next_times(expression: str) -> None:
    assert find_words(expression) == ""
    said = describe_schedule(expression, "UTC", START)
    due, schedule = START, Schedule(expression, "UTC")
    for _ in range(3):
        due = schedule.next_after(due) or due
        assert f"{due:%Y-%m-%d %H:%M}" in said, said
    assert said.startswith(f"on the schedule {expression}, UTC (next: ")
