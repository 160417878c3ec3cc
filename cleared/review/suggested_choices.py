"""What is suggested for an open card, as plain data."""

from __future__ import annotations

from typing import Any

from cleared.changes.host import Host
from cleared.review.queue_snapshot import read_queue


def list_suggestions(host: Host, card_id: str) -> list[dict[str, Any]]:
    """What could be decided about an open card because the like was decided before; empty where nothing is known, or
    the card cannot be decided as things are."""
    queue = read_queue(host)
    card = queue.cards.get(card_id)
    if card is None or queue.find_held(card) is not None:
        return []
    return [
        {"verb": choice.verb, "label": choice.label, "value": choice.value, "evidence": choice.evidence}
        for choice in queue.list_suggestions(card)
    ]
