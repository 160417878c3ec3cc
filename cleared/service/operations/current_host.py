"""A workspace that many requests are answered over, each under the settings in force then."""

from __future__ import annotations

import threading
from collections.abc import Callable
from copy import copy

from cleared.changes.host import Host

HostFactory = Callable[[], Host]


class CurrentHost:
    """Opens the workspace, and opens it again when other settings may be in force. Thread-safe.

    Raises ``ClearedError`` where the workspace cannot be opened, as ``open_host`` does.
    """

    def __init__(self, open_workspace: HostFactory) -> None:
        self._open = open_workspace
        self._lock = threading.Lock()
        self._host = self._open_again()

    def open_host(self) -> Host:
        """The workspace for one request, which shares nothing with another: it may read newer commits without them."""
        with self._lock:
            if self._host.is_outdated:
                self._host = self._open_again()
            return copy(self._host)

    def _open_again(self) -> Host:
        host = self._open()
        host.reads_again = True
        return host
