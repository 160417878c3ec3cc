"""Who may use the page: one-time codes that the terminal prints, and the sessions they open.

Nothing of it is on the disk: when the server ends, so do all sessions.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from msgspec import Struct

CODE_SECONDS: Final = 600.0
"""How long a code can be used."""
SESSION_SECONDS: Final = 12 * 3600.0
"""How long a session lasts without a request."""
MAX_TRIES: Final = 10
"""Wrong codes after which no typed code counts any more: the terminal must print a new one. Those of links go on."""
MAX_SESSIONS: Final = 100
_ALPHABET: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Letters and digits that are not taken for one another."""
_UNGUESSABLE: Final = 40
"""Characters of a code that is too long to be guessed: of a link."""


class Said(NamedTuple):
    """Something that is said on the next page. ``act``: the id of the act that it tells of, for an undo button."""

    text: str
    ok: bool = True
    act: str = ""


class Session(Struct):
    """One browser that has signed in."""

    path: str
    """What the addresses of its pages begin with: ``/s/`` and a secret. The cookie is for them alone, as browsers send
    cookies to every port of a name: no other server of this machine is asked for an address that it does not know."""
    cookie: str
    """The value of its cookie."""
    token: str
    """What its forms send back, so that no other page can send them."""
    last_used: float
    passkey: str = ""
    """The key of the passkey that signed in, and signs what is decided; empty after a code of the terminal."""
    messages: list[Said] = []
    """What is to be said on the next page."""

    @property
    def cookie_name(self) -> str:
        """The name of its cookie: nobody else can put another of that name beside it, nor read the path from it."""
        return f"cleared-{hashlib.sha256(self.path.encode()).hexdigest()[:16]}"


@dataclass
class Access:
    """Codes and sessions, by their paths. Thread-safe. ``now``: monotonic seconds. ``take_link``: whether a code is of
    a link that a command beside the server has made."""

    now: Callable[[], float] = time.monotonic
    take_link: Callable[[str], bool] = lambda code: False
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

    def open_session(self, code: str) -> Session | None:
        """A new session, for a code that was not used yet; None for any other."""
        shown = read_code(code)
        with self._lock:
            if self._wrong >= MAX_TRIES:
                self._codes = {each: until for each, until in self._codes.items() if not is_typed_code(each)}
            known = next((each for each in self._codes if _is_same(each, shown)), None)
            if known is None and not is_typed_code(shown) and self.take_link(shown):
                return self._add_session("")
            if known is None or self._codes.pop(known) <= self.now():
                self._wrong += is_typed_code(shown)
                return None
            return self._add_session("")

    def open_passkey_session(self, passkey: str) -> Session:
        """A new session, of a passkey that has answered."""
        with self._lock:
            return self._add_session(passkey)

    def _add_session(self, passkey: str) -> Session:
        self._forget_old_sessions()
        path, cookie, token = f"/s/{secrets.token_urlsafe(16)}", secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        session = Session(path, cookie, token, self.now(), passkey)
        self._sessions[path] = session
        return session

    def find_session(self, path: str, cookies: Mapping[str, str]) -> Session | None:
        """The session that has this path, where its cookie is among these; None where there is none any more."""
        with self._lock:
            session = self._sessions.get(path)
            if session is None or not _is_same(session.cookie, cookies.get(session.cookie_name, "")):
                return None
            if self.now() - session.last_used > SESSION_SECONDS:
                del self._sessions[path]
                return None
            session.last_used = self.now()
            return session

    def is_open(self, session: Session) -> bool:
        """Whether it still counts; asking does not make it last longer."""
        with self._lock:
            is_known = self._sessions.get(session.path) is session
            return is_known and self.now() - session.last_used <= SESSION_SECONDS

    def end_session(self, session: Session) -> None:
        """Sign out."""
        with self._lock:
            self._sessions.pop(session.path, None)

    def _forget_old_sessions(self) -> None:
        """The longest unused one goes where there are too many."""
        while len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[min(self._sessions, key=lambda each: self._sessions[each].last_used)]


def new_typed_code() -> str:
    """Eight letters and digits: ``K7QF-29XM``. Who takes such codes must limit how often somebody may guess."""
    letters = "".join(secrets.choice(_ALPHABET) for _ in range(8))
    return f"{letters[:4]}-{letters[4:]}"


def is_typed_code(code: str) -> bool:
    """Whether it is short enough to be typed, and so to be guessed."""
    return len(code) < _UNGUESSABLE


def read_code(shown: str) -> str:
    """The code in what a browser sends: a person may type one in small letters, with spaces around it."""
    code = shown.strip()
    return code.upper() if is_typed_code(code) else code


def _is_same(expected: str, given: str) -> bool:
    return hmac.compare_digest(expected.encode(), given.encode())
