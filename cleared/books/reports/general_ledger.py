"""The general ledger: every posting, account by account, with a running balance. Rows are made while they are taken."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal

from cleared.base import money
from cleared.base.date_spans import DateSpan
from cleared.base.errors import UsageError
from cleared.books.index.current_books import AccountRow
from cleared.books.index.journal_index import EntryFilter
from cleared.books.reports.report import Column, Report, Row
from cleared.books.reports.report_books import ReportBooks

_COLUMNS = (
    Column("date", "date", "date"),
    Column("entry", "entry", "text"),
    Column("counterparty", "counterparty", "text"),
    Column("debit", "debit", hides_zero=True),
    Column("credit", "credit", hides_zero=True),
    Column("balance", "balance", is_summed=False),
)


def make_general_ledger(books: ReportBooks, period: DateSpan, account: int | None = None) -> Report:
    """All accounts that were posted to in the period or held something before it, or one. Raises ``UsageError``."""
    if account is not None and account not in books.accounts:
        raise UsageError(f"account {account} does not exist", remedy="cleared accounts list shows all of them.")
    return books.make_report(
        "ledger",
        "General ledger",
        period,
        _COLUMNS,
        _LedgerRows(books, period, account),
        pending=books.pending(period.start, period.end),
        label_title="description",
    )


class _LedgerRows:
    """The rows, made anew each time that they are gone through."""

    def __init__(self, books: ReportBooks, period: DateSpan, account: int | None) -> None:
        self._books, self._period, self._account = books, period, account

    def __iter__(self) -> Iterator[Row]:
        books, period = self._books, self._period
        # Each account goes through the months anew: they are read once, as far as memory is bounded for them.
        books.index.stays_open = True
        before = books.balances(None, period.start - timedelta(days=1)) if period.start > date.min else {}
        moved = books.index.sum_accounts(period.start, period.end)
        for number in sorted({*before, *moved}):
            books.find_account(number)
        for number, account in books.accounts.items():
            if self._account in (None, number):
                held = before.get(number, books.zero)
                if account.account_type in ("revenue", "expense"):
                    held = books.zero
                if number in moved or held or number == self._account:
                    yield from self._list_account(account, held)

    def _list_account(self, account: AccountRow, held: Decimal) -> Iterator[Row]:
        books, period, number, places = self._books, self._period, account.account_id, self._books.index.places
        balance, debits, credits, count = money.count_units(held, places), 0, 0, 0
        amounts = _Amounts(places)
        yield Row(account.account_name, kind="heading", account_id=number)
        yield Row("Balance before", (None, None, None, None, None, held), depth=1)
        wanted = EntryFilter(account=number, start=period.start, end=period.end)
        for entries, unsorted in books.index.iter_months(wanted, None):
            at = sorted(unsorted, key=entries.dates.__getitem__)
            texts = [entries.list_texts(name, at) for name in ("date", "entry_id", "description", "counterparty")]
            for day, entry_id, description, other, legs in zip(*texts, entries.list_movements(at), strict=True):
                for leg, text in legs:
                    if leg == number:
                        units = money.count_written_units(text, places)
                        debit, credit = (units, 0) if units >= 0 else (0, -units)
                        balance, debits, credits, count = balance + units, debits + debit, credits + credit, count + 1
                        figures = amounts[debit], amounts[credit], amounts[balance]
                        cells = (date.fromisoformat(day), entry_id, other, *figures)
                        yield Row(description, cells, depth=1, entries=(entry_id,))
        sums = (None, None, None, amounts[debits], amounts[credits], amounts[balance])
        yield Row(f"Total {number} {account.account_name}", sums, "total", 0, number, f"account.{number}", above=count)


class _Amounts(dict[int, Decimal]):
    """Smallest units → amount, each made once."""

    def __init__(self, places: int) -> None:
        self._places = places

    def __missing__(self, units: int) -> Decimal:
        amount = money.from_units(units, self._places)
        if len(self) < 100_000:
            self[units] = amount
        return amount
