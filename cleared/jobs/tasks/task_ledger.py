"""The task ledger: ``docs/current/task-status.jsonl``. Everybody may read it; one appender at a time adds to it.

A line is added under a lock and is on the disk before the call returns. Readers take no lock: what has no newline at
the end of the file is being written, or was torn by a crash.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from cleared.base.clock import Clock
from cleared.base.errors import Place, WorkspaceError
from cleared.base.safe_files import describe_os_error
from cleared.base.safe_names import resolve_inside
from cleared.jobs.tasks.ledger_index import LedgerIndex
from cleared.jobs.tasks.ledger_lines import end_of_lines, parse_line, render_line
from cleared.jobs.tasks.task_states import StatusLine
from cleared.workspace.lock import ensure_state_dir, writer_lock

LEDGER: Final = "docs/current/task-status.jsonl"
LOCK_NAME: Final = "task-ledger.lock"
TORN_NAME: Final = "task-ledger.torn"
"""In ``.cleared``: the torn ends that were taken off the ledger."""
_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_MAX_TORN: Final = 1 << 20

STEPS: Final = ("ledger-locked", "ledger-mended", "ledger-written", "ledger-synced")
"""The instants between which an append can be killed, in order."""


class TaskLedger:
    """The ledger of one workspace. ``show_message`` gets a line about a torn end."""

    def __init__(
        self,
        root: Path,
        *,
        clock: Clock,
        wait_seconds: float = 60.0,
        show_message: Callable[[str], None] = lambda _: None,
        on_step: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._root, self._clock, self._wait = root, clock, wait_seconds
        self.show_message, self.report_step = show_message, on_step
        self.index = LedgerIndex(root / ".cleared")

    @property
    def path(self) -> Path:
        """The file. Raises ``PolicyError`` where a link leads out of the workspace."""
        return resolve_inside(self._root, str(Path(LEDGER).parent)) / Path(LEDGER).name

    def require(self) -> None:
        """Raises ``WorkspaceError`` where there is no ledger."""
        self._open(os.O_RDONLY).close()

    def read_latest(self, task_id: str) -> StatusLine | None:
        """The newest line of one task; None where it has none. Raises ``WorkspaceError`` where there is no ledger."""
        with self._open(os.O_RDONLY) as file:
            return self._read_lines(file, task_id).get(task_id)

    def read_all(self) -> dict[str, StatusLine]:
        """The newest line of each task, by id, sorted. Raises ``WorkspaceError`` where there is no ledger."""
        with self._open(os.O_RDONLY) as file:
            return dict(sorted(self._read_lines(file, None).items()))

    def read_torn_end(self) -> bytes:
        """What stands behind the last newline and is no record; empty where the file is whole."""
        with self._open(os.O_RDONLY) as file:
            end = _read_end(file)
            return b"" if parse_line(end) is not None else end

    @contextmanager
    def open_for_appending(self, activity: str) -> Iterator[LedgerWriter]:
        """The ledger for the only appender there is now. A torn end is set aside first, and reported.

        ``activity`` is shown to others that wait. Raises ``BusyError`` where it is not free in time.
        """
        state_dir = self._root / ".cleared"
        with writer_lock(state_dir, self._wait, activity, clock=self._clock, name=LOCK_NAME):
            self.report_step("ledger-locked")
            with self._open(os.O_RDWR | os.O_APPEND) as file:
                self._mend(file, state_dir)
                self.report_step("ledger-mended")
                yield LedgerWriter(self, file)

    def _open(self, flags: int) -> BinaryIO:
        try:
            descriptor = os.open(self.path, flags | _NOFOLLOW | getattr(os, "O_NONBLOCK", 0))
        except FileNotFoundError:
            raise WorkspaceError(
                "there is no task ledger", place=Place(LEDGER), remedy="Make one: cleared task init."
            ) from None
        except OSError as error:
            raise WorkspaceError(
                f"the task ledger cannot be opened: {describe_os_error(error)}", place=Place(LEDGER)
            ) from None
        return os.fdopen(descriptor, "r+b" if flags & os.O_RDWR else "rb")

    def _read_lines(self, file: BinaryIO, task_id: str | None) -> dict[str, StatusLine]:
        for attempt in (1, 2):
            lines: dict[str, StatusLine] = {}
            for name, (start, length) in self.index.locate_lines(file, task_id).items():
                file.seek(start)
                record = parse_line(file.read(length))
                if record is None or record.id != name:
                    break
                lines[name] = record
            else:
                last = parse_line(_read_end(file))  # a whole record without its newline
                if last is not None and task_id in (None, last.id):
                    lines[last.id] = last
                return lines
            if attempt == 1:
                self.index.drop()
        raise WorkspaceError("the task ledger is being rewritten", place=Place(LEDGER), remedy="Try again.")

    def _mend(self, file: BinaryIO, state_dir: Path) -> None:
        """End the last line, or set aside what is torn: the next line must not become part of it."""
        torn = _read_end(file)
        if not torn:
            return
        if parse_line(torn) is not None:
            _write_durably(file, b"\n")
            return
        ensure_state_dir(state_dir)
        with (state_dir / TORN_NAME).open("ab") as aside:
            aside.write(torn[:_MAX_TORN] + b"\n")
            aside.flush()
            os.fsync(aside.fileno())
        file.truncate(end_of_lines(file))
        os.fsync(file.fileno())
        self.show_message(
            f"{LEDGER}: its last line was torn ({len(torn)} bytes); it is set aside in .cleared/{TORN_NAME}"
        )


class LedgerWriter:
    """The open ledger, while its lock is held."""

    def __init__(self, ledger: TaskLedger, file: BinaryIO) -> None:
        self._ledger, self._file = ledger, file

    def read_latest(self, task_id: str) -> StatusLine | None:
        """The newest line of one task."""
        return self._ledger._read_lines(self._file, task_id).get(task_id)

    def read_all(self) -> dict[str, StatusLine]:
        """The newest line of each task."""
        return self._ledger._read_lines(self._file, None)

    def read_bytes(self, most: int) -> bytes | None:
        """The whole file; None where it is larger than ``most``."""
        if os.fstat(self._file.fileno()).st_size > most:
            return None
        self._file.seek(0)
        return self._file.read()

    def append(self, *lines: StatusLine) -> None:
        """Add lines; they are on the disk when this returns. Raises ``WorkspaceError``; then none is added."""
        self.append_bytes(b"".join(map(render_line, lines)))

    def append_bytes(self, data: bytes) -> None:
        """Add rendered lines, likewise."""
        size = os.fstat(self._file.fileno()).st_size
        try:
            self._file.write(data)
            self._file.flush()
            self._ledger.report_step("ledger-written")
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(size)
            raise WorkspaceError(
                f"the task ledger cannot be written: {describe_os_error(error)}", place=Place(LEDGER)
            ) from None
        self._ledger.report_step("ledger-synced")


def _write_durably(file: BinaryIO, data: bytes) -> None:
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


def _read_end(file: BinaryIO) -> bytes:
    """What stands behind the last newline."""
    start = end_of_lines(file)
    file.seek(start)
    return file.read(_MAX_TORN)
