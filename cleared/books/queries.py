"""What can be asked of the books, as plain data: the command line, RPC and pages show the same answers.

Everything is read from the last commit; nothing here changes anything but to finish a commit that was killed.
Amounts are strings of digits, times UTC ISO 8601.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from typing import Any

from cleared.base.date_spans import DateSpan
from cleared.base.days import parse_day, parse_month
from cleared.base.errors import UsageError, WorkspaceError
from cleared.books.index.balances import list_balances
from cleared.books.index.current_books import AccountRow, BankRow, BusinessFacts, remember_current_books
from cleared.books.index.entry_selection import make_filter
from cleared.books.index.journal_index import JournalIndex, open_index
from cleared.books.index.month_facts import MonthEntries
from cleared.books.ledger.chart import Chart
from cleared.books.ledger.entry import parse_number
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.staged_journal import Books
from cleared.books.primitives.accounts import describe_account
from cleared.books.reports.month_digests import iter_digests
from cleared.books.reports.report_books import ReportBooks
from cleared.books.staged_books import open_books
from cleared.changes.host import Host
from cleared.changes.kept_answers import can_be_kept
from cleared.changes.record_sources import CommittedSource
from cleared.domains.domain import RecordOutcome
from cleared.git import Repository, Snapshot
from cleared.workspace.surroundings import read_surroundings


def read_outcomes(host: Host, snapshot: Snapshot) -> dict[str, RecordOutcome]:
    """How sure scripts were of each standing entry, and what persons decided about it."""
    index = open_index(host.layout, snapshot, host.decimal_places, stays_open=host.reads_again)
    outcomes: dict[str, RecordOutcome] = {}
    for of_month in iter_digests(index, DateSpan(date.min, date.max, ""), "outcomes", _find_outcomes):
        outcomes |= of_month
    return outcomes


def _find_outcomes(month: MonthEntries, places: Sequence[int]) -> dict[str, RecordOutcome]:
    decided = {"user-confirmed": True, "user-corrected": False}
    said = [*zip(month.statuses, month.list_texts("confidence", places), strict=True)]
    made = {each: RecordOutcome(parse_number(each[1]), decided.get(each[0])) for each in set(said)}
    return {name: made[each] for name, each in zip(month.ids, said, strict=True) if each[0] != "voided"}


@contextmanager
def open_committed_books(host: Host) -> Iterator[tuple[Repository, Snapshot, Books, BankBook]]:
    """The last commit's books."""
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        yield (repo, snapshot, *open_books(host.layout, CommittedSource(snapshot)))


def read_journal(
    host: Host,
    *,
    month: str | None = None,
    status: str | None = None,
    account: int | None = None,
    text: str | None = None,
    limit: int | None = None,
) -> list[dict[str, Any]]:
    """Entries in the order of their ids. ``month`` is ``YYYY-MM``; ``limit``: the newest so many. Raises
    ``UsageError``."""
    if limit is not None and limit < 0:
        raise UsageError("the limit is negative", remedy="Leave it out for all entries.")
    wanted = make_filter(month, status, account, text)
    with open_journal_index(host) as (index, _):
        return list(index.iter_dicts(wanted, limit=limit))


def read_balances(
    host: Host, account: int | None = None, *, month: str | None = None, as_of: str | None = None
) -> list[dict[str, Any]]:
    """The trial balance, or one account's balance: ``[{account_id, account_name, account_type, balance}]``."""
    day = parse_day(as_of) if as_of else None
    year, number = parse_month(month) if month else (None, None)
    with open_journal_index(host) as (index, books):
        if account is not None and books.chart.find_account(account) is None:
            message, remedy = books.chart.why_not_postable(account, date.min) or ("", "")
            raise UsageError(message, remedy=remedy)
        return list_balances(index, _account_rows(books.chart), account, year=year, month=number, as_of=day)


def count_entries(host: Host) -> int:
    """How many entries the journal has."""
    with open_journal_index(host) as (index, _):
        return index.count_entries()


@contextmanager
def open_journal_index(host: Host) -> Iterator[tuple[JournalIndex, Books]]:
    """The index of the last commit's journal, and the books themselves.

    What it knows at the end is kept for the next command, which then need not open the workspace.
    """
    surroundings = None if host.stays_open else read_surroundings(host.root)
    with open_committed_books(host) as (repo, snapshot, books, _bank):
        index = open_index(host.layout, snapshot, host.decimal_places, stays_open=host.reads_again)
        yield index, books
        if surroundings is not None and can_be_kept(host, repo, snapshot, surroundings):
            with suppress(WorkspaceError):  # a chart that is damaged, say
                accounts = _account_rows(books.chart)
                remember_current_books(host.root, surroundings, index, accounts, _business_facts(host))


def _account_rows(chart: Chart) -> list[AccountRow]:
    return [
        AccountRow(a.account_id, a.account_name, a.account_type, a.parent_id, a.tax_line)
        for a in chart.accounts.values()
    ]


def _business_facts(host: Host) -> BusinessFacts:
    business = host.config.business
    banks = [BankRow(a.id, a.name or a.id, a.ledger_account, a.type) for a in host.config.bank_accounts]
    return BusinessFacts(business.name, business.currency, business.entity_type, host.config.fiscal.start_month, banks)


@contextmanager
def open_report_books(host: Host) -> Iterator[ReportBooks]:
    """What reports are made of, from the last commit."""
    with open_journal_index(host) as (index, books):
        yield make_report_books(host, index, books)


def make_report_books(host: Host, index: JournalIndex, books: Books) -> ReportBooks:
    """What reports are made of, from books that are open."""
    assert isinstance(books.source, CommittedSource)
    return ReportBooks(index, _account_rows(books.chart), _business_facts(host), books.source.snapshot.commit or "")


def read_accounts(host: Host) -> list[dict[str, Any]]:
    """The chart of accounts."""
    with open_committed_books(host) as (_, _snapshot, books, _bank):
        return [dict(describe_account(a)) for a in books.chart.accounts.values()]


def read_periods(host: Host) -> list[dict[str, Any]]:
    """Every closing and reopening, oldest first."""
    with open_committed_books(host) as (_, _snapshot, books, _bank):
        return [
            {
                "through": None if m.through == date.min else m.through.isoformat(),
                "state": m.state,
                "by": m.by,
                "at": m.at,
                "reason": m.reason,
                "digest": m.digest,
            }
            for m in books.periods.marks
        ]
