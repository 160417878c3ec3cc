"""Giving the approval key a passphrase, changing it, and taking it away again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from cleared.base.errors import PolicyError, UsageError, WorkspaceError
from cleared.base.safe_files import describe_os_error, write_atomic
from cleared.trust import keys, passphrase, sealed_key
from cleared.trust.person_only import refuse_in_job

MIN_LENGTH: Final = 8
"""Characters that a passphrase has at least."""


def protect_key() -> str:
    """Give the approval key a passphrase that is asked for; its public half. Makes a key where there is none.

    Raises ``PolicyError`` where it has one, or no terminal is there to ask, ``UsageError`` for a passphrase that is too
    short or was typed differently the second time, ``WorkspaceError`` where the file cannot be read or written.
    """
    refuse_in_job()
    path = keys.cleared_home() / keys.KEY
    if keys.is_passphrase_protected():
        raise PolicyError("the approval key has a passphrase already", remedy="To change it: cleared key change.")
    secret = keys.read_plain_secret(path) if path.exists() else None
    new = _ask_new_passphrase()
    if secret is None:
        secret = keys.new_secret()
    public = keys.public_half(secret)
    _replace_key(path, sealed_key.seal_key(secret, public, new), public)
    return public


def change_passphrase() -> None:
    """Ask for the passphrase and for a new one, which holds from now on. Raises as ``protect_key``, and
    ``WrongPassphrase``."""
    refuse_in_job()
    path, data = _read_protected()
    secret = _open_with_typed(data, path)
    public = keys.public_half(secret)
    _replace_key(path, sealed_key.seal_key(secret, public, _ask_new_passphrase()), public)


def unprotect_key() -> None:
    """Ask for the passphrase, and keep the key without one from now on. Raises as ``change_passphrase``."""
    refuse_in_job()
    path, data = _read_protected()
    secret = _open_with_typed(data, path)
    _replace_key(path, keys.render_plain(secret), keys.public_half(secret))


def _read_protected() -> tuple[Path, bytes]:
    path = keys.cleared_home() / keys.KEY
    if not keys.is_passphrase_protected():
        raise PolicyError("the approval key has no passphrase", remedy="To give it one: cleared key protect.")
    return path, keys.read_key_file(path)


def _open_with_typed(data: bytes, path: Path) -> bytes:
    return sealed_key.open_sealed_key(data, passphrase.ask_passphrase("Passphrase of the approval key: "), str(path))


def _ask_new_passphrase() -> str:
    try:
        new = passphrase.ask_passphrase("New passphrase: ")
    except PolicyError:
        raise PolicyError(
            "no passphrase was typed; nothing was changed",
            remedy="Run the command in a terminal of your own: the passphrase is taken from nothing else.",
        ) from None
    if len(new) < MIN_LENGTH:
        raise UsageError(
            f"the passphrase has fewer than {MIN_LENGTH} characters; nothing was changed",
            remedy="Take some words that only you put together.",
        )
    if passphrase.ask_passphrase("The same again: ") != new:
        raise UsageError("the two are not the same; nothing was changed", remedy="Try again.")
    return new


def _replace_key(path: Path, data: bytes, public: str) -> None:
    """Put the file in the place of the old one, whole, and overwrite what the old one held (also under other names)."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        old = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)) if path.exists() else None
    except OSError as error:
        raise WorkspaceError(f"the key {path} cannot be written: {describe_os_error(error)}") from None
    try:
        write_atomic(path, data, mode=0o600)
        passphrase.forget_secrets()
        if old is not None:
            os.write(old, os.urandom(os.fstat(old).st_size))
            os.fsync(old)
    except OSError as error:
        raise WorkspaceError(
            f"the new key file is in place, and the old one could not be overwritten: {describe_os_error(error)}"
        ) from None
    finally:
        if old is not None:
            os.close(old)
    write_atomic(path.with_name(f"{path.name}.pub"), f"{public}\n".encode("ascii"))
