"""The entries of a month by id, made of the index's columns when somebody asks for them: most pages look at few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, ItemsView, Iterator, Sequence, ValuesView
from decimal import Decimal
from functools import cached_property

from cleared.books.index.month_facts import MonthEntries
from cleared.books.ledger.entry import Entry
from cleared.books.ledger.grouped_items import ItemsMadeLate


class MonthItems(ItemsMadeLate[Entry]):
    """In the journal's order. Safe to share between threads: do not alter what it gives."""

    def __init__(self, columns: MonthEntries) -> None:
        self._columns = columns
        self._made: dict[str, Entry] = {}

    def __getitem__(self, entry_id: str) -> Entry:
        entry = self._made.get(entry_id)
        if entry is None:
            entry = self._made.setdefault(entry_id, self._columns.make_entry(self._places[entry_id]))
        return entry

    def __contains__(self, entry_id: object) -> bool:
        return entry_id in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns.ids)

    def __len__(self) -> int:
        return len(self._columns)

    def values(self) -> ValuesView[Entry]:
        return self._whole.values()

    def items(self) -> ItemsView[str, Entry]:
        return self._whole.items()

    def list_where(self, field: str, test: Callable[[str], bool]) -> list[Entry]:
        """The entries whose text in a field passes a test, in order; no others are made for it."""
        texts = self._columns.list_texts(field, range(len(self)))
        passing = set(filter(test, set(texts)))
        return self._make([at for at, text in enumerate(texts) if text in passing])

    def list_of_amount(self, amount: Decimal) -> list[Entry]:
        """The entries that may move an amount, in order: all that do, and some others."""
        return self._make(self._columns.find_amount(amount))

    def _make(self, places: Sequence[int]) -> list[Entry]:
        ids, made = self._columns.ids, self._made
        new = [at for at in places if ids[at] not in made]
        made.update(zip([ids[at] for at in new], self._columns.make_entries(new), strict=True))
        return [made[ids[at]] for at in places]

    def count_accounts(self) -> Counter[tuple[str, tuple[int, ...]]]:
        """How many entries there are of each status on the same accounts."""
        return Counter(zip(self._columns.statuses, self._columns.list_accounts(), strict=True))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {entry_id: at for at, entry_id in enumerate(self._columns.ids)}

    @cached_property
    def _whole(self) -> dict[str, Entry]:
        whole = dict(zip(self._columns.ids, self._columns.make_entries(range(len(self))), strict=True))
        self._made = whole | self._made  # one that was given already stays the one
        return self._made
