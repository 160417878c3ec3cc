"""The past bank lines that a row of a vendor table is about, and how they are booked now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal

from msgspec import Struct

from cleared.base import money
from cleared.base.terminal import count_noun
from cleared.books.ledger.corrections import find_corrections
from cleared.books.ledger.entry import ZERO, Entry, parse_entry_id
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.staged_journal import Books
from cleared.books.teaching.vendor_table import VendorRow


class MatchedLine(Struct, frozen=True):
    """A past bank line that a row fits, and the accounts it is booked to now."""

    day: date
    amount: Decimal
    description: str
    numbers: tuple[int, ...]
    """Its accounts but the bank's; none: it is not posted."""
    waiting: tuple[str, ...] = ()
    """Its entries that wait for a person."""

    @property
    def accounts(self) -> str:
        return "+".join(map(str, self.numbers)) or "not posted"

    def is_otherwise(self, row: VendorRow) -> bool:
        """Whether it is booked, and not as the row would have booked it."""
        return bool(self.numbers) and not self.waiting and set(self.numbers) != row_accounts(row)


def row_accounts(row: VendorRow) -> set[int]:
    """Where a row's money goes: its own account, and those of its split."""
    return {row.account, *(account for account, _ in row.limits.split)}


def find_matched_lines(
    books: Books, bank: BankBook, bank_accounts: Mapping[str, int], row: VendorRow
) -> list[MatchedLine]:
    """All past lines that the row fits, oldest first. ``bank_accounts``: bank account → its account in the books."""
    lines = []
    own = set(bank_accounts.values())
    for account in bank.list_accounts():
        for line in bank.scan_account_lines(account):
            if row.fits(line.description, line.amount, bank_accounts.get(account, 0)):
                numbers: dict[int, None] = {}
                waiting: dict[str, None] = {}
                for leg_id, _ in bank.list_matches(line.line_id):
                    entry = books.find_entry(leg_id) if parse_entry_id(leg_id) else None
                    if entry is not None and entry.status != "voided":
                        numbers |= _accounts_of(entry, find_corrections(books, entry), own)
                        waiting |= {entry.entry_id: None} if entry.status == "pending-review" else {}
                lines.append(
                    MatchedLine(line.posted_date, line.amount, line.description, tuple(numbers), tuple(waiting))
                )
    return sorted(lines, key=lambda each: each.day)


def _accounts_of(entry: Entry, corrections: Sequence[Entry], bank_accounts: set[int]) -> dict[int, None]:
    """The accounts of an entry with its corrections, but the bank's."""
    totals: dict[int, Decimal] = {}
    for leg in (leg for each in (entry, *corrections) for leg in each.legs):
        totals[leg.account_id] = totals.get(leg.account_id, ZERO) + leg.amount
    return {account: None for account, amount in totals.items() if amount and account not in bank_accounts}


def describe_matches(row: VendorRow, lines: Sequence[MatchedLine]) -> str:
    """``It would have booked 11 past lines, all as they are booked.`` Empty where none is booked."""
    booked = [line for line in lines if line.numbers and not line.waiting]
    if not booked:
        return ""
    others = sum(1 for line in booked if line.is_otherwise(row))
    how = "all as they are booked" if not others else f"{others} otherwise than they are booked"
    return f"It would have booked {count_noun(len(booked), 'past line')}, {how}."


def list_matches(row: VendorRow, lines: Sequence[MatchedLine], limit: int = 20) -> list[str]:
    """The lines as a person reads them: first those that the row would have booked otherwise, then the newest."""
    otherwise = [line for line in lines if line.is_otherwise(row)]
    rest = [line for line in lines if not line.is_otherwise(row)]
    shown_first = otherwise[-limit:]
    shown = [f"{_line_text(line)}  (booked otherwise)" for line in shown_first]
    left = max(limit - len(shown_first), 0)
    shown_rest = rest[len(rest) - left :] if left < len(rest) else rest
    hidden = len(lines) - len(shown_first) - len(shown_rest)
    return shown + ([f"… {hidden} older"] if hidden > 0 else []) + [_line_text(line) for line in shown_rest]


def _line_text(line: MatchedLine) -> str:
    return f"{line.day}  {money.format_amount(line.amount)}  {line.accounts}  {line.description}"
