"""A worker dies with its host, whatever killed that, even while it computes and does not look at its pipes.

Linux only: the worker inherits the reading end of a pipe that nobody writes to. When the host is gone the kernel
closes the other end, and tells whoever owns the reading end by a signal of our choice: SIGKILL. (The usual way,
``PR_SET_PDEATHSIG``, is for the child to take after its start; the client starts the workers, not we.) Elsewhere a
worker lives until its own limit of time.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys


class ParentDeathSignal:
    """One worker's. Made before the worker is started, so that it inherits it."""

    def __init__(self) -> None:
        self._held: tuple[int, ...] = ()
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # no descriptors left: then without
                self._held = os.pipe()
                os.set_inheritable(self._held[0], True)

    def bind_worker(self, pid: int) -> None:
        """Have the kernel kill the worker ``pid`` when this process ends, or lets go."""
        if sys.platform != "linux" or not self._held:
            return
        import fcntl

        reading, writing = self._held
        with contextlib.suppress(OSError):
            fcntl.fcntl(reading, fcntl.F_SETOWN, pid)
            fcntl.fcntl(reading, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(reading, fcntl.F_SETFL, fcntl.fcntl(reading, fcntl.F_GETFL) | os.O_ASYNC)
        self._held = (writing,)
        os.close(reading)

    def release_worker(self) -> None:
        held, self._held = self._held, ()
        for descriptor in held:
            os.close(descriptor)
