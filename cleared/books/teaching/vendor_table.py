"""The vendor table at the top of an agent's script: found and changed by the syntax tree, every other byte stays.

    VENDORS = [
        ("GITHUB", "GitHub", 5020, 0.98),      words of the bank's text, who that is, the account, how sure that is
    ]

The first line that fits counts, so a new line stands before all others but those that are more special.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cleared.books.ledger.bank_lines import normalise_description
from cleared.sandbox.finding import Finding
from cleared.sandbox.script_source import parse_script

MAX_WORDS: Final = 80
"""Characters of the words, and of a vendor's name."""
CONFIDENCE: Final = "0.99"
"""How sure a line is that a person has taught."""
_COLUMNS: Final = 4


@dataclass(frozen=True, slots=True)
class VendorRow:
    """One line of the table."""

    words: str
    vendor: str
    account: int


@dataclass(frozen=True, slots=True)
class VendorTable:
    """A table in a script: its rows, with the tuples they are written as."""

    node: ast.List
    rows: tuple[tuple[VendorRow, ast.Tuple], ...]


def find_vendor_table(source: str, file: str = "") -> VendorTable | None:
    """The first list of a script's top level whose items are all (words, vendor, account, confidence).

    None where there is none, or where the text is no Python. An empty list counts where it is called ``VENDORS``.
    """
    tree = parse_script(source, file)
    if isinstance(tree, Finding):
        return None
    for statement in tree.body:
        value = statement.value if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if isinstance(value, ast.List) and isinstance(target, ast.Name) and (value.elts or target.id == "VENDORS"):
            rows = [_read_row(item) for item in value.elts]
            if all(rows):
                return VendorTable(value, tuple(row for row in rows if row is not None))
    return None


def _read_row(item: ast.expr) -> tuple[VendorRow, ast.Tuple] | None:
    if not isinstance(item, ast.Tuple) or len(item.elts) != _COLUMNS:
        return None
    words, vendor, account, sure = (e.value if isinstance(e, ast.Constant) else None for e in item.elts)
    whole = isinstance(account, int) and not isinstance(account, bool)
    if isinstance(words, str) and isinstance(vendor, str) and whole and isinstance(sure, float | int):
        return VendorRow(words, vendor, account), item  # type: ignore[arg-type]
    return None


def read_confidence(node: ast.Tuple) -> float:
    """How sure the script is of a row of the table."""
    sure = node.elts[-1]
    assert isinstance(sure, ast.Constant) and isinstance(sure.value, float | int)
    return float(sure.value)


def teach_row(source: str, table: VendorTable, row: VendorRow) -> str:
    """The script with this row: in the place of one of the same words, else as a line of its own."""
    text = f"({_quote(row.words)}, {_quote(row.vendor)}, {row.account}, {CONFIDENCE})"
    offsets = _line_offsets(source)
    for known, node in table.rows:
        if normalise_description(known.words) == normalise_description(row.words):
            start, end = _span(source, offsets, node)
            return source[:start] + text + source[end:]
    special = [node for known, node in table.rows if contains_words(known.words, row.words)]
    if special:
        return _insert_after(source, _span(source, offsets, special[-1])[1], text)
    start, end = _span(source, offsets, table.node)
    first = _span(source, offsets, table.rows[0][1])[0] if table.rows else end - 1
    rest_of_line = source[start + 1 : source.find("\n", start + 1)]
    if "\n" in source[start + 1 : first] and (not rest_of_line.strip() or rest_of_line.strip().startswith("#")):
        at = source.index("\n", start + 1) + 1  # before a comment that belongs to the first row
        indent = _indent_of(source, first) if table.rows else "    "
        return f"{source[:at]}{indent}{text},\n{source[at:]}"
    return f"{source[: start + 1]}{text}{', ' if table.rows else ''}{source[start + 1 :]}"


def _insert_after(source: str, end: int, text: str) -> str:
    """A row behind another, on a line of its own where the other ends its line."""
    line_end = source.find("\n", end)
    rest = source[end : line_end if line_end >= 0 else len(source)]
    if line_end >= 0 and rest.lstrip().startswith(",") and not rest.lstrip()[1:].split("#")[0].strip():
        return f"{source[: line_end + 1]}{_indent_of(source, end)}{text},\n{source[line_end + 1 :]}"
    return f"{source[:end]}, {text}{source[end:]}"


def _indent_of(source: str, offset: int) -> str:
    line = source[source.rfind("\n", 0, offset) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _line_offsets(source: str) -> list[int]:
    offsets = [0]
    for line in source.split("\n"):
        offsets.append(offsets[-1] + len(line) + 1)
    return offsets


def _span(source: str, offsets: list[int], node: ast.expr) -> tuple[int, int]:
    """Where a node begins and ends, in characters; the syntax tree counts the bytes of a line."""

    def offset(line: int, column: int) -> int:
        start = offsets[line - 1]
        text = source[start : offsets[line] - 1].encode("utf-8")
        return start + len(text[:column].decode("utf-8"))

    assert node.end_lineno is not None and node.end_col_offset is not None
    return offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def contains_words(description: str, words: str) -> bool:
    """Whether a text has these words as words of their own: AWS is in ``AWS*EMEA``, not in ``LAWSON``."""
    text, wanted = normalise_description(description), normalise_description(words)
    at = text.find(wanted) if wanted else -1
    while at >= 0:
        end = at + len(wanted)
        if not text[at - 1 : at].isalpha() and not text[end : end + 1].isalpha():
            return True
        at = text.find(wanted, at + 1)
    return False


_PAID_BY: Final = ("SQ *", "TST* ", "TST*", "PAYPAL *", "PP*", "SP ", "ORIG CO NAME:")


def propose_words(description: str) -> str:
    """The words of a bank's text that name the vendor, as far as it can be guessed: up to three without numbers."""
    text = normalise_description(description)
    for prefix in _PAID_BY:
        text = text.removeprefix(prefix)
    words = list(_leading_words(text))
    return " ".join(words[:3]).strip(" -,.:*#") or text[:MAX_WORDS]


def _leading_words(text: str) -> Iterator[str]:
    """The words of the text up to the first with a digit or a mark before it."""
    for word in text.split():
        if any(c.isdigit() for c in word) or word[0] in "#*":
            return
        yield word
