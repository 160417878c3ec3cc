"""The books as a domain: what the runtime is told of them."""

from __future__ import annotations

from typing import Final

from cleared.domains.domain import Domain, Opening


def _open(opening: Opening) -> object:
    from cleared.books.staged_books import open_staged_books

    return open_staged_books(opening)


BOOKS: Final = Domain(
    name="books",
    about="Bank files in, a balanced double-entry journal out.",
    primitive_modules=(
        "cleared.books.primitives.importer",
        "cleared.books.primitives.journal",
        "cleared.books.primitives.accounts",
        "cleared.books.primitives.suggest",
        "cleared.books.primitives.queue_entries",
    ),
    open=_open,  # type: ignore[arg-type]
)
