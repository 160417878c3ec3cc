"""What a bank file says, before any bookkeeping: one row, one file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal

LineState = Literal["posted", "pending"]


@dataclass(frozen=True, slots=True)
class BankRow:
    """One row a bank reported. ``amount`` is signed as the account's balance moves: negative = money out."""

    row: int
    """1-based line number in the file on which the row starts."""
    posted_date: date
    description: str
    """Exactly as the bank wrote it (may hold quotes, newlines, formulas, any script)."""
    amount: Decimal
    type: str = ""
    """The bank's own word for the kind of transaction, e.g. ``ACH_DEBIT``."""
    transaction_date: date | None = None
    currency: str | None = None
    """ISO 4217 code where the file states one."""
    bank_id: str = ""
    """An id the bank promises to be unique for the account (not a check number); empty where there is none."""
    balance: Decimal | None = None
    """The running balance after this row, where the file carries one."""
    state: LineState = "posted"


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """A bank file, read whole."""

    format: str
    rows: tuple[BankRow, ...]
    """In file order."""
    hints: tuple[tuple[str, str], ...] = ()
    """What the file says of its account: ``("last4", "1234")``, ``("iban", …)``, ``("header", …)``."""
