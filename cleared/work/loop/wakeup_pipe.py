"""What wakes the loop: a named pipe, to which whoever leaves a message writes a byte, and a flag, a file that the loop
writes when a job has ended and that others may put there.
"""

from __future__ import annotations

import os
import select
import stat
from contextlib import suppress
from pathlib import Path

from cleared.base.clock import Clock, format_iso
from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import describe_os_error
from cleared.jobs import file_schemas
from cleared.jobs.records import EndedJob, WakeupRecord
from cleared.jobs.runtime_directory import RuntimeDirectory


class WakeupPipe:
    """The loop's end of the pipe; a context manager. Signal handlers of the loop write to it too."""

    def __init__(self, path: Path) -> None:
        """Make and open the pipe. Raises ``WorkspaceError`` where that fails."""
        try:
            if not path.is_fifo():
                path.unlink(missing_ok=True)
                os.mkfifo(path, 0o600)
            self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        except OSError as error:
            raise WorkspaceError(f"{path} cannot be made: {describe_os_error(error)}") from None
        self._has_wakeup = False

    def __enter__(self) -> WakeupPipe:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def write_byte(self) -> None:
        """Wake the loop."""
        with suppress(OSError):
            os.write(self._descriptor, b".")

    def wait_readable(self, seconds: float, other: int | None = None) -> bool:
        """Wait so long for a wakeup, or for the descriptor ``other``; whether ``other`` is readable."""
        watched = [self._descriptor] if other is None else [self._descriptor, other]
        ready, _, _ = select.select(watched, [], [], max(0.0, seconds))
        if self._descriptor in ready:
            self._has_wakeup = True
            with suppress(OSError):
                while os.read(self._descriptor, 4096):
                    pass
        return other is not None and other in ready

    def take_wakeup(self) -> bool:
        """Whether there was a wakeup since the last call."""
        had, self._has_wakeup = self._has_wakeup, False
        return had


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
