"""Books in a dictionary."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path

from linked_entries import LINKS

from cleared.books.ledger.bank_lines import BankLine
from cleared.books.ledger.book_paths import locate_books
from cleared.books.ledger.entry import HEADER_LINE, Bounds, Entry, Leg
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.staged_journal import Books
from cleared.workspace.location import Layout
from cleared.workspace.settings.loading import load_config

CHART = (
    b"account_id,account_name,account_type,parent_id,tax_line,description,code,currency,status,closed_on\n"
    b"1000,Cash,asset,,,,,,,\n"
    b"1010,Checking,asset,1000,,,,,,\n"
    b"1030,Old,asset,1000,,,,,closed,2025-02-01\n"
    b"4010,Sales,revenue,,,,,,,\n"
    b"5030,Other,expense,,,,,,,\n"
)
PATHS = locate_books(Layout(Path("/nowhere"), load_config("business: {name: Acme}\n")))
JOURNAL = "books/2025/01/journal.csv"
ZERO = Decimal(0)


class DictSource:
    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = {"accounts/chart-of-accounts.csv": CHART, **files}

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)

    def list_paths(self, prefix: str) -> list[str]:
        return sorted(p for p in self.files if not prefix or p.startswith(prefix + "/"))


def books(files: Mapping[str, bytes] | None = None, bounds: Bounds | None = None) -> Books:
    return Books(DictSource(files or {}), PATHS, bounds or Bounds(), LINKS)


def bank(files: Mapping[str, bytes] | None = None) -> BankBook:
    return BankBook(DictSource(files or {}), PATHS)


def legs(amount: str = "4.00", debit: int = 5030, credit: int = 1010) -> list[Leg]:
    return [Leg(debit, Decimal(amount), ZERO), Leg(credit, ZERO, Decimal(amount))]


def leg_row(
    leg: str,
    account: str = "5030",
    debit: str = "4.00",
    credit: str = "",
    day: str = "2025-01-05",
    status: str = "auto-confirmed",
) -> str:
    return f"{leg},{day},{account},x,{debit},{credit},,,0.50,{status},,,,\n"


def journal(*rows: str) -> bytes:
    return (HEADER_LINE + "".join(rows)).encode()


def pair(number: str = "2025-01-001", day: str = "2025-01-05", amount: str = "4.00") -> list[str]:
    return [leg_row(number + "a", debit=amount, day=day), leg_row(number + "b", "1010", "", amount, day=day)]


JAN5 = date(2025, 1, 5)


def entry_of(day: date = JAN5, posting: list[Leg] | None = None, number: str = "001") -> Entry:
    return Entry(f"2025-01-{number}", day, "x", tuple(posting or legs()))


def make_line(line_id: str = "f1:a", amount: str = "-4.00", state: str = "posted", day: date = JAN5) -> BankLine:
    return BankLine(line_id, day, None, Decimal(amount), "USD", "SHOP", "", None, state, "sha", 2, 1)


def read_files(*lines: BankLine, processed: bool = True) -> BankBook:
    """As after ``importer_parse`` of these lines; ``processed``: and ``importer_mark_processed``."""
    facts = bank()
    facts.new_lines = {line.line_id: ("checking", line) for line in lines}
    facts.processed_line_ids = {line.line_id for line in lines} if processed else set()
    return facts
