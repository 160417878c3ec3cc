"""The file of a private key that has a passphrase: scrypt makes a key of it, ChaCha20-Poly1305 seals with that.

A checksum over the whole file tells a damaged file from a wrong passphrase.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import unicodedata
from typing import Any, Final

from cleared.base.errors import PolicyError, WorkspaceError

FORMAT: Final = "cleared-key"
VERSION: Final = 1
SCRYPT_N: Final = 1 << 16
"""Scrypt's cost: 64 MB of memory and about a fifth of a second."""
_SCRYPT_R: Final = 8
COSTS: Final = tuple(1 << power for power in range(14, 19))
"""Costs that are accepted of a file: at most 256 MB."""
_CHECKED: Final = ("format", "version", "public", "n", "salt", "nonce", "sealed")


class WrongPassphrase(PolicyError):
    """The file is whole, and this is not its passphrase."""


def is_sealed(data: bytes) -> bool:
    """Whether this is the content of a sealed file, and not a plain key."""
    return data.lstrip().startswith(b"{")


def seal_key(secret: bytes, public: str, passphrase: str) -> bytes:
    """The content of the file that holds the 32 secret bytes of the key with this public half."""
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    salt, nonce = os.urandom(16), os.urandom(12)
    fields: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "public": public,
        "n": SCRYPT_N,
        "salt": _encode(salt),
        "nonce": _encode(nonce),
    }
    cipher = ChaCha20Poly1305(derive_key(passphrase, salt, SCRYPT_N))
    fields["sealed"] = _encode(cipher.encrypt(nonce, secret, public.encode("ascii")))
    fields["checksum"] = _checksum(fields)
    return json.dumps(fields, indent=1).encode("ascii") + b"\n"


def read_public_half(data: bytes, shown: str) -> str:
    """The public half that a sealed file names. ``shown`` names the file. Raises ``WorkspaceError`` for a damaged
    one."""
    return str(_read_fields(data, shown)["public"])


def open_sealed_key(data: bytes, passphrase: str, shown: str) -> bytes:
    """The 32 secret bytes. Raises ``WrongPassphrase``, and ``WorkspaceError`` for a damaged file."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    fields = _read_fields(data, shown)
    try:
        salt, nonce, sealed = (base64.b64decode(fields[name], validate=True) for name in ("salt", "nonce", "sealed"))
        cipher = ChaCha20Poly1305(derive_key(passphrase, salt, fields["n"]))
        return cipher.decrypt(nonce, sealed, fields["public"].encode("ascii"))
    except InvalidTag:
        raise WrongPassphrase(
            f"this is not the passphrase of {shown}; nothing was signed",
            remedy=f"Try again. If it is lost: move {shown} away; the next approval makes a new key, and cleared trust "
            "says that what the old one approved counts.",
        ) from None
    except ValueError:
        raise _damage_error(shown) from None


def _read_fields(data: bytes, shown: str) -> dict[str, Any]:
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        raise _damage_error(shown) from None
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise _damage_error(shown)
    version = fields.get("version")
    if isinstance(version, int) and version > VERSION:
        raise WorkspaceError(
            f"{shown} was written by a newer version of cleared (format {version})",
            remedy="Use that version, or a newer one.",
        )
    texts = all(isinstance(fields.get(name), str) for name in ("public", "salt", "nonce", "sealed"))
    if not texts or type(fields.get("n")) is not int or fields["n"] not in COSTS or not fields["public"].isascii():
        raise _damage_error(shown)
    if fields.get("checksum") != _checksum(fields):
        raise _damage_error(shown)
    return fields


def _damage_error(shown: str) -> WorkspaceError:
    return WorkspaceError(
        f"the key file {shown} is damaged; no passphrase opens it",
        remedy="Restore it from your backup. If there is none, move it away: the next approval makes a new key, and "
        "cleared trust says that what the old one approved counts.",
    )


def _checksum(fields: dict[str, Any]) -> str:
    checked = json.dumps([fields[name] for name in _CHECKED]).encode("utf-8", "surrogatepass")
    return hashlib.sha256(checked).hexdigest()


def derive_key(passphrase: str, salt: bytes, cost: int) -> bytes:
    """The 32 bytes that scrypt makes of a passphrase. ``cost``: one of ``COSTS``."""
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    typed = unicodedata.normalize("NFC", passphrase).encode("utf-8", "surrogatepass")
    return Scrypt(salt=salt, length=32, n=cost, r=_SCRYPT_R, p=1).derive(typed)


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
