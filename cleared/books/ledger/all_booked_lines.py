"""All booked lines of the books: by amount, by what persons decided of their payees, by the words of their texts.

They are in one part, or, where they are kept from commit to commit, in one for each month.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import chain
from typing import Final, Literal, NamedTuple

from cleared.base.clock import check_deadline
from cleared.books.ledger.bank_lines import normalise_description
from cleared.books.ledger.booked_lines import DECIDED, BookedLine, book_line, clean_payee
from cleared.books.ledger.entry import Entry
from cleared.books.ledger.grouped_items import GroupedItems
from cleared.books.ledger.standing_entries import list_of_size

Direction = Literal["in", "out"]
LinePart = GroupedItems[Entry]
_DECIDED: Final = ("status", DECIDED.__contains__)
_LETTERS: Final = re.compile(r"[A-Za-z]+")


class GroupKey(NamedTuple):
    """What the decisions of a group have in common."""

    payee: str
    """Its cleaned text."""
    money: Direction


class AllBookedLines:
    """``parts``: what counts, in the journal's order; ``banks``: the accounts of banks. A line is made of an entry when
    it is asked for: of books with many nearly none are."""

    def __init__(self, parts: Sequence[LinePart], banks: Collection[int]) -> None:
        self.parts = parts
        self.banks = frozenset(banks)

    @classmethod
    def join(cls, standing: Iterable[Entry], banks: Collection[int]) -> AllBookedLines:
        """Of entries that are kept nowhere, in one part."""
        return cls([GroupedItems({each.entry_id: each for each in check_deadline(standing)})], banks)

    def __iter__(self) -> Iterator[BookedLine]:
        return chain.from_iterable(_book_lines(part.items.values(), self.banks) for part in self.parts)

    def iter_of_amount(self, amount: Decimal, first: date, last: date) -> Iterator[BookedLine]:
        """The lines of an amount in the months from that of one day to that of another."""
        near = list_parts_between(self.parts, first, last)
        sized = chain.from_iterable(list_of_size(part, abs(amount)) for part in near)
        return (line for line in _book_lines(sized, self.banks) if line.amount == amount)

    def list_decided(self, key: GroupKey) -> list[BookedLine]:
        """The lines of a payee and direction that persons decided."""
        return [*chain.from_iterable(part.recall(_list_decided, self.banks, key) for part in self.parts)]

    @cached_property
    def decided_keys(self) -> Mapping[GroupKey, None]:
        """The payees and directions of all lines that persons decided."""
        by = _find_decided_key(self.banks)
        return dict.fromkeys(chain.from_iterable(part.group(by, _DECIDED) for part in self.parts))

    @cached_property
    def decided_payees(self) -> frozenset[str]:
        return frozenset(key.payee for key in self.decided_keys)

    def find_decided_payees(self, word: str) -> set[str]:
        """The payees of lines that persons decided which have this word."""
        return set().union(*(part.recall(_index_words, self.banks).get(word, ()) for part in self.parts))


def list_parts_between(parts: Iterable[LinePart], first: date, last: date) -> list[LinePart]:
    """The parts with entries of the months from that of one day to that of another."""
    low, high = f"{first:%Y-%m}", f"{last:%Y-%m}~"
    return [part for part in parts if part.ends is not None and part.ends[0] < high and part.ends[1] >= low]


def iter_lines_with(part: LinePart, banks: frozenset[int], words: str) -> Iterator[BookedLine]:
    """The lines of a part in whose texts these words can stand: those that have all words of letters in them."""
    (wanted,) = _list_letters(normalise_description(words))
    for letters, standing in part.group(_list_letters_of).items():
        if wanted <= letters:
            yield from _book_lines(standing, banks)


def _book_lines(standing: Iterable[Entry], banks: Collection[int]) -> Iterator[BookedLine]:
    return (line for each in standing if (line := book_line(each, banks)) is not None)


def _list_decided(part: LinePart, banks: frozenset[int], key: GroupKey) -> list[BookedLine]:
    return [*_book_lines(part.group(_find_decided_key(banks), _DECIDED).get(key, ()), banks)]


@lru_cache(maxsize=8)
def _find_decided_key(banks: frozenset[int]) -> Callable[[Entry], tuple[GroupKey, ...]]:
    """What finds the group of a line that a person decided; none of another's. ``banks``: the accounts of banks."""

    def find_key(standing: Entry) -> tuple[GroupKey, ...]:
        line = book_line(standing, banks) if standing.status in DECIDED else None
        if line is None:
            return ()
        return (GroupKey(clean_payee(line.text), "in" if line.amount > 0 else "out"),)

    return find_key


def _list_letters_of(standing: Entry) -> Iterator[frozenset[str]]:
    return _list_letters(normalise_description(standing.description))


def _list_letters(text: str) -> Iterator[frozenset[str]]:
    """What stands in a text between marks, digits and spaces: a word stands in it only as one of these."""
    words = _LETTERS.findall(text) if text.isascii() else "".join(c if c.isalpha() else " " for c in text).split()
    yield frozenset(words)


def _index_words(part: LinePart, banks: frozenset[int]) -> Mapping[str, set[str]]:
    """Word → the decided payees that have it."""
    index: dict[str, set[str]] = {}
    for key in part.group(_find_decided_key(banks), _DECIDED):
        for word in key.payee.split():
            index.setdefault(word, set()).add(key.payee)
    return index
