"""Connections to the fleet's database that are used again and again, by the threads of a server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from cleared.service.fleet.fleet_database import FleetDatabase

_MOST_IDLE: Final = 8


class KeptConnections:
    """Of the database at ``url``. Thread-safe."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._idle: list[FleetDatabase] = []
        self._guard = threading.Lock()

    @contextmanager
    def connected(self) -> Iterator[FleetDatabase]:
        """A connection that nobody else uses meanwhile. Where one was of no use, none is kept: the database may have
        been away."""
        with self._guard:
            database = self._idle.pop() if self._idle else None
        database = database or FleetDatabase.connect(self._url)
        try:
            yield database
        except BaseException:
            database.close()
            self.close()
            raise
        with self._guard:
            if len(self._idle) < _MOST_IDLE:
                self._idle.append(database)
                return
        database.close()

    def close(self) -> None:
        with self._guard:
            idle, self._idle = self._idle, []
        for database in idle:
            database.close()
