"""Rules about characters: names that are not ASCII, and characters that cannot be seen.

With either, a script could do something else than what a reviewer reads.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterator
from itertools import islice
from typing import Final

from cleared.base.errors import Place
from cleared.base.unseen_characters import INVISIBLE
from cleared.sandbox.finding import Finding, make_rules
from cleared.sandbox.script_source import blank_strings, line_column

_MOST: Final = 100
"""The most findings of one rule."""

RULES: Final = make_rules(
    "lint",
    {
        "ascii-name": (
            "a name with letters other than a-z, A-Z, digits and `_`",
            "Letters of other alphabets look like these: a reader takes the name for another one that he knows.",
            "Write the name with the letters a-z, digits and _.",
        ),
        "invisible": (
            "characters that show nothing, in code, strings, comments and headers: fillers, joiners, tags, odd spaces",
            "What nobody sees is not reviewed: two texts that look the same would not be the same.",
            "Delete it, or write it as an escape inside a string.",
        ),
    },
    since="0.2",
)

_NOT_ASCII: Final = r"[^\x00-\x7f]+"
_REST: Final = re.compile(r"\w*")
_PREFIX: Final = r"^\w*"


def find_invisible(source: str, file: str) -> Iterator[Finding]:
    """A finding for each invisible character of a normalised source."""
    if source.isascii():
        return
    for match in islice(re.finditer(f"{INVISIBLE}+", source), _MOST):
        char = match[0][0]
        escape = f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
        yield Finding(
            "invisible",
            f"{_describe_char(char)} cannot be seen",
            Place(file, *line_column(source, match.start())),
            f"Delete it, or write it as an escape inside a string: {escape}.",
        )


def find_strange_names(source: str, file: str) -> Iterator[Finding]:
    """A finding for each name that is not ASCII in the code of a normalised source that can be parsed.

    Names inside f-strings are found on the syntax tree (``is_strange_name``).
    """
    if source.isascii():
        return
    code, end = blank_strings(source), 0
    for match in islice(re.finditer(_NOT_ASCII, code), _MOST):
        if match.start() < end:
            continue
        start = match.start()
        while start > end and (code[start - 1].isalnum() or code[start - 1] == "_"):
            start -= 1
        rest = _REST.match(code, match.end())
        end = rest.end() if rest else match.end()
        yield strange_name_finding(code[start:end], Place(file, *line_column(source, start)))


def strange_name_finding(name: str, place: Place) -> Finding:
    """The finding about a name as it is written."""
    odd = next((c for c in name if not c.isascii()), "")
    what = f"has {_describe_char(odd)}" if odd else "is written with other letters"
    return Finding("ascii-name", f"the name {name[:60]!r} {what}", place, RULES["ascii-name"].remedy)


def is_strange_name(name: str, template: ast.AST, lines: list[str]) -> bool:
    """Whether a name inside an f-string is not ASCII as it is written, also where the parser makes it ASCII (full-width
    letters)."""
    if not name.isascii():
        return True
    first, last = getattr(template, "lineno", 1), getattr(template, "end_lineno", None) or len(lines)
    text = "\n".join(lines[first - 1 : last])
    written = text.encode()[getattr(template, "col_offset", 0) :].decode(errors="ignore")
    inside = re.sub(_PREFIX, "", written, count=1)
    return not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", inside)


def _describe_char(char: str) -> str:
    name = unicodedata.name(char, "")
    return f"U+{ord(char):04X}" + (f" ({name})" if name else "")
