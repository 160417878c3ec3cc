"""The loop of cycles: one after another, with its waits, its breaker and its ways to stop."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from cleared.changes.host import Host
from cleared.clock import format_iso
from cleared.cycles import cycle_state
from cleared.cycles.circuit_breaker import CircuitBreaker
from cleared.cycles.consensus import ConsensusFile, read_next_action
from cleared.cycles.cycle import CycleRequest, CycleResult, resume_cycle, run_cycle
from cleared.cycles.cycle_log import CycleLog, last_cycle_number, remove_old_logs
from cleared.cycles.cycle_settings import CycleSettings
from cleared.errors import BusyError, ClearedError
from cleared.sandbox.confinement import ConfinementUnavailable
from cleared.workspace.lock import writer_lock

LOCK_FILE: Final = "cycle.lock"
_POLL_SECONDS: Final = 0.2


class CycleLoop:
    """Runs cycles until it is stopped, or must stop. ``pause``: waits some seconds; tests give their own."""

    def __init__(
        self, host: Host, settings: CycleSettings, binary: Path, *, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self.host, self.settings, self.binary = host, settings, binary
        self._pause = pause
        self._log = CycleLog(host.root, settings.engine, host.clock, host.redactor)
        self._breaker = CircuitBreaker(settings.max_consecutive_errors)
        self._state: dict[str, Any] = cycle_state.read_state(host.root)
        self._stop_now = False
        self._cycles_done = 0

    def run(self) -> int:
        """Run cycles; the exit code: 0 where it was stopped or is done, 1 where it gave up.

        Raises ``BusyError`` where another loop of cycles runs here.
        """
        with self._hold_lock(), self._handle_signals():
            (self.host.root / cycle_state.STOP_FILE).unlink(missing_ok=True)
            self._begin()
            try:
                return self._run_cycles()
            except BaseException as error:
                self._update(status="failed", reason=f"{type(error).__name__}: {error}"[:400])
                raise
            finally:
                cycle_state.remove_pid_files(self.host.root)

    def stop_now(self) -> None:
        """End the engine that works, and the loop."""
        self._stop_now = True

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        try:
            with writer_lock(self.host.layout.state_dir, 0.0, "cycle start", clock=self.host.clock, name=LOCK_FILE):
                yield
        except BusyError:
            state = cycle_state.read_state(self.host.root)
            raise BusyError(
                f"a loop of cycles runs here already (process {state['pid']}, {state['engine']}); nothing was started",
                remedy="See: cleared cycle status. Stop it with: cleared cycle stop.",
            ) from None

    @contextmanager
    def _handle_signals(self) -> Iterator[None]:
        def handle(number: int, frame: object) -> None:
            self._stop_now = True

        before = {each: signal.signal(each, handle) for each in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def _begin(self) -> None:
        started = cycle_state.claim_pid_file(self.host.root, self.settings.engine)
        self._update(
            status="starting", engine=self.settings.engine.name, pid=os.getpid(), pid_started=started,
            started_at=format_iso(self.host.clock.now()), consecutive_errors=0, until=None, reason=None,
            cycle=max(self._state["cycle"], last_cycle_number(self.host.root)),
        )  # fmt: skip
        resumed = resume_cycle(self.host)
        if resumed is not None:
            request, result = resumed
            self._record(request, result)
            self._say(f"cycle {request.number} was cut off; the rest was taken over: {result.summary}")
        consensus = ConsensusFile(self.host.root)
        if consensus.restore():
            self._say("the consensus was none; its last good version was put back")
        consensus.keep_backup()

    def _run_cycles(self) -> int:
        while not self._must_stop():
            if self._is_last():
                return self._end("stopped", f"the last of {self.settings.max_cycles} cycles is done")
            if (self.host.root / cycle_state.PAUSE_FILE).exists():
                self._wait(self.settings.interval_seconds or 1.0, "paused", None)
                continue
            result = self._run_one()
            self._cycles_done += 1
            if result.outcome == "stopped":
                break
            code = self._settle(result)
            if code is not None:
                return code
        return self._end("stopped", "it was stopped")

    def _run_one(self) -> CycleResult:
        number = self._state["cycle"] + 1
        began = self.host.clock.now()
        self._update(status="running", cycle=number, until=None, reason=None)
        self._say(f"cycle {number} begins ({self.settings.engine.title})")
        request = CycleRequest(number, began, self._state["stalled"])
        try:
            result = run_cycle(self.host, self.settings, self.binary, request, self._must_end_engine)
        except (ClearedError, ConfinementUnavailable, OSError) as error:
            log = self.settings.engine.cycle_log(number, began.strftime("%Y%m%d-%H%M%S"))
            result = CycleResult("failed", f"it could not run: {error}"[:400], log)
        remove_old_logs(self.host.root, self.settings.max_logs)
        self._record(request, result)
        self._say(f"cycle {number}: {result.outcome}: {result.summary}")
        return result

    def _record(self, request: CycleRequest, result: CycleResult) -> None:
        now = self.host.clock.now()
        total = Decimal(self._state["total_cost"]) + (result.cost or 0)
        changes: dict[str, Any] = {
            "total_cost": f"{total:f}",
            "last_cycle": {
                "number": request.number, "outcome": result.outcome, "exit_code": result.exit_code,
                "started_at": format_iso(request.began), "ended_at": format_iso(now),
                "seconds": round((now - request.began).total_seconds(), 3),
                "cost": f"{result.cost:f}" if result.cost is not None else None, "log": result.log,
                "summary": result.summary[:400], "proposal": result.taken.proposal, "branch": result.taken.branch,
            },
        }  # fmt: skip
        if result.outcome in ("ok", "soft_ok", "no_progress"):
            action = read_next_action(ConsensusFile(self.host.root).read())
            changes["stalled"] = bool(action) and action == self._state["next_action"]
            changes["next_action"] = action[:2_000]
            changes["no_progress"] = self._state["no_progress"] + 1 if result.outcome == "no_progress" else 0
        self._update(**changes)

    def _settle(self, result: CycleResult) -> int | None:
        """What follows from a result: waits; the exit code where the loop ends by it."""
        cap = self.settings.cost_cap
        if result.outcome == "limit" and result.limit is not None:
            if result.limit.is_administrative:
                return self._end("failed", f"the account needs a person: {result.limit.words}")
            if self._is_last():
                return None
            until = result.limit.until or self._in_seconds(self.settings.limit_wait_seconds)
            self._wait(max((until - self.host.clock.now()).total_seconds(), 0.0), "waiting_limit", result.limit.words)
            return None
        if result.outcome == "failed":
            opened = self._breaker.record_failure()
            self._update(consecutive_errors=self._breaker.failures)
            consensus = ConsensusFile(self.host.root)
            if consensus.restore():
                self._say("the consensus was restored from its last good version")
            if opened and not self._is_last():
                self._say(f"{self._breaker.failures} failures in a row; it cools down")
                self._wait(self.settings.cooldown_seconds, "cooldown", f"{self._breaker.failures} failures in a row")
                self._breaker.close_again()
                self._update(consecutive_errors=0)
                return None
        else:
            self._breaker.record_success()
            self._update(consecutive_errors=0)
        if cap and Decimal(self._state["total_cost"]) >= cap:
            return self._end("failed", f"the cost cap of {cap} USD is reached ({self._state['total_cost']} spent)")
        if not self._is_last():
            self._wait(self.settings.interval_seconds, "sleeping", None)
        return None

    def _is_last(self) -> bool:
        return self.settings.max_cycles is not None and self._cycles_done >= self.settings.max_cycles

    def _wait(self, seconds: float, status: str, reason: str | None) -> None:
        """Wait, unless somebody wants the loop to stop."""
        until = self._in_seconds(seconds)
        self._update(status=status, until=format_iso(until), reason=reason)
        end = self.host.clock.monotonic() + seconds
        while not self._must_stop() and (left := end - self.host.clock.monotonic()) > 0:
            self._pause(min(_POLL_SECONDS, left))

    def _must_stop(self) -> bool:
        return self._stop_now or (self.host.root / cycle_state.STOP_FILE).exists()

    def _must_end_engine(self) -> bool:
        """Whether the engine that works is ended; it is not where the loop is to stop after its cycle."""
        if self._state["status"] == "running" and self._must_stop():
            self._update(status="stopping")
        return self._stop_now

    def _end(self, status: str, reason: str) -> int:
        self._update(status=status, reason=reason, until=None, pid=None, pid_started=None)
        (self.host.root / cycle_state.STOP_FILE).unlink(missing_ok=True)
        self._say(f"ended: {reason}")
        return 1 if status == "failed" else 0

    def _in_seconds(self, seconds: float) -> datetime:
        return self.host.clock.now() + timedelta(seconds=seconds)

    def _update(self, **changes: Any) -> None:
        self._state |= {**changes, "updated_at": format_iso(self.host.clock.now())}
        cycle_state.write_state(self.host.root, self._state)

    def _say(self, text: str) -> None:
        self.host.show_message(self._log.write(text))
