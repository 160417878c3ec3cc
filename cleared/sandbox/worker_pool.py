"""Worker processes, each started confined and verified, with a pool of the interpreter's client of its own.

A pool of the client replaces a dead worker on whatever thread uses the pool, and a replacement that is started on an
unrestricted thread would be unconfined. So there is one process per pool, and a pool whose process is not the verified
one is discarded.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from cleared.base.errors import BusyError, WorkspaceError
from cleared.base.programs import blocked_signals
from cleared.processes.confinement import (
    ConfinementLevel,
    ConfinementUnavailable,
    ParentDeathSignal,
    Restrictions,
    limit_data,
    observe_level,
    run_restricted,
    worker_restrictions,
)

if TYPE_CHECKING:
    from pydantic_monty import Monty

Confine = Literal["best", "require", "off"]

MAX_WORKERS = 16
_DATA_SLACK = 256 << 20
_UNCONFINED = Restrictions(0, None, None)


@contextlib.contextmanager
def share_processor() -> Iterator[None]:
    """Keep this thread, and the threads and programs that it starts, on the processor that it is on now: for a command
    that makes one run, and has nothing else to do. Where the system refuses, all stays as it is.

    A script waits for the host and the host for it, by turns. To wake the other one on another processor takes longer
    than many a call: of a run of 133,000 calls it was a third.
    """
    if sys.platform != "linux":
        yield
        return
    before = os.sched_getaffinity(0)
    with contextlib.suppress(OSError, ValueError, IndexError):
        # See proc(5): field 39 of the line is the processor; the second one, in brackets, may hold anything.
        number = int(Path("/proc/thread-self/stat").read_text(errors="replace").rpartition(")")[2].split()[36])
        os.sched_setaffinity(0, before & {number})
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, before)


class Worker(Struct, eq=False):
    """A live process and the pool that owns it."""

    pool: Monty
    pid: int
    pidfd: int | None
    level: ConfinementLevel
    request_timeout: float
    parent_death: ParentDeathSignal
    data_limit: int = 0

    def kill(self) -> None:
        """Kill the process at once."""
        with contextlib.suppress(OSError):
            if self.pidfd is not None and sys.platform == "linux":
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)  # never another process with that number
            else:
                os.kill(self.pid, signal.SIGKILL)

    def allow_memory(self, heap: int) -> None:
        """Let the process use ``heap`` bytes, and what the interpreter needs besides; more ends it."""
        wanted = 2 * heap + _DATA_SLACK
        if wanted != self.data_limit:
            limit_data(self.pid, wanted)
            self.data_limit = wanted

    def stop(self) -> None:
        """Kill the process and close all that belongs to it."""
        self.kill()
        with contextlib.suppress(Exception):  # the pool of a killed process may complain
            self.pool.__exit__(None, None, None)
        self.parent_death.release_worker()
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None


class WorkerPool:
    """Starts workers as they are needed and keeps up to ``keep`` idle ones warm. Thread-safe."""

    def __init__(self, confine: Confine, keep: int) -> None:
        self._confine: Confine = confine
        self._keep = keep
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._live = 0

    def take_worker(self, seconds: float) -> Worker:
        """A worker for a run of at most ``seconds``. Raises ``BusyError`` where ``MAX_WORKERS`` are in use."""
        with self._lock:
            fit = next((worker for worker in self._idle if worker.request_timeout >= seconds), None)
            if fit is not None:
                self._idle.remove(fit)
                return fit
            if self._live >= MAX_WORKERS:
                message = f"{MAX_WORKERS} scripts are running already"
                raise BusyError(message, remedy="Wait for one to end, or nest fewer script_run() calls.")
            self._live += 1
        try:
            return start_worker(self._confine, max(60.0, 2 * seconds))
        except BaseException:
            with self._lock:
                self._live -= 1
            raise

    def return_worker(self, worker: Worker, *, reusable: bool) -> None:
        """Keep a worker as an idle one, or stop it."""
        with self._lock:
            if reusable and len(self._idle) < self._keep:
                self._idle.append(worker)
                return
            self._live -= 1
        worker.stop()

    def close(self) -> None:
        """Stop all idle workers."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._live -= len(idle)
        for worker in idle:
            worker.stop()


def start_worker(confine: Confine, request_timeout: float) -> Worker:
    """A new worker. Raises ``WorkspaceError`` where it cannot be confined as ``require`` demands."""
    prepare_client()
    binary = _find_binary()
    attempts: list[Callable[[], Restrictions]] = []  # prepared when it is their turn, which is mostly the first one's
    if confine != "off" and sys.platform == "linux":
        attempts += [partial(worker_restrictions, binary), partial(worker_restrictions, binary, wide=True)]
    if confine == "best":
        attempts += [partial(worker_restrictions, binary, files=False)]
    if confine != "require":
        attempts += [lambda: _UNCONFINED]
    reason = "this system has no confinement for processes"
    failed: dict[Restrictions, str] = {}
    for prepare in attempts:
        wanted = prepare()
        if wanted in _refused_restrictions:
            reason = _refused_restrictions[wanted]
            continue
        try:
            worker = _start_patiently(binary, wanted, request_timeout)
        except Exception as error:
            if wanted is _UNCONFINED:
                message = f"the sandbox cannot start: {error}"
                raise WorkspaceError(message, remedy="Reinstall pydantic-monty, then `cleared doctor`.") from error
            reason = failed[wanted] = str(error)
            continue
        # That less starts shows that the kernel refused the rest, not that the machine was short of something.
        _refused_restrictions.update(failed)
        if confine == "require" and not worker.level.is_full:
            reason = f"only {worker.level} was reached"
            worker.stop()
            continue
        return worker
    raise WorkspaceError(
        f"the sandbox cannot be confined: {reason}",
        remedy="Set `sandbox.confine: best`, or use a Linux kernel with Landlock and seccomp.",
    )


def confinement_level(confine: Confine = "best") -> ConfinementLevel:
    """The level that a worker started now reaches, read from a real one."""
    worker = start_worker(confine, 60.0)
    level = worker.level
    worker.stop()
    return level


# Restrictions that this kernel refuses, each with its reason. They are not tried again for every worker.
_refused_restrictions: dict[Restrictions, str] = {}
_TRIES = 3


def _start_patiently(binary: Path, wanted: Restrictions, request_timeout: float) -> Worker:
    """A worker under these restrictions and no less, also where a start fails once on a busy machine."""
    tries = _TRIES
    while True:
        try:
            return _start_confined(binary, wanted, request_timeout)
        except Exception as error:
            tries -= 1
            if not tries or isinstance(error, ConfinementUnavailable):  # what the kernel refuses, it refuses again
                raise


@contextlib.contextmanager
def _keeping_ctrl_c() -> Iterator[None]:
    """Processes that are started inside of this hold back the terminal's Ctrl-C, which is for the host: it hears it
    once the block is over."""
    before = signal.getsignal(signal.SIGINT)
    is_heard_here = threading.current_thread() is threading.main_thread() and callable(before)
    heard: list[int] = []
    if is_heard_here:
        signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        with blocked_signals(signal.SIGINT):
            yield
    finally:
        if is_heard_here:
            signal.signal(signal.SIGINT, before)
        for number in heard[:1]:
            signal.raise_signal(number)


def _start_confined(binary: Path, wanted: Restrictions, request_timeout: float) -> Worker:
    from pydantic_monty import Monty

    pool = Monty(binary_path=binary, min_processes=1, max_processes=1, request_timeout=request_timeout)
    parent_death = ParentDeathSignal()
    try:
        with _keeping_ctrl_c():
            if wanted == _UNCONFINED:
                pool.__enter__()
            else:
                run_restricted(wanted, pool.__enter__)
    except BaseException:
        parent_death.release_worker()
        raise
    try:
        with pool.checkout() as session:
            pid = session.worker_pid
            session.feed_run("None")  # it runs, and `pid` is the process that ran it
        if pid is None:
            raise ConfinementUnavailable("the worker has no process id")
        parent_death.bind_worker(pid)
        level = observe_level(pid, wanted)
        if wanted.filter is not None and not level.seccomp:
            raise ConfinementUnavailable("the worker did not inherit its confinement")
        pidfd = os.pidfd_open(pid) if sys.platform == "linux" else None
    except BaseException:
        with contextlib.suppress(Exception):
            pool.__exit__(None, None, None)
        parent_death.release_worker()
        raise
    return Worker(pool, pid, pidfd, level, request_timeout, parent_death)


def prepare_client() -> None:
    """Make the interpreter's client ready in this process. Do not fork afterwards."""
    with _preparing:  # it uses sysconfig, which two threads must not begin to use at the same time
        _prepare_once()


_preparing = threading.Lock()


@lru_cache(maxsize=1)
def _prepare_once() -> None:
    if find_spec("opentelemetry") is None:
        # Otherwise the client would try to import it at every single host call.
        sys.modules["opentelemetry"] = sys.modules["opentelemetry.context"] = None  # type: ignore[assignment]
    from pydantic_monty import Monty

    # An empty pool starts the client's own threads here, and not on a thread that is restricted.
    with Monty(binary_path=_find_binary(), min_processes=0):
        pass


@lru_cache(maxsize=1)
def _find_binary() -> Path:
    from pydantic_monty._binary import find_monty_binary

    try:
        return Path(find_monty_binary()).resolve(strict=True)
    except OSError as error:
        message = f"the sandbox's interpreter is not installed: {error}"
        raise WorkspaceError(message, remedy="Run `pip install pydantic-monty`.") from None
