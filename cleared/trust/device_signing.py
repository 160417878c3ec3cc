"""Decisions that a person's passkey signs: it signs what is to be committed, and answers only after it was asked.

A decision is prepared, which says what there is to sign, and undone; the browser has the passkey sign that; then the
same decision is made again. It comes to the same bytes because time and ids are those of the first time.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Final

from msgspec import Struct

from cleared.base.errors import PolicyError
from cleared.trust.keys import Key
from cleared.trust.passkey_assertions import find_assertion_problem, make_challenge


class AssertionNeeded(PolicyError):
    """A passkey is to sign, and was not asked yet."""

    def __init__(self) -> None:
        super().__init__("the passkey has not signed this; nothing was decided", remedy="Confirm it with the passkey.")


class PasskeyKey(Key):
    """A passkey, with what it has signed so far. ``wanted``: the challenge that it must sign next."""

    def __init__(self, public: str, assertions: dict[bytes, str], note: Callable[[str], None] = lambda _: None) -> None:
        """``note`` is called with each assertion that is used, and may raise ``PolicyError``."""
        self.public = public
        self._assertions, self._note = assertions, note
        self.wanted: bytes | None = None

    def sign(self, data: bytes) -> str:
        """The passkey's assertion over ``data``. Raises ``AssertionNeeded`` where there is none yet, ``PolicyError``
        where the one there is does not count."""
        challenge = make_challenge(data)
        assertion = self._assertions.get(challenge)
        if assertion is None:
            self.wanted = challenge
            raise AssertionNeeded
        problem = find_assertion_problem(self.public, assertion, data)
        if problem:
            raise PolicyError(
                f"what the passkey signed does not count: {problem}; nothing was decided", remedy="Decide it again."
            )
        self._note(assertion)
        return assertion


class DeviceSigning(Struct):
    """A decision that a passkey signs. ``name``: whose it is. ``shown``: a digest of what was shown."""

    key: PasskeyKey
    name: str
    now: datetime
    seed: str
    shown: str = ""
    _made: int = 0

    def make_token(self, size: int) -> str:
        """The next of the random texts of this decision, in hex; the same each time it is made."""
        self._made += 1
        return hashlib.sha256(f"{self.seed} {self._made}".encode()).hexdigest()[: 2 * size]


_current: Final[ContextVar[DeviceSigning | None]] = ContextVar("device", default=None)


def current_device() -> DeviceSigning | None:
    """The passkey with which decisions are made here; None where this user's own key signs."""
    return _current.get()


@contextmanager
def signing_with(device: DeviceSigning) -> Iterator[None]:
    """Decisions that are made here are those of the passkey, and of nobody else."""
    token = _current.set(device)
    try:
        yield
    finally:
        _current.reset(token)


def make_token(size: int) -> str:
    """A random text in hex of this many bytes, for an id; while a passkey signs, one that comes again."""
    device = _current.get()
    return device.make_token(size) if device is not None else os.urandom(size).hex()
