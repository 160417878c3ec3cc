"""Chains: an entry, what takes it back, and what stands in its place; the host's tags link them.

On every day a chain counts once, or not at all. So a change of it takes effect on the day on which the chain changed
last, or later: what stands in the place of an entry, and is dated before that one was taken back, would count beside
it until then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Final

from msgspec import Struct

from cleared.base import money
from cleared.books.ledger.entry import Entry, Leg

REVERSES: Final = "@rev="
"""The tag of an entry that takes all of another back."""
CORRECTS: Final = "@corrects="
"""The tag of an entry that takes back legs of another, which stands, and posts others; one at a time counts."""
REPLACES: Final = "@replaces="
"""The tag of an entry that stands in the place of one that was voided."""
RESTORES: Final = "@restores="
"""The tag of an entry that brings back one that was voided."""
LINKS: Final = (REVERSES, CORRECTS, REPLACES, RESTORES)
ORIGINAL_DATE: Final = "@orig_date="
"""The tag of an entry that is dated later than what it is about."""


def list_links(tags: str) -> list[tuple[str, str]]:
    """``(mark, entry id)`` of each link that an entry's tags make."""
    if "@" not in tags:
        return []
    return [(mark, tag.removeprefix(mark)) for tag in tags.split(";") for mark in LINKS if tag.startswith(mark)]


def date_tags(day: date, meant: date) -> list[str]:
    """The tags of an entry dated ``day`` that is about ``meant``: none where it is the same day."""
    return [] if day == meant else [f"{ORIGINAL_DATE}{meant}"]


class LinkedEntry(Struct, frozen=True, array_like=True):
    """An entry that names others, and its tags."""

    entry_id: str
    tags: str


class Chains:
    """Which entries belong together. Only linked ones are kept: they are few."""

    def __init__(self) -> None:
        self._linked: dict[str, list[tuple[str, str]]] = defaultdict(list)
        """Entry id → (mark, id) of the entries that name it in a tag."""
        self._targets: dict[str, list[str]] = {}

    def add_entry(self, entry: Entry | ChainEntry | LinkedEntry) -> None:
        for mark, target in list_links(entry.tags):
            self._linked[target].append((mark, entry.entry_id))
            self._targets.setdefault(entry.entry_id, []).append(target)

    def find_linked(self, entry_id: str, mark: str) -> list[str]:
        """The entries that name this one behind ``mark``, in the order in which they were read."""
        return [other for kind, other in self._linked.get(entry_id, ()) if kind == mark]

    def list_members(self, entry_ids: Iterable[str]) -> list[str]:
        """These entries, and all that are linked with them, over others too."""
        members: dict[str, None] = {}
        waiting = list(entry_ids)
        while waiting:
            entry_id = waiting.pop()
            if entry_id not in members:
                members[entry_id] = None
                waiting += self._targets.get(entry_id, ())
                waiting += [other for _, other in self._linked.get(entry_id, ())]
        return list(members)

    def list_chains(self) -> Iterator[list[str]]:
        """Every chain of more than one entry."""
        seen: set[str] = set()
        for entry_id in self._targets:
            if entry_id not in seen:
                members = self.list_members([entry_id])
                seen.update(members)
                yield members


def find_last_change(entries: Iterable[Entry]) -> date | None:
    """The last day on which entries, taken together, move money; None where on each day they take each other back."""
    moved: dict[date, list[tuple[int, Decimal]]] = defaultdict(list)
    for entry in entries:
        moved[entry.date] += [(leg.account_id, leg.amount) for leg in entry.legs]
    return max((day for day, legs in moved.items() if any(sum_by_account(legs).values())), default=None)


def sum_by_account(legs: Iterable[tuple[int, Decimal]]) -> dict[int, Decimal]:
    """Account → the exact sum of its amounts."""
    amounts: dict[int, list[Decimal]] = defaultdict(list)
    for account, amount in legs:
        amounts[account].append(amount)
    return {account: money.total(parts) for account, parts in amounts.items()}


class ChainEntry(Struct, frozen=True):
    """What a check of a chain needs of an entry."""

    entry_id: str
    date: date
    legs: tuple[Leg, ...]
    tags: str
    reference: str


class DoubleCount(Struct, frozen=True):
    """A day on which a chain does not count once. ``entries``: those of the chain up to that day."""

    day: date
    entries: tuple[str, ...]
    reason: str


def find_double_count(members: Sequence[ChainEntry]) -> DoubleCount | None:
    """The first day on which more than one entry of a chain counts, or none does and money is moved all the same."""
    weights: dict[str, int] = {}

    def weigh(entry_id: str, steps: int = 0) -> int:
        """1: it counts from its day on; -1: it takes back one that counts; 0: it only amends one."""
        if entry_id not in weights:
            links = list_links(by_id[entry_id].tags) if entry_id in by_id else []
            reversed_id = next((target for mark, target in links if mark == REVERSES), None)
            if reversed_id is not None:
                weights[entry_id] = -weigh(reversed_id, steps + 1) if steps < len(members) else 0
            else:
                weights[entry_id] = 0 if any(mark == CORRECTS for mark, _ in links) else 1
        return weights[entry_id]

    by_id = {member.entry_id: member for member in members}
    days: dict[date, list[ChainEntry]] = defaultdict(list)
    for member in members:
        days[member.date].append(member)
    counting, so_far, moved = 0, list[str](), list[tuple[int, Decimal]]()
    for day in sorted(days):
        counting += sum(weigh(member.entry_id) for member in days[day])
        so_far += [member.entry_id for member in days[day]]
        moved += [(leg.account_id, leg.amount) for member in days[day] for leg in member.legs]
        if counting > 1 and not any(member.reference for member in members):  # parts of a bank line are added up apart
            return DoubleCount(day, tuple(so_far), f"{counting} of them count on {day}")
        if counting < 0:
            return DoubleCount(day, tuple(so_far), f"more is taken back than counts on {day}")
        left = {account: amount for account, amount in sum_by_account(moved).items() if amount}
        if counting == 0 and left:
            account, amount = next(iter(left.items()))
            return DoubleCount(day, tuple(so_far), f"none of them counts on {day}, and {amount} of {account} is left")
        if counting == 1 and left not in _list_ways(members):
            shown = ", ".join(f"{amount} of {account}" for account, amount in sorted(left.items()))
            return DoubleCount(day, tuple(so_far), f"together they are none of them on {day}, but {shown}")
    return None


def _list_ways(members: Sequence[ChainEntry]) -> list[dict[int, Decimal]]:
    """The sums that a chain may have while it counts: those of an entry, as it was posted or with one correction."""
    amending = {member.entry_id for member in members for mark, _ in list_links(member.tags) if mark == CORRECTS}
    ways = []
    for head in members:
        if head.entry_id not in amending:
            own = [each for each in members if (CORRECTS, head.entry_id) in list_links(each.tags)]
            for legs in (head.legs, *((*head.legs, *each.legs) for each in own)):
                sums = sum_by_account((leg.account_id, leg.amount) for leg in legs)
                ways.append({account: amount for account, amount in sums.items() if amount})
    return ways
