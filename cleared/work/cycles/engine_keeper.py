"""A process between the loop of cycles and an engine: it starts the engine, and ends all of it with itself.

It is forked off the loop, in a session of its own, and becomes the parent of whatever the engine leaves behind. It ends
the engine when the loop closes its pipe; the kernel closes that pipe where the loop is killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

from cleared.processes.confinement import ConfinementUnavailable
from cleared.processes.fenced_start import start_fenced
from cleared.processes.fences import Fence
from cleared.processes.leftovers import detach_process, end_children, end_job_processes

GRACE_SECONDS: Final = 1.0
"""Between SIGTERM and SIGKILL."""


class EngineKeeper:
    """The loop's side of a keeper. The engine's streams are descriptors: ``prompt`` to write to, ``output`` and
    ``messages`` to read from. ``ended`` is readable when the engine has ended, or its keeper has."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        scratch: Path,
        environment: Mapping[str, str],
        fence: Fence | None,
    ) -> None:
        """Start the engine. ``scratch``: its temporary folder, by which its processes are known.

        Raises ``ConfinementUnavailable`` where the kernel refuses the restrictions, ``OSError`` where it cannot be
        started.
        """
        self._scratch, self._report = scratch, b""
        prompt, self.prompt = os.pipe()
        self.output, output = os.pipe()
        self.messages, messages = os.pipe()
        alive, self._alive = os.pipe()
        self.ended, report = os.pipe()
        theirs = (prompt, output, messages, alive, report)
        self._pid = os.fork()
        if self._pid == 0:
            _run_keeper(theirs, command, folder, environment, fence)
        for descriptor in theirs:
            os.close(descriptor)
        answer = self._read_report()
        if "problem" in answer or not answer:
            self.end()
            os.close(self.prompt)
            if answer.get("confined") is False:
                raise ConfinementUnavailable(answer["problem"])
            raise OSError(answer.get("number", 0), answer.get("problem", "the process that keeps it ended at once"))

    def end(self) -> int:
        """End the engine and all that it has started; its exit code, negative for a signal."""
        os.close(self._alive)
        answer: dict[str, Any] = {}
        while report := self._read_report():
            answer = report
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)
        if "code" not in answer:  # somebody has killed the keeper
            end_job_processes(self._scratch, -1)
        for descriptor in (self.output, self.messages, self.ended):
            os.close(descriptor)
        code: int = answer.get("code", -signal.SIGKILL)
        return code

    def _read_report(self) -> dict[str, Any]:
        """The next line that the keeper writes; nothing where it has ended."""
        while b"\n" not in self._report:
            data = os.read(self.ended, 4_096)
            if not data:
                return {}
            self._report += data
        line, _, self._report = self._report.partition(b"\n")
        report: dict[str, Any] = json.loads(line)
        return report


def _run_keeper(
    theirs: tuple[int, ...],
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    fence: Fence | None,
) -> NoReturn:
    """The keeper, in the forked process. It never returns, as the caller's code would then run twice."""
    try:
        prompt, output, messages, alive, report = detach_process(*theirs)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)  # not ignored: the engine would inherit that
        try:
            process = _start_engine(command, folder, environment, fence, (prompt, output, messages))
        except ConfinementUnavailable as error:
            _write_report(report, {"problem": str(error), "confined": False})
            os._exit(0)
        except OSError as error:
            _write_report(report, {"problem": error.strerror or str(error), "number": error.errno or 0})
            os._exit(0)
        for descriptor in (prompt, output, messages):
            os.close(descriptor)
        _write_report(report, {"started": process.pid})
        waiting = threading.Thread(target=lambda: _write_report(report, {"ended": process.wait()}), daemon=True)
        waiting.start()
        os.read(alive, 1)
        _end_engine(process, waiting)
        _write_report(report, {"code": process.returncode})
    finally:
        os._exit(1)


def _start_engine(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    fence: Fence | None,
    streams: tuple[int, int, int],
) -> subprocess.Popen[bytes]:
    return start_fenced(
        fence,
        command,
        cwd=folder,
        env=dict(environment),
        stdin=streams[0],
        stdout=streams[1],
        stderr=streams[2],
        start_new_session=True,
    )


def _end_engine(process: subprocess.Popen[bytes], waiting: threading.Thread) -> None:
    """Ask the whole group to end, wait a little, then kill it and all that it has started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
    waiting.join(GRACE_SECONDS)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    waiting.join()
    end_children()


def _write_report(report: int, answer: Mapping[str, Any]) -> None:
    with suppress(OSError):  # the loop is gone
        os.write(report, json.dumps(answer).encode("ascii") + b"\n")
