"""Whether the queue asks what the books want to know: an entry that waits has a card, and a card has its entries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cleared.base.errors import WorkspaceError
from cleared.books.card_kinds import ENTRY, RECEIPT, TRANSFER
from cleared.books.entry_cards import WAITING, find_asked, list_unasked
from cleared.books.index.entry_lookup import EntryLookup
from cleared.books.index.journal_index import EntryFilter, open_index
from cleared.books.staged_books import journal_bounds
from cleared.cards.queue_files import load_cards
from cleared.changes.record_sources import CommittedSource
from cleared.domains.record_audit import Violation
from cleared.git import Snapshot
from cleared.workspace.location import Layout

_DIFFERENT: Final = "answer {} different"
_ANSWERS: Final = {ENTRY.name: "reject {} --reason …", RECEIPT.name: _DIFFERENT, TRANSFER.name: _DIFFERENT}
"""A decision about a card of each kind that names entries: of a void one, each only settles it."""


def find_unasked_entries(layout: Layout, commit: Snapshot) -> Iterator[Violation]:
    """Entries that wait for a person and that no open card asks about, and open cards whose entries are gone: a person
    has taken something back by git, whose lines in the queue stay."""
    index = open_index(layout, commit, journal_bounds(layout.config).places)
    cards = load_cards(CommittedSource(commit), layout.queue_dir, readable_only=True).values()
    open_cards = [card for card in cards if card.status == "open" and card.kind in _ANSWERS]
    asking = (card for card in open_cards if card.kind == ENTRY.name)
    try:
        unasked = list_unasked(index.iter_entries(EntryFilter(status=WAITING)), asking)
    except WorkspaceError:  # a journal that cannot be read is told of already
        return
    for entry in unasked:
        yield Violation(
            "asked",
            f"{entry.date} {entry.amount} {entry.description[:60]!r} waits for a person, and no card asks about it",
            f"Decide it: cleared queue approve {entry.entry_id} (or correct, or reject).",
            record_id=entry.entry_id,
        )
    named = {entry.entry_id for entry in unasked}
    find_entry = EntryLookup(index).find
    for card in open_cards:
        if find_asked(card, find_entry) is None and card.record_id not in named:
            yield Violation(
                "asked",
                f"the card {card.id} ({card.title[:60]!r}) asks about an entry that is gone",
                f"Settle it: cleared queue {_ANSWERS[card.kind].format(card.id)}.",
            )
