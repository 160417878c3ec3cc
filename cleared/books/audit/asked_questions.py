"""Whether the queue asks what the books want to know: what waits has a card, and a card has its entries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cleared.base.errors import WorkspaceError
from cleared.books.card_kinds import ENTRY, RECEIPT, TRANSFER
from cleared.books.entry_cards import WAITING, find_asked, list_unasked
from cleared.books.import_cards import VOID_ANSWERS, is_import_gone
from cleared.books.index.entry_lookup import EntryLookup
from cleared.books.index.journal_index import EntryFilter, open_index
from cleared.books.ledger.book_paths import locate_books
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.line_cards import list_unasked_lines
from cleared.books.staged_books import journal_bounds
from cleared.cards.card import Card
from cleared.changes.committed_cards import read_layout_cards
from cleared.changes.record_sources import CommittedSource
from cleared.domains.record_audit import ASKED, Violation
from cleared.git import Snapshot
from cleared.workspace.location import Layout

_DIFFERENT: Final = "answer {} different"
_ANSWERS: Final = {ENTRY.name: "reject {} --reason …", RECEIPT.name: _DIFFERENT, TRANSFER.name: _DIFFERENT}
"""A decision about a card of each kind that names entries: of a void one, each only settles it."""
_ASK: Final = "Have it asked: cleared check --card."


def find_unasked(layout: Layout, commit: Snapshot) -> Iterator[Violation]:
    """Entries and bank lines that wait for a person and that no open card asks about, and open cards whose entries or
    imports are gone: a person has taken something back by git, whose lines in the queue stay."""
    index = open_index(layout, commit, journal_bounds(layout.config).places)
    source, accounts = CommittedSource(commit), layout.config.bank_accounts
    try:
        cards = read_layout_cards(layout, commit).list_open()
        asking = (card for card in cards if card.kind == ENTRY.name)
        entries = list_unasked(index.iter_entries(EntryFilter(status=WAITING)), asking)
        bank = BankBook(source, locate_books(layout))
        lines = list_unasked_lines(bank, cards)
        gone = [each for each in cards if each.kind in VOID_ANSWERS and is_import_gone(each, bank, accounts)]
    except WorkspaceError:  # what cannot be read is told of already
        return
    for entry in entries:
        remedy = f"{_ASK} Or decide it: cleared queue approve {entry.entry_id} (or correct, or reject)."
        yield _make_violation(f"{entry.date} {entry.amount} {entry.description[:60]!r}", remedy, entry.entry_id)
    for account, line in lines:
        yield _make_violation(f"{account} {line.posted_date} {line.amount} {line.description[:60]!r}", _ASK)
    named, find_entry = {entry.entry_id for entry in entries}, EntryLookup(index).find
    for card in gone:
        yield _name_void(card, "an import that is gone", f"answer {card.id} {VOID_ANSWERS[card.kind]}")
    for card in cards:
        if card.kind in _ANSWERS and card.record_id not in named and find_asked(card, find_entry) is None:
            yield _name_void(card, "an entry that is gone", _ANSWERS[card.kind].format(card.id))


def _name_void(card: Card, what: str, answer: str) -> Violation:
    why = f"the card {card.id} ({card.title[:60]!r}) asks about {what}"
    return Violation(ASKED, why, f"Settle it: cleared queue {answer}.")


def _make_violation(what: str, remedy: str, record_id: str | None = None) -> Violation:
    return Violation(ASKED, f"{what} waits for a person, and no card asks about it", remedy, record_id=record_id)
