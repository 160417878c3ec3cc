"""What a draft does to the books: what the runtime asks of it, from the first look to its commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cleared.base.effects import Effect
from cleared.base.file_source import FileSource
from cleared.books.importing.bank_file import ImportFile
from cleared.books.importing.drop_folder import ImportSession
from cleared.books.ledger.bank_lines import describe_imports
from cleared.books.ledger.chart import parse_chart
from cleared.books.ledger.checks import check_draft
from cleared.books.ledger.entry_json import entry_to_json
from cleared.books.opened_books import ledger_accounts, open_books
from cleared.books.staged_books import StagedBooks
from cleared.domains.domain import DraftDescription, Opening
from cleared.domains.record_audit import Violation
from cleared.git import Snapshot
from cleared.primitives.context import Context


class BooksDraft(StagedBooks):
    """The books as a ``Staged`` domain."""

    __slots__ = ()

    @property
    def has_changes(self) -> bool:
        books, bank = self.books, self.bank
        staged = books.staged or books.statuses or books.amendments or bank.staged_line_ids() or bank.new_imports
        return bool(staged or bank.new_undone or bank.new_agreed)

    def draft_key(self) -> object:
        bank = self.bank
        return (
            self.books.draft_key(),
            len(bank.new_matches),
            tuple(bank.new_outcomes.items()),
            len(bank.new_lines),
            len(bank.new_imports),
            len(bank.processed_line_ids),
        )

    def describe_draft(self) -> DraftDescription:
        return DraftDescription(
            {entry.entry_id: entry_to_json(entry) for entry in self.books.list_staged()},
            dict(self.books.statuses),
            {line_id: outcome.outcome for line_id, outcome in self.bank.new_outcomes.items()},
        )

    def adopt_later(self, source: FileSource) -> None:
        path = self.layout.chart
        self.books.add_later_accounts(parse_chart(source.read(path), path))

    def stage_findings(self, context: Context) -> None:
        if self.bank.new_imports:
            from cleared.books.import_findings import stage_findings  # only where there was an import

            stage_findings(context)

    def list_effects(self) -> list[Effect]:
        from cleared.books.decision_effects import effects_of_draft  # only where it matters who may decide

        return effects_of_draft(self.books, self.bank)

    def find_answered_cards(self, context: Context) -> Iterable[tuple[str, str]]:
        from cleared.books.answered_cards import find_answered_cards  # only where a run ends well

        return find_answered_cards(context)

    def complete_draft(self, context: Context, snapshot: Snapshot, *, stays_open: bool) -> None:
        from cleared.books.met_balances import stage_met_balances

        stage_met_balances(context, snapshot, stays_open=stays_open)

    def find_violations(self) -> list[Violation]:
        return check_draft(self.books, self.bank)

    def render_files(self, run_id: str) -> Mapping[str, bytes | None]:
        return {**self.books.render_files(), **self.bank.render_files(run_id)}

    def taken_files(self) -> Mapping[str, ImportFile]:
        return self.imports.list_moves()

    def verify_files(self) -> None:
        self.imports.verify_unchanged()

    def count_waiting_bytes(self) -> int:
        return self.imports.count_waiting_bytes()

    def statements(self) -> Mapping[str, Any]:
        return {"imports": describe_imports(self.bank.new_imports) if self.bank.new_imports else None}


def open_books_draft(opening: Opening) -> BooksDraft:
    """The books of a commit with nothing staged."""
    layout = opening.layout
    books, bank = open_books(layout, opening.source)
    imports = ImportSession(
        layout,
        layout.config,
        books,
        bank,
        opening.has_file,
        opening.drop_folder,
        opening.only,
        opening.today,
        opening.stage_card,
    )
    return BooksDraft(layout, books, bank, imports, ledger_accounts(layout.config))
