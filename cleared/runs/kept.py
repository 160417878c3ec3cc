"""A workspace that stays open, in a program that does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cleared.approvals.policy import stamp
from cleared.runs.host import Host


class Kept:
    """The same host from one act to the next, as long as nobody has written the settings, their approval or what is
    trusted anew. For one act at a time."""

    def __init__(self, root: Path, open_: Callable[[], Host]) -> None:
        self._root, self._open = root, open_
        self._host: Host | None = None
        self.stamp: object = None
        """Another for each state of the settings."""

    def __call__(self) -> Host:
        """The host. Raises as ``open_workspace`` does."""
        now = stamp(self._root)
        if self._host is None or now != self.stamp:
            self.close()
            self._host, self.stamp = self._open(), now
            self._host.lasting = True
        return self._host

    def close(self) -> None:
        """Close it; the next act has it opened anew."""
        if self._host is not None:
            self._host.close()
        self._host = None
