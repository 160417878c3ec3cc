"""The jobs that the workspace's scripts have asked for, read off the commits of their runs."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from cleared.changes.host import Host
from cleared.errors import WorkspaceError
from cleared.jobs import file_schemas
from cleared.jobs.runtime_directory import RuntimeDirectory
from cleared.triggers.requested_jobs import CommittedJobRequest, read_job_requests
from cleared.vcs import Repository

_MAX_KEYS: Final = 1_000


class ScriptRequests:
    """For the workspace's own loop; each is given once, as the cursor is kept with what is made of it.

    A cursor means nothing in a history that was rewritten, and a lost state has none: then the last days are looked
    through, and what was taken in is known by its key.
    """

    def __init__(self, host: Host, runtime: RuntimeDirectory) -> None:
        self._host, self._runtime = host, runtime
        self._repo: Repository | None = None
        self._head: str | None = None

    def requests_since(self, cursor: str | None) -> tuple[list[CommittedJobRequest], str | None]:
        """The jobs of the commits after ``cursor``, and the cursor for the next time."""
        try:
            if self._repo is None or self._repo.has_switched_branch():
                self.close()
                self._repo = Repository.open(self._host.root, for_writing=False)
            head = self._repo.read_head()
            if head == cursor:
                return [], cursor
            self._repo.objects.forget_trees()
            found = read_job_requests(self._host, self._repo, head, cursor, self._host.clock.now())
            known = set(self._read_keys()) if found else set()
            return [asked for asked in found if asked.key not in known], head
        except WorkspaceError:  # no repository, or one in the midst of something: it is looked at again
            self.close()
            return [], cursor

    def mark_taken(self, asked: list[CommittedJobRequest]) -> None:
        """These are in the state now. A full disk stops nothing: it is asked only where the cursor does not help."""
        if asked:
            keys = [*self._read_keys(), *(job.key for job in asked)][-_MAX_KEYS:]
            with suppress(WorkspaceError):
                file_schemas.write_record(
                    "asked",
                    self._runtime.taken_requests_path,
                    {"schema_version": "single_agent_asked_v1", "keys": keys},
                )

    def _read_keys(self) -> list[str]:
        try:
            found: list[str] = file_schemas.read_record("asked", self._runtime.taken_requests_path)["keys"]
        except WorkspaceError:
            return []
        return found

    def close(self) -> None:
        repo, self._repo = self._repo, None
        if repo is not None:
            repo.close()


class NoScriptRequests(ScriptRequests):
    """For a loop beside the workspace's own: scripts do not know of it."""

    def requests_since(self, cursor: str | None) -> tuple[list[CommittedJobRequest], str | None]:
        return [], cursor
