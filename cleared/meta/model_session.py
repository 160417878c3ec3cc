"""A session: what a person asks of a model, in the terminal or on a page, and all that works on it."""

from __future__ import annotations

import shutil
from contextlib import ExitStack, suppress
from decimal import Decimal
from types import TracebackType
from typing import Any, Final, Self

from msgspec import Struct

from cleared.base.errors import UsageError
from cleared.base.json_values import parse_json_object
from cleared.base.short_text import list_first
from cleared.changes.host import Host
from cleared.llm.model_door import open_model_door, read_approved_choice, require_packages
from cleared.meta.session_events import EmitEvent
from cleared.meta.session_loop import SETTLED, LoopLimits, Outcome, SessionLoop
from cleared.meta.session_store import SessionStore, create_session, list_sessions, open_session
from cleared.meta.system_prompt import build_system_prompt
from cleared.meta.tools.overlay import Overlay
from cleared.meta.tools.tool_set import ToolSet, open_tool_set

PURPOSE: Final = "session"
AUTHORS: Final = ("meta", "chat")
"""Who a session's proposals are by. What a session's folder says is no other."""


class SessionOptions(Struct, frozen=True):
    """How a session runs. ``max_cost``: USD for this start, beside the budgets of the settings. ``emit`` takes each
    event."""

    max_cost: Decimal | None = None
    emit: EmitEvent | None = None


class Session:
    """An open session; a context manager. ``run`` works on one request of the user at a time."""

    def __init__(self, host: Host, store: SessionStore, options: SessionOptions) -> None:
        """Raises ``UsageError`` or ``WorkspaceError`` where no model can be used, ``BusyError`` where it runs."""
        self.host, self.store = host, store
        self._stack = ExitStack()
        try:
            door = open_model_door(host, purpose=PURPOSE, session=store.info.id, max_cost=options.max_cost)
            self._stack.callback(door.close)
            author = store.info.author if store.info.author in AUTHORS else AUTHORS[0]
            self._tools: ToolSet = open_tool_set(host, Overlay(store.overlay), session_id=store.info.id, author=author)
            self._stack.callback(self._tools.close)
            limits = LoopLimits.read_settings(host.config.llm, door.context_window)
            self._loop = self._stack.enter_context(
                SessionLoop(
                    store,
                    door,
                    self._tools,
                    limits=limits,
                    clock=host.clock,
                    emit=options.emit,
                    report_step=host.report_step,
                )
            )
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def id(self) -> str:
        return self.store.info.id

    def run(self, prompt: str | None) -> Outcome:
        """Work on a request; None goes on where the session stopped. Raises as ``SessionLoop.run`` does."""
        return self._loop.run(prompt)

    def reply(self, text: str, question: int | None = None) -> Outcome:
        """Answer what the session asks, once. Raises as ``SessionLoop.reply`` does."""
        return self._loop.reply(text, question)

    def cancel(self) -> None:
        """End the turn, from another thread; the session can go on."""
        self._loop.cancel()


def start_session(host: Host, request: str, author: str, options: SessionOptions) -> Session:
    """A new session for ``request``; nothing is asked of a model before ``run``.

    ``author``: who the proposals are by, such as ``chat``. Raises ``UsageError`` for an empty request, and as
    ``Session`` does; then no session is left.
    """
    store = create_request(host, request, author)
    try:
        return Session(host, store, options)
    except BaseException:
        _remove_empty(store)
        raise


def require_model(host: Host) -> None:
    """Raises ``UsageError`` where the packages for models are missing, ``WorkspaceError`` where no model is named."""
    require_packages(read_approved_choice(host))


def create_request(host: Host, request: str, author: str) -> SessionStore:
    """The folder of a new session, for ``Session``; quick, since none of the packages for models is loaded yet.

    Raises ``UsageError`` for an empty request and where the packages are missing, ``WorkspaceError`` where no model is
    named.
    """
    if not request.strip():
        raise UsageError("the request is empty", remedy='Say what you want: cleared meta "…"')
    require_model(host)
    prompt = build_system_prompt(host)
    for notice in prompt.notices:
        host.show_message(notice)
    return create_session(
        host.layout.state_dir,
        request=host.redactor.redact_text(request),
        author=author,
        clock=host.clock,
        system_prompt=prompt.text,
    )


def resume_session(host: Host, session_id: str | None, options: SessionOptions) -> Session:
    """The session of this id, or the newest one. Raises ``UsageError`` where there is none."""
    require_model(host)
    if session_id is None:
        stores = list_sessions(host.layout.state_dir)
        if not stores:
            raise UsageError("there is no session yet", remedy='Start one: cleared meta "…"')
        session_id = stores[-1].info.id
    return Session(host, open_session(host.layout.state_dir, session_id), options)


def find_asking_session(host: Host) -> str:
    """The one session that asks the owner something. Raises ``UsageError`` where none does, or several do."""
    asking = [facts for facts in describe_sessions(host) if facts["status"] == "asks"]
    if not asking:
        raise UsageError("no session asks you anything", remedy="cleared meta sessions says how each of them ended.")
    if len(asking) > 1:
        ids = [str(facts["id"]) for facts in asking]
        raise UsageError(
            f"{len(asking)} sessions ask you something: {list_first(ids, 5)}",
            remedy="Name the one you mean: cleared meta reply SESSION TEXT.",
        )
    return str(asking[0]["id"])


def refuse_ended_session(host: Host, session_id: str) -> None:
    """Raises ``UsageError`` where a session has come to its end: without another message nothing is to be done."""
    status = describe_session(open_session(host.layout.state_dir, session_id))["status"]
    if status == "asks":
        raise UsageError(
            f"the session {session_id} asks you something, and goes on when you answer",
            remedy=f'Read it: cleared meta show {session_id}. Answer it: cleared meta reply {session_id} "…".',
        )
    if status in SETTLED:
        raise UsageError(
            f"the session {session_id} is {status}: there is nothing to go on with",
            remedy=f'Begin another, cleared meta "…", or speak on in it: cleared chat --resume {session_id}.',
        )


def describe_sessions(host: Host) -> list[dict[str, Any]]:
    """Every session, newest first: what was asked, and how it ended last (``open`` where it did not)."""
    return [describe_session(store) for store in reversed(list_sessions(host.layout.state_dir))]


def describe_session(store: SessionStore) -> dict[str, Any]:
    """One session as data."""
    events = read_events(store)
    ended = next((event for event in reversed(events) if event["type"] == "session.ended"), None)
    if ended is not None and any(e["type"] == "session.started" for e in events[events.index(ended) + 1 :]):
        proposal, cost, ended = ended.get("proposal"), ended.get("cost"), None
    else:
        proposal, cost = (ended or {}).get("proposal"), (ended or {}).get("cost")
    return {
        "id": store.info.id,
        "request": store.info.request,
        "author": store.info.author,
        "created": store.info.created,
        "status": ended["status"] if ended else "open",
        "reason": ended["reason"] if ended else None,
        "proposal": proposal,
        "asks": ended.get("text") if ended and ended["status"] == "asks" else None,
        "question": ended.get("question") if ended else None,
        "least": ended.get("least") if ended else None,
        "cost": cost,
    }


def read_events(store: SessionStore) -> list[dict[str, Any]]:
    """The events of a session that were kept, in order; damaged lines are passed over."""
    events = []
    with suppress(OSError):
        for line in (store.path / "events.jsonl").read_text(encoding="utf-8", errors="replace").split("\n"):
            event = parse_json_object(line)
            if isinstance(event.get("type"), str):
                events.append(event)
    return events


def _remove_empty(store: SessionStore) -> None:
    """Take away a session that never began."""
    store.close()
    shutil.rmtree(store.path, ignore_errors=True)
