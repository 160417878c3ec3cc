"""A part of a card as it is shown, on whatever surface: its heading, its lines, tables that are opened on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct


class CardSection(Struct, frozen=True):
    """A part of a card: its heading, and its lines, or the rows of a table."""

    title: str
    lines: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    columns: tuple[str, ...] = ()
    """The headings of the rows' columns, where they need any."""
    is_code: bool = False
    """Whether the lines are those of a diff."""
    parts: tuple[CardSection, ...] = ()
    """Below the lines: of each the title is shown, and the rest on demand."""
    name: str = ""
    """What programs call it, where they may look for it."""
    is_quoted: bool = False
    """Whether its lines are what others said, such as the bank: no command in them is a word of the program."""

    def to_dict(self) -> dict[str, Any]:
        """It as ``--json`` prints it; what there is none of is left out."""
        data = {
            "name": self.name,
            "title": self.title,
            "lines": list(self.lines),
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "parts": [part.to_dict() for part in self.parts],
        }
        return {key: value for key, value in data.items() if value}


def list_lines(sections: Iterable[CardSection], indent: str = "  ") -> Iterator[str]:
    """The sections as lines of text; of what is opened on demand only the titles."""
    for section in sections:
        if section.title:
            yield f"{section.title}:"
        shown = (*section.lines, *(part.title for part in section.parts))
        yield from (f"{indent}{line}" if section.title else line for line in shown)


def list_part(part: CardSection, most: int | None = None) -> Iterator[str]:
    """A part that is opened on demand, as lines of text: of its rows at most so many (None: all)."""
    yield part.title
    yield from (f"  {line}" for line in part.lines)
    for row in part.rows[:most]:
        cells = zip(part.columns, row, strict=True)
        named = [f"{name.lower()}: {cell}" if name in _NAMED else cell for name, cell in cells]
        yield f"  {'  '.join(filter(None, named))}"
    if most is not None and len(part.rows) > most:
        yield f"  … and {len(part.rows) - most} more (--json has all)"


_NAMED: Final = ("Before", "After")
"""Columns whose cells do not speak for themselves."""
