"""The wakeup flag: written for others when a job has ended; put there by others, it wakes the loop."""

from __future__ import annotations

import stat
from contextlib import suppress

from cleared.clock import Clock, format_iso
from cleared.errors import WorkspaceError
from cleared.jobs import file_schemas
from cleared.jobs.records import Row, Wakeup
from cleared.jobs.runtime_directory import Runtime

Mark = tuple[int, int, int]


class Flag:
    """Tells a flag of somebody else from the loop's own, which is for others and left where it is."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._own = self._mark() if self._is_own() else None
        self._seen = False

    def write(self, row: Row, clock: Clock) -> bool:
        """Say that a job has ended; whether the flag could be written. One of somebody else is remembered."""
        self._seen = self.raised() or self._seen
        flag: Wakeup = {
            "schema_version": "single_agent_wakeup_v1", "reason": f"job {row['status']}: {row['summary']}"[:1000],
            "time": format_iso(clock.now()), "job_id": row["job_id"],
            "artifact": self._runtime.shown(self._runtime.result(row["job_id"])),
        }  # fmt: skip
        try:
            file_schemas.write("wakeup", self._runtime.wakeup, flag)
        except (WorkspaceError, OSError):
            return False
        self._own = self._mark()
        return True

    def raised(self) -> bool:
        """Whether somebody else has raised it since; then it is taken down, once."""
        if self._seen:
            self._seen = False
            return True
        mark = self._mark()
        if mark is None or mark == self._own:
            return False
        with suppress(OSError):
            self._runtime.wakeup.unlink()
        self._own = None
        return True

    def _mark(self) -> Mark | None:
        try:
            found = self._runtime.wakeup.lstat()
        except OSError:
            return None
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size

    def _is_own(self) -> bool:
        try:
            flag: Wakeup = file_schemas.read("wakeup", self._runtime.wakeup)
        except WorkspaceError:
            return False
        job = flag.get("job_id")
        return job is not None and self._runtime.result(job).exists()
