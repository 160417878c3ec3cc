"""The books as a domain: what the runtime is told of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cleared.base.file_source import FileSource
from cleared.domains.domain import Domain, ImportedFile, Opening
from cleared.domains.record_audit import RecordAudit
from cleared.domains.way_back import Act
from cleared.workspace.location import Layout


def _open(opening: Opening) -> object:
    from cleared.books.staged_books import open_staged_books

    return open_staged_books(opening)


def _read_imported_files(source: FileSource, layout: Layout) -> list[ImportedFile]:
    from cleared.books.opened_books import read_imported_files

    return read_imported_files(source, layout)


def _list_acts() -> Sequence[Act]:
    from cleared.books.decisions.book_acts import BOOK_ACTS

    return BOOK_ACTS


def _audit(layout: Layout) -> RecordAudit:
    from cleared.books.audit.book_audit import BookAudit

    return BookAudit(layout)


BOOKS: Final = Domain(
    name="books",
    about="Bank files in, a balanced double-entry journal out.",
    record_noun=("entry", "entries"),
    primitive_modules=(
        "cleared.books.primitives.importer",
        "cleared.books.primitives.journal",
        "cleared.books.primitives.accounts",
        "cleared.books.primitives.suggest",
        "cleared.books.primitives.queue_entries",
    ),
    open=_open,  # type: ignore[arg-type]
    read_imported_files=_read_imported_files,
    list_acts=_list_acts,
    audit=_audit,
)
