"""A host that stays open, for a program that runs for long."""

from __future__ import annotations

from collections.abc import Callable

from cleared.changes.host import Host


class HostCache:
    """Gives the same host at each call, as long as the settings in force are the same. Not for two threads."""

    def __init__(self, open_: Callable[[], Host]) -> None:
        self._open = open_
        self._host: Host | None = None
        self.stamp: object = None
        """The stamp of the settings in force; another one for each state of them."""

    def __call__(self) -> Host:
        """The host. Raises as ``open_workspace`` does."""
        if self._host is None or self._host.is_outdated or self._host.policy_stamp != self.stamp:
            self.close()
            self._host = self._open()
            self._host.stays_open = self._host.reads_again = True
            self.stamp = self._host.policy_stamp
        return self._host

    def close(self) -> None:
        """Close the host; the next call opens another."""
        if self._host is not None:
            self._host.close()
        self._host = None
