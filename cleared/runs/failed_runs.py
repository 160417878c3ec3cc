"""What a failed run leaves: its log rows and one card, in one ``log:`` commit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cleared.base.clock import format_iso
from cleared.base.errors import PolicyError
from cleared.cards.card import Card, card_id
from cleared.cards.kinds import BAD_FILE, FAILED_RUN
from cleared.changes import commit_messages, draft
from cleared.changes.auto_resolve import MAX_CARD_FILES
from cleared.changes.consumed_events import was_opened
from cleared.changes.host import Host
from cleared.domains.installed_domains import describe_drafts
from cleared.domains.record_audit import RecordsViolated
from cleared.git import Repository, Snapshot
from cleared.primitives.context import Context
from cleared.runs.approved_scripts import Script
from cleared.runs.attempt import Event, parse_event
from cleared.runs.outcome import RunError
from cleared.sandbox.trigger_kinds import FILE_WATCH, ON_DEMAND

VIOLATES: Final = "violates"
"""What the attestation of a failed run calls how many invariants its draft broke that held before."""


def record_failure(
    host: Host,
    repo: Repository,
    snapshot: Snapshot,
    failed: Context,
    fresh: Context,
    error: RunError,
    script: Script,
    trailers: list[tuple[str, str]],
) -> tuple[list[str], list[Card]]:
    """Commit the failed run's rows and its card, from a fresh context; ``(commits, cards)``.

    Cards about files that could not be read stay: they are true whatever became of the run. The same failure again
    is the same card.
    """
    fresh.log = failed.log.copy_rows()
    fresh.log_action("run", f"failed: {error}"[:2_000])
    if violations := _count_new_violations(failed, fresh, error):
        fresh.attested[VIOLATES] = violations
    for card in failed.cards.added.values():
        if card.kind == BAD_FILE.name:
            fresh.cards.add_card(card)
    key = (failed.agent, script.blob, error.type, str(error.line), error.message)
    number = 0
    identity = card_id(FAILED_RUN.name, *key)
    while (earlier := fresh.cards.committed_cards.get(identity)) is not None and earlier.status != "open":
        number += 1
        identity = card_id(FAILED_RUN.name, *key, str(number))
    first = str(error).splitlines()[0]
    fresh.cards.add_card(
        Card(
            identity,
            FAILED_RUN.name,
            f"{failed.agent} failed: {first}"[:300],
            format_iso(failed.now),
            failed.run_id,
            None,
            failed.agent,
            {
                "cause": error.cause[:4_000],
                **({"remedy": error.remedy} if error.remedy else {}),
                "not_done": _describe_discarded(failed),
                **retry_details(failed.event, failed.agent, identity),
            },
        )
    )
    cards = list(fresh.cards.added.values())
    subject = commit_messages.run_failed(failed.agent, first)
    commit = draft.commit_draft(host, repo, snapshot, fresh, draft.CommitPlan(subject, trailers))
    return [commit], cards


def _count_new_violations(failed: Context, fresh: Context, error: RunError) -> int:
    """How many invariants the draft broke; none where some did not hold before: nobody knows then which it broke."""
    if error.type != RecordsViolated.__name__ or any(part.find_violations() for part in fresh.parts.values()):
        return 0
    return sum(len(part.find_violations()) for part in failed.parts.values())


def retry_details(event: Mapping[str, Any], agent: str, card: str) -> dict[str, Any]:
    """What a card of a failed run says of how to run it once more for what it was run for."""
    kind, payload = event["kind"], event["payload"]
    about: dict[str, Any] = {} if kind == ON_DEMAND.name and payload is None else {"event_id": event["id"]}
    if files := [digest for _, digest in event.get("files", ())][:MAX_CARD_FILES]:
        about["files"] = files
    if kind == FILE_WATCH.name or not about:  # the files lie there still
        return {"retry": f"cleared agent run {agent}", **about}
    return {"retry": f"cleared agent run {agent} --again {card}", "event": dict(event), **about}


def read_card_event(host: Host, repo: Repository, snapshot: Snapshot, card: Card, *, believed: bool) -> Event | None:
    """The event that a failed run's card says to run its agent for again; None where that is just any run of it.

    Anybody may have written the card: what it says counts where its run attests it. Raises ``PolicyError`` where it
    does not.
    """
    event = card.details.get("event")
    if event is None:
        return None
    if not believed and not was_opened(host, repo, snapshot, card):
        raise PolicyError(
            f"nothing shows that {card.agent} failed for what the card {card.id} says: no run of a machine that is "
            "trusted here attests it",
            remedy="Where a colleague's machine ran it, trust that: cleared trust. Else look at it (cleared queue show "
            f"{card.id}), and where it is right: cleared agent run {card.agent} --again {card.id} --yes",
        )
    return parse_event(event)


def _describe_discarded(failed: Context) -> str:
    counts = {name: len(draft.records) for name, draft in describe_drafts(failed.parts).items()}
    staged = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    return f"{staged} were staged and discarded; no file left import/" if staged else "nothing was staged"
