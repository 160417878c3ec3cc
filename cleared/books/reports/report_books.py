"""What reports are made of: the index of one commit's journal, its chart, and what the settings say of the business."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import Any

from cleared.base import money
from cleared.base.date_spans import DateSpan, fiscal_year_of, parse_span
from cleared.base.errors import UsageError, WorkspaceError
from cleared.books.index.current_books import AccountRow, BankRow, BusinessFacts
from cleared.books.index.journal_index import JournalIndex
from cleared.books.reports.report import Column, Pending, Report, Row


@dataclass(frozen=True)
class ReportBooks:
    """The books of one commit."""

    index: JournalIndex
    chart: Sequence[AccountRow]
    """All accounts, in the order of the chart."""
    business: BusinessFacts
    commit: str

    @cached_property
    def accounts(self) -> Mapping[int, AccountRow]:
        """Number → account."""
        return {row.account_id: row for row in self.chart}

    @cached_property
    def cash_accounts(self) -> dict[int, BankRow]:
        """Account in the books → bank account; those that hold money, so no credit cards."""
        accounts: dict[int, BankRow] = {}
        for bank in self.business.banks:
            account = self.accounts.get(bank.ledger_account)
            if account is not None and account.account_type == "asset" and bank.type != "processor":
                accounts.setdefault(bank.ledger_account, bank)
        return accounts

    def find_account(self, number: int) -> AccountRow:
        """An account that entries post to. Raises ``WorkspaceError`` where the chart does not have it."""
        account = self.accounts.get(number)
        if account is None:
            raise WorkspaceError(
                f"entries post to account {number}, which is not in the chart of accounts",
                remedy="Run cleared check: it names the entries.",
            )
        return account

    def is_of(self, number: int, *types: str) -> bool:
        return self.find_account(number).account_type in types

    def balances(self, start: date | None, end: date | None, *, closings: bool = True) -> dict[int, Decimal]:
        """Debits minus credits of each account that was posted to. ``closings``: also by entries that close a year."""
        sums = self.index.sum_accounts(start, end)
        less = {} if closings else self.index.sum_closing(start, end)
        return {
            account: money.from_units(
                debit - credit - (less[account].debit - less[account].credit if account in less else 0),
                self.index.places,
            )
            for account, (debit, credit) in sums.items()
        }

    def closings(self, start: date | None, end: date | None) -> dict[int, Decimal]:
        """Debits minus credits of each account by the entries that close a year."""
        return {account: self.index.amount(sums) for account, sums in self.index.sum_closing(start, end).items()}

    def make_report(
        self,
        name: str,
        title: str,
        period: DateSpan,
        columns: Sequence[Column],
        rows: Iterable[Row],
        compared: DateSpan | None = None,
        **more: Any,
    ) -> Report:
        """A report of these books. ``more``: further fields of it."""
        business = self.business
        return Report(
            name, title, business.name, business.currency, period, self.commit, columns, rows, compared, **more
        )

    def pending(self, start: date | None, end: date | None) -> Pending:
        return Pending(*self.index.sum_pending(start, end))

    def parse_period(self, text: str | None) -> DateSpan:
        """The period that is meant; without a text the fiscal year of the newest entries that stand. Raises
        ``UsageError``."""
        if text:
            return parse_span(text, self.business.start_month)
        for key in reversed(self.index.months):
            sums = self.index.month_sums(key)
            if sums.statuses.keys() - {"voided"}:
                return fiscal_year_of(date.fromisoformat(max(sums.days)), self.business.start_month)
        raise UsageError("nothing is booked yet", remedy="Say which period: --period 2025-Q1.")

    @property
    def zero(self) -> Decimal:
        """Nothing, with the currency's decimals."""
        return money.from_units(0, self.index.places)
