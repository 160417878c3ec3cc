"""Readers of a header's values: each takes a text and returns a typed value, or raises ``BadValue``."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from difflib import get_close_matches

Reader = Callable[[str], object]

CRON = "Write minute hour day month weekday, e.g. `0 6 * * *`, or an alias such as @daily."
"""What to write where a schedule is refused."""

_ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
# Patterns are compiled when a header has such a value: most have few.
_DURATION = r"(?a)([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*(s|m|h)?"
_PLAIN = r"(?a)[0-9]{1,15}(?:\.[0-9]{1,6})?"
_ZONE = r"(?a)[A-Za-z][A-Za-z0-9_+\-]*(?:/[A-Za-z0-9_+\-]+)*"
# What croniter accepts and we refuse: a random or hashed time, the weekday nearest a day (only newer versions know it),
# and a range of one value, which it reads as the whole field.
_RANDOM_TIME = r"(?ai)[rh](?:[(/].*)?"
_NEAREST_WEEKDAY = r"(?ai)[0-9]+w|w[0-9]+"
_RANGE_OF_ONE = r"(?ai)(\w+)-\1(?:/\w*)?"
_CRON_PART = r"(?a)(?:\*|([0-9]{1,2})(?:-([0-9]{1,2}))?)(?:/([0-9]{1,2}))?"
# Minute, hour, a day that every month has, month, weekday.
_PLAIN_CRON = ((0, 59), (0, 23), (1, 28), (1, 12), (0, 6))
_UNIT = {None: 1, "s": 1, "m": 60, "h": 3600}
_MAX_TEXT = 200
_MAX_EVENT = 100
# Spaces and dots are not mixed: two dotted names with a space between them are a list whose brackets were forgotten.
_EVENT_NAME = r"(?a)[a-z][a-z0-9_]*(?:(?:[.-][a-z0-9_]+)*|(?: [a-z0-9_]+(?:-[a-z0-9_]+)*)+)"
_EVENT_PATTERN = r"(?a)[^\s\[\],]+|[a-z0-9_*?-]+(?: [a-z0-9_*?-]+)+"


class BadValue(Exception):
    """A refused value, with the suffix of its rule, a message and a remedy."""

    def __init__(self, rule: str, message: str, remedy: str) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.remedy = remedy


def _split_list(value: str) -> list[str]:
    if value.startswith("[") and value.endswith("]"):
        return [part for part in (part.strip() for part in value[1:-1].split(",")) if part]
    return [value] if value else []


def read_text(value: str) -> str:
    return value


def read_name(value: str) -> str:
    if not value:
        raise BadValue("name", "the name is empty", "Write `name: …`.")
    if len(value) > _MAX_TEXT:
        raise BadValue("name", f"the name is longer than {_MAX_TEXT} characters", "Shorten it.")
    return value


def read_words(value: str) -> tuple[str, ...]:
    names = _split_list(value)
    if not names:
        raise BadValue("value", "the value is empty", "Write one name, or a list as [a, b].")
    for word in names:
        if re.search(r"[\s\[\],]", word):
            raise BadValue("value", f"{word!r} is not one name", "Write a list as [a, b].")
    return tuple(names)


def is_event_name(name: str) -> bool:
    """Whether events may have this name: words of small letters and digits, with one space between them, or dots and
    hyphens; never spaces and dots both."""
    return len(name) <= _MAX_EVENT and re.fullmatch(_EVENT_NAME, name) is not None


def read_event_names(value: str) -> tuple[str, ...]:
    """Names of events, in quotes or without; ``*``, ``?`` stand for any letters, any letter."""
    names = [_drop_quotes(name) for name in _split_list(value)]
    if not names:
        raise BadValue("value", "the value is empty", "Write one name, or a list as [a, b].")
    for name in names:
        if not re.fullmatch(_EVENT_PATTERN, name) or len(name) > _MAX_EVENT:
            raise BadValue(
                "value",
                f"{name[:60]!r} is no name of an event",
                "Write it like import.done or new transactions imported; several as [a, b].",
            )
    return tuple(names)


def _drop_quotes(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def read_words_or_none(value: str) -> tuple[str, ...]:
    """As ``read_words``, but ``[]`` is allowed and means none."""
    return () if re.fullmatch(r"\[\s*\]", value) else read_words(value)


def read_identifiers(value: str) -> tuple[str, ...]:
    names = read_words_or_none(value)
    for word in names:
        if not word.isidentifier() or keyword.iskeyword(word) or word.startswith("__"):
            raise BadValue("args", f"{word!r} cannot be the name of an argument", "Write it like [month, year].")
    if len(set(names)) != len(names):
        raise BadValue("args", "an argument is named twice", "Name each once.")
    return names


def read_json(value: str) -> object:
    """A value as JSON, on one line."""
    import json

    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise BadValue("value", f"{value[:60]!r} is not JSON", 'Write it on one line, like {"order": 17}.') from None


def choices_reader(*allowed: str) -> Reader:
    """A reader of one or more of ``allowed``."""

    def read_value(value: str) -> tuple[str, ...]:
        names = _split_list(value)
        if not names:
            raise BadValue("trigger", "the value is empty", f"Choose from: {', '.join(allowed)}.")
        for word in names:
            _one_of(word, allowed, "trigger")
        return tuple(dict.fromkeys(names))

    return read_value


def choice_reader(*allowed: str) -> Reader:
    """A reader of exactly one of ``allowed``."""
    return lambda value: _one_of(value, allowed, "value")


def _one_of(word: str, allowed: tuple[str, ...], rule: str) -> str:
    if word not in allowed:
        near = get_close_matches(word[:60].lower(), allowed, 1, 0.6)
        what = "unknown trigger" if rule == "trigger" else "unknown value"
        hint = f"Did you mean {near[0]}? " if near else ""
        remedy = f"{hint}Choose from: {', '.join(allowed)}; write several as [a, b]."
        raise BadValue(rule, f"{what} {word[:60]!r}", remedy if rule == "trigger" else remedy.split(";")[0] + ".")
    return word


def read_cron(value: str) -> str:
    """A schedule: 5 or 6 fields (the sixth is the second) or an alias. One that can never happen is refused."""
    fields = cron_fields(value)
    if value.startswith("@") or _is_plain(fields):
        return value

    import croniter

    try:
        croniter.croniter.expand(" ".join(fields))
        if not any(_can_happen(days) for days in _split_days(fields)):
            raise BadValue("cron", f"{value!r} never happens", CRON)
    except (croniter.CroniterError, ValueError, KeyError, TypeError, OverflowError, IndexError) as error:
        raise BadValue("cron", f"{value[:60]!r} is not a cron expression: {error}", CRON) from None
    return value


def cron_fields(value: str) -> list[str]:
    """The 5 or 6 fields of a schedule, an alias expanded.

    Refuses fields that would mean something else on another day or with another version of croniter; whether they are
    valid otherwise is not checked here.
    """
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        raise BadValue("cron", f"{value[:60]} stands in quotes", f"Drop the quotes: schedule: {value[1:-1][:60]}")
    if value.startswith("@"):
        if value not in _ALIASES:
            aliases = ", ".join(_ALIASES)
            raise BadValue("cron", f"{value[:60]!r} is not a known alias", f"Known aliases: {aliases}.")
        return _ALIASES[value].split()
    if len(value) > _MAX_TEXT:
        raise BadValue("cron", f"{value[:60]!r} … is longer than {_MAX_TEXT} characters", CRON)
    fields = value.split()
    if len(fields) not in (5, 6):
        raise BadValue("cron", f"{value[:60]!r} has {len(fields)} fields, a cron expression has 5 or 6", CRON)
    for field in fields:
        if re.fullmatch(_RANDOM_TIME, field):
            message = f"{field[:60]!r} would be another time whenever it is read"
            raise BadValue("cron", message, "Write the time; `jitter: 5m` spreads the runs of several agents.")
        for part in field.split(","):
            if re.fullmatch(_NEAREST_WEEKDAY, part):
                message = f"{part[:60]!r}, the weekday nearest a day, is not known here"
                raise BadValue("cron", message, "Name the days, e.g. `15`, or `L` for the last of the month.")
            if one := re.fullmatch(_RANGE_OF_ONE, part):
                raise BadValue("cron", f"{part[:60]!r} is a range of one", f"Write {one[1]}.")
    return fields


def _split_days(fields: list[str]) -> list[list[str]]:
    """Schedules of which one has to match: two where both a day of the month and a weekday are given, else one."""
    minute, hour, day, month, weekday, *second = fields
    if day.startswith(("*", "?")) or weekday.startswith(("*", "?")):
        return [fields]
    return [[minute, hour, day, month, "*", *second], [minute, hour, "*", month, weekday, *second]]


def _can_happen(fields: list[str]) -> bool:
    """Whether the schedule has a next time. Raises what croniter raises for invalid fields."""
    import croniter

    start = datetime(2024, 1, 1, tzinfo=UTC)  # a leap year, so that 29 February counts
    try:
        # What croniter calls a bug is cron's rule: where one of the two days begins with a star, both must match.
        search = croniter.croniter(" ".join(fields), start, max_years_between_matches=8, implement_cron_bug=True)
        search.get_next(datetime)
    except croniter.CroniterBadDateError:
        return False
    return True


def _is_plain(fields: list[str]) -> bool:
    """Whether this is a common schedule, which happens every month: croniter need not be loaded for it."""
    if len(fields) != 5:
        return False
    for field, (low, high) in zip(fields, _PLAIN_CRON, strict=True):
        for part in field.split(","):
            match = re.fullmatch(_CRON_PART, part)
            if not match:
                return False
            start, end, step = (int(g) if g else None for g in match.groups())
            numbers = [n for n in (start, end) if n is not None]
            if any(not low <= n <= high for n in numbers) or numbers != sorted(numbers):
                return False
            if step is not None and not (1 <= step <= high and (start is None or end is not None)):
                return False
    return True


def read_timezone(value: str) -> str:
    from zoneinfo import ZoneInfo

    try:
        if not re.fullmatch(_ZONE, value):
            raise ValueError
        ZoneInfo(value)
    except (ValueError, OSError, KeyError):
        message = f"{value[:60]!r} is not an IANA time zone"
        raise BadValue("timezone", message, "Write it like Europe/London or UTC.") from None
    return value


def read_paths(value: str) -> tuple[str, ...]:
    """Directories or globs below the workspace."""
    paths = _split_list(value)
    if not paths:
        raise BadValue("watch", "the path is empty", "Name a directory, e.g. import/, or a glob, e.g. import/*.csv.")
    for path in paths:
        inside = "Name a directory or glob under the workspace, e.g. import/*.csv."
        if path.startswith(("/", "~")) or re.match(r"[A-Za-z]:", path) or "\\" in path:
            raise BadValue("watch", f"{path[:60]!r} is not a path relative to the workspace", inside)
        if ".." in path.split("/"):
            raise BadValue("watch", f"{path[:60]!r} leaves the workspace", inside)
    return tuple(paths)


def integer_reader(low: int, high: int) -> Reader:
    def read_value(value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,12}", value, re.ASCII) or not low <= int(value) <= high:
            message = f"{value[:60]!r} is not a whole number from {low} to {high}"
            raise BadValue("number", message, "Write plain digits.")
        return int(value)

    return read_value


def read_integers(value: str) -> tuple[int, ...]:
    texts = _split_list(value)
    if not texts:
        raise BadValue("number", "the list is empty", "Write it like [5010, 5020].")
    one = integer_reader(0, 10**9)
    read = [one(word) for word in texts]
    return tuple(number for number in read if isinstance(number, int))


def seconds_reader(low: float, high: float) -> Reader:
    def read_value(value: str) -> float:
        match = re.fullmatch(_DURATION, value)
        duration = float(match[1]) * _UNIT[match[2]] if match else -1.0
        if not low <= duration <= high:
            message = f"{value[:60]!r} is not a number of seconds up to {high:g}"
            raise BadValue("number", message, "Write it like 30, 30s or 5m.")
        return duration

    return read_value


def read_money(value: str) -> Decimal:
    if not re.fullmatch(_PLAIN, value):
        raise BadValue("number", f"{value[:60]!r} is not an amount", "Write it like 1500.00.")
    return Decimal(value)
