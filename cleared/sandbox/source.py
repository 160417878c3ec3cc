"""Reading a script's text as a syntax tree without trusting it.

A hostile text must cost a bounded time and end as a ``Finding``: its size, its characters and its nesting are
checked before the parser sees it, and everything the parser can raise is caught.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from cleared.errors import Place
from cleared.sandbox.finding import Finding

MAX_BYTES = 256 << 10
MAX_NESTING = 64

# Characters that make a reader see another program than the one that runs (Trojan Source, CVE-2021-42574).
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Every alternative matches whatever it begins, so the scan is linear for any text.
_TOKEN = re.compile(
    r"""(?P<string>(?:\"\"\"(?:\\.|[^\\]|\\\Z)*?(?:\"\"\"|\Z))|(?:'''(?:\\.|[^\\]|\\\Z)*?(?:'''|\Z))"""
    r"""|(?:"(?:\\.|[^"\\\n])*"?)|(?:'(?:\\.|[^'\\\n])*'?))"""
    r"""|(?P<comment>\#[^\n]*)|(?P<open>[(\[{])|(?P<close>[)\]}])""",
    re.DOTALL,
)
# `not not not …`, `- - - …`, `lambda: lambda: …`: nesting without a bracket.
_PREFIXES = re.compile(rf"(?:(?:\bnot\b|\bawait\b|\blambda\b[^:\n]{{0,40}}:|[-+~])\s*){{{MAX_NESTING}}}")
_NOT_NEWLINE = re.compile(r"[^\n]")


def normalise(source: str) -> str:
    """The text as every position in ``cleared`` counts it: no byte order mark, lines end in ``\\n``."""
    return source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def line_column(source: str, offset: int) -> tuple[int, int]:
    """1-based line and column of a character offset."""
    start = source.rfind("\n", 0, offset) + 1
    return source.count("\n", 0, offset) + 1, offset - start + 1


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Offset and text of each comment of a normalised source."""
    for match in _TOKEN.finditer(source):
        if match.lastgroup == "comment":
            yield match.start(), match.group()


def parse(source: str, file: str) -> ast.Module | Finding:
    """The syntax tree of a normalised source, or the one reason why there is none."""
    problem = _unreadable(source, file)
    if problem is not None:
        return problem
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape is not worth a line on stderr
            return ast.parse(source)
    except SyntaxError as error:
        line = max(error.lineno or 1, 1)
        place = Place(file, line, max(error.offset or 1, 1))
        return Finding("syntax", f"invalid syntax: {error.msg}", place, "Correct the line.")
    except (ValueError, RecursionError, MemoryError, SystemError):
        return _nesting(file, 1, 1)


def _unreadable(source: str, file: str) -> Finding | None:
    # A character is at least one byte: a cheap answer first, then an exact one.
    if len(source) > MAX_BYTES or len(source.encode("utf-8", "replace")) > MAX_BYTES:
        return Finding(
            "size",
            f"the script is larger than {MAX_BYTES >> 10} kB",
            Place(file, 1, 1),
            "Move data to a file in import/ or to config.yaml, shared code to scripts/.",
        )
    if (nul := source.find("\0")) >= 0:
        message, remedy = "the script contains a NUL character", "Delete it; a script is plain text."
        return Finding("character", message, Place(file, *line_column(source, nul)), remedy)
    if match := _SURROGATE.search(source):
        message = f"the script contains U+{ord(match.group()):04X}, which is no character"
        place = Place(file, *line_column(source, match.start()))
        return Finding("character", message, place, "Delete it; a script is UTF-8 text.")
    if match := _BIDI.search(source):
        message = f"U+{ord(match.group()):04X} makes the text read differently from how it runs"
        place = Place(file, *line_column(source, match.start()))
        return Finding("bidi", message, place, "Delete it, or write it as an escape inside a string.")
    return _too_deep(source, file)


def _too_deep(source: str, file: str) -> Finding | None:
    depth = 0
    for match in _TOKEN.finditer(source):
        if match.lastgroup == "open":
            depth += 1
            if depth > MAX_NESTING:
                return _nesting(file, *line_column(source, match.start()))
        elif match.lastgroup == "close":
            depth = max(depth - 1, 0)
    code = _TOKEN.sub(_blank, source)
    run = _PREFIXES.search(code)
    return _nesting(file, *line_column(source, run.start())) if run else None


def _blank(match: re.Match[str]) -> str:
    kind = match.lastgroup
    return _NOT_NEWLINE.sub("_", match.group()) if kind in ("string", "comment") else match.group()


def _nesting(file: str, line: int, column: int) -> Finding:
    return Finding(
        "nesting",
        "the code is nested too deeply to be read",
        Place(file, line, column),
        f"Name the parts; brackets and operators may nest {MAX_NESTING} deep.",
    )
