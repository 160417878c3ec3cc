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


class WaitingEntry(Struct, frozen=True):
    """An entry that waits for a person."""

    entry_id: str
    parts: tuple[tuple[int, Decimal], ...]
    """Its accounts but the bank's, and how much of it is there: a positive amount is a debit."""
    taught: tuple[tuple[int, Decimal], ...]
    """The same as the row would have it; empty where the parts of its split do not fit, or it is of a part of a bank
    line."""


class FittingLine(Struct, frozen=True):
    """A past bank line that a row fits, and the accounts it is booked to now."""

    day: date
    amount: Decimal
    description: str
    parts: tuple[tuple[int, Decimal], ...]
    """Its accounts but the bank's, and how much of it is there; none: it is not posted."""
    taught: tuple[tuple[int, Decimal], ...]
    """The same as the row would have it; empty where the parts of its split do not fit."""
    waiting: tuple[WaitingEntry, ...] = ()
    """Its entries that wait for a person."""

    @property
    def accounts(self) -> str:
        return "+".join(str(account) for account, _ in self.parts) or "not posted"

    @property
    def is_otherwise(self) -> bool:
        """Whether it is booked, and not as the row would have booked it."""
        if not self.parts or self.waiting or not self.taught:
            return False
        is_whole = money.total([part for _, part in self.parts]) == -self.amount
        return not is_like(self.parts, self.taught, with_amounts=is_whole)


def is_like(
    parts: Sequence[tuple[int, Decimal]], taught: Sequence[tuple[int, Decimal]], *, with_amounts: bool = True
) -> bool:
    """Whether both name the same accounts, and with amounts as much of each."""
    if with_amounts:
        return set(parts) == set(taught)
    return {account for account, _ in parts} == {account for account, _ in taught}


def row_accounts(row: VendorRow) -> set[int]:
    """Where a row's money goes: its own account, and those of its split."""
    return {row.account, *(account for account, _ in row.limits.split)}


def find_matched_lines(
    books: Books, bank: BankBook, bank_accounts: Mapping[str, int], row: VendorRow
) -> list[FittingLine]:
    """All past lines that the row fits, oldest first. ``bank_accounts``: bank account → its account in the books."""
    lines = []
    own = set(bank_accounts.values())
    for account in bank.list_accounts():
        for line in bank.scan_account_lines(account):
            if row.fits(line.description, line.amount, bank_accounts.get(account, 0)):
                taught = row.divide(-line.amount, books.bounds.places)
                parts: dict[int, Decimal] = {}
                waiting: list[WaitingEntry] = []
                seen: set[str] = set()
                for leg_id, _ in bank.list_matches(line.line_id):
                    entry = books.find_entry(leg_id) if parse_entry_id(leg_id) else None
                    if entry is None or entry.status == "voided" or entry.entry_id in seen:
                        continue
                    seen.add(entry.entry_id)
                    found = _parts_of(entry, find_corrections(books, entry), own)
                    for number, amount in found.items():
                        parts[number] = parts.get(number, ZERO) + amount
                    if entry.status == "pending-review":
                        is_whole = money.total([*found.values()]) == -line.amount
                        right = taught if is_whole or not row.limits.split else ()
                        waiting.append(WaitingEntry(entry.entry_id, tuple(found.items()), right))
                lines.append(
                    FittingLine(
                        line.posted_date, line.amount, line.description, tuple(parts.items()), taught, tuple(waiting)
                    )
                )
    return sorted(lines, key=lambda each: each.day)


def _parts_of(entry: Entry, corrections: Sequence[Entry], bank_accounts: set[int]) -> dict[int, Decimal]:
    """The accounts of an entry with its corrections, but the bank's, and what it moves on each."""
    totals: dict[int, Decimal] = {}
    for leg in (leg for each in (entry, *corrections) for leg in each.legs):
        totals[leg.account_id] = totals.get(leg.account_id, ZERO) + leg.amount
    return {account: amount for account, amount in totals.items() if amount and account not in bank_accounts}


def describe_matches(lines: Sequence[FittingLine]) -> str:
    """``It would have booked 11 past lines, all as they are booked.`` Empty where none is booked, and all fit."""
    booked = [line for line in lines if line.parts and not line.waiting and line.taught]
    said = []
    if booked:
        others = sum(1 for line in booked if line.is_otherwise)
        how = "all as they are booked" if not others else f"{others} otherwise than they are booked"
        said.append(f"It would have booked {count_noun(len(booked), 'past line')}, {how}.")
    if odd := [line for line in lines if not line.taught]:
        said.append(f"The parts do not fit {count_noun(len(odd), 'past line')}: a person is asked about such.")
    return " ".join(said)


def list_matches(lines: Sequence[FittingLine], limit: int = 20) -> list[str]:
    """The lines as a person reads them: first those that the row would have booked otherwise, then the newest."""
    otherwise = [line for line in lines if line.is_otherwise]
    rest = [line for line in lines if not line.is_otherwise]
    shown_first = otherwise[-limit:]
    shown = [f"{_line_text(line)}  (booked otherwise)" for line in shown_first]
    left = max(limit - len(shown_first), 0)
    shown_rest = rest[len(rest) - left :] if left < len(rest) else rest
    hidden = len(lines) - len(shown_first) - len(shown_rest)
    return shown + ([f"… {hidden} older"] if hidden > 0 else []) + [_line_text(line) for line in shown_rest]


def _line_text(line: FittingLine) -> str:
    fits = "" if line.taught else "  (the parts do not fit)"
    return f"{line.day}  {money.format_amount(line.amount)}  {line.accounts}  {line.description}{fits}"
