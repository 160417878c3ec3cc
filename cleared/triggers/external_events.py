"""Events that a person, or a program of theirs, hands in."""

from __future__ import annotations

from typing import Any

from cleared.base.errors import PrimitiveError, UsageError
from cleared.changes import commit_messages
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.changes.host import Host, current_user
from cleared.primitives.ctx import emit_event
from cleared.trust.person_only import refuse_in_job


def submit_event(host: Host, name: str, payload: Any) -> str:
    """Commit an event; the service of this clone delivers it, now or when it is up. The event's id.

    Raises ``UsageError`` where the name or the payload is not one, ``PolicyError`` inside a job.
    """
    refuse_in_job()
    made: list[str] = []

    def make_decision(decision_context: DecisionContext) -> Decision:
        try:
            emit_event(decision_context.context, name, payload)
        except PrimitiveError as wrong:
            raise UsageError(wrong.message, remedy=wrong.remedy) from None
        made.append(f"{decision_context.context.run_id}/0")
        return Decision(commit_messages.event_emitted(name))

    commit_decision(
        host, f"event emit {name}", make_decision, by=current_user(), collects=[]
    )  # it decides nothing, so no reviewer is needed
    return made[0]
