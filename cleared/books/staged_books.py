"""The books as of one commit, and what a run or decision stages on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import cast

from cleared.books.importing.drop_folder import ImportSession
from cleared.books.ledger.categoriser import Categoriser
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.staged_journal import Books
from cleared.primitives.context import Context
from cleared.workspace.location import Layout


@dataclass(slots=True)
class LastEntry:
    """The entry that the run staged last: what ``"pending"`` means."""

    entry_id: str | None = None
    """None before the first entry, and right after a duplicate or a void."""
    was_duplicate: bool = False


@dataclass(slots=True)
class Spent:
    """What the run has used of its budget."""

    entries: int = 0
    total: Decimal = Decimal(0)
    """Sum of the amounts of all entries that it posted."""


@dataclass(slots=True)
class StagedBooks:
    """Journal, bank lines and drop folder of one draft. ``books_draft`` says what comes of them."""

    layout: Layout
    books: Books
    bank: BankBook
    imports: ImportSession
    ledger_accounts: Mapping[str, int]
    """Bank account id → its account in the ledger."""
    last_entry: LastEntry = field(default_factory=LastEntry)
    spent: Spent = field(default_factory=Spent)
    categoriser: Categoriser | None = None
    """What was learned from persons' decisions; None until it is asked."""


def books_of(context: Context) -> StagedBooks:
    """The books that a run or decision works on."""
    return cast(StagedBooks, context.parts["books"])
