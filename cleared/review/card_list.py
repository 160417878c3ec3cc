"""The queue as a list shows it."""

from __future__ import annotations

from cleared.cards.kinds import QUESTION
from cleared.cards.open_cards import CardList, remember_open_cards
from cleared.changes.host import Host
from cleared.changes.kept_answers import can_be_kept
from cleared.git import Snapshot
from cleared.review.queue_cards import read_queue_of_commit
from cleared.workspace.surroundings import read_surroundings


def list_cards(host: Host, status: str = "open") -> CardList:
    """The queue as a list shows it. Open cards are kept for the next command, which then need not open the workspace;
    not where one is held or a run waits for one, as more than the commit says whether that is so."""
    surroundings = None if host.stays_open or status != "open" else read_surroundings(host.root)
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        queue = read_queue_of_commit(host, repo, snapshot, status)
        rows = [
            (c.id, c.kind, c.record_id or "", c.created_at, c.list_title(is_held=c.id in queue.held))
            for c in queue.cards
        ]
        cards = CardList(host.config.review.remind_after, *(list(column) for column in zip(*rows, strict=True)))
        is_sure = not queue.held and all(card.kind != QUESTION.name for card in queue.cards)
        if is_sure and surroundings is not None and can_be_kept(host, repo, snapshot, surroundings):
            remember_open_cards(host.root, surroundings, cards)
        return cards
