"""The states of a task, and which may follow which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

PENDING: Final = "pending"
IN_PROGRESS: Final = "in-progress"
COMPLETED: Final = "completed"
FAILED: Final = "failed"
BLOCKED: Final = "blocked"
AWAITING: Final = "awaiting-approval"
"""Verified, and not live before a person approves it. In the ledger it is ``blocked``, with what it ``awaits``."""
ALIASES: Final[Mapping[str, str]] = MappingProxyType({"claimed": IN_PROGRESS})
"""States by names of older ledgers."""
WRITTEN_STATES: Final = (PENDING, IN_PROGRESS, COMPLETED, FAILED, BLOCKED)
STATES: Final = (*WRITTEN_STATES, AWAITING)

TRANSITIONS: Final[Mapping[str | None, frozenset[str]]] = MappingProxyType(
    {
        None: frozenset({PENDING}),
        PENDING: frozenset({PENDING, IN_PROGRESS, BLOCKED}),
        IN_PROGRESS: frozenset({PENDING, COMPLETED, AWAITING, FAILED, BLOCKED}),
        AWAITING: frozenset({PENDING, COMPLETED, FAILED, BLOCKED}),
        COMPLETED: frozenset({FAILED}),
        FAILED: frozenset({PENDING, BLOCKED}),
        BLOCKED: frozenset({PENDING}),
    }
)
"""State (None: not in the ledger) → what may follow. ``completed`` follows on a claim alone, or on what a claim
left for approval; a completed task that no longer holds is failed again."""


@dataclass(frozen=True, slots=True)
class StatusLine:
    """One line of the ledger."""

    id: str
    status: str
    updated_at: str
    summary: str
    delta: Mapping[str, Any] | None = None
    awaits: Mapping[str, str] | None = None
    """Of a task that awaits approval: its ``proposal``, by its folder, and its ``card``, as far as there are."""
    data: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The line as it stands, with fields of others."""

    def to_json_object(self) -> dict[str, Any]:
        """The line as the host writes it."""
        found: dict[str, Any] = {
            "id": self.id,
            "status": BLOCKED if self.status == AWAITING else self.status,
            "updated_at": self.updated_at,
            "summary": self.summary,
        }
        extra = {"delta": self.delta, "awaits": self.awaits}
        return found | {key: dict(value) for key, value in extra.items() if value is not None}


def may_follow(before: str | None, after: str) -> bool:
    """Whether a task of state ``before`` may become ``after``."""
    return after in TRANSITIONS[before]
