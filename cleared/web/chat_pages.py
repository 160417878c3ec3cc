"""Chat: ask a language model for a change or about the books; a change ends as a card in the queue."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final

from starlette.responses import Response

from cleared.base.errors import BusyError, ClearedError, UsageError
from cleared.base.short_text import parse_count
from cleared.changes.host import Host
from cleared.gate.proposals.shown_proposal import read_shown_proposal
from cleared.llm.model_check import check_model
from cleared.llm.usage_report import UsageReport, report_usage
from cleared.meta import session_store
from cleared.meta.model_session import describe_session, read_events
from cleared.meta.transcript import Step, read_transcript
from cleared.web.chat_sessions import Turn
from cleared.web.page import PageRequest

_LISTED: Final = 50
_STEPS: Final = 300
"""Steps of a session that are shown: the newest."""
_REPLY: Final = 20_000
_BEGIN_SECONDS: Final = 10.0
"""How long a form waits for its session to be made."""


def list_sessions(page: PageRequest) -> Response:
    """A field for a request, and the sessions so far."""
    return _render_list(page)


def _render_list(page: PageRequest, refusal: ClearedError | None = None, typed: str = "") -> Response:
    host, turn, active = page.site.open_host(), page.site.chat.turn, page.site.chat.active
    if refusal is None and turn is not None and not turn.session_id:
        refusal = turn.refusal
    stores = list(reversed(session_store.list_sessions(host.layout.state_dir)))
    return _render(
        page,
        host,
        "chat.html",
        active,
        refusal,
        typed,
        more=max(0, len(stores) - _LISTED),
        sessions=[_describe(store, active) for store in stores[:_LISTED]],
    )


def show_session(page: PageRequest) -> Response:
    """One session: what was said, each step, the card it ended as."""
    return _render_session(page, page.part("session"))


def _render_session(page: PageRequest, session: str, refusal: ClearedError | None = None, typed: str = "") -> Response:
    host = page.site.open_host()
    store = session_store.open_session(host.layout.state_dir, session)
    turn, active = page.site.chat.turn, page.site.chat.active  # before the events: what it has done is among them
    facts, events = _describe(store, active), read_events(store)
    if refusal is None and turn is not None and turn.session_id == session:
        refusal = turn.refusal
    steps, cost = list(read_transcript(events)), _read_cost(events)
    if turn and facts["is_working"] and turn.request and not turn.is_recorded:
        steps.append(Step("asked", turn.request))
    return _render(
        page,
        host,
        "chat_session.html",
        active,
        refusal,
        typed,
        chat=facts,
        steps=steps[-_STEPS:],
        hidden=max(0, len(steps) - _STEPS),
        partial=turn.partial[-_REPLY:] if turn and facts["is_working"] else "",
        notice=turn.notice[:_REPLY] if turn and facts["is_working"] else "",
        is_spent=_is_spent(host, facts["least"], cost),
        proposal=_read_proposal(page, host, facts["proposal"]),
        cost=cost,
    )


def _render(
    page: PageRequest,
    host: Host,
    template: str,
    turn: Turn | None,
    refusal: ClearedError | None,
    typed: str,
    **data: object,
) -> Response:
    response = page.render(
        template,
        problems=check_model(host, os.environ, with_call=False).problems,
        turn=turn,
        refusal=refusal,
        typed=typed,
        budget=host.config.llm.session_budget,
        usage=_read_usage(host),
        **data,
    )
    if typed and refusal is not None:
        response.status_code = 409
    return response


def take_request(page: PageRequest) -> Response:
    """A request, a further message of a session, going on with one, or ending what the model does."""
    chat, session, way, text = page.site.chat, page.form.get("session"), page.form.get("way"), page.form.get("text")
    number = page.form.get("question")
    question = parse_count(number) if number else None
    if way not in ("send", "resume", "cancel") or (number and question is None):
        raise UsageError("the form does not say what to do", remedy="Load the page again.")
    if session:
        session_store.open_session(page.site.open_host().layout.state_dir, session)
    address = f"/chat/{session}" if session else "/chat"
    if way == "cancel":
        if chat.active is None or chat.active.session_id != session:
            return page.go_to(address, "The model was done already.")
        chat.cancel()
        return page.go_to(address, "It ends after the step that runs. The session is kept.")
    if way == "resume" and not session:
        raise UsageError("the form does not say which session goes on", remedy="Load the page again.")
    try:
        turn = chat.begin(session, text if way == "send" else None, question)
    except (BusyError, UsageError) as error:
        if not text:
            return page.go_to(address, str(error), ok=False)
        return _render_session(page, session, error, text) if session else _render_list(page, error, text)
    turn.has_begun.wait(_BEGIN_SECONDS)
    if turn.has_ended.is_set() and turn.refusal is not None and not turn.is_recorded and session and text:
        return _render_session(page, session, turn.refusal, text)
    return page.go_to(f"/chat/{turn.session_id}" if turn.session_id else "/chat")


def _describe(store: session_store.SessionStore, turn: Turn | None) -> dict[str, Any]:
    facts = describe_session(store)
    is_working = turn is not None and turn.session_id == store.info.id
    status = "working" if is_working else "not ended" if facts["status"] == "open" else facts["status"]
    return {**facts, "is_working": is_working, "status": status}


def _read_proposal(page: PageRequest, host: Host, number: object) -> dict[str, Any] | None:
    """The proposal that a session ended with; ``waits``: whether its card is in the queue."""
    if not isinstance(number, str):
        return None
    with suppress(ClearedError):  # the branch that had it may be gone
        shown = read_shown_proposal(host, number)
        waits = shown.proposal.card in page.site.read_queue().cards
        return {**shown.proposal.to_dict(), "card": shown.card, "waits": waits}
    return None


def _read_cost(events: Sequence[Mapping[str, Any]]) -> str:
    """US dollars so far."""
    return next((str(event["cost"]) for event in reversed(events) if event.get("cost") is not None), "0")


def _is_spent(host: Host, least: object, cost: str) -> bool:
    """Whether a budget that ended a session would end its next call, too. ``least``: what that costs at least."""
    if not isinstance(least, str) or (usage := _read_usage(host)) is None:
        return False
    left = min(host.config.llm.session_budget - Decimal(cost), usage.left_today)
    return left <= 0 or left < Decimal(least)


def _read_usage(host: Host) -> UsageReport | None:
    with suppress(ClearedError, OSError):
        return report_usage(host, 0)
    return None
