"""The wakeup flag: written for others when a job has ended; put there by others, it wakes the loop."""

from __future__ import annotations

import stat
from contextlib import suppress

from cleared.clock import Clock, format_iso
from cleared.errors import WorkspaceError
from cleared.jobs import file_schemas
from cleared.jobs.records import EndedJob, WakeupRecord
from cleared.jobs.runtime_directory import RuntimeDirectory

FileMark = tuple[int, int, int]


class WakeupFlag:
    """Tells a flag of somebody else from the loop's own, which is for others and left where it is."""

    def __init__(self, runtime: RuntimeDirectory) -> None:
        self._runtime = runtime
        self._own = self._file_mark() if self._is_own() else None
        self._seen = False

    def write_flag(self, row: EndedJob, clock: Clock) -> bool:
        """Say that a job has ended; whether the flag could be written. One of somebody else is remembered."""
        self._seen = self.take_raised() or self._seen
        flag: WakeupRecord = {
            "schema_version": "single_agent_wakeup_v1", "reason": f"job {row['status']}: {row['summary']}"[:1000],
            "time": format_iso(clock.now()), "job_id": row["job_id"],
            "artifact": self._runtime.display_path(self._runtime.result_path(row["job_id"])),
        }  # fmt: skip
        try:
            file_schemas.write_record("wakeup", self._runtime.wakeup_path, flag)
        except (WorkspaceError, OSError):
            return False
        self._own = self._file_mark()
        return True

    def take_raised(self) -> bool:
        """Whether somebody else has raised it since; then it is taken down, once."""
        if self._seen:
            self._seen = False
            return True
        mark = self._file_mark()
        if mark is None or mark == self._own:
            return False
        with suppress(OSError):
            self._runtime.wakeup_path.unlink()
        self._own = None
        return True

    def _file_mark(self) -> FileMark | None:
        try:
            found = self._runtime.wakeup_path.lstat()
        except OSError:
            return None
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size

    def _is_own(self) -> bool:
        try:
            flag: WakeupRecord = file_schemas.read_record("wakeup", self._runtime.wakeup_path)
        except WorkspaceError:
            return False
        job = flag.get("job_id")
        return job is not None and self._runtime.result_path(job).exists()
