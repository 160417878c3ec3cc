"""The table in a CSV that nobody has described: its encoding and delimiter, the heads of its columns, its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from cleared.books.bank_files.base import BOMS, ImportFileError
from cleared.books.bank_files.cell_values import is_transaction
from cleared.books.bank_files.column_words import WORDS
from cleared.books.bank_files.csv_table import fold_names, read_header, read_records, split_lines
from cleared.books.bank_files.text_decoding import decode_text

MAX_ROWS: Final = 2_000
"""How many rows are looked at."""
_PREAMBLE: Final = 40


class ReadTable(Struct, frozen=True):
    """The lines of a CSV that look like transactions. ``skip``: lines above the heads of the columns."""

    encoding: str
    delimiter: str
    skip: int
    names: list[str]
    is_named: bool
    """Whether the file itself names its columns."""
    cells: Mapping[str, list[str]]
    """Column → what stands in it."""


def read_table(data: bytes, known: Mapping[str, Any]) -> ReadTable:
    """The table in a file. Raises ``ImportFileError`` where it is none."""
    encoding = str(known.get("encoding") or _guess_encoding(data))
    text = decode_text(data, encoding)
    delimiter = str(known.get("delimiter") or _guess_delimiter(text))
    if len(delimiter) != 1:
        raise ImportFileError(f"{delimiter[:20]!r} is not one character between fields", remedy="Such as ; or ,")
    skip, names, is_named = _find_names(text, delimiter, known.get("skip_lines"))
    records = _read_rows(text, delimiter, skip, len(names), is_named)
    if not records:
        raise ImportFileError(
            "no lines of it look like transactions: none has a date and an amount",
            remedy="Download the account's transactions as CSV or OFX",
        )
    cells = {name: [record[at].strip() for record in records] for at, name in enumerate(names)}
    return ReadTable(encoding, delimiter, skip, names, is_named, cells)


def _guess_encoding(data: bytes) -> str:
    for mark, encoding in BOMS:
        if data.startswith(mark):
            return encoding
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _guess_delimiter(text: str) -> str:
    """The sign that cuts most of the first lines into equally many fields, the more the better."""

    def weight(delimiter: str) -> tuple[int, int]:
        counts = [line.count(delimiter) for line, _ in zip(split_lines(text), range(60), strict=False)]
        common = max(set(counts), key=lambda n: (counts.count(n) if n else 0, n), default=0)
        return (counts.count(common) if common else 0, common)

    return max((";", "\t", "|", ","), key=weight)


def _find_names(text: str, delimiter: str, said: int | None) -> tuple[int, list[str], bool]:
    """``(lines above, names, whether the file has them)``: of the lines above the first transaction that have as many
    fields as it, the one with the most words that banks use, else with the most words."""
    found: list[tuple[tuple[int, int], int, list[str]]] = []
    for skip in range(said or 0, (said or 0) + (1 if said is not None else _PREAMBLE)):
        header = read_header(text, delimiter, skip)
        if header is None:
            break
        at, names = header
        if len(names) < 2 or (said is None and at != skip + 1):
            continue
        if is_transaction(names):
            if not found:
                return skip, [f"Column {n}" for n in range(1, len(names) + 1)], False
            break
        filled = [name for name in names if name]
        if len(filled) >= 2 and _has_rows_below(text, delimiter, at, len(names)):
            found.append(((_count_known_words(filled), len(filled)), at, names))
    if not found:
        raise ImportFileError(
            "no line of it looks like column headers with transactions below",
            remedy="Say how many lines stand above them: --skip-lines N",
        )
    _, at, names = max(found, key=lambda each: each[0])  # of several equal ones the first
    return at - 1, [name or f"Column {n}" for n, name in enumerate(names, 1)], True


def _count_known_words(names: Iterable[str]) -> int:
    """How many of the names begin as banks head a column."""
    words = tuple({word for each in WORDS.values() for word in each})
    return sum(1 for name in fold_names(names) if name.startswith(words))


def _has_rows_below(text: str, delimiter: str, at: int, width: int) -> bool:
    try:
        for number, (_, fields) in enumerate(read_records(text, delimiter, at)):
            if abs(len(fields) - width) <= 1 and is_transaction(fields):
                return True
            if number > 3:
                break
    except ImportFileError:
        pass
    return False


def _read_rows(text: str, delimiter: str, skip: int, width: int, is_named: bool) -> list[list[str]]:
    rows = []
    records = read_records(text, delimiter, skip)
    for number, (_, fields) in enumerate(records):
        if number >= MAX_ROWS:
            break
        if len(fields) in (width, width + 1) and not (is_named and number == 0) and is_transaction(fields):
            rows.append(fields[:width])
    return rows
