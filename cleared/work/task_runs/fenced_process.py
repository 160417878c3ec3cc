"""Runs inside a process of its own: starts one command confined, takes its output, and ends all that it leaves.

As a subreaper it becomes the parent of every process that the command leaves behind, whatever session that is in. It
ends with whoever started it.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final

from cleared.base.clock import SystemClock
from cleared.base.errors import ClearedError
from cleared.jobs.forbidden_files import ForbiddenFiles
from cleared.processes import leftovers
from cleared.processes.fenced_start import start_confined
from cleared.work.loop.job_confinement import job_fence

BOOTSTRAP: Final = (
    "import json, sys; spec = json.load(sys.stdin); sys.path[:] = spec['path']; "
    "from cleared.work.task_runs.fenced_process import main; main(spec)"
)
"""The program text that the interpreter of such a process runs."""
_TERM_GRACE: Final = 2.0
_POLL: Final = 0.2
_PR_SET_PDEATHSIG: Final = 1


class BoundedOutput:
    """The first and the last bytes of an output, ``most`` together."""

    def __init__(self, most: int) -> None:
        self._head_size, self._tail_size = most // 4, most - most // 4
        self._head, self._tail, self.total = b"", b"", 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._head_size - len(self._head)
        self._head += data[:room]
        self._tail = (self._tail + data[room:])[-self._tail_size :] if data[room:] else self._tail

    def text(self) -> str:
        """As text; what is left out is named."""
        cut = self.total - len(self._head) - len(self._tail)
        middle = f"\n[{cut} bytes are not kept]\n".encode() if cut else b""
        return (self._head + middle + self._tail).decode("utf-8", "replace")


def main(spec: Mapping[str, Any]) -> None:
    """Run the command of ``spec``, and print how it went as one JSON object."""
    stop: list[str] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop.append("stopped")

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, on_signal)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != spec["parent"]:
        return
    leftovers.adopt_orphans()
    try:
        found = _run_command(spec, stop)
    except (ClearedError, OSError) as error:
        found = {"exit_code": None, "reason": str(error), "output": "", "total": 0, "confined": False, "started": False}
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


def _run_command(spec: Mapping[str, Any], stop: list[str]) -> dict[str, Any]:
    folder = Path(spec["cwd"])
    writes = [folder, Path(spec["scratch"])]
    fence = job_fence(
        ForbiddenFiles(folder.resolve()),
        [Path(p) for p in spec["reads"]],
        writes,
        [],
        trust=False,
        root=Path(spec["root"]),
    )
    process = start_confined(
        fence,
        spec["confine"],
        spec["argv"],
        cwd=folder,
        env=spec["environment"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    feeder = threading.Thread(target=_feed_input, args=(process, spec["input"].encode("utf-8")), daemon=True)
    feeder.start()
    output = BoundedOutput(spec["keep"])
    try:
        reason = _pump_output(process, output, spec["seconds"], stop)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        leftovers.end_children()
    _drain_rest(process, output)
    is_confined = fence is not None and spec["confine"] != "off"
    return {
        "exit_code": code,
        "reason": reason,
        "output": output.text(),
        "total": output.total,
        "confined": is_confined,
        "started": True,
    }


def _feed_input(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    with suppress(OSError, ValueError):
        process.stdin.write(data)
    with suppress(OSError, ValueError):
        process.stdin.close()


def _pump_output(process: subprocess.Popen[bytes], output: BoundedOutput, seconds: float, stop: list[str]) -> str:
    """Take the output until the command has ended; why it was ended, empty where it was not."""
    assert process.stdout is not None
    descriptor, clock = process.stdout.fileno(), SystemClock()
    end, kill_at, reason = clock.monotonic() + seconds, None, ""
    is_open = True
    while process.poll() is None:
        now = clock.monotonic()
        if not reason and (stop or now >= end):
            reason = "stopped" if stop else f"stopped at its limit of {seconds:g} s"
            kill_at = now + _TERM_GRACE
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGTERM)
        if kill_at is not None and now >= kill_at:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        if is_open and select.select([descriptor], [], [], _POLL)[0]:
            data = os.read(descriptor, 65_536)
            output.add(data)
            is_open = bool(data)
        elif not is_open:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_POLL)
    return reason


def _drain_rest(process: subprocess.Popen[bytes], output: BoundedOutput) -> None:
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    with suppress(BlockingIOError):
        while data := os.read(process.stdout.fileno(), 65_536):
            output.add(data)
