"""Small books for reports, made in memory: entries and a chart, no workspace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from decimal import Decimal

from cleared.books.index.current_books import AccountRow, BankRow, BusinessFacts
from cleared.books.index.journal_index import JournalIndex
from cleared.books.ledger.chart import parse_chart
from cleared.books.ledger.corrections import make_leg
from cleared.books.ledger.entry import Entry
from cleared.books.ledger.journal import append_entries, parse_month
from cleared.books.reports.report_books import ReportBooks
from cleared.workspace.template import read_starter_chart

BANKS = (
    BankRow("checking", "Checking", 1010, "checking"),
    BankRow("savings", "Savings", 1020, "savings"),
    BankRow("card", "Card", 2010, "credit_card"),
)
Line = tuple[str, str, dict[int, str]]


def entry(day: str, text: str, legs: dict[int, str], *, who: str = "", tags: str = "", pending: bool = False) -> Entry:
    """An entry without an id. ``legs``: account → amount, a debit positive."""
    return Entry(
        "",
        date.fromisoformat(day),
        text,
        tuple(make_leg(a, Decimal(amount)) for a, amount in legs.items()),
        "pending-review" if pending else "user-confirmed",
        who,
        tags=tags,
    )


def make_books(
    entries: Iterable[Entry],
    *,
    entity: str = "llc_single_member",
    start_month: int = 1,
    places: int = 2,
    accounts: Iterable[AccountRow] = (),
    name: str = "Acme",
) -> ReportBooks:
    """Books with these entries, as if they were committed."""
    months: dict[tuple[int, int], list[Entry]] = defaultdict(list)
    for given in entries:
        key = (given.date.year, given.date.month)
        number = f"{key[0]:04d}-{key[1]:02d}-{len(months[key]) + 1:03d}"
        months[key].append(Entry(number, *list(_fields(given))[1:]))
    files = {key: append_entries(None, listed, places) for key, listed in months.items()}
    index = JournalIndex(
        {key: f"{key[0]}-{key[1]}" for key in files}, lambda key: parse_month(files[key], *key, "", places), places
    )
    chart = list(accounts) or [
        AccountRow(a.account_id, a.account_name, a.account_type, a.parent_id, a.tax_line)
        for a in parse_chart(read_starter_chart(entity), "").accounts.values()
    ]
    return ReportBooks(index, chart, BusinessFacts(name, "USD", entity, start_month, BANKS), "c0ffee" * 6 + "beef")


def _fields(given: Entry) -> Iterable[object]:
    return (
        given.entry_id,
        given.date,
        given.description,
        given.legs,
        given.status,
        given.counterparty,
        given.reference,
        given.confidence,
        given.evidence,
        given.receipt_hash,
        given.tags,
        given.notes,
    )


def sample_entries() -> list[Entry]:
    """A year and a bit of a small business: opening balances, sales, expenses by bank and card, a draw, a closing."""
    return [
        entry("2023-12-31", "Opening", {1010: "1000.00", 3900: "-1000.00"}, tags="@kind=opening"),
        entry("2024-11-05", "Design work", {1010: "700.00", 4010: "-700.00"}, who="Bluebird Inc"),
        entry("2024-11-20", "Adverts", {5010: "150.00", 1010: "-150.00"}, who="Adco"),
        entry("2025-01-10", "Design work", {1010: "2000.00", 4010: "-2000.00"}, who="Bluebird Inc"),
        entry("2025-01-20", "Logo", {5110: "650.00", 1010: "-650.00"}, who="Jo Freelance"),
        entry("2025-02-03", "Lunch", {5070: "80.01", 2010: "-80.01"}, who="Cafe"),
        entry("2025-02-14", "Card paid", {2010: "80.01", 1010: "-80.01"}),
        entry("2025-02-28", "To savings", {1020: "500.00", 1010: "-500.00"}),
        entry("2025-03-05", "Contract", {5110: "900.00", 2010: "-900.00"}, who="Card Contractor"),
        entry("2025-03-09", "Software and lunch", {5020: "30.00", 5070: "12.50", 1010: "-42.50"}, who="Cafe"),
        entry("2025-03-15", "Draw", {3200: "300.00", 1010: "-300.00"}),
        entry("2025-03-31", "Unknown", {5030: "19.99", 1010: "-19.99"}, pending=True),
    ]
