"""Cells of a report as people and spreadsheet programs read them."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from cleared.base import money
from cleared.books.reports.report import Cell, Column, Row

_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "＝", "＋", "－", "＠")


def format_cell(cell: Cell, column: Column, row: Row) -> str:
    """A cell as people read it."""
    if cell is None or (column.hides_zero and not row.is_bold and cell == 0):
        return ""
    return money.format_amount(cell) if isinstance(cell, Decimal) else str(cell)


def format_label(row: Row) -> str:
    """A row's label with its account's number, where it is not a total."""
    return f"{row.account_id} {row.label}" if row.account_id is not None and row.kind != "total" else row.label


def protect_text(text: str) -> str:
    """A text that no spreadsheet program takes for a formula: with an apostrophe before it where it could be one."""
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA_STARTS) else text
