"""What a draft does to the books: what the runtime asks of it, from the first look to its commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from cleared.base.effects import Effect
from cleared.base.file_source import FileSource
from cleared.books.card_kinds import BALANCE_GAP, ENTRY, LINE
from cleared.books.entry_cards import ASKED_AGAIN, WAITING, settle_void_cards, stage_unasked_cards
from cleared.books.import_findings import stage_findings
from cleared.books.importing.bank_file import ImportFile
from cleared.books.importing.drop_folder import ImportSession
from cleared.books.ledger.chart import parse_chart
from cleared.books.ledger.checks import check_draft
from cleared.books.ledger.entry import Entry, entry_to_json
from cleared.books.ledger.import_records import describe_imports
from cleared.books.met_balances import stage_met_balances
from cleared.books.staged_books import StagedBooks, ledger_accounts, open_books
from cleared.cards.kinds import BAD_FILE
from cleared.domains.domain import DraftDescription, Opening
from cleared.domains.record_audit import Violation
from cleared.git import Snapshot
from cleared.primitives.context import Context

ANSWERED: Final = (BAD_FILE.name, BALANCE_GAP.name)
"""The kinds of cards that a run answers by what it imports or refuses."""


class _DescribedEntries(Mapping[str, Mapping[str, Any]]):
    """Entries as JSON has them, by their id. Each is made when it is asked for: a run may have posted very many."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = {entry.entry_id: entry for entry in entries}

    def __getitem__(self, entry_id: str) -> Mapping[str, Any]:
        return entry_to_json(self._entries[entry_id])

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class BooksDraft(StagedBooks):
    """The books as a ``Staged`` domain."""

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
            len(bank.new_undone),
            len(bank.processed_line_ids),
        )

    def describe_draft(self) -> DraftDescription:
        return DraftDescription(
            _DescribedEntries(self.books.list_staged()),
            dict(self.books.statuses),
            {line_id: outcome.outcome for line_id, outcome in self.bank.new_outcomes.items()},
        )

    def adopt_later(self, source: FileSource) -> None:
        path = self.books.paths.chart
        self.books.add_later_accounts(parse_chart(source.read(path), path))

    def stage_questions(self, context: Context) -> None:
        books = self.books
        waiting = {entry.entry_id: entry for entry in books.list_staged() if entry.status == WAITING}
        waiting |= {name: books.get_entry(name) for name, status in books.statuses.items() if status == WAITING}
        for card in context.cards.added.values():  # what a run asks about stays as it is until the run ends
            if card.kind == ENTRY.name:
                waiting.pop(str(card.record_id), None)
        if waiting:
            stage_unasked_cards(context, waiting.values())

    def renew_questions(self, context: Context, snapshot: Snapshot, *, settles: bool) -> None:
        from cleared.books.import_cards import settle_gone_imports  # late: only decisions come here
        from cleared.books.index.journal_index import EntryFilter, open_index
        from cleared.books.line_cards import list_unasked_lines, settle_posted_lines, stage_line_card

        if settles:
            settle_void_cards(context, self.books.find_entry)
            settle_posted_lines(context, self.bank)
            settle_gone_imports(context, self.bank, self.layout.config.bank_accounts)
        index = open_index(self.layout, snapshot, self.books.bounds.places)
        stage_unasked_cards(context, index.iter_entries(EntryFilter(status=WAITING)), ASKED_AGAIN)
        for _, line in list_unasked_lines(self.bank, context.cards.open_cards(LINE.name)):
            stage_line_card(context, line, ASKED_AGAIN)

    def stage_findings(self, context: Context) -> None:
        if self.bank.new_imports:
            stage_findings(context)

    def list_effects(self) -> list[Effect]:
        from cleared.books.decision_effects import effects_of_draft  # late: a run is not asked

        return effects_of_draft(self.books, self.bank)

    def find_answered_cards(self, context: Context) -> Iterable[tuple[str, str]]:
        cards = [c for c in context.cards.open_cards(*ANSWERED) if c.id not in context.cards.added]
        if not cards:
            return ()
        from cleared.books.answered_cards import find_answers  # late: seldom is there a card that a run can answer

        return find_answers(context, cards)

    def complete_draft(self, context: Context, snapshot: Snapshot, *, stays_open: bool) -> None:
        stage_met_balances(context, snapshot, stays_open=stays_open)
        if new := {entry.entry_id for entry in self.books.list_staged()}:
            settle_void_cards(context, self.books.find_entry, new)

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
