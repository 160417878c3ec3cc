"""One state of the review queue and the records, read once, so that moving from card to card is instant.

Texts are as they came from outside or from a script: whoever shows them escapes them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from cleared.cards import age
from cleared.cards.card import Card
from cleared.cards.card_section import CardSection
from cleared.cards.kinds import BRANCH, CYCLE_NOTE, PROPOSAL
from cleared.changes.committed_cards import read_cards
from cleared.changes.decisions.authorization import find_authorization
from cleared.changes.host import Host
from cleared.gate.proposals.shown_proposal import ShownProposal, read_shown_proposals
from cleared.gate.shadow import Shadow, read_shadows
from cleared.git import Snapshot
from cleared.review.branch_text import preview_branch
from cleared.review.card_facts import CardChoice, CardFacts, CardTheme, QueueRow, SourceRow
from cleared.review.queue_cards import list_held_cards, proposal_folder
from cleared.review.record_review import load_reviews
from cleared.trust.keys import own_public_key

T = TypeVar("T")


@dataclass
class QueueSnapshot:
    """The open cards, and what is known of what they are about."""

    head: str
    """The commit that it was read from."""
    name: str
    """The business's name."""
    cards: dict[str, Card]
    """The open ones: proposals first, then the others, oldest first; behind all others what was put off."""
    count_days_overdue: Callable[[Card], int | None]
    """The whole days that a card has waited, once that is ``review.remind_after``; looked at when it is shown."""
    find_held: Callable[[Card], str | None]
    """Why a card cannot be decided as things are, and what to do; looked at when it is shown."""
    is_first: Callable[[Card, str], bool]
    """Whether somebody with a key (empty: this user's) is the first of two for a card; looked at when it is shown."""
    proposals: Mapping[str, ShownProposal]
    """The proposals that open cards are about, by folder."""
    shadows: Mapping[str, Shadow]
    """What ran beside the live version on this machine, by the folder of its proposal."""
    branches: Mapping[str, Sequence[CardSection]]
    """What branches of programs that open cards name would change, by card."""
    facts: Mapping[str, CardFacts]
    """What the records of each domain say of the cards, by its name."""

    @property
    def rows(self) -> list[QueueRow]:
        return [self.row_of(card) for card in self.cards.values()]

    def row_of(self, card: Card) -> QueueRow:
        row = self._ask_domains(lambda facts: facts.describe_row(card))
        if row is not None:
            return row
        shown = self.proposal_of(card)
        title = card.title if shown is None else f"{shown.proposal.id}: {shown.proposal.title}"
        return QueueRow(card.id, card.kind, card.created_at[:10], "", title)

    def proposal_of(self, card: Card) -> ShownProposal | None:
        """What a proposal's card is about; None where it is not there, or cannot be read."""
        return self.proposals.get(proposal_folder(card)) if card.kind == PROPOSAL.name else None

    def record_of(self, card: Card) -> object | None:
        """The record that a card is about, as its domain has it."""
        return self._ask_domains(lambda facts: facts.find_record(card))

    def source_of(self, card: Card) -> SourceRow | None:
        """The row of a file that a card is about."""
        return self._ask_domains(lambda facts: facts.find_source(card))

    def list_sections(self, card: Card) -> Sequence[CardSection] | None:
        """What the records say of a card, part by part; None where that is no more than the card says."""
        return self._ask_domains(lambda facts: facts.list_sections(card))

    def list_suggestions(self, card: Card) -> list[CardChoice]:
        """What could be decided because the like was decided before."""
        return [choice for facts in self.facts.values() for choice in facts.list_suggestions(card)]

    def _ask_domains(self, question: Callable[[CardFacts], T | None]) -> T | None:
        """The answer of the first domain that has one."""
        answers = (question(facts) for facts in self.facts.values())
        return next((answer for answer in answers if answer is not None), None)

    # -- groups of cards ------------------------------------------------------------------------------------------

    def theme_of(self, card: Card) -> CardTheme | None:
        """What cards have in common that can be decided together; None for a kind of card that has no groups."""
        return self._ask_domains(lambda facts: facts.find_theme(card))

    def list_alike(self, card: Card) -> Sequence[Card]:
        """The open cards of the same theme, this one among them."""
        return self._ask_domains(lambda facts: facts.list_alike(card, self.cards.values())) or (card,)


def number_to_type(queue: QueueSnapshot, card: Card) -> str:
    """What a person types to approve this proposal, as it may do what no dry run showed; empty where one key does."""
    shown = queue.proposal_of(card)
    return shown.proposal.id if shown is not None and shown.proposal.has_unreached else ""


def read_queue(host: Host) -> QueueSnapshot:
    """The last commit's queue, with what the records say of it."""
    with host.open_for_reading() as repo:
        head = repo.read_head()
        snapshot = Snapshot(repo, head)
        every_card = read_cards(host, snapshot)
        waiting = every_card.list_open()
        of_kind: dict[str, list[Card]] = defaultdict(list)
        for card in waiting:
            of_kind[card.kind].append(card)
        first = [card for card in of_kind[PROPOSAL.name] if not card.skipped_at]
        cards = {card.id: card for card in (*first, *waiting)}
        return QueueSnapshot(
            head,
            host.config.business.name,
            cards,
            partial(_count_days_overdue, host.clock.now(), host.config.review.remind_after),
            _HeldCards(host, head, cards).find,
            partial(_is_first, host, head),
            read_shown_proposals(host, snapshot, map(proposal_folder, of_kind[PROPOSAL.name])),
            read_shadows(host),
            {c.id: preview_branch(host, c.details) for c in (*of_kind[BRANCH.name], *of_kind[CYCLE_NOTE.name])},
            {name: review.open_facts(host, snapshot, every_card) for name, review in load_reviews().items()},
        )


class _HeldCards:
    """Which of the open cards of a commit cannot be decided: of each found once, when it is asked for."""

    def __init__(self, host: Host, head: str, cards: Mapping[str, Card]) -> None:
        self._host, self._head, self._cards = host, head, cards
        self._found: dict[str, str | None] = {}

    def find(self, card: Card) -> str | None:
        if card.id not in self._found:
            with self._host.open_for_reading() as repo:
                held = list_held_cards(self._host, repo, Snapshot(repo, self._head), self._cards, [card])
            self._found[card.id] = held.get(card.id)
        return self._found[card.id]


def read_proposal_now(host: Host, queue: QueueSnapshot, card_id: str) -> QueueSnapshot:
    """The queue with what holds at this moment of the proposal that a card is about: what is said of this machine, such
    as that nothing starts agents, changes without a commit."""
    shown = queue.proposal_of(queue.cards[card_id]) if card_id in queue.cards else None
    if shown is None:
        return queue
    with host.open_for_reading() as repo:
        fresh = read_shown_proposals(host, Snapshot(repo, queue.head), [shown.proposal.folder])
    return replace(queue, proposals={**queue.proposals, **fresh})


def _is_first(host: Host, head: str, card: Card, key: str) -> bool:
    with host.open_for_reading() as repo:
        rules = find_authorization(host, Snapshot(repo, head), "", "", person=False).rules
    own = key or own_public_key(host.root)
    return any(rules.person_of(str(first.get("key"))) == rules.person_of(own) for first in card.agreed[-1:])


def _count_days_overdue(now: datetime, remind_after: str, card: Card) -> int | None:
    is_late = age.find_overdue((card.created_at,), now, remind_after)
    return (age.waiting_time(card.created_at, now) or timedelta()).days if is_late else None
