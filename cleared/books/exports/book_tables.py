"""The books as plain tables: accounts, journal, bank lines. A workbook has them as sheets, a package as CSV files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal

from msgspec import Struct

from cleared.base import money
from cleared.base.csv_text import format_record
from cleared.base.date_spans import DateSpan
from cleared.books.exports.exported_journal import ExportedBooks
from cleared.books.index.journal_index import EntryFilter
from cleared.books.ledger.entry import entry_of_leg, parse_entry_id
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.reports.cell_texts import protect_text
from cleared.books.reports.report import Cell


class BookTable(Struct, frozen=True):
    """A table whose rows are made when they are taken."""

    name: str
    titles: tuple[str, ...]
    kinds: tuple[str, ...]
    """Of each column: ``amount``, ``count``, ``text`` or ``date``."""
    list_rows: Callable[[], Iterable[Sequence[Cell]]]

    def iter_csv(self) -> Iterator[str]:
        """The table as CSV. A text that a spreadsheet would take for a formula has a ``'`` before it."""
        yield format_record(self.titles)
        for row in self.list_rows():
            yield format_record(map(_format_cell, row))


def list_tables(exported: ExportedBooks, period: DateSpan) -> list[BookTable]:
    """All tables of the books, with what is dated in the period."""
    return [
        BookTable(
            "Accounts",
            ("account", "name", "type", "parent", "tax line", "status", "closed on"),
            ("count", "text", "text", "count", "text", "text", "date"),
            lambda: _list_accounts(exported),
        ),
        BookTable(
            "Journal",
            (
                "entry",
                "date",
                "account",
                "name",
                "description",
                "debit",
                "credit",
                "counterparty",
                "status",
                "tags",
                "reference",
                "notes",
            ),
            ("text", "date", "count", "text", "text", "amount", "amount", "text", "text", "text", "text", "text"),
            lambda: _list_legs(exported, period),
        ),
        BookTable(
            "Bank lines",
            (
                "bank account",
                "date",
                "description",
                "amount",
                "currency",
                "balance",
                "state",
                "entries",
                "outcome",
                "bank id",
                "line",
            ),
            ("text", "date", "text", "amount", "text", "amount", "text", "text", "text", "text", "text"),
            lambda: _list_bank_lines(exported, period),
        ),
    ]


def _list_accounts(exported: ExportedBooks) -> Iterator[Sequence[Cell]]:
    for a in exported.list_accounts():
        yield (a.account_id, a.account_name, a.account_type, a.parent_id, a.tax_line, a.status, a.closed_on)


def _list_legs(exported: ExportedBooks, period: DateSpan) -> Iterator[Sequence[Cell]]:
    chart = exported.books.chart
    for posting in exported.index.iter_postings(EntryFilter(start=period.start, end=period.end)):
        entry, account = posting.entry, chart.find_account(posting.account_id)
        yield (
            posting.leg_id,
            entry.date,
            posting.account_id,
            account.account_name if account else "",
            entry.description,
            posting.debit or None,
            posting.credit or None,
            entry.counterparty,
            entry.status,
            entry.tags,
            entry.reference,
            entry.notes,
        )


def _list_bank_lines(exported: ExportedBooks, period: DateSpan) -> Iterator[Sequence[Cell]]:
    bank = BankBook(exported.books.source, exported.books.paths)
    for account in sorted(set(bank.list_accounts()) | exported.bank_accounts.keys()):
        for line in bank.scan_account_lines(account):
            if not period.start <= line.posted_date <= period.end:
                continue
            legs = bank.list_matches(line.line_id)
            entries = dict.fromkeys(entry_of_leg(leg_id) for leg_id, _ in legs)
            outcome = bank.find_outcome(line.line_id)
            yield (
                account,
                line.posted_date,
                line.description,
                line.amount,
                line.currency,
                line.balance_after,
                line.state,
                " ".join(entry for entry in entries if parse_entry_id(entry)),
                f"{outcome.outcome}: {outcome.text}" if outcome is not None else "",
                line.bank_id,
                line.line_id,
            )


def _format_cell(cell: Cell) -> str:
    match cell:
        case None:
            return ""
        case Decimal():
            return money.format_amount(cell)
        case date():
            return cell.isoformat()
        case int():
            return str(cell)
        case _:
            return protect_text(cell)
