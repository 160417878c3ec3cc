"""Who may use the page: one-time codes that the terminal prints, and the sessions they open.

Nothing of it is on the disk: when the server ends, so do all sessions.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

CODE_SECONDS: Final = 600.0
"""How long a code can be used."""
SESSION_SECONDS: Final = 12 * 3600.0
"""How long a session lasts without a request."""
MAX_TRIES: Final = 10
"""Wrong codes after which no code counts any more: the terminal must print a new one."""
MAX_SESSIONS: Final = 100
_ALPHABET: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Letters and digits that are not taken for one another."""


class Said(NamedTuple):
    """Something that is said on the next page. ``act``: the id of the act that it tells of, for an undo button."""

    text: str
    ok: bool = True
    act: str = ""


@dataclass(slots=True)
class Session:
    """One browser that has signed in."""

    token: str
    """What its forms send back, so that no other page can send them."""
    last_used: float
    passkey: str = ""
    """The key of the passkey that signed in, and signs what is decided; empty after a code of the terminal."""
    messages: list[Said] = field(default_factory=list)
    """What is to be said on the next page."""


@dataclass
class Access:
    """Codes and sessions. Thread-safe. ``now``: monotonic seconds."""

    now: Callable[[], float] = time.monotonic
    _codes: dict[str, float] = field(default_factory=dict)
    _sessions: dict[str, Session] = field(default_factory=dict)
    _wrong: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def make_link_code(self) -> str:
        """A code for a link: too long to be guessed."""
        return self._remember(secrets.token_urlsafe(32))

    def make_typed_code(self) -> str:
        """A code that a person types: ``K7QF-29XM``. With ``MAX_TRIES`` it cannot be guessed either."""
        return self._remember(new_typed_code())

    def _remember(self, code: str) -> str:
        with self._lock:
            self._wrong = 0
            self._codes = {each: until for each, until in self._codes.items() if until > self.now()}
            self._codes[code] = self.now() + CODE_SECONDS
        return code

    def open_session(self, code: str) -> str | None:
        """The cookie of a new session, for a code that was not used yet; None for any other."""
        typed = code.strip()
        with self._lock:
            if self._wrong >= MAX_TRIES:
                self._codes.clear()
            known = next((each for each in self._codes if _is_same(each, typed) or _is_same(each, typed.upper())), None)
            if known is None or self._codes.pop(known) <= self.now():
                self._wrong += 1
                return None
            return self._add_session("")

    def open_passkey_session(self, passkey: str) -> str:
        """The cookie of a new session, of a passkey that has answered."""
        with self._lock:
            return self._add_session(passkey)

    def _add_session(self, passkey: str) -> str:
        self._forget_old_sessions()
        cookie = secrets.token_urlsafe(32)
        self._sessions[cookie] = Session(secrets.token_urlsafe(32), self.now(), passkey)
        return cookie

    def find_session(self, cookie: str) -> Session | None:
        """The session of a cookie; None where there is none any more."""
        with self._lock:
            session = self._sessions.get(cookie)
            if session is None or self.now() - session.last_used > SESSION_SECONDS:
                self._sessions.pop(cookie, None)
                return None
            session.last_used = self.now()
            return session

    def end_session(self, cookie: str) -> None:
        """Sign out."""
        with self._lock:
            self._sessions.pop(cookie, None)

    def _forget_old_sessions(self) -> None:
        """The longest unused one goes where there are too many."""
        while len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[min(self._sessions, key=lambda each: self._sessions[each].last_used)]


def new_typed_code() -> str:
    """Eight letters and digits: ``K7QF-29XM``. Who takes such codes must limit how often somebody may guess."""
    letters = "".join(secrets.choice(_ALPHABET) for _ in range(8))
    return f"{letters[:4]}-{letters[4:]}"


def _is_same(expected: str, given: str) -> bool:
    return hmac.compare_digest(expected.encode(), given.encode())
