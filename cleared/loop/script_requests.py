"""The jobs that the workspace's scripts have asked for, read off the commits of their runs."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from cleared.changes.host import Host
from cleared.errors import WorkspaceError
from cleared.jobs import file_schemas
from cleared.jobs.runtime_directory import Runtime
from cleared.triggers.requested_jobs import Asked, asked_since
from cleared.vcs import Repository

_MOST: Final = 1_000


class Requests:
    """For the workspace's own loop; each is given once, as the cursor is kept with what is made of it.

    A cursor means nothing in a history that was rewritten, and a lost state has none: then the last days are looked
    through, and what was taken in is known by its key.
    """

    def __init__(self, host: Host, runtime: Runtime) -> None:
        self._host, self._runtime = host, runtime
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
            found = asked_since(self._host, self._repo, head, cursor, self._host.clock.now())
            known = set(self._keys()) if found else set()
            return [asked for asked in found if asked.key not in known], head
        except WorkspaceError:  # no repository, or one in the midst of something: it is looked at again
            self.close()
            return [], cursor

    def taken(self, asked: list[Asked]) -> None:
        """These are in the state now. A full disk stops nothing: it is asked only where the cursor does not help."""
        if asked:
            keys = [*self._keys(), *(job.key for job in asked)][-_MOST:]
            with suppress(WorkspaceError):
                file_schemas.write(
                    "asked", self._runtime.asked, {"schema_version": "single_agent_asked_v1", "keys": keys}
                )

    def _keys(self) -> list[str]:
        try:
            found: list[str] = file_schemas.read("asked", self._runtime.asked)["keys"]
        except WorkspaceError:
            return []
        return found

    def close(self) -> None:
        repo, self._repo = self._repo, None
        if repo is not None:
            repo.close()


class Nobody(Requests):
    """For a loop beside the workspace's own: scripts do not know of it."""

    def since(self, cursor: str | None) -> tuple[list[Asked], str | None]:
        return [], cursor
