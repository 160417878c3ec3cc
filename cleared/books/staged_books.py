"""The books and bank lines of any source, what a run or decision stages on them, and how much of that a
header allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from msgspec import Struct, field

from cleared.base import money
from cleared.base.file_source import FileSource
from cleared.base.money import currency_exponent
from cleared.books.importing.drop_folder import ImportSession
from cleared.books.index.past_lines import read_imports_once
from cleared.books.ledger.book_paths import locate_books
from cleared.books.ledger.entry import Bounds, Entry
from cleared.books.ledger.import_records import describe_imports
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.staged_journal import Books
from cleared.domains.domain import ImportedFile
from cleared.primitives.context import Context, budget_error
from cleared.sandbox.header import HeaderKey
from cleared.sandbox.header_values import integer_reader, read_integers, read_money
from cleared.workspace.location import Layout
from cleared.workspace.settings.model import Config

if TYPE_CHECKING:
    from cleared.books.ledger.categoriser import Categoriser
    from cleared.books.ledger.chains import LinkedEntry


class LastEntry(Struct):
    """The entry that the run staged last: what ``"pending"`` means."""

    entry_id: str | None = None
    """None before the first entry, and right after a duplicate or a void."""
    was_duplicate: bool = False


class Spent(Struct):
    """What the run has used of its budget."""

    entries: int = 0
    total: Decimal = Decimal(0)
    """Sum of the amounts of all entries that it posted."""


class StagedBooks(Struct):
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


def open_books(layout: Layout, source: FileSource) -> tuple[Books, BankBook]:
    """The books and the bank lines in a source."""
    paths = locate_books(layout)
    links = partial(_list_links, layout.state_dir)
    imports = partial(read_imports_once, layout.state_dir)
    return Books(source, paths, journal_bounds(layout.config), links), BankBook(source, paths, imports)


def _list_links(state_dir: Path, books: Books) -> Iterable[LinkedEntry]:
    from cleared.books.index.entry_links import iter_linked_entries

    return iter_linked_entries(state_dir, books)


def journal_bounds(config: Config) -> Bounds:
    """What the settings allow an entry to be."""
    limits = config.limits
    places = currency_exponent(config.business.currency)
    return Bounds(places, limits.max_amount, limits.min_date, limits.max_date, limits.max_text_bytes)


def ledger_accounts(config: Config) -> dict[str, int]:
    """Id of a bank account → its account in the chart of accounts."""
    return {account.id: account.ledger_account for account in config.bank_accounts}


def read_imported_files(source: FileSource, layout: Layout) -> list[ImportedFile]:
    """The bank files that were imported, oldest first. Raises ``WorkspaceError`` where their records are damaged."""
    records = read_imports_once(layout.state_dir, source, locate_books(layout))
    return [
        ImportedFile(record.name, record.file_sha256, record.run, description)
        for record, description in zip(records, describe_imports(records), strict=True)
    ]


def list_header_keys() -> list[HeaderKey]:
    """The keys of the books."""
    return [
        HeaderKey("max_entries", integer_reader(0, 10**9), lambda most: f"at most {most} entries a run"),
        HeaderKey("max_total", read_money, lambda most: f"at most {most} in all a run"),
        HeaderKey("accounts", read_integers, _describe_accounts),
    ]


def charge_entry(ctx: Context, entry: Entry) -> None:
    """Count an entry that was staged. Raises ``PrimitiveError`` where it is one too many, or a cent."""
    spent, bounds = books_of(ctx).spent, ctx.permissions.header_values
    if not bounds:  # which stay the same during a run
        return
    spent.entries += 1
    spent.total = money.total([spent.total, entry.amount])
    entries, total, allowed = (bounds.get(key) for key in ("max_entries", "max_total", "accounts"))
    if entries is not None and spent.entries > entries:
        raise budget_error("max_entries", f"{spent.entries} entries", entries)
    if total is not None and spent.total > total:
        raise budget_error("max_total", f"a total of {spent.total}", total)
    for leg in entry.legs:
        if allowed is not None and leg.account_id not in allowed:
            raise budget_error("accounts", f"account {leg.account_id}", ", ".join(map(str, allowed)))


def _describe_accounts(accounts: tuple[int, ...]) -> str:
    *most, last = map(str, accounts)
    return f"only the accounts {', '.join(most)} and {last}" if most else f"only the accounts {last}"
