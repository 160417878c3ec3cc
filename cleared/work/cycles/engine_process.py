"""Running an engine once: the prompt on its standard input, its output into a log, under a watchdog."""

from __future__ import annotations

import os
import selectors
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from cleared.base.clock import Clock
from cleared.processes.fences import Fence
from cleared.work.cycles.engine_keeper import EngineKeeper
from cleared.work.loop.job_output import JobOutput

TIMEOUT_CODE: Final = 124
"""Exit code of an engine that was ended for its time, as timeout(1) has it."""
_KEPT_OUTPUT: Final = 8 << 20
_POLL_SECONDS: Final = 0.1
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
    command: Sequence[str],
    *,
    prompt: str,
    folder: Path,
    scratch: Path,
    environment: Mapping[str, str],
    fence: Fence | None,
    log: JobOutput,
    timeout: float,
    should_stop: Callable[[], bool],
    clock: Clock,
) -> EngineRun:
    """Run the engine in ``folder`` until it ends, its time is over or ``should_stop``; nothing of it is left then, nor
    where this process is killed meanwhile.

    Raises ``ConfinementUnavailable`` where the kernel refuses the restrictions, ``OSError`` where it cannot be started.
    """
    keeper = EngineKeeper(command, folder, scratch, environment, fence)
    threading.Thread(target=_feed_prompt, args=(keeper.prompt, prompt.encode("utf-8")), daemon=True).start()
    output = bytearray()
    try:
        ended_by = _watch(keeper, log, output, timeout, should_stop, clock)
    finally:
        code = keeper.end()
        log.close()
    code = TIMEOUT_CODE if ended_by == "timeout" else code
    return EngineRun(code, ended_by, bytes(output).decode("utf-8", "replace"), log.tail)


def _feed_prompt(pipe: int, prompt: bytes) -> None:
    with suppress(OSError), os.fdopen(pipe, "wb") as stream:  # it does not read to the end, or has ended
        stream.write(prompt)


def _watch(
    keeper: EngineKeeper,
    log: JobOutput,
    output: bytearray,
    timeout: float,
    should_stop: Callable[[], bool],
    clock: Clock,
) -> Literal["itself", "timeout", "stop"]:
    until = clock.monotonic() + timeout
    exited_at: float | None = None
    has_exited = False
    with selectors.DefaultSelector() as selector:
        for pipe in (keeper.output, keeper.messages, keeper.ended):
            selector.register(pipe, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select(_POLL_SECONDS) if selector.get_map() else ():
                data = os.read(key.fd, 65_536) if key.fd != keeper.ended else b""
                if not data:
                    has_exited = has_exited or key.fd == keeper.ended
                    selector.unregister(key.fd)
                    continue
                log.feed_bytes(data)
                if key.fd == keeper.output:
                    output += data
                    del output[:-_KEPT_OUTPUT]
            if has_exited:
                # A grandchild may hold the pipes open; what the engine itself printed is there by now.
                exited_at = exited_at if exited_at is not None else clock.monotonic()
                if not selector.get_map() or clock.monotonic() - exited_at > _EXIT_OUTPUT_SECONDS:
                    return "itself"
            if should_stop():
                return "stop"
            if clock.monotonic() > until:
                return "timeout"
