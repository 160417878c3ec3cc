"""Messages between two processes of this program: each is its length and a pickle. Nobody else holds either end."""

from __future__ import annotations

import os
import pickle
import select
import socket
import struct
from contextlib import suppress
from typing import Any, Final

_LENGTH: Final = struct.Struct("<Q")


class MessagePipe:
    """One end. It is inherited by no program that is started."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def make_pair(cls) -> tuple[MessagePipe, MessagePipe]:
        """The two ends of a new one."""
        one, other = socket.socketpair()
        return cls(one.detach()), cls(other.detach())

    def fileno(self) -> int:
        return self._descriptor

    def send(self, message: object) -> None:
        """Send it; where nobody is there any more, nothing happens: ``receive`` says so."""
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        unsent = memoryview(_LENGTH.pack(len(data)) + data)
        with suppress(BrokenPipeError, ConnectionResetError):
            while unsent:
                unsent = unsent[os.write(self._descriptor, unsent) :]

    def has_message(self, seconds: float) -> bool:
        """Whether there is a message, or the end, within so many seconds."""
        return bool(select.select([self._descriptor], [], [], max(0.0, seconds))[0])

    def receive(self) -> Any:
        """The next message. Raises ``EOFError`` where the other end is closed."""
        return pickle.loads(self._read_exactly(_LENGTH.unpack(self._read_exactly(_LENGTH.size))[0]))

    def close(self) -> None:
        os.close(self._descriptor)

    def _read_exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            more = b""
            with suppress(ConnectionResetError):
                more = os.read(self._descriptor, min(count - len(data), 1 << 20))
            if not more:
                raise EOFError("the other end is closed")
            data += more
        return bytes(data)
