"""The lines of code that a change adds and takes away, as its card quotes them; and rows of tables, in words.

Dry runs show what code did over some files; what it may do else, only the code says. So whoever approves code is asked
to read it. A row of a table that its domain can put into words is no code: the words say all of it.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Final

from cleared.domains.installed_domains import load_domains
from cleared.sandbox.script_source import normalise_text
from cleared.workspace.settings.model import Config

_MOST_QUOTED: Final = 40
"""Lines of the card; all of the code stands further down."""
_MOST_ROWS: Final = 12
"""Rows that are said in words: of more, nobody would read each."""
_WIDTH: Final = 100


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line that is new, or gone. ``number``: in its version of the script."""

    file: str
    number: int
    text: str
    is_new: bool


def decode_script(data: bytes) -> str:
    """The text of a script, as it is run."""
    return normalise_text(data.decode("utf-8", "replace"))


def list_changed_lines(file: str, old: str | None, new: str) -> list[CodeLine]:
    """The lines of code that differ, in their order; none that only have blanks, a comment, or the header."""
    before, after = ([] if text is None else text.splitlines() for text in (old, new))
    silent = (_find_silent_lines(old or ""), _find_silent_lines(new))
    found = []
    for step, first, last, start, end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if step != "equal":
            gone = (CodeLine(file, at + 1, before[at], False) for at in range(first, last) if at + 1 not in silent[0])
            added = (CodeLine(file, at + 1, after[at], True) for at in range(start, end) if at + 1 not in silent[1])
            found += [*gone, *added]
    return found


def describe_rows(old: str | None, new: str, config: Config, names: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The change in words, a sentence a row, where it is nothing but rows of a table that a domain knows; else none.
    ``names``: of what records may be about, by what a domain calls its records."""
    if old is None:
        return []
    for domain in load_domains():
        said = domain.describe_rows(old, new, config, names.get(domain.record_noun[1], {}))
        if 0 < len(said) <= _MOST_ROWS:
            return list(said)
    return []


def quote_lines(lines: Sequence[CodeLine]) -> Iterator[str]:
    """Each line behind a bar, whole: a long one goes on in the next."""
    quoted = []
    for line in lines:
        sign = "+" if line.is_new else "-"
        parts = wrap(line.text.strip(), _WIDTH, break_long_words=True, drop_whitespace=False) or [""]
        quoted += [f"  | {sign} {line.number}: {parts[0]}", *(f"  |     {part}" for part in parts[1:])]
    yield from quoted[:_MOST_QUOTED]
    if len(quoted) > _MOST_QUOTED:
        yield f"  … and {len(quoted) - _MOST_QUOTED} more: see the code"


def list_ranges(numbers: Sequence[int]) -> str:
    """``132, 140-146``"""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def _find_silent_lines(source: str) -> set[int]:
    """The lines that are blank, a comment or the header's."""
    silent = {n for n, line in enumerate(source.splitlines(), 1) if not line.strip() or line.lstrip().startswith("#")}
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    texts = [n for each in body for n in ast.walk(each) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    within = {n for t in texts if t.end_lineno is not None for n in range(t.lineno, t.end_lineno + 1) if n > t.lineno}
    header = body[0] if body and isinstance(body[0], ast.Expr) and body[0].value in texts else None
    lines = set(range(header.lineno, (header.end_lineno or header.lineno) + 1)) if header is not None else set()
    return (silent - within) | lines
