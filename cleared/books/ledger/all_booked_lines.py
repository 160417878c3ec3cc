"""All booked lines of the books: by amount, by what persons decided of their payees, by the words of their texts.

They are in one part, or, where they are kept from commit to commit, in one for each month.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import chain
from typing import Final, Literal, NamedTuple, TypeVar

from cleared.base.clock import check_deadline
from cleared.books.ledger.bank_lines import normalise_description
from cleared.books.ledger.booked_lines import DECIDED, BookedLine, book_line, clean_payee
from cleared.books.ledger.entry import Entry
from cleared.books.ledger.grouped_items import GroupedItems
from cleared.books.ledger.standing_entries import list_of_size
from cleared.workspace.sealed_files import SealedFiles, make_months_once

R = TypeVar("R")
Direction = Literal["in", "out"]
LinePart = GroupedItems[Entry]
_DECIDED: Final = ("status", DECIDED.__contains__)
_KIND: Final = "-recalled"
_SPARE_FILES: Final = 64
"""Answers to other questions that stay: about as many payees are asked about in turns."""
_LETTERS: Final = re.compile(r"[A-Za-z]+")


class GroupKey(NamedTuple):
    """What the decisions of a group have in common."""

    payee: str
    """Its cleaned text."""
    money: Direction


class KeptMonths(NamedTuple):
    """Where answers of months that are over are kept. ``versions``: of each part its month, with all that decides what
    counts in it."""

    sealed: SealedFiles
    versions: Mapping[str, Sequence[str]]


class AllBookedLines:
    """``parts``: what counts, in the journal's order; ``banks``: the accounts of banks. A line is made of an entry when
    it is asked for: of books with many nearly none are. ``kept``: for a process that asks but once."""

    def __init__(self, parts: Sequence[LinePart], banks: Collection[int], kept: KeptMonths | None = None) -> None:
        self.parts = parts
        self.banks = frozenset(banks)
        self._kept = kept

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

    def list_decided(self, key: GroupKey, most: int) -> list[BookedLine]:
        """The lines of a payee and direction that persons decided, oldest first: at least so many of the newest, where
        there are."""
        found: list[BookedLine] = []
        for part in reversed(self.parts):
            if len(found) < most:
                found[:0] = part.recall(_list_decided, self.banks, key)
        return found

    def recall(self, kind: type[R], make: Callable[..., R], *args: Hashable) -> list[R]:
        """What ``make`` finds in each part for the accounts of banks and ``args``, whose texts tell them apart."""
        if self._kept is None:
            return [part.recall(make, self.banks, *args) for part in self.parts]
        sealed, versions = self._kept
        parts = dict(zip(versions, self.parts, strict=True))
        told = repr((make.__module__, make.__qualname__, sorted(self.banks), args))
        name = f"{hashlib.sha256(told.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}{_KIND}"
        found = make_months_once(
            sealed, name, kind, versions, lambda month: parts[month].recall(make, self.banks, *args)
        )
        sealed.remove_others([f"{name}.past"], (f"{_KIND}.past",), _SPARE_FILES)
        return list(found.values())

    @cached_property
    def decided_keys(self) -> Mapping[GroupKey, None]:
        """The payees and directions of all lines that persons decided."""
        return dict.fromkeys(chain.from_iterable(self.recall(list[GroupKey], _list_decided_keys)))

    @cached_property
    def decided_payees(self) -> frozenset[str]:
        return frozenset(key.payee for key in self.decided_keys)

    def find_decided_payees(self, word: str) -> set[str]:
        """The payees of lines that persons decided which have this word."""
        return set().union(*(words.get(word, ()) for words in self._payees_of_words))

    @cached_property
    def _payees_of_words(self) -> list[dict[str, set[str]]]:
        return self.recall(dict[str, set[str]], _index_words)


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


def _list_decided_keys(part: LinePart, banks: frozenset[int]) -> list[GroupKey]:
    return list(part.group(_find_decided_key(banks), _DECIDED))


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


def _index_words(part: LinePart, banks: frozenset[int]) -> dict[str, set[str]]:
    """Word → the decided payees that have it."""
    index: dict[str, set[str]] = {}
    for key in part.group(_find_decided_key(banks), _DECIDED):
        for word in key.payee.split():
            index.setdefault(word, set()).add(key.payee)
    return index
