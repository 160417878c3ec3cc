"""The lines that a host sends, read by one thread at a time.

Usually that is the bridge's main thread, which hands replies over to the threads of the scripts. Where one script runs
alone, it is offered to read its replies itself: that saves a switch of threads at each of its calls.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from typing import BinaryIO, Final

from cleared.base.clock import SystemClock
from cleared.sandbox.bridge.jsonrpc import MAX_LINE, PARSE_ERROR, RpcError, read_line
from cleared.sandbox.bridge.stdio import descriptor_number

_CHUNK: Final = 1 << 16
_PAUSE: Final = 0.05
"""Seconds that nothing is read after which an offer ends: the script computes, and the host may have news."""
_LONGEST: Final = 1e9
"""Milliseconds that are waited for at once."""
_monotonic = SystemClock().monotonic


class FrameReader:
    """Lines of a stream, and whose turn it is to read them. ``stream`` has given nothing yet."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._descriptor = descriptor_number(stream)
        self._data = bytearray()
        self._searched = 0
        self._skips = False
        self._turn = threading.Condition()
        self._offered = False
        self._taken = False
        self._count = 0
        self.can_be_shared = hasattr(select, "poll") and self._descriptor >= 0
        """Whether a script may read: only what can be polled ends at the script's deadline."""
        if self.can_be_shared:
            self._wakes = os.pipe()
            self._poll = select.poll()
            for descriptor in (self._descriptor, self._wakes[0]):
                self._poll.register(descriptor, select.POLLIN)

    # -- turns --------------------------------------------------------------------------------------------------

    def offer_turn(self, is_wanted: Callable[[], bool]) -> None:
        """Let a script read, until it makes no use of that, or the offer is withdrawn."""
        if not self.can_be_shared:
            return
        with self._turn:
            self._offered = is_wanted()
            while self._offered:
                before = self._count
                self._turn.wait(_PAUSE)
                if not self._taken and self._count == before:
                    self._offered = False

    def withdraw_offer(self) -> None:
        """End the offer; who reads now reads on until its turn ends."""
        with self._turn:
            self._offered = self._taken
            self._turn.notify_all()

    def take_turn(self) -> bool:
        """Whether the caller may read now; then it calls ``end_turn``."""
        if not self._offered:
            return False
        with self._turn:
            if not self._offered or self._taken:
                return False
            self._taken = True
            return True

    def end_turn(self, *, goes_on: bool) -> None:
        """``goes_on``: whether the offer still holds."""
        with self._turn:
            self._taken = False
            self._count += 1
            if not goes_on:
                self._offered = False
                self._turn.notify_all()

    def wake_reader(self) -> None:
        """End the waiting of a script that reads: it gets ``TimeoutError``, and so does each that would wait later."""
        if self.can_be_shared:
            os.write(self._wakes[1], b"\0")

    def close(self) -> None:
        """Give back what waking takes, once no script runs any more."""
        if self.can_be_shared:
            self.can_be_shared = False
            for descriptor in self._wakes:
                os.close(descriptor)

    # -- lines --------------------------------------------------------------------------------------------------

    def read_line(self, deadline: float | None = None) -> bytes | None:
        """The next line that is not blank, None at the end. ``deadline``: of the monotonic clock.

        Raises ``RpcError`` for one that is too long, and skips it; ``TimeoutError`` where there is none in time.
        """
        if not self.can_be_shared:
            return read_line(self._stream)
        while True:
            line = self._next_line()
            if line is None:
                if deadline is not None:
                    self._await_data(deadline)
                chunk = self._read_chunk()
                if not chunk:
                    return self._last_line()
                if not self._data and not self._skips and chunk.find(b"\n") == len(chunk) - 1:
                    line = chunk  # as nearly all are
                else:
                    self._data += chunk
                    continue
            if not line.isspace():
                return line

    def _await_data(self, deadline: float) -> None:
        ready = self._poll.poll(min(max(deadline - _monotonic(), 0.0) * 1_000, _LONGEST))
        if not ready or any(descriptor != self._descriptor for descriptor, _ in ready):
            raise TimeoutError

    def _read_chunk(self) -> bytes:
        try:
            return os.read(self._descriptor, _CHUNK)
        except OSError:  # it was closed
            return b""

    def _next_line(self) -> bytes | None:
        """A whole line that is here already. Raises ``RpcError``."""
        if not self._data:
            return None
        end = self._data.find(b"\n", self._searched) + 1
        if not end:
            if len(self._data) > MAX_LINE or self._skips:
                self._skips = True
                self._data.clear()
            self._searched = len(self._data)
            return None
        line = bytes(self._data[:end])
        del self._data[:end]
        self._searched = 0
        if self._skips or len(line) > MAX_LINE:
            self._skips = False
            raise _too_long()
        return line

    def _last_line(self) -> bytes | None:
        """What there is after the last line break."""
        line, skipped = bytes(self._data), self._skips
        self._data.clear()
        self._searched, self._skips = 0, False
        if skipped or len(line) > MAX_LINE:
            raise _too_long()
        return line if line and not line.isspace() else None


def _too_long() -> RpcError:
    return RpcError(PARSE_ERROR, data=f"the line has more than {MAX_LINE} bytes")
