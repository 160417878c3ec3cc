"""When a schedule comes due, in words: ``Fridays at 08:00``. What has no short words is said with its next times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

from cleared.base.short_text import join_words
from cleared.sandbox import header_values

_WEEKDAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November"),
    "December",
)
_ORDINALS: Final = {"1": "first", "2": "second", "3": "third", "4": "fourth", "5": "fifth", "l": "last"}
_PART: Final = re.compile(r"(?:(\*)|([a-z0-9]+)(?:-([a-z0-9]+))?)(?:/([0-9]{1,2}))?", re.ASCII)
_NTH_WEEKDAY: Final = re.compile(r"(?:([0-7])#([1-5])|(l)([0-7]))", re.ASCII)
_MOST_TIMES: Final = 4
"""Times of a day, and days of a month, that are still said one by one."""
_NEXT_TIMES: Final = 3
_EVERY_DAY: Final = "every day"


def describe_schedule(expression: str, timezone: str, after: datetime) -> str:
    """``Fridays at 08:00, America/New_York``; of an expression without short words, the expression and its first times
    after that moment."""
    words = find_words(expression)
    if words:
        return f"{words}, {timezone}"
    from cleared.sandbox.schedule import Schedule  # only here: most schedules have words

    schedule = Schedule(expression, timezone)
    times: list[datetime] = []
    due = schedule.next_after(after)
    while due is not None and len(times) < _NEXT_TIMES:
        times.append(due.astimezone(ZoneInfo(timezone)))
        due = schedule.next_after(due)
    form = "%Y-%m-%d %H:%M:%S" if any(each.second for each in times) else "%Y-%m-%d %H:%M"
    listed = ", ".join(each.strftime(form) for each in times)
    return f"on the schedule {expression}, {timezone} (next: {listed or 'never'})"


def find_words(expression: str) -> str:
    """The times of a common cron expression in words; empty where it has no short ones."""
    minute, hour, month_day, month, weekday, *second = (each.lower() for each in header_values.cron_fields(expression))
    if second not in ([], ["0"]):
        return ""
    minutes, hours = _read_numbers(minute, 0, 59), _read_numbers(hour, 0, 23)
    days = _describe_days(month_day, month, weekday)
    if minutes is None or hours is None or not days:
        return ""
    if len(minutes) * len(hours) <= _MOST_TIMES:
        times = [f"{h:02}:{m:02}" for h in hours for m in minutes]
        return f"{days} at {join_words(times)}"
    often = _describe_interval(minutes, hours)
    if not often or days == _EVERY_DAY:
        return often
    return f"{often}, {days}"


def _describe_interval(minutes: Sequence[int], hours: Sequence[int]) -> str:
    """``every 15 minutes from 09:00 to 17:45``; empty where the times of a day are not evenly spaced."""
    times = [60 * h + m for h in hours for m in minutes]
    steps = {later - earlier for earlier, later in pairwise(times)}
    if len(steps) != 1:
        return ""
    step = steps.pop()
    count, unit = (step // 60, "hour") if step % 60 == 0 else (step, "minute")
    often = f"every {unit}" if count == 1 else f"every {count} {unit}s"
    if times[0] + 24 * 60 - times[-1] != step:
        return f"{often} from {_clock_text(times[0])} to {_clock_text(times[-1])}"
    if times[0] == 0:  # all round the clock
        return often
    return f"{often}, at minute {times[0]}" if step == 60 else f"{often} from {_clock_text(times[0])} on"


def _clock_text(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _describe_days(month_day: str, month: str, weekday: str) -> str:
    """``Mondays to Fridays``, ``on day 1 of each month``; empty where that has no short words."""
    months = _read_numbers(month, 1, 12, _MONTHS)
    if months is None or (month_day not in ("*", "?") and weekday not in ("*", "?")):
        return ""
    every_month = len(months) == 12
    names = join_words([_MONTHS[n - 1] for n in months])
    if month_day in ("*", "?"):
        days = _describe_weekdays(weekday, "each month" if every_month else names)
        return days if every_month or not days or " of " in days else f"{days} in {names}"
    if month_day == "l":
        return f"on the last day of {'each month' if every_month else names}"
    numbers = _read_numbers(month_day, 1, 31)
    if numbers is None or len(numbers) > _MOST_TIMES:
        return ""
    listed = join_words([str(n) for n in numbers])
    if len(months) == 1:
        return f"each year on {listed} {names}"
    return f"on day{'s' * (len(numbers) > 1)} {listed} of {'each month' if every_month else names}"


def _describe_weekdays(weekday: str, months: str) -> str:
    if match := _NTH_WEEKDAY.fullmatch(weekday):
        day, which = (match[1], match[2]) if match[1] else (match[4], match[3])
        return f"on the {_ORDINALS[which]} {_WEEKDAYS[int(day) % 7]} of {months}"
    numbers = _read_numbers(weekday, 0, 7, _WEEKDAYS, first=0)
    if numbers is None:
        return ""
    days = sorted({n % 7 for n in numbers})
    if len(days) == 7:
        return _EVERY_DAY
    if days == [1, 2, 3, 4, 5]:
        return "Mondays to Fridays"
    return join_words([f"{_WEEKDAYS[n]}s" for n in sorted(days, key=lambda n: n or 7)])


def _read_numbers(field: str, low: int, high: int, names: Sequence[str] = (), first: int = 1) -> list[int] | None:
    """What a field names, in order; None for what is not plain numbers, ranges and steps. ``names``: of the numbers
    from ``first`` on; a field has their first three letters."""
    known = {name[:3].lower(): number for number, name in enumerate(names, first)}
    numbers: set[int] = set()
    for part in field.replace("?", "*").split(","):
        match = _PART.fullmatch(part)
        if match is None:
            return None
        star, start, end, step = match.groups()
        bounds = [str(low), str(high)] if star else [start, end or (str(high) if step else start)]
        read = [known.get(text, int(text) if text.isdecimal() else -1) for text in bounds]
        if not low <= read[0] <= read[1] <= high or step == "0":
            return None
        numbers |= set(range(read[0], read[1] + 1, int(step or 1)))
    return sorted(numbers)
