"""The jobs that the workspace's scripts have asked for, read off the commits of their runs."""

from __future__ import annotations

from cleared.jobs.records import Item
from cleared.runs.host import Host
from cleared.vcs import Repository


class Asked:
    """For the workspace's own loop; each is given once, as the cursor is kept with what was taken in."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._repo: Repository | None = None

    def __call__(self, cursor: str | None) -> tuple[list[Item], str | None]:
        """The jobs of the commits after ``cursor``, and the cursor for the next time."""
        return [], cursor
