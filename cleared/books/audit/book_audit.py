"""The books as they are judged: what the runtime asks of a ``RecordAudit``."""

from __future__ import annotations

from collections.abc import Collection

from cleared.base.file_source import FileSource
from cleared.books.opened_books import open_books
from cleared.domains.effects import Effect
from cleared.domains.record_audit import RecordAudit


class BookAudit(RecordAudit):
    """Judges journal, bank lines, receipts and the chart of accounts."""

    def list_effects(self, before: FileSource, after: FileSource, files: Collection[str]) -> list[Effect]:
        from cleared.books.decision_effects import effects_between

        months = [month for month in map(self.layout.journal_month, files) if month is not None]
        if not months and self.layout.outcomes not in files:
            return []
        earlier, _ = open_books(self.layout, before)
        books, bank = open_books(self.layout, after)
        return effects_between(earlier, books, bank, months)
