"""A card and its identity."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from cleared.cards.kinds import QUESTION


class Card(Struct, frozen=True):
    """One question. Its id follows from what it asks about, so asking twice makes one card."""

    id: str
    kind: str
    title: str
    created_at: str
    """UTC, ISO 8601."""
    run_id: str | None = None
    record_id: str | None = None
    """Of the record that it is about."""
    agent: str | None = None
    details: Mapping[str, Any] = {}
    status: str = "open"
    """open | resolved."""
    resolved_at: str | None = None
    resolved_by: str | None = None
    resolution: str | None = None
    skipped_at: str | None = None
    """When a person last put it behind all others."""
    agreed: tuple[Mapping[str, Any], ...] = ()
    """What the first of two has decided, where it takes two; ``trust.reviewers`` reads it."""
    settlings: tuple[Mapping[str, Any], ...] = ()
    """Of a question: the lines of the queue that settle it. ``runs.question_tickets`` says which of them count."""
    gone_on: str | None = None
    """Of a question: the run that went on with it, or asked it again."""
    rivals: tuple[Card, ...] = ()
    """What other lines open under its id. Two clones that asked the same make them, and whoever wants it to say
    something else."""

    @property
    def has_ticket(self) -> bool:
        """Whether it is a question of a run that can go on. Then only a signed line settles it."""
        return self.kind == QUESTION.name and "ticket" in self.details

    def list_title(self, *, is_held: bool) -> str:
        """Its title in a list. ``is_held``: it cannot be decided as things are."""
        first = f" (the first of two: {self.agreed[-1].get('by')})" if self.agreed and self.status == "open" else ""
        return f"{'held: ' if is_held else ''}{self.title}{first}"


def list_texts(details: Mapping[str, Any], name: str) -> list[str]:
    """The texts that a card's details list under a name; none where it is no list: anybody may push a card."""
    texts = details.get(name)
    return list(map(str, texts)) if isinstance(texts, list) else []


def card_id(kind: str, *key: str) -> str:
    """Eight letters and digits that are easy to type, from the kind and what the card is about."""
    digest = hashlib.sha256("\x1f".join((kind, *key)).encode()).digest()
    return base64.b32encode(digest[:5]).decode().lower()
