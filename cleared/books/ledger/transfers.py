"""Transfers between own accounts: two entries through the clearing account, one from each side, never merged.

Which belong together follows from amount and days: the nearest of the opposite amount on another account.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from msgspec import Struct

from cleared.base.clock import check_deadline
from cleared.books.ledger.chains import CORRECTS
from cleared.books.ledger.entry import ZERO, Entry, Leg

CLEARING_ACCOUNT: Final = 1090
MAX_DAYS: Final = 10
"""Days that may lie between both sides."""
SLOW_DAYS: Final = 92
"""The same where a person has said of both that they are sides of a transfer."""
PROPOSED_DAYS: Final = 5
"""The same where nobody has said yet that it is a transfer."""
_MAX_CANDIDATES: Final = 50
_UNDECIDED: Final = frozenset({"pending-review", "auto-confirmed"})


class TransferSide(Struct, frozen=True):
    """One entry of one bank account. ``amount``: as that account moves, negative = money out."""

    entry_id: str
    day: date
    account: int
    amount: Decimal
    text: str
    status: str
    is_cleared: bool
    """Whether it goes through the clearing account."""


class TransferPair(Struct, frozen=True):
    """Both sides of one transfer."""

    out: TransferSide
    into: TransferSide

    @property
    def days(self) -> int:
        """How many days lie between them."""
        return abs((self.into.day - self.out.day).days)


class Transfers(Struct, frozen=True):
    """``pairs``: both sides are in. ``unpaired``: one is. ``proposed``: look like one, and are not booked so."""

    pairs: list[TransferPair]
    unpaired: list[TransferSide]
    proposed: list[TransferPair]


def find_sides(entries: Iterable[Entry], bank_accounts: Collection[int]) -> list[TransferSide]:
    """The standing entries that move one bank account and one other account, by day, corrections counted in."""
    legs: dict[str, list[Leg]] = {}
    heads: dict[str, Entry] = {}
    corrections: list[tuple[str, Entry]] = []
    for entry in check_deadline(entries):
        if entry.status == "voided":
            continue
        is_correction = CORRECTS in entry.tags
        tags = entry.tags.split(";") if is_correction else ()
        corrected = [tag.removeprefix(CORRECTS) for tag in tags if tag.startswith(CORRECTS)]
        if corrected and not any(leg.account_id in bank_accounts for leg in entry.legs):
            corrections += [(entry_id, entry) for entry_id in corrected]
        else:
            heads[entry.entry_id], legs[entry.entry_id] = entry, list(entry.legs)
    for entry_id, correction in corrections:
        if entry_id in legs:
            legs[entry_id] += correction.legs
    sides = [side for entry_id, head in heads.items() if (side := _make_side(head, legs[entry_id], bank_accounts))]
    return sorted(sides, key=lambda side: (side.day, side.entry_id))


def _make_side(entry: Entry, legs: Sequence[Leg], bank_accounts: Collection[int]) -> TransferSide | None:
    if len(legs) == 2 and legs[0].account_id != legs[1].account_id:  # nearly all
        first, second = legs
        if (first.account_id in bank_accounts) is (second.account_id in bank_accounts):
            return None
        bank, other = (first, second) if first.account_id in bank_accounts else (second, first)
        return TransferSide(
            entry.entry_id,
            entry.date,
            bank.account_id,
            bank.amount,
            entry.description,
            entry.status,
            other.account_id == CLEARING_ACCOUNT,
        )
    totals: dict[int, Decimal] = {}
    for leg in legs:
        totals[leg.account_id] = totals.get(leg.account_id, ZERO) + leg.amount
    moved = {account: amount for account, amount in totals.items() if amount}
    banks = [account for account in moved if account in bank_accounts]
    if len(banks) != 1 or len(moved) != 2:
        return None
    return TransferSide(
        entry.entry_id,
        entry.date,
        banks[0],
        moved[banks[0]],
        entry.description,
        entry.status,
        CLEARING_ACCOUNT in moved,
    )


def find_transfers(sides: Sequence[TransferSide]) -> Transfers:
    """Pair what goes through the clearing account; then look for the other side among what does not.

    Proposed is only what nobody has decided, where each side fits no other one.
    """
    cleared = [side for side in sides if side.is_cleared]
    pairs = list(pair_sides(cleared))
    unpaired = _leave_out(cleared, pairs)
    slow = list(pair_sides([side for side in unpaired if side.status not in _UNDECIDED], SLOW_DAYS))
    pairs, unpaired = [*pairs, *slow], _leave_out(unpaired, slow)
    waiting = {side.entry_id for side in unpaired}
    open_sides = [s for s in sides if s.entry_id in waiting or (not s.is_cleared and s.status in _UNDECIDED)]
    days = _days_by_amount(open_sides)
    proposed = [
        pair
        for pair in pair_sides(open_sides, PROPOSED_DAYS)
        if not (pair.out.is_cleared and pair.into.is_cleared) and _is_unique(pair, days[pair.into.amount])
    ]
    return Transfers(pairs, unpaired, proposed)


def _leave_out(sides: Iterable[TransferSide], pairs: Iterable[TransferPair]) -> list[TransferSide]:
    paired = {side.entry_id for pair in pairs for side in (pair.out, pair.into)}
    return [side for side in sides if side.entry_id not in paired]


def pair_sides(sides: Sequence[TransferSide], most_days: int = MAX_DAYS) -> Iterator[TransferPair]:
    """Each side once with the nearest of the opposite amount on another account. ``sides``: by day."""
    arrivals: dict[Decimal, list[TransferSide]] = {}
    for side in sides:
        if side.amount > 0:
            arrivals.setdefault(side.amount, []).append(side)
    taken: set[str] = set()
    for out in check_deadline(sides):
        near = _list_near(out, arrivals.get(-out.amount, ()), most_days) if out.amount < 0 else []
        free = [side for side in near if side.entry_id not in taken]
        if free:
            into = min(free, key=lambda side: (abs((side.day - out.day).days), side.day, side.entry_id))
            taken.add(into.entry_id)
            yield TransferPair(out, into)


def _list_near(out: TransferSide, sides: Sequence[TransferSide], most_days: int) -> list[TransferSide]:
    """Those of another account around the day; at most so many, as a file may hold any number of equal amounts."""
    first = bisect_left(sides, out.day - timedelta(days=min(most_days, (out.day - date.min).days)), key=lambda s: s.day)
    near = []
    for side in sides[first : first + _MAX_CANDIDATES]:
        if (side.day - out.day).days > most_days:
            break
        if side.account != out.account:
            near.append(side)
    return near


def _days_by_amount(sides: Iterable[TransferSide]) -> dict[Decimal, list[date]]:
    days: dict[Decimal, list[date]] = {}
    for side in sides:
        days.setdefault(abs(side.amount), []).append(side.day)
    return days


def _is_unique(pair: TransferPair, days: Sequence[date]) -> bool:
    """Whether neither side could belong to another one. ``days``: of all sides of the amount, in order."""
    first, last = sorted((pair.out.day, pair.into.day))
    low = first - timedelta(days=min(MAX_DAYS, (first - date.min).days))
    high = last + timedelta(days=min(MAX_DAYS, (date.max - last).days))
    return bisect_right(days, high) - bisect_left(days, low) == 2
