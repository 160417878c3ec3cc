"""An agent that asks, and what somebody who can commit makes of its card."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from harness import QUEUE, Workspace, refused, unchanged
from msgspec.structs import replace

from cleared.cards.card import Card
from cleared.runs.question_tickets import displayed_digest
from cleared.trust import tickets
from cleared.trust.keys import Key

POST = (
    'journal_add_double(date=ctx_now()[:10], description="for " + {what}, debit_account=5010, credit_account=2100,'
    ' amount=7, confidence=0.9, status="auto-confirmed", evidence="asked")'
)
ASKS = f"""
choice = queue_ask("Pay it?", ["no", "yes"], default="no"{{more}})
{POST.format(what="choice")}
git_commit("agent: asked")
"""
TIMED = ', on_timeout="default", timeout="12h"'
NEVER_ASKS = f'{POST.format(what="ctx_event()[" + repr("payload") + "]")}\ngit_commit("agent: paid")'


def asks(ws: Workspace, more: str = "") -> dict[str, Any]:
    """An approved agent waits for an answer: the card."""
    (card,) = ws.script(ASKS.format(more=more), name="asker")["cards"]
    return dict(card)


def mallory() -> Key:
    """A key of whoever can only commit."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Key(Ed25519PrivateKey.generate())


def opened(ws: Workspace, identity: str) -> dict[str, Any]:
    """The line that opened a card."""
    (line,) = [x for x in lines(ws) if x["event"] == "open" and x["id"] == identity]
    return line


def lines(ws: Workspace) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ws.read(QUEUE).splitlines()]


def write(ws: Workspace, found: list[dict[str, Any]]) -> None:
    """The queue as somebody has written and committed it."""
    ws.put(QUEUE, "".join(json.dumps(line) + "\n" for line in found))
    ws.commit(QUEUE, message="log: nothing to see here")


def edit(ws: Workspace, identity: str, change: Callable[[dict[str, Any]], None]) -> None:
    found = lines(ws)
    for line in found:
        if line["event"] == "open" and line["id"] == identity:
            change(line)
    write(ws, found)


def signed(line: dict[str, Any], key: Key, **changes: Any) -> dict[str, Any]:
    """The card with its ticket changed, matching again, and signed with a key."""
    details = {k: v for k, v in line["details"].items() if k != "ticket"}
    card = Card(line["id"], "question", line["title"], line["created_at"], line["run_id"], None, line["agent"], details)
    ticket = replace(tickets.parse_ticket(line["details"]["ticket"]), shown=displayed_digest(card), **changes)
    return {**line, "details": {**details, "ticket": tickets.sign_ticket(key, ticket).to_dict()}}


def answers(ws: Workspace, identity: str, choice: str = "yes") -> None:
    """It is refused, and nothing has changed."""
    with unchanged(ws):
        refused(ws("queue", "answer", identity, choice), 3, identity, "held")


def posted(ws: Workspace) -> list[tuple[str, str]]:
    return [(e["date"], e["description"]) for e in ws.entries()]
