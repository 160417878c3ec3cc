"""A bank file that was read and understood, and the order in which its rows happened."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from cleared.config.model import BankAccount
from cleared.ledger.bank_lines import BankLine
from cleared.schema.bank_row import ParsedFile


@dataclass(slots=True)
class ImportFile:
    """A file of the drop folder, read and understood."""

    name: str
    """Relative to the drop folder, ``/`` between folders."""
    data: bytes
    sha256: str
    parsed: ParsedFile
    account: BankAccount
    new: list[BankLine] = field(default_factory=list)
    pending: list[BankLine] = field(default_factory=list)
    duplicates: list[tuple[int, str, str]] = field(default_factory=list)
    """(row, the line it repeats, note)"""
    is_in_run: bool = False
    processed_as: str | None = None


def find_first_and_last_row(parsed: ParsedFile) -> tuple[Any, Any]:
    """First and last posted row in time; banks write files in either direction."""
    rows = [row for row in parsed.rows if row.state == "posted"]
    if not rows:
        return None, None
    return (rows[-1], rows[0]) if _is_newest_first(rows) else (rows[0], rows[-1])


def _is_newest_first(rows: list[Any]) -> bool:
    if rows[0].posted_date != rows[-1].posted_date:
        return bool(rows[0].posted_date > rows[-1].posted_date)
    # One day only: the direction in which the balances add up.
    return _count_balance_breaks(rows) > _count_balance_breaks(rows[::-1])


def _count_balance_breaks(rows: list[Any]) -> int:
    return sum(
        1
        for a, b in itertools.pairwise(rows)
        if None not in (a.balance, b.balance) and a.balance + b.amount != b.balance
    )


def find_balance_gaps(parsed: ParsedFile) -> list[tuple[str, str, Decimal]]:
    """``(day, next day, amount missing)`` wherever the running balance does not follow from the row before."""
    rows = [row for row in parsed.rows if row.state == "posted"]
    if not rows:
        return []
    if _is_newest_first(rows):
        rows = rows[::-1]
    gaps = []
    for a, b in itertools.pairwise(rows):
        if a.balance is not None and b.balance is not None and a.balance + b.amount != b.balance:
            gaps.append((str(a.posted_date), str(b.posted_date), b.balance - a.balance - b.amount))
    return gaps
