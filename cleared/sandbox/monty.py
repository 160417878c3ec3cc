"""Runs scripts in isolation. Nothing else uses the interpreter."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Self

from cleared.base.errors import Place, WorkspaceError
from cleared.processes.confinement import ConfinementLevel
from cleared.sandbox.executor import ScriptRun
from cleared.sandbox.finding import Finding
from cleared.sandbox.script_failure import Frame, ScriptError
from cleared.sandbox.script_session import ScriptSession
from cleared.sandbox.script_source import RewrittenScript, normalise_text, parse_script
from cleared.sandbox.worker_pool import MAX_WORKERS, Confine, Worker, WorkerPool, prepare_client
from cleared.sandbox.worker_watchdog import Watchdog

if TYPE_CHECKING:
    from pydantic_monty import OSPolicy, ResourceLimits

# Seconds after the limit: the interpreter stops itself at the limit, and a worker that does not is killed.
_GRACE = 1.0
# Suspensions that the client makes itself, beside the calls of the script.
_SLACK = 1000


class Sandbox:
    """Runs scripts in worker processes; a context manager that owns them.

    Workers start when they are first needed, and at most ``processes`` idle ones are kept. ``run`` may be called from
    any thread and, for nested scripts, from inside a host call. ``confine`` asks for confinement by the kernel:
    ``best`` (what the kernel has), ``require`` (``WorkspaceError`` where not all of it is reached) or ``off``. Do not
    fork after the first run.
    """

    def __init__(self, *, confine: Confine = "best", processes: int = 2) -> None:
        self._workers = WorkerPool(confine, processes)
        self._watch = Watchdog()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop all idle workers. The sandbox can still be used afterwards."""
        self._workers.close()
        self._watch.close()

    @property
    def level(self) -> ConfinementLevel:
        """The confinement of a worker of this sandbox, read from a live one."""
        worker = self._workers.take_worker(_GRACE)
        self._workers.return_worker(worker, reusable=True)
        return worker.level

    def run(self, run: ScriptRun) -> object:
        """The result of the script.

        Raises ``ScriptError`` where the script fails or reaches a limit, ``HostCallFailed`` where ``run.call``
        raises an ``Exception`` (any other ``BaseException`` comes through as it is), ``KeyboardInterrupt`` on
        Ctrl-C, ``BusyError`` where too many scripts run at once, ``WorkspaceError`` where no worker can start.
        """
        script = _parse_source(run.source, run.file)
        began = run.monotonic()
        end = run.find_end(began)
        seconds = end - began
        if seconds <= 0:
            message = "there is no time left to run the script"
            remedy = "Do less at a time, or raise the limit."
            raise ScriptError(message, kind="timeout", type="TimeoutError", place=Place(run.file), remedy=remedy)
        with self._watch.guard_run() as guard:
            worker, session = self._open_session(run, seconds)
            running = ScriptSession(run, script, began, guard)
            try:
                guard.kill = worker.kill
                guard.limit_run(seconds + _GRACE)
                guard.raise_interrupt()
                return running.run(session)
            finally:
                if not running.reusable:
                    worker.kill()  # closing a session waits for its script
                with contextlib.suppress(Exception):  # closing complains of a worker that was killed
                    session.__exit__(None, None, None)
                self._workers.return_worker(worker, reusable=running.reusable and guard.fired is None)

    def _open_session(self, run: ScriptRun, seconds: float) -> tuple[Worker, Any]:
        limits = run.limits
        prepare_client()
        from pydantic_monty import MontyCrashedError, MontyRuntimeError

        bounds: ResourceLimits = {
            "max_feed_duration_secs": seconds,
            "max_turn_duration_secs": seconds,
            "max_memory": limits.memory_bytes,
            "max_suspensions": limits.max_calls + _SLACK,
            "max_recursion_depth": limits.max_recursion,
            "max_total_sleep_secs": 0.0,
        }
        policy: OSPolicy = {
            "datetime": run.now,
            "timezone": run.timezone,
            "sleep": "zero",
            "process_time": "zero",
            "random_start": {"seed": run.seed},
        }
        for _ in range(MAX_WORKERS + 1):
            worker = self._workers.take_worker(seconds + 2 * _GRACE)
            try:
                worker.allow_memory(limits.memory_bytes)
                session = worker.pool.checkout(limits=bounds, os_policy=policy)
                session.__enter__()
            except ValueError as error:  # a zone this system does not know
                self._workers.return_worker(worker, reusable=True)
                remedy = "Name an IANA time zone, or install the system's tzdata."
                raise WorkspaceError(str(error), place=Place(run.file), remedy=remedy) from None
            except MontyCrashedError:  # it died while idle
                self._workers.return_worker(worker, reusable=False)
                continue
            except MontyRuntimeError as error:  # nothing of the script has run yet
                self._workers.return_worker(worker, reusable=False)
                remedy = "Close other programs, or raise the limit that holds here (ulimit -v, or the container's)."
                raise WorkspaceError(f"the sandbox cannot be started: {error}", remedy=remedy) from None
            except BaseException:
                self._workers.return_worker(worker, reusable=False)
                raise
            if session.worker_pid == worker.pid:
                return worker, session
            # It died while idle, and the client replaced it outside of our confinement.
            with contextlib.suppress(Exception):
                session.__exit__(None, None, None)
            self._workers.return_worker(worker, reusable=False)
        raise WorkspaceError(
            "the sandbox's workers die as soon as they are started",
            place=Place(run.file),
            remedy="Look for a limit on memory or processes; `cleared doctor` says what the sandbox reaches.",
        )


def _parse_source(source: str, file: str) -> RewrittenScript:
    """The script, ready to run. Raises ``ScriptError`` where it does not parse."""
    text = normalise_text(source)
    tree = parse_script(text, file)
    if isinstance(tree, Finding):
        line, column = tree.place.line or 1, tree.place.column or 1
        shown = text.split("\n")[line - 1 : line]
        raise ScriptError(
            tree.message,
            kind="syntax",
            type="SyntaxError",
            place=tree.place,
            remedy=tree.remedy,
            frames=[Frame(file, line, column, "<module>", "".join(shown))],
        )
    return RewrittenScript(text, tree)
