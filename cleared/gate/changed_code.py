"""The lines of code or text that a change adds and takes away, as its card quotes them; and rows of tables, in words.

Dry runs show what code did over some files; what it may do else, only the code says. So whoever approves code is asked
to read it. A row of a table that its domain can put into words is no code: the words say all of it.
"""

from __future__ import annotations

import ast
import difflib
import re
import tokenize
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Final

from msgspec import Struct

from cleared.base.short_text import list_lines
from cleared.domains.installed_domains import load_domains
from cleared.gate.candidate import Change
from cleared.gate.framed_text import frame_line, write_plain
from cleared.sandbox.script_source import normalise_text
from cleared.workspace.location import Layout
from cleared.workspace.settings.model import Config

MOST_QUOTED: Final = 40
"""Lines of the card; all of the code stands further down."""
_CODE_BELOW: Final = "  … and {} more: see the code"
MOST_PROSE: Final = 12
"""Lines of texts and comments near the top of a card: all of them stand below, as one key approves them."""
PROSE_BELOW: Final = "  … and {} more: all of them below"
_MOST_ROWS: Final = 12
"""Rows that are said in words: of more, nobody would read each."""
_MOST_INDENT: Final = 40
_HEADER_KEY: Final = re.compile(r"[a-z_]+:")
"""A line of an agent's header: there is no other prose in it."""
_NO_CODE: Final = frozenset(
    (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
        tokenize.ENCODING,
    )
)


class CodeLine(Struct, frozen=True):
    """A line that is new, or gone. ``number``: in its version of the script."""

    file: str
    number: int
    text: str
    is_new: bool


def decode_script(data: bytes) -> str:
    """The text of a script, as it is run."""
    return normalise_text(data.decode("utf-8", "replace"))


def split_changed_lines(file: str, old: str | None, new: str) -> tuple[list[CodeLine], list[CodeLine]]:
    """The lines of code that differ, in their order, and those that only have a comment or prose of the header. A line
    that is code in one version and prose in the other differs, too: a text may begin above it now."""
    before, after = ([] if text is None else text.split("\n") for text in (old, new))
    codes = (_find_code_lines(old or ""), _find_code_lines(new))
    found: list[CodeLine] = []
    others: list[CodeLine] = []
    for step, first, last, start, end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        gone, added = (
            {at + 1 for at in each} & code
            for each, code in zip((range(first, last), range(start, end)), codes, strict=True)
        )
        if step == "equal":
            kept = {number - start + first for number in added} & gone
            gone, added = gone - kept, {number for number in added if number - start + first not in kept}
        else:
            others += [CodeLine(file, at + 1, before[at], False) for at in range(first, last) if at + 1 not in gone]
            others += [CodeLine(file, at + 1, after[at], True) for at in range(start, end) if at + 1 not in added]
        found += [CodeLine(file, number, before[number - 1], False) for number in sorted(gone)]
        found += [CodeLine(file, number, after[number - 1], True) for number in sorted(added)]
    is_agent = file.startswith(f"{Layout.agents_dir}/")  # whose header is told in words; that of a shared script is not
    written = (line for line in others if line.text.strip())
    return found, [line for line in written if not (is_agent and _HEADER_KEY.match(line.text))]


def list_changed_text(change: Change) -> list[CodeLine]:
    """The lines of a text that differ, in their order; none of one that is new or removed."""
    if change.old is None or change.new is None:
        return []
    before, after = (data.decode("utf-8", "replace").split("\n") for data in (change.old, change.new))
    found, file = [], change.path
    for step, first, last, start, end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if step != "equal":
            found += [CodeLine(file, at + 1, before[at], False) for at in range(first, last)]
            found += [CodeLine(file, at + 1, after[at], True) for at in range(start, end)]
    return found


def describe_rows(
    file: str, old: str | None, new: str, config: Config, names: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """The change in words, a sentence a row, where it is nothing but rows of a table that a domain knows; else none.
    ``names``: of what records may be about, by what a domain calls its records."""
    if old is None:
        return []
    for domain in load_domains():
        said = domain.describe_rows(file, old, new, config, names.get(domain.record_noun[1], {}))
        if 0 < len(said) <= _MOST_ROWS:
            return list(said)
    return []


def quote_lines(lines: Sequence[CodeLine], most: int = MOST_QUOTED, end: str = _CODE_BELOW) -> list[str]:
    """Each line behind a bar, whole: a long one goes on in the next. ``end``: what follows ``most`` of them."""
    quoted = []
    for line in lines:
        sign, text = "+" if line.is_new else "-", line.text.expandtabs(4).replace("\f", " ")
        indent = len(text) - len(text.lstrip(" "))
        lead = " " * indent if indent <= _MOST_INDENT else f"·×{indent} "
        quoted += frame_line(f"{sign} {line.number}: {lead}{write_plain(text.strip())}")
    return list_lines(quoted, most, end)


def list_ranges(numbers: Sequence[int]) -> str:
    """``132, 140-146``"""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def find_comment_lines(source: str) -> set[int]:
    """The lines with a comment; none where the text cannot be read."""
    try:
        tokens = list(tokenize.generate_tokens(StringIO(source).readline))
    except (SyntaxError, tokenize.TokenError):
        return set()
    return {each.start[0] for each in tokens if each.type == tokenize.COMMENT}


def _find_code_lines(source: str) -> set[int]:
    """The lines with more than blanks, a comment, or the header; all of them where the text cannot be read."""
    lines = source.split("\n")
    try:
        tokens = [each for each in tokenize.generate_tokens(StringIO(source).readline) if each.type not in _NO_CODE]
        has_header = ast.get_docstring(ast.parse(source), clean=False) is not None
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
        return set(range(1, len(lines) + 1))
    found = {row for each in tokens[has_header:] for row in range(each.start[0], each.end[0] + 1)}
    # What follows a line that goes on belongs to it, blank as it may be.
    return found | {row + 1 for row in found if lines[row - 1].endswith("\\") and row < len(lines)}
