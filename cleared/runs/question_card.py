"""What a question's card holds: as the queue gives it back, its digest, and the agent it names."""

from __future__ import annotations

import json
from typing import Any

from cleared.cards.card import Card
from cleared.trust.approval_record import canonical_digest


def agent_name(path: str) -> str:
    """The name of the agent whose script this is."""
    return path.rsplit("/", 1)[-1].removesuffix(".py")


def displayed_digest(card: Card) -> str:
    """Digest of all that a question shows a person, its ticket aside."""
    details = {name: value for name, value in through_json(card.details).items() if name != "ticket"}
    return canonical_digest([card.title, card.agent, card.run_id, details])


def through_json(value: Any) -> Any:
    """A value as the queue's files give it back."""
    return json.loads(json.dumps(value, default=str))
