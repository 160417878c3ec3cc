"""Items of one part of the journal, such as a month, grouped by what they have in common.

A group is made when it is first asked for. Of a version in which few items are others, the groups are those of the one
before with these exchanged: what a decision does not change is not looked at again.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import compress
from operator import is_not
from typing import Any, Final, Generic, Protocol, TypeVar


class Item(Protocol):
    """What is about one entry."""

    @property
    def entry_id(self) -> str: ...


T = TypeVar("T", bound=Item)
Test = tuple[str, Callable[[str], bool]]
K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class ItemsMadeLate(Mapping[str, T]):
    """Items that are made when they are asked for."""

    @abstractmethod
    def list_where(self, field: str, test: Callable[[str], bool]) -> list[T]:
        """Those whose text in a field passes a test, in order."""

    @abstractmethod
    def list_of_amount(self, amount: Decimal) -> list[T]:
        """Those that may move an amount, in order: all that do, and some others."""


_MAX_RECALLED: Final = 200
"""Answers that are kept of one version."""


class GroupedItems(Generic[T]):
    """Items by the id of their entry, in the journal's order. Safe to share between threads, as it does not change: do
    not alter what it gives."""

    def __init__(self, items: Mapping[str, T]) -> None:
        self.items = items
        self._groups: dict[Callable[[T], Iterable[Hashable]], dict[Any, list[T]]] = {}
        self._recalled: dict[Hashable, Any] = {}

    @property
    def is_made_late(self) -> bool:
        """Whether items are made only when they are asked for: then all of them are not to be."""
        return isinstance(self.items, ItemsMadeLate)

    @cached_property
    def ends(self) -> tuple[str, str] | None:
        """The first id and the last; None where there is none."""
        ids = list(self.items)
        return (ids[0], ids[-1]) if ids else None

    def list_where(self, field: str, test: Callable[[str], bool]) -> list[T]:
        """The items whose text in a field passes a test, in order."""
        if isinstance(self.items, ItemsMadeLate):
            return self.items.list_where(field, test)
        return [item for item in self.items.values() if test(getattr(item, field))]

    def group(self, by: Callable[[T], Iterable[K]], among: Test | None = None) -> Mapping[K, Sequence[T]]:
        """The items of each key, in order. ``by``: the keys of an item, each once. ``among``: a field, and which of its
        texts all items have that have a key."""
        groups = self._groups.get(by)
        if groups is None:
            groups = defaultdict(list)
            for item in self.items.values() if among is None else self.list_where(*among):
                for key in by(item):
                    groups[key].append(item)
            self._groups[by] = groups = dict(groups)
        return groups

    def recall(self, make: Callable[..., R], *args: Hashable) -> R:
        """What ``make`` finds in these items for ``args``, found once."""
        recalled = self._recalled
        if (make, *args) not in recalled:
            if len(recalled) >= _MAX_RECALLED:
                recalled = self._recalled = {}
            recalled[(make, *args)] = make(self, *args)
        found: R = recalled[(make, *args)]
        return found

    def exchange(self, changes: Mapping[str, T | None]) -> GroupedItems[T]:
        """The same with other items for some entries; None: with none any more."""
        if not changes:
            return self
        items = dict(self.items.items())
        last = next(reversed(items), "")
        for entry_id, item in changes.items():
            if item is not None:
                items[entry_id] = item
            else:
                items.pop(entry_id, None)
        come = [each for each in changes if each in items and each not in self.items] if last else []
        if any(_place_id(each) < _place_id(last) for each in come):
            items = {each: items[each] for each in sorted(items, key=_place_id)}
        made = GroupedItems[T](items)
        for by, groups in self._groups.copy().items():
            made._groups[by] = self._regroup(by, dict(groups), changes)
        return made

    def _regroup(
        self, by: Callable[[T], Iterable[Hashable]], groups: dict[Any, list[T]], changes: Mapping[str, T | None]
    ) -> dict[Any, list[T]]:
        gone = [(key, item) for each in changes if (item := self.items.get(each)) is not None for key in by(item)]
        come = [(key, item) for item in changes.values() if item is not None for key in by(item)]
        for key in {key for key, _ in (*gone, *come)}:  # the lists of the version before stay as they are
            groups[key] = list(groups.get(key, ()))
        for key, item in gone:
            groups[key].remove(item)
        for key, item in come:
            insort(groups[key], item, key=_place)
        for key in {key for key, _ in gone if not groups[key]}:
            del groups[key]
        return groups


def find_differences(old: Mapping[str, T], new: Mapping[str, T]) -> dict[str, T | None]:
    """What ``exchange`` takes to make ``new`` of ``old``."""
    if old is new:
        return {}
    if list(old) != list(new):
        gone = dict.fromkeys(each for each in old if each not in new)
        return gone | {each: item for each, item in new.items() if old.get(each) != item}
    others = compress(new, map(is_not, old.values(), new.values()))  # nearly all are the very same
    return {each: new[each] for each in others if new[each] != old[each]}


def _place(item: Item) -> tuple[int, str]:
    return _place_id(item.entry_id)


def _place_id(entry_id: str) -> tuple[int, str]:
    """Where an entry stands among those of its month: numbers are filled up to three digits only."""
    return len(entry_id), entry_id
