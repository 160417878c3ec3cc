"""Entries that count by themselves: those that are not voided, with the corrections of them that stand counted in, and
without these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from msgspec import structs

from cleared.books.ledger.chains import CORRECTS, list_links, sum_by_account
from cleared.books.ledger.corrections import join_legs
from cleared.books.ledger.entry import Entry
from cleared.books.ledger.grouped_items import GroupedItems, ItemsMadeLate

Corrections = Mapping[str, Sequence[Entry]]
"""Entry id → the entries that correct it and stand, in the journal's order."""


def list_sizes(standing: Entry) -> Collection[Decimal]:
    """The entry's amount, and what it moves on each of its accounts, without a sign."""
    legs = standing.legs
    if len(legs) == 2 and legs[0].account_id != legs[1].account_id:  # nearly all
        return (legs[0].debit or legs[0].credit,)
    moved = sum_by_account((leg.account_id, leg.amount) for leg in legs)
    return {standing.amount, *map(abs, moved.values())}


def list_of_size(part: GroupedItems[Entry], amount: Decimal) -> Sequence[Entry]:
    """The entries of a part that have an amount, or move it on an account, in order."""
    if part.is_made_late:
        return part.recall(_find_of_size, amount)
    return part.group(list_sizes).get(amount, ())


def _find_of_size(part: GroupedItems[Entry], amount: Decimal) -> list[Entry]:
    assert isinstance(part.items, ItemsMadeLate)
    return [each for each in part.items.list_of_amount(amount) if amount in list_sizes(each)]


def names_corrected(entry: Entry) -> Iterator[bool]:
    """Once, where an entry says that it corrects another: the key of all that do."""
    if CORRECTS in entry.tags:
        yield True


CORRECTING: Final = ("tags", lambda tags: CORRECTS in tags)
"""The entries among which these are."""


def find_corrections_among(linked: Iterable[Entry], find: Callable[[str], Entry | None]) -> dict[str, list[Entry]]:
    """What is corrected of entries that stand. ``linked``: all entries that say that they correct another, in the
    journal's order; ``find``: an entry by its id."""
    found: dict[str, list[Entry]] = defaultdict(list)
    for entry in linked:
        for mark, target in list_links(entry.tags) if entry.status != "voided" else ():
            original = find(target) if mark == CORRECTS else None
            if original is not None and original.status != "voided":
                found[target].append(entry)
    return found


def stand_entry(entry: Entry, corrections: Sequence[Entry], *, corrects: bool) -> Entry | None:
    """The entry as it counts, with what it posts together with its corrections; None where it does not.

    ``corrects``: whether it only corrects one that stands.
    """
    if entry.status == "voided" or corrects:
        return None
    return structs.replace(entry, legs=join_legs(entry, corrections)) if corrections else entry


def list_standing_entries(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Those of a whole journal that count, in its order."""
    known = {entry.entry_id: entry for entry in entries}
    linked = [entry for entry in known.values() if any(names_corrected(entry))]
    corrections = find_corrections_among(linked, known.get)
    correcting = {each.entry_id for corrected in corrections.values() for each in corrected}
    for entry_id, entry in known.items():
        standing = stand_entry(entry, corrections.get(entry_id, ()), corrects=entry_id in correcting)
        if standing is not None:
            yield standing
