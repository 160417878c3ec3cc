"""The books as they are judged: what the runtime asks of a ``RecordAudit``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import PurePosixPath
from typing import Final

from cleared.base.csv_text import split_rows
from cleared.base.effects import Effect
from cleared.base.file_source import FileSource
from cleared.domains.record_audit import RecordAudit, RowKind, SharedFile, Violation
from cleared.git import Snapshot

_YEAR: Final = re.compile(r"[0-9]{4}")


class BookAudit(RecordAudit):
    """Judges journal, bank lines, periods, receipts and the chart of accounts.

    It is asked at every command, mostly for little: what reads books is imported where it is needed.
    """

    def check_records(self, source: FileSource, commit: Snapshot | None = None) -> list[Violation]:
        from cleared.books.index.journal_index import open_index
        from cleared.books.ledger.checks import check_books
        from cleared.books.opened_books import journal_bounds, open_books

        books, bank = open_books(self.layout, source)
        if commit is None:
            return check_books(books, bank)
        index = open_index(self.layout, commit, journal_bounds(self.layout.config).places)
        return check_books(books, bank, index.add_month)

    def check_edits(self, source: FileSource, committed: FileSource) -> list[Violation]:
        from cleared.books.ledger.checks import check_against_commit
        from cleared.books.opened_books import open_books

        books, _ = open_books(self.layout, source)
        before, _ = open_books(self.layout, committed)
        return check_against_commit(books, committed, sorted({*books.list_months(), *before.list_months()}))

    def check_history(self, commit: Snapshot) -> Iterable[Violation]:
        from cleared.books.audit.lost_receipts import find_lost_receipts
        from cleared.books.importing.kept_bank_files import find_altered_bank_files

        return chain(find_lost_receipts(self.layout, commit), find_altered_bank_files(self.layout, commit))

    def list_effects(self, before: FileSource, after: FileSource, files: Collection[str]) -> list[Effect]:
        months = [month for month in map(self.layout.journal_month, files) if month is not None]
        if not months and self.layout.outcomes not in files:
            return []
        from cleared.books.decision_effects import effects_between
        from cleared.books.opened_books import open_books

        earlier, _ = open_books(self.layout, before)
        books, bank = open_books(self.layout, after)
        return effects_between(earlier, books, bank, months)

    def name_decisions(self, files: Collection[str]) -> Iterator[str]:
        if self.layout.periods in files:
            yield "closed or reopened a period"

    @property
    def folders(self) -> Sequence[str]:
        layout = self.layout
        fixed = [layout.books_dir, PurePosixPath(layout.chart).parent.as_posix()]
        if layout.journal_root:
            return fixed
        return [*fixed, *sorted(p.name for p in layout.root.iterdir() if _YEAR.fullmatch(p.name) and p.is_dir())]

    @property
    def shared_files(self) -> Sequence[SharedFile]:
        from cleared.books.audit.chart_changes import describe_chart_changes

        remedy = "To rename or close an account: cleared accounts."
        path = self.layout.chart
        return (SharedFile(path, "accounts", remedy, partial(describe_chart_changes, path=path)),)

    def is_record_file(self, path: str) -> bool:
        layout = self.layout
        return path == layout.chart or path.startswith(f"{layout.books_dir}/") or layout.journal_month(path) is not None

    def list_fixed_rows(self, path: str, data: bytes) -> list[bytes]:
        from cleared.books.audit.book_rows import list_without_status

        return split_rows(data) if self.layout.journal_month(path) is None else list_without_status(data)

    @property
    def row_kinds(self) -> Sequence[RowKind]:
        from cleared.books.audit.book_rows import ENTRIES, LINES, PERIODS

        return ENTRIES, LINES, PERIODS

    def find_row_kind(self, path: str) -> RowKind | None:
        entries, lines, periods = self.row_kinds
        if self.layout.journal_month(path) is not None:
            return entries
        if path == self.layout.periods:
            return periods
        root = self.layout.bank_root
        return lines if path.startswith(f"{root}/") and path.count("/") > root.count("/") + 1 else None

    def list_roots(self, commit: Snapshot) -> Collection[str]:
        years = () if self.layout.journal_root else filter(_YEAR.fullmatch, commit.list_folder(""))
        return {self.layout.books_dir, *years}
