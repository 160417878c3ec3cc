"""Recognising that the usage limit of an engine's account was reached, and when it ends.

What the engine says in structured output counts first. The text of its output counts only where the run failed, and
only its end: a model that writes about limits, or "line 1429", is none.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct

_LIMIT: Final = re.compile(
    r"\b(?:usage|rate|session|weekly|5-hour|hourly|daily|monthly|request|token)[ _-]limit\b"
    r"|\blimit (?:reached|exceeded|hit)\b|\bhit your (?:\w+ ){0,2}limit\b|\bout of (?:extra usage|credits)\b"
    r"|\btoo many requests\b|\bquota (?:exceeded|exhausted)\b|\binsufficient_quota\b|\b(?:HTTP|status|error)[ :]*429\b",
    re.IGNORECASE,
)
_ADMINISTRATIVE: Final = re.compile(
    r"\b(?:organi[sz]ation|account|workspace|subscription|billing)\b.{0,60}"
    r"\b(?:disabled|suspended|deactivated|blocked|terminated)\b|\bcredit balance is too low\b",
    re.IGNORECASE,
)
_RESET: Final = re.compile(
    r"\b(?:resets?|try again|available again)(?: at| on| in)?\b[ :]*"
    r"(?:(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:?\d\d)?)"
    r"|(?P<count>\d{1,5}) ?(?P<unit>second|minute|hour|day)s?"
    r"|(?:(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? (?P<day>\d{1,2})(?:st|nd|rd|th)?"
    r"(?:,? (?P<year>\d{4}))?,?(?: at)? )?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))? ?(?P<half>[ap]\.?m\.?)?(?: \((?P<zone>[A-Za-z_]+/[A-Za-z_/+-]+|UTC)\))?"
    r"(?!\d| ?(?:second|minute|hour|day)))",
    re.IGNORECASE,
)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_EPOCH: Final = re.compile(r"limit reached\|(?P<seconds>\d{10})\b", re.IGNORECASE)
_TAIL_BYTES: Final = 2_000
MOST_WAIT: Final = timedelta(days=8)


class UsageLimit(Struct, frozen=True):
    """A limit that was reached. ``until``: UTC, None where the engine does not say. ``is_administrative``: waiting
    does not help, a person must do something."""

    words: str
    until: datetime | None = None
    is_administrative: bool = False


def names_limit(text: str) -> bool:
    """Whether a message of the engine itself (not of the model) says that a limit was reached."""
    return bool(_LIMIT.search(text) or _EPOCH.search(text) or _ADMINISTRATIVE.search(text))


def find_usage_limit(message: str, tail: str, *, failed: bool, now: datetime, zone: tzinfo) -> UsageLimit | None:
    """The limit that a run ended with, None where it did not.

    ``message``: the engine's own structured words about a limit, empty where it has none. ``tail``: the end of its
    output. ``zone``: the zone of times that name none.
    """
    words = message
    if not words and failed:
        lines = [line for line in tail[-_TAIL_BYTES:].splitlines() if line.strip()]
        words = next((line for line in reversed(lines[-5:]) if names_limit(line)), "")
    if not words:
        return None
    administrative = bool(_ADMINISTRATIVE.search(words))
    return UsageLimit(
        " ".join(words.split())[:400], None if administrative else read_reset(words, now, zone), administrative
    )


def read_reset(text: str, now: datetime, zone: tzinfo) -> datetime | None:
    """When a limit ends, in UTC, by words such as "resets 9pm", "resets at 2026-11-23T09:00Z", "try again in 40
    minutes". None where the text does not say, or names a time beyond eight days."""
    utc = ZoneInfo("UTC")
    epoch = _EPOCH.search(text)
    if epoch:
        moment = datetime.fromtimestamp(int(epoch["seconds"]), utc)
    else:
        match = _RESET.search(text)
        if match is None:
            return None
        try:
            moment = _read_moment(match, now, zone).astimezone(utc)
        except (ValueError, KeyError, OverflowError, OSError):
            return None
    return moment if now <= moment <= now + MOST_WAIT else None


def _read_moment(match: re.Match[str], now: datetime, zone: tzinfo) -> datetime:
    if match["iso"]:
        moment = datetime.fromisoformat(match["iso"])
        return moment if moment.tzinfo else moment.replace(tzinfo=zone)
    if match["count"]:
        return now + timedelta(**{f"{match['unit'].lower()}s": int(match["count"])})
    local = now.astimezone(ZoneInfo(match["zone"]) if match["zone"] else zone)
    hour, half = int(match["hour"]), (match["half"] or "").lower()[:1]
    if half:
        if not 1 <= hour <= 12:
            raise ValueError("no hour of a half day")
        hour = hour % 12 + (12 if half == "p" else 0)
    elif not match["minute"]:
        raise ValueError("a bare number is no time")
    moment = local.replace(hour=hour, minute=int(match["minute"] or 0), second=0, microsecond=0)
    if not match["month"]:
        return moment if moment > local else moment + timedelta(days=1)
    month, year = _MONTHS.index(match["month"].lower()) + 1, int(match["year"] or local.year)
    moment = moment.replace(year=year, month=month, day=int(match["day"]))
    return moment if moment > local or match["year"] else moment.replace(year=year + 1)
