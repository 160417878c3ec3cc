"""Runs scripts in isolation. Nothing else uses the interpreter."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from cleared.base.clock import SystemClock
from cleared.base.errors import Place, UsageError, WorkspaceError
from cleared.processes.confinement import ConfinementLevel
from cleared.sandbox.finding import Finding
from cleared.sandbox.limits import Limits
from cleared.sandbox.script_failure import Frame, ScriptError
from cleared.sandbox.script_session import HostCall, ScriptRun, ScriptSession
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

    def run(
        self,
        source: str,
        *,
        file: str,
        call: HostCall,
        names: Container[str],
        limits: Limits,
        now: datetime,
        timezone: str = "UTC",
        seed: str,
        inputs: Mapping[str, object] | None = None,
        on_print: Callable[[str], None] | None = None,
        deadline: float | None = None,
        monotonic: Callable[[], float] = SystemClock().monotonic,
    ) -> object:
        """Run ``source`` and return its result: the value of its last expression.

        ``call(name, args, kwargs, position)`` answers the calls of the functions in ``names``; an exception that it
        raises ends the run. ``now`` (with a time zone) is the only time that the script can see, ``timezone`` its local
        zone, ``seed`` the start of its random numbers; ``inputs`` are bound as variables. ``on_print`` gets printed
        text at once. The run ends after ``limits.seconds`` or at ``deadline`` (a time of ``monotonic``), whichever is
        first; the time spent in ``call`` counts.

        Raises ``ScriptError`` where the script fails or reaches a limit, ``HostCallFailed`` where ``call``
        raises an ``Exception`` (any other ``BaseException`` comes through as it is), ``KeyboardInterrupt`` on
        Ctrl-C, ``BusyError`` where too many scripts run at once, ``WorkspaceError`` where no worker can start.
        """
        if now.tzinfo is None:
            raise UsageError("the time of a run must be aware of its zone")
        script = _parse_source(source, file)
        began = monotonic()
        end = began + limits.seconds if deadline is None else min(began + limits.seconds, deadline)
        seconds = end - began
        if seconds <= 0:
            message = "there is no time left to run the script"
            remedy = "Do less at a time, or raise the limit."
            raise ScriptError(message, kind="timeout", type="TimeoutError", place=Place(file), remedy=remedy)
        worker, session = self._open_session(file, limits, seconds, now, timezone, seed)
        running: ScriptSession | None = None
        try:
            with self._watch.guard_run(worker.kill, seconds + _GRACE) as guard:
                run = ScriptRun(
                    script=script,
                    file=file,
                    call=call,
                    names=names,
                    limits=limits,
                    inputs=inputs or {},
                    on_print=on_print,
                    monotonic=monotonic,
                    seconds=round(seconds, 3),
                    deadline=end,
                    shorten_deadline=lambda more: self._watch.shorten_guard(guard, more),
                )
                running = ScriptSession(run, guard)
                return running.run(session)
        finally:
            reusable = running is not None and running.reusable
            if not reusable:
                worker.kill()  # closing a session waits for its script
            with contextlib.suppress(Exception):  # closing complains of a worker that was killed
                session.__exit__(None, None, None)
            self._workers.return_worker(worker, reusable=reusable)

    def _open_session(
        self, file: str, limits: Limits, seconds: float, now: datetime, timezone: str, seed: str
    ) -> tuple[Worker, Any]:
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
            "datetime": now,
            "timezone": timezone,
            "sleep": "zero",
            "process_time": "zero",
            "random_start": {"seed": seed},
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
                raise WorkspaceError(str(error), place=Place(file), remedy=remedy) from None
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
            place=Place(file),
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
