"""Exporting the journal for hledger or beancount."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from cleared.books.exports.beancount_file import write_beancount
from cleared.books.exports.export_target import open_target, refuse_target, write_texts
from cleared.books.exports.exported_journal import ExportedBooks
from cleared.books.exports.hledger_file import write_hledger
from cleared.books.queries import open_journal_index
from cleared.books.staged_books import ledger_accounts
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource

FORMATS: Final[dict[str, tuple[str, Callable[[ExportedBooks], Iterator[str]]]]] = {
    "hledger": ("books.journal", write_hledger),
    "beancount": ("books.beancount", write_beancount),
}
"""Format → the file's name, and what writes it."""


@contextmanager
def open_exported_books(host: Host) -> Iterator[ExportedBooks]:
    """The books of the last commit."""
    with open_journal_index(host) as (index, books):
        business = host.config.business
        opened = {
            account.ledger_account
            for account in host.config.bank_accounts
            if account.opening is not None and account.opening.balance == 0
        }
        assert isinstance(books.source, CommittedSource)
        commit = books.source.snapshot.commit or ""
        yield ExportedBooks(
            index, books, business.name, business.currency, commit, ledger_accounts(host.config), opened
        )


def export_journal(host: Host, format: str, directory: Path, *, force: bool = False) -> dict[str, Any]:
    """Write the books into a file of ``directory``: ``{file, entries, warnings}``.

    Raises ``PolicyError`` where there is such a file already (unless ``force``).
    """
    name, write_books = FORMATS[format]
    path = directory / name
    refuse_target(host.root, path, force=force)
    with open_exported_books(host) as exported, open_target(host.root, path, force=force) as file:
        write_texts(file, write_books(exported))
    return {"file": str(path), "entries": exported.count, "warnings": exported.list_warnings()}
