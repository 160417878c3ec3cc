"""Bank files that were handed in and are of no account that is known, until somebody says what they are."""

from __future__ import annotations

import secrets
import threading
from typing import Final

from msgspec import Struct

from cleared.base.errors import UsageError

MAX_FILES: Final = 20
MAX_BYTES: Final = 64 << 20
"""Of all of them together: the longest known go first."""


class UnknownFile(Struct, frozen=True):
    """One of them. ``why``: what the import said."""

    id: str
    name: str
    data: bytes
    why: str


class UnknownFiles:
    """Those of one workspace. Thread-safe. Nothing of them is on the disk: when the server ends, they are handed in
    again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[str, UnknownFile] = {}

    def keep(self, name: str, data: bytes, why: str) -> UnknownFile:
        """Keep one until it is described."""
        with self._lock:
            same = next((each for each in self._files.values() if (each.name, each.data) == (name, data)), None)
            if same is not None:
                return same
            file = UnknownFile(secrets.token_urlsafe(9), name, data, why)
            files = [*self._files.values(), file][-MAX_FILES:]
            while len(files) > 1 and sum(len(each.data) for each in files) > MAX_BYTES:
                del files[0]
            self._files = {each.id: each for each in files}
            return file

    def find(self, file_id: str) -> UnknownFile:
        """One of them. Raises ``UsageError`` where it is not kept any more."""
        file = self._files.get(file_id)
        if file is None:
            raise UsageError(
                "that file does not wait any more: it was added, or newer ones took its place",
                remedy="Where its account is not among the bank accounts, hand it in again.",
            )
        return file

    def list_files(self) -> list[UnknownFile]:
        """Those that wait, oldest first."""
        return list(self._files.values())

    def forget(self, file_id: str) -> None:
        """It is described, or nobody wants it."""
        with self._lock:
            self._files = {name: each for name, each in self._files.items() if name != file_id}
