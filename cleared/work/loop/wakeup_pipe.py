"""The named pipe that wakes the loop: whoever leaves a message writes a byte to it."""

from __future__ import annotations

import os
import select
from contextlib import suppress
from pathlib import Path

from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import describe_os_error


class WakeupPipe:
    """The loop's end of the pipe; a context manager. Signal handlers of the loop write to it too."""

    def __init__(self, path: Path) -> None:
        """Make and open the pipe. Raises ``WorkspaceError`` where that fails."""
        try:
            if not path.is_fifo():
                path.unlink(missing_ok=True)
                os.mkfifo(path, 0o600)
            self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        except OSError as error:
            raise WorkspaceError(f"{path} cannot be made: {describe_os_error(error)}") from None
        self._has_wakeup = False

    def __enter__(self) -> WakeupPipe:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def write_byte(self) -> None:
        """Wake the loop."""
        with suppress(OSError):
            os.write(self._descriptor, b".")

    def wait_readable(self, seconds: float, other: int | None = None) -> bool:
        """Wait so long for a wakeup, or for the descriptor ``other``; whether ``other`` is readable."""
        watched = [self._descriptor] if other is None else [self._descriptor, other]
        ready, _, _ = select.select(watched, [], [], max(0.0, seconds))
        if self._descriptor in ready:
            self._has_wakeup = True
            with suppress(OSError):
                while os.read(self._descriptor, 4096):
                    pass
        return other is not None and other in ready

    def take_wakeup(self) -> bool:
        """Whether there was a wakeup since the last call."""
        had, self._has_wakeup = self._has_wakeup, False
        return had
