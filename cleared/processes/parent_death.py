"""Kills a worker when its host dies, even while the worker computes and reads no pipe. Linux only.

The worker inherits the reading end of a pipe that nobody writes to. When the host dies, the kernel closes the other end
and sends the owner of the reading end a signal, which is set to SIGKILL. (The usual ``PR_SET_PDEATHSIG`` has to be
called by the child itself, and the child is the interpreter's.) Elsewhere a worker lives until its time limit.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys


class ParentDeathSignal:
    """The pipe of one worker. Make it before the worker is started, which inherits it."""

    def __init__(self) -> None:
        self._descriptors: tuple[int, ...] = ()
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # no descriptors left: go without
                self._descriptors = os.pipe()
                os.set_inheritable(self._descriptors[0], True)

    def bind_worker(self, pid: int) -> None:
        """Have the kernel kill the worker ``pid`` when this process ends, or calls ``release_worker``."""
        if sys.platform != "linux" or not self._descriptors:
            return
        import fcntl

        reading, writing = self._descriptors
        with contextlib.suppress(OSError):
            fcntl.fcntl(reading, fcntl.F_SETOWN, pid)
            fcntl.fcntl(reading, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(reading, fcntl.F_SETFL, fcntl.fcntl(reading, fcntl.F_GETFL) | os.O_ASYNC)
        self._descriptors = (writing,)
        os.close(reading)

    def release_worker(self) -> None:
        """Close the pipe, which kills a worker that is bound to it."""
        descriptors, self._descriptors = self._descriptors, ()
        for descriptor in descriptors:
            os.close(descriptor)
