"""What a draft does to the books: what the runtime asks of it, from the first look to its commit.

It answers cards about files: a file that was refused and was imported or taken since, a gap in the balance that was
filled. A card is answered only where that is certain; all others wait for a person.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from cleared.base.effects import Effect
from cleared.base.file_source import FileSource
from cleared.books.card_kinds import BALANCE_GAP, LINE
from cleared.books.decision_effects import effects_of_draft
from cleared.books.entry_cards import ASKED_AGAIN, WAITING, settle_void_cards, stage_unasked_cards
from cleared.books.import_cards import settle_gone_imports
from cleared.books.import_findings import stage_findings
from cleared.books.importing.bank_file import ImportFile
from cleared.books.importing.drop_folder import ImportSession
from cleared.books.ledger.bank_lines import BankLine
from cleared.books.ledger.chart import parse_chart
from cleared.books.ledger.checks import check_draft
from cleared.books.ledger.entry import Entry, entry_to_json
from cleared.books.ledger.import_records import describe_imports
from cleared.books.line_cards import list_unasked_lines, settle_posted_lines, stage_line_card
from cleared.books.met_balances import stage_met_balances
from cleared.books.staged_books import StagedBooks, books_of, ledger_accounts, open_books
from cleared.cards.card import Card
from cleared.cards.kinds import BAD_FILE
from cleared.cards.refused_files import hash_lines, list_card_files
from cleared.domains.domain import DraftDescription, Opening
from cleared.domains.record_audit import Violation
from cleared.git import Snapshot
from cleared.primitives.context import Context


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
        if waiting:
            stage_unasked_cards(context, waiting.values())

    def renew_questions(self, context: Context, *, settles: bool) -> None:
        if settles:
            settle_void_cards(context, self.books.find_entry)
            settle_posted_lines(context, self.bank)
            settle_gone_imports(context, self.bank, self.layout.config.bank_accounts)
        waiting = (entry for entry in self.books.iter_entries() if entry.status == WAITING)
        stage_unasked_cards(context, waiting, ASKED_AGAIN)
        for _, line in list_unasked_lines(self.bank, context.cards.open_cards(LINE.name)):
            stage_line_card(context, line, ASKED_AGAIN)

    def stage_findings(self, context: Context) -> None:
        if self.bank.new_imports:
            stage_findings(context)

    def list_effects(self) -> list[Effect]:
        return effects_of_draft(self.books, self.bank)

    def find_answered_cards(self, context: Context) -> Iterable[tuple[str, str]]:

        return find_answered_cards(context)

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


def find_answered_cards(context: Context) -> Iterator[tuple[str, str]]:
    """The ids of open cards that are answered by what this run imports or refuses, each with the answer."""
    added = [card for card in context.cards.added.values() if card.kind == BAD_FILE.name]
    refused = {path: card.id for card in added for path in list_card_files(card)}
    imported = books_of(context).imports.list_moves()
    for card in context.cards.open_cards(BAD_FILE.name, BALANCE_GAP.name) if imported or refused else ():
        if card.id in context.cards.added:
            continue
        if card.kind == BAD_FILE.name:
            outcomes = [_describe_outcome(card, path, context, refused) for path in list_card_files(card)]
            if outcomes and all(outcomes):
                yield card.id, "; ".join(dict.fromkeys(outcomes))[:300]
        elif _is_gap_filled(card, context):
            yield card.id, f"the missing rows were imported by {context.run_id}"


def _describe_outcome(card: Card, path: str, context: Context, refused: Mapping[str, str]) -> str:
    """What became of a file that could not be read; empty where that is not certain.

    It is certain where a file of its name or content was imported since, or is refused for another reason; or where
    it is gone, and one was imported that has all of its lines but the one that could not be read.
    """
    if path in refused:
        return f"it is refused for another reason now: {refused[path]}"
    identity = card.details.get("_known_by")
    identity = identity if isinstance(identity, Mapping) else {}
    layout = books_of(context).layout
    folder = f"{layout.import_dir}/"
    for record in books_of(context).bank.imports:
        if record.run[:16] < (card.run_id or "")[:16]:  # run ids begin with their time
            continue
        if f"{folder}{record.name}" == path or record.file_sha256 == identity.get("sha256"):
            return f"it was imported by {record.run}"
    marks = identity.get("lines")
    if not isinstance(marks, list) or len(marks) < 2 or (layout.root / path).exists():
        return ""
    marks_before = {str(mark) for number, mark in enumerate(marks, 1) if number != identity.get("line")}
    for name, file in books_of(context).imports.list_moves().items():
        if marks_before <= set(hash_lines(file.data)):
            return f"it is gone, and all its other lines were imported from {name} by {context.run_id}"
    return ""


def _is_gap_filled(card: Card, context: Context) -> bool:
    """Whether the rows that came later add up to what was missing, in each of the card's gaps."""
    account, gaps = str(card.details.get("account", "")), card.details.get("gaps")
    if not isinstance(gaps, list) or not gaps:
        return False
    records = [r for r in books_of(context).bank.imports if r.account == account]
    last = max((i for i, r in enumerate(records) if r.run == card.run_id), default=len(records))
    later = {r.file_sha256 for r in records[last + 1 :]}
    lines = [line for line in _account_lines(context, account) if line.file_sha256 in later and line.state == "posted"]
    return all(_sums_to_gap(lines, gap) for gap in gaps)


def _account_lines(context: Context, account: str) -> Iterator[BankLine]:
    yield from books_of(context).bank.iter_account_lines(account)
    yield from (line for owner, line in books_of(context).bank.new_lines.values() if owner == account)


def _sums_to_gap(lines: list[BankLine], gap: Mapping[str, Any]) -> bool:
    try:
        first, last = date.fromisoformat(str(gap["after"])), date.fromisoformat(str(gap["before"]))
        missing = Decimal(str(gap["missing"]))
    except (KeyError, TypeError, ValueError, InvalidOperation):
        return False
    amounts = [line.amount for line in lines if first <= line.posted_date <= last]
    return bool(amounts) and sum(amounts, Decimal(0)) == missing
