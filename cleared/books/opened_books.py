"""The books and bank lines of any source: a commit, the working tree, a dictionary in a test."""

from __future__ import annotations

from cleared.base.file_source import FileSource
from cleared.base.money import currency_exponent
from cleared.books.ledger.bank_lines import describe_imports, parse_imports
from cleared.books.ledger.entry_bounds import Bounds
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.staged_journal import Books
from cleared.domains.domain import ImportedFile
from cleared.workspace.location import Layout
from cleared.workspace.settings.model import Config


def open_books(layout: Layout, source: FileSource) -> tuple[Books, BankBook]:
    """The books and the bank lines in a source."""
    return Books(source, layout, journal_bounds(layout.config)), BankBook(source, layout)


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
    records = parse_imports(source.read(layout.imports), layout.imports)
    return [
        ImportedFile(record.name, record.file_sha256, record.run, description)
        for record, description in zip(records, describe_imports(records), strict=True)
    ]
