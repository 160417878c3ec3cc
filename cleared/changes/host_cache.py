"""A workspace that stays open, in a program that does."""

from __future__ import annotations

from collections.abc import Callable

from cleared.changes.host import Host


class HostCache:
    """The same host from one act to the next, as long as nothing else is in force. For one act at a time."""

    def __init__(self, open_: Callable[[], Host]) -> None:
        self._open = open_
        self._host: Host | None = None
        self.stamp: object = None
        """Another for each state of what is in force."""

    def __call__(self) -> Host:
        """The host. Raises as ``open_workspace`` does."""
        if self._host is None or self._host.is_outdated or self._host.policy_stamp != self.stamp:
            self.close()
            self._host = self._open()
            self._host.stays_open = True
            self.stamp = self._host.policy_stamp
        return self._host

    def close(self) -> None:
        """Close it; the next act has it opened anew."""
        if self._host is not None:
            self._host.close()
        self._host = None
