"""What a failed run leaves: its log rows and one card, in one ``log:`` commit."""

from __future__ import annotations

from typing import Any

from cleared.cards.model import Card, card_id
from cleared.clock import iso
from cleared.primitives.context import Context
from cleared.runs import draft
from cleared.runs.host import Host
from cleared.runs.outcome import RunError
from cleared.runs.scripts import Script
from cleared.vcs import Repository, Snapshot


def record(
    host: Host, repo: Repository, snapshot: Snapshot, failed: Context, fresh: Context, error: RunError,
    script: Script, trailers: list[tuple[str, str]],
) -> tuple[list[str], list[Card]]:  # fmt: skip
    """Commit the failed run's rows and its card, from a fresh context; ``(commits, cards)``.

    Cards about files that could not be read stay: they are true whatever became of the run. The same failure again
    is the same card.
    """
    fresh.log = [*failed.log]
    fresh.note("run", f"failed: {error}"[:2_000])
    for card in failed.cards.added.values():
        if card.kind == "bad_file":
            fresh.cards.add(card)
    key = (failed.agent, script.blob, error.type, str(error.line), error.message)
    number = 0
    identity = card_id("failed_run", *key)
    while (known := fresh.cards.known.get(identity)) is not None and known.status != "open":
        number += 1
        identity = card_id("failed_run", *key, str(number))
    first = str(error).splitlines()[0]
    fresh.cards.add(
        Card(
            identity, "failed_run", f"{failed.agent} failed: {first}"[:300], iso(failed.now), failed.run_id, None,
            failed.agent,
            {"cause": str(error)[:4_000], "not_done": _lost(failed), **_again(failed, identity)},
        )
    )  # fmt: skip
    cards = list(fresh.cards.added.values())
    subject = f"log: {failed.agent} failed: {first}"
    commit = draft.commit(host, repo, snapshot, fresh, subject[:200], trailers)
    return [commit], cards


def _again(failed: Context, card: str) -> dict[str, Any]:
    """How to run it once more for what it was run for."""
    kind, payload = failed.event["kind"], failed.event["payload"]
    event_id = {} if kind == "on_demand" else {"event_id": failed.event["id"]}
    if kind == "file_watch" or (kind == "on_demand" and payload is None):  # the files lie there still
        return {"retry": f"cleared agent run {failed.agent}", **event_id}
    return {"retry": f"cleared agent run {failed.agent} --again {card}", "event": dict(failed.event), **event_id}


def _lost(failed: Context) -> str:
    count = sum(len(entries) for entries in failed.books.staged.values())
    return f"{count} entries were staged and discarded; no file left import/" if count else "nothing was staged"
