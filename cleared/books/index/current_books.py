"""The books that are checked out, as the last command that read them left them in the index: without starting git,
reading the configuration, or opening the workspace.

That counts only as long as the surroundings are the same. Anything else is for a command to find out in the usual way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from cleared.books.index.journal_index import JournalIndex, MonthKey
from cleared.books.index.month_facts import Sums
from cleared.books.index.month_memory import index_files
from cleared.workspace.surroundings import STATE_DIR, Surroundings, read_answer, read_surroundings, write_answer

if TYPE_CHECKING:
    from cleared.books.ledger.journal import JournalMonth

_NAME: Final = "current"


class AccountRow(NamedTuple):
    """An account of the chart."""

    account_id: int
    account_name: str
    account_type: str
    parent_id: int | None = None
    tax_line: str = ""


class BankRow(NamedTuple):
    """A bank account of the settings."""

    id: str
    name: str
    ledger_account: int
    type: str


class BusinessFacts(NamedTuple):
    """What the settings say of the business."""

    name: str = ""
    currency: str = ""
    entity_type: str = "generic"
    start_month: int = 1
    """First month of its fiscal year."""
    banks: Sequence[BankRow] = ()


class CurrentBooks(NamedTuple):
    """The books of the branch's commit."""

    journal: JournalIndex
    accounts: Sequence[AccountRow]
    """All accounts, in the order of the chart."""
    business: BusinessFacts
    commit: str


def remember_current_books(
    root: Path,
    surroundings: Surroundings,
    index: JournalIndex,
    accounts: Iterable[AccountRow],
    business: BusinessFacts,
) -> None:
    """Keep what ``open_current_books`` gives, for as long as these surroundings hold. No month is parsed for that."""
    months = [[*key, blob, index.find_totals(key)] for key, blob in index.blobs.items()]
    answer = [index.places, list(accounts), business, months]
    write_answer(index_files(root / STATE_DIR), _NAME, surroundings, answer)


def open_current_books(root: Path) -> CurrentBooks | None:
    """The books at ``root``, where what was kept of them still holds.

    Months that the index has lost are read from git; that raises ``WorkspaceError`` as opening the workspace does.
    """
    surroundings = read_surroundings(root)
    files = index_files(root / STATE_DIR)
    answer = read_answer(files, _NAME, surroundings)
    if surroundings is None or answer is None:
        return None
    places, accounts, business, months = answer
    totals = {(y, m): {int(a): Sums(*pair) for a, pair in sums.items()} for y, m, _, sums in months if sums is not None}

    def read_month(key: MonthKey) -> JournalMonth:
        return _read_month(root, key, blobs[key], places)

    blobs = {(y, m): blob for y, m, blob, _ in months}
    index = JournalIndex(blobs, read_month, places, files, totals=totals)
    name, currency, entity_type, start_month, banks = business
    facts = BusinessFacts(name, currency, entity_type, start_month, [BankRow(*row) for row in banks])
    return CurrentBooks(index, [AccountRow(*row) for row in accounts], facts, surroundings.checkout.commit)


def _read_month(root: Path, key: MonthKey, blob: str, places: int) -> JournalMonth:
    from cleared.books.ledger.journal import parse_month
    from cleared.git import Repository

    with Repository.open(root, for_writing=False) as repo:
        return parse_month(repo.objects.read_object(blob)[1] if blob else None, *key, "", places)
