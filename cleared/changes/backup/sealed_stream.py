"""The outside of a backup: a stream of bytes, sealed with a passphrase, piece by piece (docs/howto/backup.md, Format).

Scrypt makes the key, ChaCha20-Poly1305 seals each piece with the number that it has and whether it is the last. So no
piece can be altered, moved, left out or added, and the end cannot be cut off, without being noticed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from cleared.base.errors import Place, WorkspaceError
from cleared.base.safe_files import describe_os_error
from cleared.trust.sealed_key import COSTS, WrongPassphrase, derive_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

MAGIC: Final = b"cleared-backup 1\n"
"""The first line; the number is the version of the format."""
_PREFIX: Final = b"cleared-backup "
SCRYPT_N: Final = 1 << 17
"""Scrypt's cost: 128 MB of memory. Somebody who has the file may guess for as long as he likes."""
PIECE: Final = 1 << 20
"""Bytes of each piece but the last, before they are sealed."""
_TAG: Final = 16
_MAX_HEADER: Final = 1_000
_CHECK_NONCE: Final = b"\xff" * 12


class SealingWriter(io.RawIOBase):
    """Writes a sealed stream to ``file``. ``finish`` ends it: without, it counts as cut off."""

    def __init__(self, file: BinaryIO, passphrase: str) -> None:
        self._file = file
        salt = os.urandom(16)
        fields = {
            "cipher": "chacha20-poly1305",
            "kdf": "scrypt",
            "n": SCRYPT_N,
            "p": 1,
            "piece": PIECE,
            "r": 8,
            "salt": salt.hex(),
        }
        self._header = MAGIC + json.dumps(fields).encode("ascii") + b"\n"
        self._cipher = _make_cipher(passphrase, salt, SCRYPT_N)
        self._waiting = bytearray()
        self._number = 0
        file.write(self._header + hashlib.sha256(self._header).hexdigest().encode("ascii") + b"\n")
        file.write(self._cipher.encrypt(_CHECK_NONCE, b"", self._header))

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._waiting += data
        while len(self._waiting) > PIECE:  # what may be the last piece waits
            self._write_piece(bytes(self._waiting[:PIECE]), is_last=False)
            del self._waiting[:PIECE]
        return memoryview(data).nbytes

    def finish(self) -> None:
        """Write the last piece."""
        self._write_piece(bytes(self._waiting), is_last=True)
        self._waiting.clear()

    def opener(self) -> OpenedPassphrase:
        """What opens this stream without the passphrase."""
        return OpenedPassphrase(self._header, self._cipher)

    def _write_piece(self, data: bytes, *, is_last: bool) -> None:
        try:
            self._file.write(self._cipher.encrypt(_nonce(self._number, is_last), data, self._header))
        except OSError as error:
            raise WorkspaceError(f"the backup could not be written: {describe_os_error(error)}") from error
        self._number += 1


class OpenedPassphrase:
    """The key that a passphrase has opened: for one stream, as each has a salt of its own."""

    def __init__(self, header: bytes, cipher: ChaCha20Poly1305) -> None:
        self.header, self.cipher = header, cipher


class SealedFile:
    """A file that holds a sealed stream, with its header read. ``shown`` names it in messages.

    Raises ``WorkspaceError`` where it is no backup, of a newer version, or its header is damaged.
    """

    def __init__(self, file: BinaryIO, shown: str) -> None:
        self._file, self._shown = file, shown
        magic = file.readline(64)
        if magic != MAGIC:
            raise _not_a_backup(magic, shown)
        line = file.readline(_MAX_HEADER)
        self._header = magic + line
        if file.readline(_MAX_HEADER).strip() != hashlib.sha256(self._header).hexdigest().encode("ascii"):
            raise self._damage_error("its header is damaged")
        try:
            fields: dict[str, Any] = json.loads(line)
            self._salt, self._cost, self._piece = bytes.fromhex(fields["salt"]), fields["n"], fields["piece"]
            is_known = (fields["cipher"], fields["kdf"], fields["r"], fields["p"]) == (
                "chacha20-poly1305",
                "scrypt",
                8,
                1,
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self._damage_error("its header is damaged") from None
        if not is_known or self._cost not in COSTS or type(self._piece) is not int or not 0 < self._piece <= 1 << 24:
            raise self._damage_error("its header says what no version of cleared writes")
        self._check = file.read(_TAG)

    def try_passphrase(self, passphrase: str) -> OpenedPassphrase:
        """What opens the stream. Raises ``WrongPassphrase``."""
        from cryptography.exceptions import InvalidTag

        cipher = _make_cipher(passphrase, self._salt, self._cost)
        try:
            cipher.decrypt(_CHECK_NONCE, self._check, self._header)
        except InvalidTag:
            if len(self._check) < _TAG:
                raise self._damage_error("its end is missing") from None
            raise WrongPassphrase(
                f"this is not the passphrase of {self._shown}; nothing was restored",
                remedy="Try again. Nobody can open a backup whose passphrase is lost.",
            ) from None
        return OpenedPassphrase(self._header, cipher)

    def read_stream(self, opened: OpenedPassphrase) -> OpeningReader:
        """The stream, from its beginning. Raises ``WorkspaceError`` where it is another file's key."""
        if opened.header != self._header:
            raise self._damage_error("it is not the file that was written")
        return OpeningReader(self._file, opened, self._piece, self._shown)

    def _damage_error(self, why: str) -> WorkspaceError:
        return damage_error(self._shown, why)


class OpeningReader(io.RawIOBase):
    """Reads what a sealed stream holds. Raises ``WorkspaceError`` at the first piece that is not as it was written."""

    def __init__(self, file: BinaryIO, opened: OpenedPassphrase, piece: int, shown: str) -> None:
        self._file, self._opened, self._size, self._shown = file, opened, piece + _TAG, shown
        self._number = 0
        self._ready = memoryview(b"")
        self._next = file.read(self._size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        if not self._ready and self._next:
            self._ready = memoryview(self._open_piece())
        count = min(len(self._ready), len(buffer))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def drain(self) -> None:
        """Read to the end, so that all of it is known to be as written."""
        while self.read(PIECE):
            pass
        if not self._number:
            raise damage_error(self._shown, "its end is missing")

    def _open_piece(self) -> bytes:
        from cryptography.exceptions import InvalidTag

        piece, self._next = self._next, self._file.read(self._size)
        is_last = not self._next
        try:
            data = self._opened.cipher.decrypt(_nonce(self._number, is_last), piece, self._opened.header)
        except InvalidTag:
            raise damage_error(self._shown, self._describe_fault(piece, is_last)) from None
        self._number += 1
        return data

    def _describe_fault(self, piece: bytes, is_last: bool) -> str:
        from cryptography.exceptions import InvalidTag

        try:
            self._opened.cipher.decrypt(_nonce(self._number, not is_last), piece, self._opened.header)
        except InvalidTag:
            return f"it is damaged in its {self._number + 1}. piece of {self._size:,} bytes"
        return "its end is missing" if is_last else "something was added to its end"


def damage_error(shown: str, why: str) -> WorkspaceError:
    """The error for a backup that is not as it was written."""
    return WorkspaceError(
        f"the backup cannot be used: {why}", place=Place(shown), remedy="Take another copy of it, or an older backup."
    )


def _not_a_backup(magic: bytes, shown: str) -> WorkspaceError:
    if magic.startswith(_PREFIX):
        return WorkspaceError(
            "the backup was written by another version of cleared",
            place=Place(shown),
            remedy="Use that version, or a newer one.",
        )
    return WorkspaceError(
        "this is no backup of cleared", place=Place(shown), remedy="Name a file that cleared backup wrote."
    )


def _make_cipher(passphrase: str, salt: bytes, cost: int) -> ChaCha20Poly1305:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    return ChaCha20Poly1305(derive_key(passphrase, salt, cost))


def _nonce(number: int, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([is_last])
