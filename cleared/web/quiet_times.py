"""When nobody waits for an answer of the server: then is done what may wait."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_QUIET: Final = 0.5
"""Seconds without anybody who asks: who comes at the start waits for one page alone."""
_PATIENCE: Final = 30.0
"""Seconds after which what may wait is done all the same, where somebody always asks."""


class QuietTimes:
    """Of one server. Thread-safe."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._asking, self._was_used = 0, False

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Somebody waits for an answer meanwhile."""
        with self._change:
            self._asking, self._was_used = self._asking + 1, True
            self._change.notify_all()
        try:
            yield
        finally:
            with self._change:
                self._asking -= 1
                self._change.notify_all()

    def wait_until_quiet(self) -> None:
        """Return once nobody has asked for a moment."""
        with self._change:
            self._change.wait_for(self._is_quiet, _PATIENCE)

    def _is_quiet(self) -> bool:
        """Whether nobody asks, nor does so in a moment."""
        return not self._asking and not self._change.wait_for(lambda: self._asking, _QUIET)

    def wait_for_use(self) -> None:
        """Return once somebody has asked since this was called last."""
        with self._change:
            self._change.wait_for(lambda: self._was_used)
            self._was_used = False
