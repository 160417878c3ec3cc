"""Jobs that the workspace's scripts have asked for, read from the commits of their runs."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from cleared.base.errors import WorkspaceError
from cleared.changes.host import Host
from cleared.git import Repository
from cleared.jobs import file_schemas
from cleared.jobs.runtime_directory import RuntimeDirectory
from cleared.triggers.requested_jobs import CommittedJobRequest, read_job_requests

_MAX_KEYS: Final = 1_000


class ScriptRequests:
    """Gives each request once to the workspace's own loop, which keeps the cursor in its state.

    Without a cursor, or with one that a rewritten history does not have, it reads the last days. A file with the keys
    of what was taken in keeps it from giving those again.
    """

    def __init__(self, host: Host, runtime: RuntimeDirectory) -> None:
        self._host, self._runtime = host, runtime
        self._repo: Repository | None = None

    def requests_since(self, cursor: str | None) -> tuple[list[CommittedJobRequest], str | None]:
        """The requests in the commits after ``cursor``, and the cursor for the next call."""
        try:
            if self._repo is None or self._repo.has_switched_branch():
                self.close()
                self._repo = Repository.open(self._host.root, for_writing=False)
            head = self._repo.read_head()
            if head == cursor:
                return [], cursor
            self._repo.objects.forget_objects()
            requests = read_job_requests(self._host, self._repo, head, cursor, self._host.clock.now())
            taken = set(self._read_keys()) if requests else set()
            return [request for request in requests if request.key not in taken], head
        except WorkspaceError:  # no repository, or one that is being changed: try again at the next call
            self.close()
            return [], cursor

    def mark_taken(self, requests: list[CommittedJobRequest]) -> None:
        """Remember requests that the state has now. A full disk stops nothing, as the cursor usually suffices."""
        if requests:
            keys = [*self._read_keys(), *(request.key for request in requests)][-_MAX_KEYS:]
            with suppress(WorkspaceError):
                file_schemas.write_record(
                    "asked",
                    self._runtime.taken_requests_path,
                    {"schema_version": "single_agent_asked_v1", "keys": keys},
                )

    def _read_keys(self) -> list[str]:
        try:
            keys: list[str] = file_schemas.read_record("asked", self._runtime.taken_requests_path)["keys"]
        except WorkspaceError:
            return []
        return keys

    def close(self) -> None:
        """Close the repository; the next call opens it again."""
        repo, self._repo = self._repo, None
        if repo is not None:
            repo.close()


class NoScriptRequests(ScriptRequests):
    """For a loop that is not the workspace's own: scripts request nothing of it."""

    def requests_since(self, cursor: str | None) -> tuple[list[CommittedJobRequest], str | None]:
        return [], cursor
