"""A card and its identity."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

KINDS: Final = {
    "entry": "An entry to confirm or correct.",
    "line": "A bank line that is held, not posted.",
    "proposal": "A change of scripts, settings or regression cases, to approve or reject.",
    "question": "A script asks, and waits for the answer.",
    "failed_run": "A run failed; nothing of it was done.",
    "bad_file": "A file in import/ could not be read; it stays where it is.",
    "duplicate_file": "A file, or rows of it, came before.",
    "grown_file": "A file was written to after it was imported; all of it lies in import/ again.",
    "set_aside": "A file made its agent fail again and again; it lies in import/failed/.",
    "event_cycle": "Agents start one another by events; the chain was stopped.",
    "near_match": "A row looks like one that came before under another text.",
    "revision": "The bank changed the amount of a line it had reported.",
    "balance_gap": "The running balance jumps: rows are missing.",
    "damage": "A check found something wrong with the books.",
    "agreement": "Somebody has decided something that takes two; the other does the same, or it is withdrawn.",
}


@dataclass(frozen=True, slots=True)
class Card:
    """One question. Its id follows from what it asks about, so asking twice makes one card."""

    id: str
    kind: str
    title: str
    created_at: str
    """UTC, ISO 8601."""
    run_id: str | None = None
    entry_id: str | None = None
    agent: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    status: str = "open"
    """open | resolved."""
    resolved_at: str | None = None
    resolved_by: str | None = None
    resolution: str | None = None
    skipped_at: str | None = None
    """When somebody put it behind all others last."""
    agreed: tuple[Mapping[str, Any], ...] = ()
    """What the first of two has decided, where it takes two; as ``approvals.authority`` reads it."""
    settlings: tuple[Mapping[str, Any], ...] = ()
    """Of a question: the lines that settle it; who may have written them, ``runs.questions`` says."""
    gone_on: str | None = None
    """Of a question: the run that went on with it, or asked it again."""

    @property
    def has_ticket(self) -> bool:
        """Whether it is a question of a run that can go on; then only what is signed settles it."""
        return self.kind == "question" and "ticket" in self.details


def card_id(kind: str, *key: str) -> str:
    """Eight letters and digits that are easy to type, from the kind and what the card is about."""
    digest = hashlib.sha256("\x1f".join((kind, *key)).encode()).digest()
    return base64.b32encode(digest)[:8].decode().lower()
