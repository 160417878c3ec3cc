"""Which entries a list is to show, from the texts of a command or a program."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from msgspec import Struct

from cleared.base.days import parse_month
from cleared.base.errors import UsageError
from cleared.base.money import require_bounded
from cleared.books.index.journal_index import EntryFilter, JournalIndex
from cleared.books.index.month_facts import MonthEntries


def make_filter(
    month: str | None = None, status: str | None = None, account: int | None = None, text: str | None = None
) -> EntryFilter:
    """The filter. ``month`` is ``YYYY-MM``. Raises ``UsageError``."""
    year, number = parse_month(month) if month else (None, None)
    return EntryFilter(year, number, status=status, account=account, text=text or None)


class AmountRange(Struct, frozen=True):
    """Amounts of entries, both ends included; None: no bound."""

    low: Decimal | None = None
    high: Decimal | None = None


def parse_amounts(text: str) -> AmountRange:
    """``4..8``, ``4..``, ``..8`` or ``4.50``. Raises ``UsageError``."""
    first, dots, last = text.partition("..")
    try:
        low, high = (require_bounded(Decimal(part)) if part else None for part in (first, last if dots else first))
    except (ValueError, InvalidOperation):
        low = high = None
    if (low, high) == (None, None) or (low is not None and high is not None and low > high):
        raise UsageError(f"{text[:40]!r} is no range of amounts", remedy="Write it like 4..8, 4.., ..8 or 4.50.")
    return AmountRange(low, high)


def find_months(
    index: JournalIndex, wanted: EntryFilter, amounts: AmountRange
) -> Iterator[tuple[MonthEntries, list[int]]]:
    """Of each month its entries, and the places of those that are meant and have such an amount."""
    fits: dict[str, bool] = {}
    for entries, places in index.iter_months(wanted, None):
        chosen = []
        for at, text in zip(places, entries.list_postings(places)[0], strict=True):
            if text not in fits:
                fits[text] = (amounts.low is None or Decimal(text) >= amounts.low) and (
                    amounts.high is None or Decimal(text) <= amounts.high
                )
            if fits[text]:
                chosen.append(at)
        if chosen:
            yield entries, chosen
