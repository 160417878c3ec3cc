"""Which entries name others in their tags, without reading past months again: a correction asks for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from cleared.books.index.past_lines import read_months_once
from cleared.books.ledger.chains import LinkedEntry
from cleared.books.ledger.staged_journal import Books


def iter_linked_entries(state_dir: Path, books: Books) -> Iterator[LinkedEntry]:
    """The committed entries that name others, in the order of their ids. ``state_dir``: the workspace's ``.cleared/``.
    Raises ``WorkspaceError`` where a month cannot be read."""
    months = {f"{year:04}-{month:02}": (year, month) for year, month in books.list_months()}
    files = {name: [books.paths.journal_path(*month)] for name, month in months.items()}

    def read(name: str) -> list[LinkedEntry]:
        return list(books.iter_month_links(*months[name]))

    known = read_months_once(books.source, state_dir, "links", list[LinkedEntry], files, read)
    return chain.from_iterable(known.values())
