"""Asking for the passphrase of the approval key, and remembering the opened key for a while in this process alone.

No other process is served: one that remembers for others would also serve a program that the person started in the same
terminal, from which the passphrase is to protect.
"""

from __future__ import annotations

import getpass
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from cleared.base.errors import PolicyError
from cleared.base.terminal import escape_text

REMEMBER_SECONDS: Final = 300.0
"""How long a process that goes on, such as ``cleared review``, signs without asking again."""
TRIES: Final = 3

Ask = Callable[[str], str | None]
"""Shows a prompt and gives the passphrase; None where nobody can be asked, or the person does not want to."""


def ask_on_terminal(prompt: str) -> str | None:
    """What a person types on the terminal that controls this process, unseen; None where there is none, or this process
    is in its background. Never from a pipe, an argument or the environment."""
    if not _has_terminal():
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", getpass.GetPassWarning)  # it would read a pipe instead
            return getpass.getpass(escape_text(prompt))
    except (getpass.GetPassWarning, EOFError, OSError):
        return None


def _has_terminal() -> bool:
    if sys.platform == "win32":
        return sys.stdin is not None and sys.stdin.isatty()
    try:
        descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(descriptor)


_asks: list[Ask] = [ask_on_terminal]
_opened: dict[bytes, tuple[bytes, float]] = {}
"""Content of a sealed file → its secret bytes, and until when (monotonic seconds) they are remembered."""


@contextmanager
def asking_with(ask: Ask) -> Iterator[None]:
    """Passphrases are asked for with ``ask`` meanwhile: where a full screen has the terminal."""
    _asks.append(ask)
    try:
        yield
    finally:
        _asks.pop()


def ask_passphrase(prompt: str) -> str:
    """The passphrase that a person typed. Raises ``PolicyError`` where nobody can be asked, or nothing was typed."""
    typed = _asks[-1](prompt)
    if not typed:
        raise PolicyError(
            "the approval key has a passphrase, and none was typed; nothing was signed"
            if typed == "" or _has_terminal()
            else "the approval key has a passphrase, and there is no terminal to ask for it; nothing was signed",
            remedy="Run the command in a terminal of your own: the passphrase is taken from nothing else.",
        )
    return typed


def remember_secret(sealed: bytes, secret: bytes) -> None:
    """Remember what a sealed file holds, for ``REMEMBER_SECONDS``, in the memory of this process."""
    _opened[sealed] = (secret, time.monotonic() + REMEMBER_SECONDS)


def recall_secret(sealed: bytes) -> bytes | None:
    """What the sealed file holds, where it is still remembered."""
    secret, until = _opened.get(sealed, (None, 0.0))
    if time.monotonic() < until:
        return secret
    _opened.pop(sealed, None)
    return None


def forget_secrets() -> None:
    """Remember nothing any more."""
    _opened.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_secrets)
