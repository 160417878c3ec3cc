"""All booked lines of the books: by amount, by what persons decided of their payees, by the words of their texts.

They are in one part, or, where they are kept from commit to commit, in one for each month.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import chain
from typing import Final, Literal, NamedTuple

from cleared.books.ledger.bank_lines import normalise_description
from cleared.books.ledger.booked_lines import DECIDED, BookedLine, clean_payee
from cleared.books.ledger.grouped_items import GroupedItems

Direction = Literal["in", "out"]
LinePart = GroupedItems[BookedLine]
_LETTERS: Final = re.compile(r"[A-Za-z]+")


class GroupKey(NamedTuple):
    """What the decisions of a group have in common."""

    payee: str
    """Its cleaned text."""
    money: Direction


class AllBookedLines:
    """``parts``: in the journal's order."""

    def __init__(self, parts: Sequence[LinePart]) -> None:
        self.parts = parts

    @classmethod
    def join(cls, lines: Iterable[BookedLine]) -> AllBookedLines:
        """Of lines that are kept nowhere, in one part."""
        return cls([GroupedItems({line.entry_id: line for line in lines})])

    def __iter__(self) -> Iterator[BookedLine]:
        return chain.from_iterable(part.items.values() for part in self.parts)

    def iter_of_amount(self, amount: Decimal) -> Iterator[BookedLine]:
        return chain.from_iterable(part.group(_list_amount).get(amount, ()) for part in self.parts)

    def list_decided(self, key: GroupKey) -> list[BookedLine]:
        """The lines of a payee and direction that persons decided."""
        return [*chain.from_iterable(part.group(list_decided_key).get(key, ()) for part in self.parts)]

    @cached_property
    def decided_keys(self) -> Mapping[GroupKey, None]:
        """The payees and directions of all lines that persons decided."""
        return dict.fromkeys(chain.from_iterable(part.group(list_decided_key) for part in self.parts))

    @cached_property
    def decided_payees(self) -> frozenset[str]:
        return frozenset(key.payee for key in self.decided_keys)

    def find_decided_payees(self, word: str) -> set[str]:
        """The payees of lines that persons decided which have this word."""
        return set().union(*(part.recall(_index_words).get(word, ()) for part in self.parts))


def iter_lines_with(part: LinePart, words: str) -> Iterator[BookedLine]:
    """The lines of a part in whose texts these words can stand: those that have all words of letters in them."""
    (wanted,) = _list_letters(normalise_description(words))
    for letters, lines in part.group(_list_letters_of).items():
        if wanted <= letters:
            yield from lines


def _list_amount(line: BookedLine) -> Iterator[Decimal]:
    yield line.amount


def list_decided_key(line: BookedLine) -> Iterator[GroupKey]:
    """The group of a line that a person decided; none of another's."""
    if line.status in DECIDED and line.amount:
        yield GroupKey(clean_payee(line.text), "in" if line.amount > 0 else "out")


def _list_letters_of(line: BookedLine) -> Iterator[frozenset[str]]:
    return _list_letters(normalise_description(line.text))


def _list_letters(text: str) -> Iterator[frozenset[str]]:
    """What stands in a text between marks, digits and spaces: a word stands in it only as one of these."""
    words = _LETTERS.findall(text) if text.isascii() else "".join(c if c.isalpha() else " " for c in text).split()
    yield frozenset(words)


def _index_words(part: LinePart) -> Mapping[str, set[str]]:
    """Word → the decided payees that have it."""
    index: dict[str, set[str]] = {}
    for key in part.group(list_decided_key):
        for word in key.payee.split():
            index.setdefault(word, set()).add(key.payee)
    return index
