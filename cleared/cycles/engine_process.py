"""Running an engine once: the prompt on its standard input, its output into a log, under a watchdog."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Literal

from cleared.clock import Clock
from cleared.loop.job_output import JobOutput
from cleared.loop.job_processes import adopt_orphans, end_job_processes, end_new_children, list_children
from cleared.sandbox.confinement import Restrictions, drop_capabilities, run_restricted

TIMEOUT_CODE: Final = 124
"""Exit code of an engine that was ended for its time, as timeout(1) has it."""
_KEPT_OUTPUT: Final = 8 << 20
_POLL_SECONDS: Final = 0.1
_GRACE_SECONDS: Final = 1.0
_EXIT_OUTPUT_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class EngineRun:
    """How a run of an engine ended. ``output``: its standard output, the end of it where it was long; ``tail``: the end
    of all that it printed."""

    exit_code: int
    ended_by: Literal["itself", "timeout", "stop"]
    output: str
    tail: str


def run_engine(
    command: Sequence[str], *, prompt: str, folder: Path, scratch: Path, environment: Mapping[str, str],
    restrictions: Restrictions | None, log: JobOutput, timeout: float, should_stop: Callable[[], bool], clock: Clock,
) -> EngineRun:  # fmt: skip
    """Run the engine in ``folder`` until it ends, its time is over or ``should_stop``; nothing of it is left then.

    Raises ``ConfinementUnavailable`` where the kernel refuses the restrictions, ``OSError`` where it cannot be started.
    """
    adopt_orphans()
    before = list_children()
    started: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        started.append(
            subprocess.Popen(
                command, cwd=folder, env=dict(environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, start_new_session=True,
            )
        )  # fmt: skip

    def start_restricted() -> None:
        drop_capabilities()
        start()

    if restrictions is not None:
        run_restricted(restrictions, start_restricted)
    else:
        start()
    process = started[0]
    threading.Thread(target=_feed_prompt, args=(process.stdin, prompt.encode("utf-8")), daemon=True).start()
    output = bytearray()
    try:
        ended_by = _watch(process, log, output, timeout, should_stop, clock)
    finally:
        _end_group(process, scratch)
        end_new_children(before)
        log.close()
    code = TIMEOUT_CODE if ended_by == "timeout" else process.returncode
    return EngineRun(code, ended_by, bytes(output).decode("utf-8", "replace"), log.tail)


def _feed_prompt(pipe: IO[bytes] | None, prompt: bytes) -> None:
    assert pipe is not None
    with suppress(OSError, ValueError):  # it does not read to the end, or has ended
        pipe.write(prompt)
    with suppress(OSError, ValueError):
        pipe.close()


def _watch(
    process: subprocess.Popen[bytes], log: JobOutput, output: bytearray, timeout: float,
    should_stop: Callable[[], bool], clock: Clock,
) -> Literal["itself", "timeout", "stop"]:  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    until = clock.monotonic() + timeout
    exited_at: float | None = None
    with selectors.DefaultSelector() as selector:
        for pipe in (process.stdout, process.stderr):
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select(_POLL_SECONDS) if selector.get_map() else ():
                data = os.read(key.fd, 65_536)
                if not data:
                    selector.unregister(key.fileobj)
                    continue
                log.feed_bytes(data)
                if key.fileobj is process.stdout:
                    output += data
                    del output[:-_KEPT_OUTPUT]
            if process.poll() is not None:
                # A grandchild may hold the pipes open; what the engine itself printed is there by now.
                exited_at = exited_at if exited_at is not None else clock.monotonic()
                if not selector.get_map() or clock.monotonic() - exited_at > _EXIT_OUTPUT_SECONDS:
                    return "itself"
            if should_stop():
                return "stop"
            if clock.monotonic() > until:
                return "timeout"


def _end_group(process: subprocess.Popen[bytes], scratch: Path) -> None:
    """Ask the whole group to end, wait a little, then kill it and all that it has started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_SECONDS)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    end_job_processes(scratch, process.pid)
