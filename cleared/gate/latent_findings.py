"""What a change could do that no dry run showed, and how its card says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from cleared.base.short_text import list_first
from cleared.base.terminal import count_noun
from cleared.gate.changed_code import MOST_PROSE, MOST_QUOTED, PROSE_BELOW, CodeLine, list_ranges, quote_lines

_UNREACHED: Final = ("never reached", "never true", "never false", "always the same")
_MOST_REFERENCES: Final = 12
_WORDS: Final = {
    "worked out": "What it posts is worked out, and may be anything ({lines}).",
    "decided by": "What it decides by is worked out, and may be anything ({lines}).",
    "no difference": "What is new made no difference in any dry run: read it ({lines}).",
    "untried": "Too much is new to try each line by itself: read it ({lines}).",
    "gone": "What is gone made no difference in any dry run ({lines}, as approved).",
}


class UnreachedLine(Struct, frozen=True):
    """A line of a script that does, or did, what no dry run showed."""

    file: str
    line: int
    text: str
    how: str
    """``never reached``, ``never true`` or ``never false``; of a calculation in a condition ``always the same``; of
    what is posted ``worked out``; of what is decided by ``decided by``; of the approved version ``gone``; of what is
    new ``no difference``, where it made none, and ``untried`` where too much is new to try each line."""


class Latent(Struct):
    """All of it, of one agent. Empty where every dry run together shows what is new."""

    lines: list[UnreachedLine] = []
    references: list[str] = []
    """What new text names, and nothing in any dry run went to: ``3200 Member draws``."""
    values: list[str] = []
    """New texts, amounts and dates that no dry run met."""
    outcomes: list[str] = []
    """What came of them where they were made to come, one sentence each."""
    code: list[CodeLine] = []
    """The lines of code that change, but for rows of tables that are said in words."""
    is_new: bool = False
    """Whether all of its code is new."""
    rows: list[str] = []
    """These words. They hide nothing, so that they alone are no finding."""
    prose: list[CodeLine] = []
    """Comments, and prose of the header, that change: no finding either."""
    files: list[str] = []
    """The scripts of which it tells what changes."""

    def __bool__(self) -> bool:
        return bool(self.lines or self.references or self.values or self.outcomes or self.code)

    def describe(self) -> list[str]:
        """The first lines of the card."""
        unreached = " ".join(each.text for each in self._find_lines(*_UNREACHED))
        named = sorted(self.references, key=lambda each: each.partition(" ")[0] not in unreached)
        posts = f"it could post to {list_first(named, _MOST_REFERENCES)}" if named else ""
        said = []
        if number := len({(each.file, each.line) for each in self._find_lines(*_UNREACHED)}):
            lines, what = self._name_lines(*_UNREACHED), posts or "what comes of it is not shown"
            said.append(f"No dry run reached {count_noun(number, 'line')} of it ({lines}): {what}.")
        elif posts:
            said.append(f"{posts[:1].upper()}{posts[1:]}, which it did in no dry run.")
        said += [text.format(lines=self._name_lines(how)) for how, text in _WORDS.items() if any(self._find_lines(how))]
        if len(said) > 2:  # what comes of it has to stand near the top, too
            said[1:] = [" ".join(said[1:])]
        said += self.outcomes
        if self.values:
            said.append(f"New in its text, and met by no dry run: {list_first(self.values, 8)}.")
        return said + self._describe_code()

    def describe_harmless(self) -> list[str]:
        """What changes and is no finding: rows in words, and comments."""
        if not self.prose:
            return self.rows
        number, where = count_noun(len(self.prose), "line"), _name_places((e.file, e.number) for e in self.prose)
        said = f"{number} of comments or prose change ({where}). Models that change the script later read them:"
        return [*self.rows, said, *quote_lines(self.prose, MOST_PROSE, PROSE_BELOW)]

    def _describe_code(self) -> list[str]:
        if not self.code:
            return []
        number = count_noun(len(self.code), "line")
        if self.is_new:
            return [
                f"All of its code is new ({number}). What it may do beyond these dry runs, only the code says: read it."
            ]
        where = _name_places((line.file, line.number) for line in self.code)
        said = f"{number} of code change ({where}). What they may do beyond these dry runs, only they say: read them."
        return [said, *quote_lines(self._order_code())]

    def _order_code(self) -> list[CodeLine]:
        """The lines that change, in their order; of more than are quoted first those that no dry run reached, then what
        is new."""
        if len(self.code) <= MOST_QUOTED:
            return self.code
        unreached = {(each.file, each.line) for each in self._find_lines(*_UNREACHED)}
        return sorted(self.code, key=lambda line: (not line.is_new, (line.file, line.number) not in unreached))

    def _find_lines(self, *hows: str) -> Iterator[UnreachedLine]:
        return (each for each in self.lines if each.how in hows)

    def _name_lines(self, *hows: str) -> str:
        return _name_places((each.file, each.line) for each in self._find_lines(*hows))

    def to_dict(self) -> dict[str, Any]:
        return {
            "lines": [{"file": e.file, "line": e.line, "text": e.text, "how": e.how} for e in self.lines],
            "references": self.references,
            "values": self.values,
            "outcomes": self.outcomes,
            "code": len(self.code),
        }


def _name_places(places: Iterable[tuple[str, int]]) -> str:
    """``agents/ingest.py: 132, 140-146; scripts/account.py: 5``"""
    by_file: dict[str, list[int]] = {}
    for file, line in places:
        by_file.setdefault(file, []).append(line)
    return "; ".join(f"{file}: {list_ranges(lines)}" for file, lines in by_file.items())
