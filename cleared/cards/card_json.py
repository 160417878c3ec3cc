"""Cards as JSON."""

from __future__ import annotations

from typing import Any

from cleared.base.json_values import to_json
from cleared.cards.card import Card


def card_to_json(card: Card) -> dict[str, Any]:
    """A card as ``--json`` shows it."""
    return {
        "id": card.id,
        "kind": card.kind,
        "entry_id": card.record_id,
        "title": card.title,
        "status": card.status,
        "created_at": card.created_at,
        "run_id": card.run_id,
        "agent": card.agent,
        "details": to_json(dict(card.details)),
        "resolved_at": card.resolved_at,
        "resolved_by": card.resolved_by,
        "resolution": card.resolution,
        "agreed": [{k: a.get(k) for k in ("by", "at", "says")} for a in card.agreed],
    }
