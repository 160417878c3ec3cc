"""The rows of the books that stay: entries, bank lines, closed periods."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Final

from cleared.books.ledger.entry import HEADER
from cleared.domains.record_audit import NamedRow, RowKind

_COMPARED_COLUMNS: Final = tuple(
    HEADER.index(name) for name in ("date", "account_id", "description", "debit", "credit")
)
_STATUS_COLUMN: Final = HEADER.index("status")
"""The column of a journal that may change."""


def _read_entries(text: str) -> Iterator[NamedRow]:
    for row in _read_csv(text):
        if len(row) > max(_COMPARED_COLUMNS):
            yield tuple(row[i] for i in _COMPARED_COLUMNS), row[0].rstrip("abcdefghijklmnopqrstuvwxyz")


def _read_lines(text: str) -> Iterator[NamedRow]:
    return (((row[0],), row[0]) for row in _read_csv(text))


def _read_periods(text: str) -> Iterator[NamedRow]:
    return ((tuple(row), row[0]) for row in _read_csv(text))


def _read_csv(text: str) -> list[list[str]]:
    try:
        return [row for row in csv.reader(io.StringIO(text, newline="")) if row][1:]
    except csv.Error:
        return []


ENTRIES: Final = RowKind("entries", ("entry", "entries"), _read_entries, counted_as="rows of entries", shows_ids=True)
LINES: Final = RowKind("lines", ("bank line", "bank lines"), _read_lines, counted_as="rows of bank lines")
PERIODS: Final = RowKind("periods", ("closing", "closings"), _read_periods, label="periods")


def list_without_status(data: bytes) -> list[bytes]:
    """The rows of a journal without the status of their entries; as they are where they are no CSV."""
    rows = csv.reader(io.StringIO(data.decode("utf-8", "surrogateescape"), newline=""))
    try:
        return [
            ",".join(row[:_STATUS_COLUMN] + row[_STATUS_COLUMN + 1 :]).encode("utf-8", "surrogateescape")
            for row in rows
        ]
    except csv.Error:
        return data.splitlines()
