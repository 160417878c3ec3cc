"""Where each book lies, by workspace-relative POSIX path."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from typing import Final

from msgspec import Struct

from cleared.base.file_source import FileSource, find_whole, select_dated
from cleared.base.safe_names import require_safe_name
from cleared.workspace.location import Layout

CHART: Final = "accounts/chart-of-accounts.csv"
_JOURNAL: Final = re.compile(r"([0-9]{4})/(0[1-9]|1[0-2])/journal\.csv")
_MONTH: Final = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])", re.ASCII)


class BookPaths(Struct, frozen=True):
    """Where the books of one workspace lie.

    ``paths.books`` is the folder of the journal. Where it is ``.`` (the published layout) the journals are
    ``YYYY/MM/journal.csv`` at the top, and what else belongs to the books (bank facts, periods) is in ``folder``.
    """

    folder: str
    journal_root: str
    """The folder that has the years; ``""`` is the top."""
    bank_root: str
    outcomes: str
    matches: str
    imports: str
    duplicates: str
    reconciliations: str
    """These five are of earlier versions, which had one file for all months."""
    undone: str
    receipts: str
    periods: str
    chart: str = CHART

    def journal_path(self, year: int, month: int) -> str:
        name = f"{year:04d}/{month:02d}/journal.csv"
        return f"{self.journal_root}/{name}" if self.journal_root else name

    def find_month(self, path: str) -> tuple[int, int] | None:
        """Year and month if ``path`` is a journal of this workspace; the inverse of ``journal_path``."""
        if self.journal_root:
            prefix = f"{self.journal_root}/"
            if not path.startswith(prefix):
                return None
            path = path[len(prefix) :]
        match = _JOURNAL.fullmatch(path)
        return (int(match[1]), int(match[2])) if match else None

    def bank_path(self, account: str, month: str) -> str:
        """The bank facts of one account in one month, ``YYYY-MM``."""
        return f"{self.bank_root}/{require_safe_name(account, 'bank account')}/{require_month(month)}.csv"

    def month_path(self, path: str, month: str) -> str:
        """The file of one month of ``matches`` and the like; where there is no month, that of earlier versions."""
        return f"{path.removesuffix('.csv')}-{require_month(month)}.csv" if month else path

    def list_month_files(self, source: FileSource, path: str) -> list[tuple[str, str]]:
        """Month and path of each file that there is of ``matches`` and the like, oldest first. That of earlier
        versions, without a month, is before them."""
        return select_months(source.list_paths(self.bank_root), path)


def select_months(paths: Iterable[str], path: str) -> list[tuple[str, str]]:
    """Month and path of those that are the file ``path`` or of one of its months, oldest first. It has no parts."""
    return [(month, each) for month, each in select_dated(paths, path) if find_whole(each) == each]


def require_month(text: str) -> str:
    """The text. Raises ``ValueError`` where it is not ``YYYY-MM``."""
    if not _MONTH.fullmatch(text):
        raise ValueError(f"{text!r} is not YYYY-MM")
    return text


def require_day(text: str) -> str:
    """The text. Raises ``ValueError`` where it is not ``YYYY-MM-DD``, or no calendar has the day."""
    if date.fromisoformat(text).isoformat() != text:
        raise ValueError(f"{text!r} is not YYYY-MM-DD")
    return text


def begin_month(month: str) -> date:
    """The first day of a month, ``YYYY-MM``; of one in the year 0, by which a file may be named, the first there is.
    Raises ``ValueError`` where it is no month."""
    return date(max(int(require_month(month)[:4]), date.min.year), int(month[5:]), 1)


def locate_books(layout: Layout) -> BookPaths:
    """Where the books lie in a workspace."""
    folder = layout.books_dir
    bank = f"{folder}/bank"
    names = ("outcomes", "matches", "imports", "duplicates", "undone", "reconciliations", "receipts")
    return BookPaths(
        folder=folder,
        journal_root="" if layout.config.paths.books.strip("/") == "." else folder,
        bank_root=bank,
        periods=f"{folder}/periods.csv",
        **{name: f"{bank}/{name}.csv" for name in names},
    )


def list_journal_months(layout: Layout) -> list[tuple[int, int]]:
    """Year and month of every journal in the working tree, oldest first."""
    paths = locate_books(layout)
    found = layout.root.joinpath(paths.journal_root).glob("*/*/journal.csv")
    months = (paths.find_month(path.relative_to(layout.root).as_posix()) for path in found)
    return sorted(month for month in months if month)
