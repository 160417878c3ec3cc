"""Sessions of a language model that are worked on for the page: one request at a time, in a thread that holds no page.

A session is the same as in the terminal (``cleared.meta``), and lies on the disk step by step: whatever ends this
process, ``cleared meta resume`` goes on with it.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct, field

from cleared.base.errors import BusyError, CheckFailed, ClearedError, UsageError
from cleared.meta.model_session import (
    Session,
    SessionOptions,
    create_request,
    refuse_ended_session,
    resume_session,
)
from cleared.meta.session_store import FOLDER
from cleared.service.operations.current_host import HostFactory

AUTHOR: Final = "chat"
_END_SECONDS: Final = 5.0
"""How long the end of the server waits for a step. One that takes longer is done again when the session goes on."""
_CANCEL_SECONDS: Final = 0.2


class Turn(Struct):
    """One request that is worked on. ``session_id`` is empty until the session is made or opened."""

    request: str
    session_id: str = ""
    partial: str = ""
    """What the model has said so far of the reply that comes in."""
    notice: str = ""
    """What the program says of the step that is at work, such as that the model is not reached and asked again."""
    refusal: ClearedError | None = None
    """Why it could not be worked on at all."""
    is_recorded: bool = False
    """Whether ``request`` stands in the session's events."""
    is_cancelled: bool = False
    has_begun: threading.Event = field(default_factory=threading.Event)
    """Set when ``session_id`` is known, or there is none to come."""
    has_ended: threading.Event = field(default_factory=threading.Event)


class ChatSessions:
    """The sessions that this process works on for one workspace. Thread-safe."""

    def __init__(self, open_host: HostFactory) -> None:
        self._open_host = open_host
        self._lock = threading.Lock()
        self._turn: Turn | None = None
        self._session: Session | None = None
        self._steps = 0
        self._is_ending = False

    @property
    def turn(self) -> Turn | None:
        """The request that is worked on, or was last; see ``Turn.has_ended``."""
        return self._turn

    @property
    def active(self) -> Turn | None:
        """The request that is worked on now."""
        turn = self._turn
        return turn if turn is not None and not turn.has_ended.is_set() else None

    def begin(self, session_id: str, text: str | None, question: int | None = None) -> Turn:
        """Work on a request: ``session_id`` empty begins a session, ``text`` None goes on where one stopped.
        ``question``: the number of the session's question that ``text`` answers.

        Raises ``UsageError`` for an empty request, ``BusyError`` where one is worked on. What comes later is in the
        turn, and in the session's events.
        """
        if text is not None and not text.strip():
            raise UsageError("the request is empty", remedy="Say what you want, in your own words.")
        with self._lock:
            if self._is_ending:
                raise BusyError("the server is ending", remedy="Ask again when it is back.")
            if self.active is not None:
                raise BusyError(
                    "the model works on another request",
                    remedy="Wait until it is done, or cancel it; this one was not taken.",
                )
            self._turn = turn = Turn(text or "", session_id)
        threading.Thread(target=self._work, args=(turn, session_id, text, question), name="chat", daemon=True).start()
        return turn

    def cancel(self) -> None:
        """End what the model does. The session is kept, and can go on."""
        turn = self.active
        if turn is not None and not turn.is_cancelled:
            turn.is_cancelled = True
            threading.Thread(target=self._cancel_until_ended, args=(turn,), name="chat-cancel", daemon=True).start()

    def end(self) -> None:
        """Begin nothing more, and let the step that runs come to its end, for a while."""
        with self._lock:
            self._is_ending = True
        turn = self.active
        if turn is not None:
            self.cancel()
            turn.has_ended.wait(_END_SECONDS)

    def read_stamp(self) -> str:
        """Another text for each step of the sessions, also of those that other processes work on."""
        newest = ""
        with suppress(OSError, ClearedError):
            folder = self._open_host().layout.state_dir / FOLDER
            name = max((path.name for path in folder.iterdir()), default="")
            newest = f"{name}-{(folder / name / 'events.jsonl').stat().st_size}"
        turn = self._turn
        return f"{self._steps}-{turn is not None and turn.has_ended.is_set()}-{newest}"

    def _work(self, turn: Turn, session_id: str, text: str | None, question: int | None) -> None:
        def take_notice(text: str) -> None:
            turn.notice = text
            self._steps += 1

        def take_event(event: dict[str, Any]) -> None:
            turn.notice = ""
            if event["type"] == "message.delta" and event["purpose"] == "reply":
                turn.partial += event["text"]
            elif event["type"] != "message.delta":
                turn.partial, turn.is_recorded = "", True
                turn.has_begun.set()
            self._steps += 1

        try:
            host, options = self._open_host(), SessionOptions(emit=take_event)
            host.show_message = take_notice
            if session_id and text is None:
                refuse_ended_session(host, session_id)
            if session_id:
                opened = resume_session(host, session_id, options)
            else:
                store = create_request(host, text or "", AUTHOR)
                turn.session_id = store.info.id
                turn.has_begun.set()  # the packages for models take seconds to load
                opened = Session(host, store, options)
            with opened as session:
                self._session = session
                if question is None:
                    turn.has_begun.set()
                    session.run(text if session_id else None)
                else:  # whether it is taken is known when its first event comes
                    session.reply(text or "", question)
        except ClearedError as error:
            turn.refusal = error
        except Exception as error:  # noqa: BLE001  (a thread has nobody above it)
            turn.refusal = CheckFailed(
                f"the program made a mistake: {type(error).__name__}: {error}",
                remedy="The session is kept: go on with it, and please report this.",
            )
        finally:
            self._session = None
            self._steps += 1
            turn.has_ended.set()
            turn.has_begun.set()

    def _cancel_until_ended(self, turn: Turn) -> None:
        """A cancellation that comes before the request has begun is forgotten by it: say it again."""
        while not turn.has_ended.is_set():
            session = self._session
            if session is not None:
                session.cancel()
            turn.has_ended.wait(_CANCEL_SECONDS)
