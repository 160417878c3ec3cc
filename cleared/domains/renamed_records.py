"""What records are called that were made anew on top of what others have committed."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from string import ascii_lowercase
from typing import Any, Final

from msgspec import Struct

from cleared.base.errors import PolicyError
from cleared.base.file_source import FileSource

_NUMBER: Final = re.compile(r"[0-9]+$", re.ASCII)
_WORD: Final = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*", re.ASCII)
"""What may be an id in a text."""
WORDS: Final = ("description", "text", "title")
"""Under these keys a card has the words of a bank or of a person."""


class WorkConflict(PolicyError):
    """What was done cannot be done again on top of what others did: it would mean something else."""


class KeyedRecord(Struct, frozen=True):
    """What others have made with the same key: the ``record``, in the files of the commit that made it."""

    key: str
    record: str
    files: FileSource


class RenamedRecords:
    """The ids of records of unpushed work, and what each is called now; those that kept their ids are not in it."""

    def __init__(self) -> None:
        self.now: dict[str, str] = {}
        self.doubles: set[str] = set()
        """Those of records that others have made, too: what they are called now is theirs."""
        self.added: set[str] = set()
        """Records that were added, by the ids that they had; of those that were left out ``find`` knows nothing."""
        self._left_out: set[str] = set()
        self._named: set[str] = set()
        """Records that what is being made anew refers to."""
        self.is_repeated = False
        """Whether others have had what made this, too, such as a run for the same event: what is not its alone, as
        the rows of a file are, is theirs."""
        self.keyed: KeyedRecord | None = None
        """Where it is a decision that is made once, and others have made it."""

    def copy(self) -> RenamedRecords:
        """The same, to be added to by itself."""
        made = RenamedRecords()
        made.now, made.doubles, made.added = dict(self.now), set(self.doubles), set(self.added)
        made._left_out = set(self._left_out)
        return made

    def add(self, names: Iterable[str]) -> None:
        """What is being made anew adds these records: one that was left out, and had such an id before, is another."""
        names = set(names)
        self.added |= names
        self._left_out -= names

    def leave_out(self, names: Iterable[str]) -> None:
        """These records were not made anew. Their ids may be those of others by now."""
        self._left_out.update(names)

    def note(self, old: str, new: str) -> None:
        """``old`` is called ``new`` now."""
        self._named.add(old)
        self.now.pop(old, None)
        if old != new:
            self.now[old] = new

    def note_double(self, old: str, theirs: str) -> None:
        """``old`` is a record that others have made, too, as ``theirs``."""
        self.doubles.add(old)
        self.note(old, theirs)

    def find(self, name: str) -> str:
        """What a record is called now. Raises ``WorkConflict`` for one that was left out."""
        if name in self._left_out:
            raise WorkConflict(f"it is about {name}, which was left out")
        self._named.add(name)
        return self.now.get(name, name)

    def rename(self, reference: str) -> str:
        """What a field that refers to a record says now; of its parts, such as the legs of an entry, too. What is no id
        stays."""
        record = reference.rstrip(ascii_lowercase)  # a leg is called as its entry, and a letter
        if reference not in self.now and record not in self.now:
            return reference
        self._named.add(record)
        return self.now.get(reference) or self.now[record] + reference[len(record) :]

    def rename_all(self, value: Any, *, texts: Collection[str] = ()) -> Any:
        """Plain data whose texts are ids, as they are now. ``texts``: keys under which there are words of others, such
        as a bank's, whatever they look like."""
        if isinstance(value, str):
            return self.rename(value)
        if isinstance(value, list | tuple):
            return [self.rename_all(each, texts=texts) for each in value]
        if isinstance(value, dict):
            return {key: each if key in texts else self.rename_all(each, texts=texts) for key, each in value.items()}
        return value

    def rename_mentions(self, text: str) -> str:
        """A sentence of the program, in which each record that it is about is named first, with their ids as they are
        now. An id that stands in it by chance, such as a bank's number, stays."""
        seen = set[str]()

        def rename_word(found: re.Match[str]) -> str:
            word = found[0]
            if word in seen or word.rstrip(ascii_lowercase) not in self._named:
                return word
            seen.add(word)
            return self.rename(word)

        return _WORD.sub(rename_word, text) if self.now else text

    def make_mask(self) -> Callable[[str], str]:
        """Takes out of a text the ids that records had or have: what was said of a record is known by the rest."""
        ids = {*self.now, *self.now.values()}

        def mask_word(found: re.Match[str]) -> str:
            return "" if found[0].rstrip(ascii_lowercase) in ids else found[0]

        return lambda text: _WORD.sub(mask_word, text) if ids else text


def group_renames(renamed: Mapping[str, str]) -> list[tuple[str, str]]:
    """What records were called and are called now; ``first…last`` of those that follow each other on both sides."""
    groups: list[list[tuple[str, str]]] = []
    for pair in renamed.items():
        if groups and all(map(_follows, groups[-1][-1], pair)):
            groups[-1].append(pair)
        else:
            groups.append([pair])
    return [group[0] if len(group) == 1 else _join_ends(group[0], group[-1]) for group in groups]


def _join_ends(first: tuple[str, str], last: tuple[str, str]) -> tuple[str, str]:
    return f"{first[0]}…{last[0]}", f"{first[1]}…{last[1]}"


def _follows(name: str, next_name: str) -> bool:
    """Whether two ids end in a number and the one after it."""
    one, two = (_NUMBER.search(each) for each in (name, next_name))
    if one is None or two is None or name[: one.start()] != next_name[: two.start()]:
        return False
    return int(one[0]) + 1 == int(two[0])
