"""Reading the books without opening the workspace, where the index has them just as they are now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cleared.base.days import parse_day, parse_month
from cleared.books.index.balances import list_balances
from cleared.books.index.current_books import CurrentBooks, open_current_books
from cleared.books.index.journal_index import JournalIndex
from cleared.books.reports.report_books import ReportBooks
from cleared.cli.options import chosen_workspace, open_host
from cleared.workspace.location import find_workspace


@contextmanager
def open_journal(workspace: Path | None) -> Iterator[JournalIndex]:
    """The journal of the workspace that the command line names. Raises ``WorkspaceError``."""
    current = _open_current(workspace)
    if current is not None:
        yield current.journal
        return
    from cleared.books.queries import open_journal_index

    with open_journal_index(open_host(workspace)) as (index, _):
        yield index


@contextmanager
def open_report_books(workspace: Path | None) -> Iterator[ReportBooks]:
    """What reports are made of. Raises ``WorkspaceError``."""
    current = _open_current(workspace)
    if current is not None:
        yield ReportBooks(current.journal, current.accounts, current.business, current.commit)
        return
    from cleared.books import queries

    with queries.open_report_books(open_host(workspace)) as books:
        yield books


def read_balances(
    workspace: Path | None, account: int | None, month: str | None, as_of: str | None
) -> list[dict[str, Any]]:
    """The trial balance, as ``queries.read_balances`` gives it, which is asked wherever there is a doubt."""
    current = _open_current(workspace)
    if current is not None and (account is None or account in {row.account_id for row in current.accounts}):
        day = parse_day(as_of) if as_of else None
        year, number = parse_month(month) if month else (None, None)
        return list_balances(current.journal, current.accounts, account, year=year, month=number, as_of=day)
    from cleared.books import queries

    return queries.read_balances(open_host(workspace), account, month=month, as_of=as_of)


def _open_current(workspace: Path | None) -> CurrentBooks | None:
    return open_current_books(find_workspace(chosen_workspace(workspace)))
