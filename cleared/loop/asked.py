"""The jobs that the workspace's scripts have asked for, read off the commits of their runs."""

from __future__ import annotations

from cleared.errors import WorkspaceError
from cleared.runs.host import Host
from cleared.triggers.enqueued import Asked, asked_since
from cleared.vcs import Repository


class Requests:
    """For the workspace's own loop; each is given once, as the cursor is kept with what is made of it."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._repo: Repository | None = None
        self._head: str | None = None

    def since(self, cursor: str | None) -> tuple[list[Asked], str | None]:
        """The jobs of the commits after ``cursor``, and the cursor for the next time."""
        try:
            if self._repo is None or self._repo.current_branch() != self._repo.branch:
                self.close()
                self._repo = Repository.open(self._host.root, for_writing=False)
            head = self._repo.head()
            if head == cursor:
                return [], cursor
            self._repo.forget()
            return asked_since(self._host, self._repo, head, cursor, self._host.clock.now()), head
        except WorkspaceError:  # no repository, or one in the midst of something: it is looked at again
            self.close()
            return [], cursor

    def close(self) -> None:
        repo, self._repo = self._repo, None
        if repo is not None:
            repo.close()


class Nobody(Requests):
    """For a loop beside the workspace's own: scripts do not know of it."""

    def since(self, cursor: str | None) -> tuple[list[Asked], str | None]:
        return [], cursor
