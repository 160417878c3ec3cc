"""Makes tickets for questions that were asked before tickets existed, where this machine's trace of the run agrees."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from cleared.approvals.approval_record import digest_of
from cleared.approvals.keys import run_key
from cleared.approvals.tickets import Ticket, sign_ticket
from cleared.cards.kinds import QUESTION
from cleared.changes.trace import TraceStore
from cleared.clock import format_iso
from cleared.errors import WorkspaceError
from cleared.primitives.queue import read_timeout
from cleared.runs.question_card import displayed_digest, through_json

if TYPE_CHECKING:
    from cleared.cards.card import Card
    from cleared.changes.host import Host
    from cleared.vcs import Repository, Snapshot


def make_missing_tickets(
    host: Host, repo: Repository, snapshot: Snapshot, cards: Mapping[str, Card], workspace: str
) -> dict[str, Any]:  # fmt: skip
    """Card → ticket, of the open questions that have none. None at all where the trace is part of the commit: then
    whoever wrote the cards may have written it, too.

    Raises ``WorkspaceError`` where there is one to sign, and no key to do it with.
    """
    if snapshot.find_entry(host.layout.state_dir.name) is not None:
        return {}
    traces = TraceStore(host.layout.state_dir)
    tickets = {}
    for card in cards.values():
        if card.kind == QUESTION.name and card.status == "open" and "ticket" not in card.details:
            trace = traces.find_run(str(card.details.get("run")))
            ticket = _ticket_from_trace(repo, workspace, card, trace) if trace is not None else None
            if ticket is not None:
                key = run_key(host.root, create=True)
                assert key is not None
                tickets[card.id] = sign_ticket(key, ticket).to_dict()
    return tickets


def _ticket_from_trace(
    repo: Repository, workspace: str, card: Card, trace: Mapping[str, Any]
) -> Ticket | None:  # fmt: skip
    """What the trace says of the question; None where the card says otherwise, or the trace does not say."""
    ask_calls = [call for call in trace["calls"] if call["name"] == "queue_ask"]
    if trace["status"] != "waiting" or card.id not in (trace["cards"] or ()) or not ask_calls:
        return None
    try:
        places, details = [], through_json(card.details)
        for number, call in enumerate(ask_calls):
            text, choices, default, then, timeout = _question_arguments(json.loads(call["arguments"]))
            digest = hashlib.sha256(json.dumps([text, choices]).encode()).hexdigest()[:12]
            places.append((f"{number}:{digest}", call["result"]))
        answers = {place: json.loads(result) for place, result in places[:-1]}
        path, _, blob = str(trace["script"]).partition("@")
        clock = datetime.fromisoformat(trace["started_at"])
        ticket = Ticket(
            workspace,
            card.id,
            trace["id"],
            path,
            digest_of(repo.objects.read_object(blob)[1]),
            through_json(trace["event"]),
            trace["started_at"],
            trace["id"],
            places[-1][0],
            text,
            tuple(choices),
            default,
            then,
            format_iso(clock + timedelta(seconds=read_timeout(timeout))),
            answers,
            str(details.get("origin") or ""),
            displayed_digest(card),
            "this machine",
        )
    except (WorkspaceError, KeyError, TypeError, ValueError, IndexError):
        return None
    expected = {
        "question": text, "choices": choices, "default": default, "on_timeout": then, "due": ticket.due,
        "key": ticket.place, "run": ticket.run, "clock": ticket.clock, "script": trace["script"],
        "answers": dict(answers), "event": ticket.event,
    }  # fmt: skip
    return ticket if all(details.get(name) == value for name, value in expected.items()) else None


def _question_arguments(call: Mapping[str, Any]) -> list[Any]:
    """Question, choices, default, what becomes of it in time, and when."""
    arguments = dict(zip(("question", "choices", "default", "on_timeout", "timeout"), call["args"], strict=False))
    arguments = {"default": None, "on_timeout": "escalate", "timeout": "7d"} | arguments | call["kwargs"]
    return [arguments[name] for name in ("question", "choices", "default", "on_timeout", "timeout")]
