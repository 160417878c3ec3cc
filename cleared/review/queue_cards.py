"""The cards of the review queue as plain data, with what the records say of what an open one is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.cards.age import overdue_cards
from cleared.cards.card import Card
from cleared.cards.card_json import card_to_json
from cleared.cards.kinds import PROPOSAL
from cleared.changes import committed_cards
from cleared.changes.doubtful_cards import find_doubtful_cards
from cleared.changes.host import Host
from cleared.domains.domain import import_when_called
from cleared.domains.installed_domains import load_domains
from cleared.git import Repository, Snapshot
from cleared.runs.question_tickets import Questions

# Where no proposal waits, nothing of the gate is loaded, which would take longer than the list.
_read_lines: Final = import_when_called("cleared.gate.proposals.shown_proposal:read_proposal_lines")


class QueueState(Struct, frozen=True, eq=False):
    """Cards, oldest first. ``overdue``: ids of those that are open for ``review.remind_after``; ``held``: of open
    ones that cannot be decided as things are, why, and what to do."""

    cards: list[Card]
    overdue: set[str]
    held: Mapping[str, str]

    def card_data(self, card: Card) -> dict[str, Any]:
        """A card as ``--json`` shows it."""
        return card_to_json(card) | {"overdue": card.id in self.overdue, "held": self.held.get(card.id)}


def read_queue_of_commit(host: Host, repo: Repository, snapshot: Snapshot, status: str) -> QueueState:
    """The queue of a commit that is open. ``status``: open, resolved or all."""
    cards = committed_cards.read_cards(host, snapshot)
    shown = cards.list_open() if status == "open" else [c for c in cards.values() if status in ("all", c.status)]
    return _describe_cards(host, repo, snapshot, cards, shown)


def read_cards(host: Host, status: str = "open") -> list[dict[str, Any]]:
    """The queue as plain data, oldest first. ``status``: open, resolved or all."""
    with host.open_for_reading() as repo:
        queue = read_queue_of_commit(host, repo, Snapshot(repo, repo.read_head()), status)
        return [queue.card_data(card) for card in queue.cards]


def read_card(host: Host, text: str) -> dict[str, Any]:
    """One card by its id, the beginning of it, or its entry's id; open ones first. Raises ``UsageError``."""
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        cards = committed_cards.read_cards(host, snapshot)
        queue = _describe_cards(host, repo, snapshot, cards, [cards.find_one(text)])
        return queue.card_data(queue.cards[0])


def _describe_cards(
    host: Host, repo: Repository, snapshot: Snapshot, cards: Mapping[str, Card], shown: list[Card]
) -> QueueState:
    """``cards``: all of the queue; ``shown``: those to describe."""
    late = {c.id for c in overdue_cards(shown, host.clock.now(), host.config.review.remind_after)}
    held = list_held_cards(host, repo, snapshot, cards, shown)
    if any(card.status == "open" for card in shown):
        show_facts = _open_facts(host, snapshot)
        shown = [show_facts(card) if card.status == "open" else card for card in shown]
        shown = _show_proposals(host, snapshot, shown)
    return QueueState(shown, late, held)


def _show_proposals(host: Host, snapshot: Snapshot, cards: list[Card]) -> list[Card]:
    """The cards, those of open proposals with what the proposal itself says: anybody who can push may have written the
    card."""
    folders = {card.id: proposal_folder(card) for card in cards if card.kind == PROPOSAL.name and card.status == "open"}
    lines = _read_lines(host, snapshot, folders.values()) if folders else {}
    return [
        replace(card, details={**card.details, "says": lines.get(folders[card.id], [])}) if card.id in folders else card
        for card in cards
    ]


def proposal_folder(card: Card) -> str:
    """The full name of a proposal's folder: its number alone may be two."""
    return str(card.details.get("proposal", card.id))


def list_held_cards(
    host: Host, repo: Repository, snapshot: Snapshot, cards: Mapping[str, Card], shown: Iterable[Card]
) -> dict[str, str]:
    """Of the open ones among ``shown``, those that cannot be decided as things are: why, and what to do."""
    open_cards = [card for card in shown if card.status == "open"]
    return find_doubtful_cards(host, repo, snapshot, open_cards) | Questions(host, repo, snapshot, cards).list_held(
        open_cards
    )


def _open_facts(host: Host, snapshot: Snapshot) -> Callable[[Card], Card]:
    """What puts the facts of the records of every domain into a card."""
    readers = [domain.open_card_facts(host.layout, snapshot, host.stays_open) for domain in load_domains()]

    def show_facts(card: Card) -> Card:
        for show in readers:
            card = show(card)
        return card

    return show_facts
