"""The wakeup flag: a file that the loop writes when a job has ended, and that others may put there to wake the loop."""

from __future__ import annotations

import stat
from contextlib import suppress

from cleared.base.clock import Clock, format_iso
from cleared.base.errors import WorkspaceError
from cleared.jobs import file_schemas
from cleared.jobs.records import EndedJob, WakeupRecord
from cleared.jobs.runtime_directory import RuntimeDirectory

FileMark = tuple[int, int, int]
"""Change time, inode and size of a file."""


class WakeupFlag:
    """Tells a flag that others raised from the loop's own, which is left where it is."""

    def __init__(self, runtime: RuntimeDirectory) -> None:
        self._runtime = runtime
        self._own_mark = self._file_mark() if self._is_own() else None
        self._was_raised = False

    def write_flag(self, row: EndedJob, clock: Clock) -> bool:
        """Write the loop's own flag for an ended job; whether that worked. A flag of others is remembered."""
        self._was_raised = self.take_raised() or self._was_raised
        flag: WakeupRecord = {
            "schema_version": "single_agent_wakeup_v1",
            "reason": f"job {row['status']}: {row['summary']}"[:1000],
            "time": format_iso(clock.now()),
            "job_id": row["job_id"],
            "artifact": self._runtime.display_path(self._runtime.result_path(row["job_id"])),
        }
        try:
            file_schemas.write_record("wakeup", self._runtime.wakeup_path, flag)
        except (WorkspaceError, OSError):
            return False
        self._own_mark = self._file_mark()
        return True

    def take_raised(self) -> bool:
        """Whether others have raised the flag since the last call; it is removed then."""
        if self._was_raised:
            self._was_raised = False
            return True
        mark = self._file_mark()
        if mark is None or mark == self._own_mark:
            return False
        with suppress(OSError):
            self._runtime.wakeup_path.unlink()
        self._own_mark = None
        return True

    def _file_mark(self) -> FileMark | None:
        try:
            status = self._runtime.wakeup_path.lstat()
        except OSError:
            return None
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            return None
        return status.st_mtime_ns, status.st_ino, status.st_size

    def _is_own(self) -> bool:
        """Whether the flag names a job that has ended here."""
        try:
            flag: WakeupRecord = file_schemas.read_record("wakeup", self._runtime.wakeup_path)
        except WorkspaceError:
            return False
        job_id = flag.get("job_id")
        return job_id is not None and self._runtime.result_path(job_id).exists()
