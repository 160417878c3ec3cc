"""The passphrase of a backup: typed on the terminal, or for a backup at night from a file or the environment."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from cleared.base.errors import Place, PolicyError, UsageError, WorkspaceError
from cleared.base.safe_files import read_stable
from cleared.trust.passphrase import TRIES, ask_on_terminal
from cleared.trust.sealed_key import WrongPassphrase

_T = TypeVar("_T")
VARIABLE: Final = "CLEARED_BACKUP_PASSPHRASE"
MIN_LENGTH: Final = 12
"""Characters that it has at least: whoever finds the file can guess for years."""
_MIN_DIFFERENT: Final = 5
_MAX_BYTES: Final = 4096


def read_new_passphrase(file: Path | None) -> str:
    """A passphrase for a new backup: from ``file``, else the environment, else typed twice on the terminal.

    Raises ``UsageError`` for one that is weak, or was typed differently the second time, ``PolicyError`` where there is
    none and nobody can be asked, ``WorkspaceError`` where the file cannot be read, or others can.
    """
    given = _read_given(file)
    if given is None:
        given = _ask("New passphrase of the backup: ")
        refuse_weak(given)
        if _ask("The same again: ") != given:
            raise UsageError("the two are not the same; nothing was written", remedy="Try again.")
    refuse_weak(given)
    return given


def open_with_passphrase(file: Path | None, try_passphrase: Callable[[str], _T]) -> _T:
    """What ``try_passphrase`` gives for the passphrase, found as for a new backup; on a terminal with several tries.

    Raises ``WrongPassphrase``, and as ``read_new_passphrase``.
    """
    given = _read_given(file)
    if given is not None:
        return try_passphrase(given)
    for attempt in range(1, TRIES + 1):
        try:
            return try_passphrase(_ask(f"{'Wrong. ' if attempt > 1 else ''}Passphrase of the backup: "))
        except WrongPassphrase:
            if attempt == TRIES:
                raise
    raise AssertionError("unreachable")


def refuse_weak(passphrase: str) -> None:
    """Raises ``UsageError`` for a passphrase that is soon guessed."""
    if len(passphrase) < MIN_LENGTH or len(set(passphrase)) < _MIN_DIFFERENT:
        raise UsageError(
            f"the passphrase is too weak: it needs {MIN_LENGTH} characters, {_MIN_DIFFERENT} of them different; "
            "nothing was written",
            remedy="Take five or more words that only you put together.",
        )


def _ask(prompt: str) -> str:
    typed = ask_on_terminal(prompt)
    if typed is None:
        raise PolicyError(
            "there is no terminal to ask for the passphrase of the backup",
            remedy=f"Name a file that has it (--passphrase-file FILE), or set {VARIABLE}.",
        )
    if not typed:
        raise PolicyError("no passphrase was typed; nothing was done", remedy="Try again.")
    return typed


def _read_given(file: Path | None) -> str | None:
    """What a file or the environment says; None where neither is named."""
    if file is None:
        # No program that is started has any use for it.
        given = os.environ.pop(VARIABLE, None)
        if given == "":
            raise UsageError(f"{VARIABLE} is empty", remedy="Set it to the passphrase, or unset it to be asked.")
        return given
    data, status = read_stable(file, _MAX_BYTES)
    if sys.platform != "win32" and stat.S_IMODE(status.st_mode) & 0o077:
        raise WorkspaceError(
            "others can read the passphrase of the backup", place=Place(str(file)), remedy=f"Close it: chmod 600 {file}"
        )
    try:
        text = data.decode("utf-8").removeprefix("\ufeff").rstrip("\r\n")
    except UnicodeDecodeError:
        text = ""
    if not text or "\n" in text:
        raise UsageError("it has no passphrase: one line of text", place=Place(str(file)), remedy="Write one into it.")
    return text
