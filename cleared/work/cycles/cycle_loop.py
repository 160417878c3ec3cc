"""The loop of cycles: one after another, with its waits and its ways to stop."""

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

from cleared.base.clock import format_iso
from cleared.base.errors import ClearedError
from cleared.changes.host import Host
from cleared.work.cycles import cycle_state
from cleared.work.cycles.consensus import CONSENSUS, ConsensusFile, read_next_action
from cleared.work.cycles.cycle import CycleRequest, CycleResult, resume_cycle, run_cycle
from cleared.work.cycles.cycle_log import CycleLog, last_cycle_number, remove_old_logs
from cleared.work.cycles.cycle_settings import CycleSettings
from cleared.work.cycles.engine_changes import leave_note
from cleared.work.cycles.engine_policy import EnginePolicy, Following, Spending

_POLL_SECONDS: Final = 0.2
_ENDS: Final = ("stopped", "failed")
_GOAL_REACHED: Final = "done"
"""A *Next Action* that says so, and nothing else, ends the cycles."""


class CycleLoop:
    """Runs cycles until it is stopped, or must stop. ``pause``: waits some seconds; tests give their own."""

    def __init__(
        self, host: Host, settings: CycleSettings, binary: Path, *, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self.host, self.settings, self.binary = host, settings, binary
        self._pause = pause
        self._runner = cycle_state.cycles_of(host.root)
        self._log = CycleLog(host.root, settings.engine, host.clock, host.redactor)
        self._policy = EnginePolicy(host, settings)
        self._state: dict[str, Any] = cycle_state.read_state(host.root)
        self._stop_now = False
        self._cycles_done = 0

    def run(self) -> int:
        """Run cycles; the exit code: 0 where it was stopped or is done, 1 where it gave up.

        Raises ``BusyError`` where another loop of cycles runs here.
        """
        with self._runner.hold(self.host.clock), self._handle_signals():
            self._runner.forget_request()
            with self._record_end():
                self._begin()
                return self._run_cycles()

    def run_one(self, *, is_follow_up: bool) -> tuple[bool, str]:
        """Run one cycle, and note until when the next one waits; whether it went well, and the summary.

        ``is_follow_up``: nobody asked for it but the cycle before, so it runs only where that still waits for it.
        Raises ``BusyError`` where a loop of cycles runs here.
        """
        with self._runner.hold(self.host.clock), self._handle_signals():
            before = cycle_state.read_state(self.host.root)
            was_cut_off = is_follow_up and cycle_state.was_cut_off(self.host.root, before)
            goes_on = cycle_state.waits_in_queue(before) or was_cut_off
            if is_follow_up and not goes_on:
                return True, "the cycles have ended meanwhile; none was run"
            if not goes_on:
                self._runner.forget_request()
            with self._record_end():
                is_lost = self._begin() is None and was_cut_off
                if goes_on:
                    self._cycles_done = before.get("series_cycles", 0)
                    self._policy.failures = 0 if before["status"] == "cooldown" else before["consecutive_errors"]
                if is_lost:
                    result = CycleResult("failed", "the cycle before was cut off; nothing of it was taken over", "")
                elif reached := self._policy.find_cap():
                    result = CycleResult("failed", reached, "")
                else:
                    result = self._run_one()
                    self._cycles_done += 1
                return self._note_next(result)

    @contextmanager
    def _record_end(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self._update(status="failed", reason=f"{type(error).__name__}: {error}"[:400])
            raise
        finally:
            cycle_state.remove_pid_files(self.host.root)

    def _note_next(self, result: CycleResult) -> tuple[bool, str]:
        """Note what follows from the one cycle of a job: the end, or until when the next one waits."""
        following = self._settle(result)
        self._update(series_cycles=self._cycles_done)
        if result.outcome == "stopped" or self._must_stop():
            following = Following("stopped", "it was stopped")
        elif following.status not in _ENDS and self._is_last():
            following = Following("stopped", f"the last of {self.settings.max_cycles} cycles is done")
        if following.status in _ENDS:
            self._end(following.status, following.reason or "")
        else:
            until = format_iso(self._in_seconds(following.seconds))
            self._update(status=following.status, until=until, reason=following.reason, pid=None, pid_started=None)
            self._say(f"the next cycle waits until {until}{f': {following.reason}' if following.reason else ''}")
        went_well = following.status != "failed" and result.outcome in ("ok", "soft_ok", "no_progress")
        return went_well, f"{result.outcome}: {following.reason if following.status == 'failed' else result.summary}"

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

    def _begin(self) -> CycleResult | None:
        """Begin; the cycle that was cut off and of which the rest was taken over, if there is one."""
        self._state = cycle_state.read_state(self.host.root)
        started = cycle_state.claim_pid_file(self.host.root, self.settings.engine)
        self._update(
            status="starting",
            engine=self.settings.engine.name,
            pid=os.getpid(),
            pid_started=started,
            started_at=format_iso(self.host.clock.now()),
            consecutive_errors=0,
            until=None,
            reason=None,
            cycle=max(self._state["cycle"], last_cycle_number(self.host.root)),
        )
        resumed = None
        try:
            resumed = self._take_rest()
        except (ClearedError, OSError) as error:
            self._say(f"the rest of a cycle waits to be taken over: {error}")
        self._restore_consensus()
        ConsensusFile(self.host.root).keep_backup()
        return resumed

    def _take_rest(self) -> CycleResult | None:
        """See ``resume_cycle``."""
        resumed = resume_cycle(self.host)
        if resumed is None:
            return None
        request, result = resumed
        self._record(request, result)
        self._say(f"cycle {request.number} was cut off; the rest was taken over: {result.summary}")
        return result

    def _run_cycles(self) -> int:
        result = None
        if reached := self._policy.find_cap():
            return self._end("failed", reached)
        while not self._must_stop():
            if self._is_last():
                code = self._end("stopped", f"the last of {self.settings.max_cycles} cycles is done")
                return 1 if result is not None and result.outcome == "failed" else code
            if (self.host.root / cycle_state.PAUSE_FILE).exists():
                if self._state["status"] != "paused":
                    self._say("paused; it goes on after: cleared cycle resume")
                self._wait(Following("paused", None, self.settings.interval_seconds or 1.0))
                continue
            result = self._run_one()
            self._cycles_done += 1
            if result.outcome == "stopped":
                break
            following = self._settle(result)
            if following.status in _ENDS:
                return self._end(following.status, following.reason or "")
            if not self._is_last():
                self._wait(following)
        return self._end("stopped", "it was stopped")

    def _run_one(self) -> CycleResult:
        number = self._state["cycle"] + 1
        began = self.host.clock.now()
        self._update(status="running", cycle=number, until=None, reason=None)
        self._say(f"cycle {number} begins ({self.settings.engine.title})")
        request = CycleRequest(number, began, self._state["stalled"])
        try:
            self._take_rest()  # no engine works while what the last one left cannot be taken over
            result = run_cycle(self.host, self.settings, self.binary, request, self._must_end_engine, self._say)
        except (ClearedError, OSError) as error:
            log = self.settings.engine.cycle_log(number, began.strftime("%Y%m%d-%H%M%S"))
            result = CycleResult("failed", f"it could not run: {error}"[:400], log)
        self._must_end_engine()  # an engine may end before anybody has asked
        remove_old_logs(self.host.root, self.settings.max_logs)
        self._record(request, result)
        self._say(f"cycle {number}: {result.outcome}: {result.summary}")
        return result

    def _record(self, request: CycleRequest, result: CycleResult) -> None:
        now = self.host.clock.now()
        spent = self._policy.record_use(Spending(result.cost or Decimal(0), result.tokens, result.seconds))
        changes: dict[str, Any] = {
            **spent.to_state(),
            "last_cycle": {
                "number": request.number,
                "outcome": result.outcome,
                "exit_code": result.exit_code,
                "started_at": format_iso(request.began),
                "ended_at": format_iso(now),
                "seconds": round(result.seconds, 3),
                "cost": f"{result.cost:f}" if result.cost is not None else None,
                "log": result.log,
                "summary": result.summary[:400],
                "proposal": result.taken.proposal,
                "branch": result.taken.branch,
            },
        }
        if result.outcome in ("ok", "soft_ok", "no_progress"):
            action = read_next_action(ConsensusFile(self.host.root).read())
            changes["stalled"] = bool(action) and action == self._state["next_action"]
            changes["next_action"] = action[:2_000]
            changes["no_progress"] = self._state["no_progress"] + 1 if result.outcome == "no_progress" else 0
        self._update(**changes)

    def _restore_consensus(self) -> None:
        """What is none gives way to the last good version. A person may have begun it, and finds it by a card."""
        kept = ConsensusFile(self.host.root).restore(self.host.clock.now())
        if kept is None:
            return
        self._say("the consensus was none; its last good version was put back")
        if kept:
            text = (
                f"{CONSENSUS} was no consensus, so its last good version was put back. What was there is kept: {kept}."
            )
            engine = self.settings.engine.name
            for problem in leave_note(self.host, f"{engine}-{self._state['cycle']:04d}", f"cycle:{engine}", text):
                self._say(problem)

    def _settle(self, result: CycleResult) -> Following:
        """What follows from a result: what the policy of engines says, or the ends that only cycles have."""
        failed = result.outcome == "failed"
        if failed:
            self._restore_consensus()
        following = self._policy.find_following(failed=failed, limit=result.limit)
        self._update(consecutive_errors=self._policy.failures)
        if following is not None:
            return following
        if self._state["next_action"].rstrip(".!") == _GOAL_REACHED and result.outcome in (
            "ok",
            "soft_ok",
            "no_progress",
        ):
            return Following("stopped", "its Next Action says that all is done")
        if 0 < self.settings.max_no_progress <= self._state["no_progress"]:
            return Following("stopped", f"{self._state['no_progress']} cycles in a row made no progress")
        return Following("sleeping", None, self.settings.interval_seconds)

    def _is_last(self) -> bool:
        return self.settings.max_cycles is not None and self._cycles_done >= self.settings.max_cycles

    def _wait(self, following: Following) -> None:
        """Wait, also where the machine sleeps meanwhile, unless somebody wants the loop to stop."""
        if following.status == "cooldown":
            self._say(f"{following.reason}; it cools down")
        until = self._in_seconds(following.seconds)
        self._update(status=following.status, until=format_iso(until), reason=following.reason)
        end = self.host.clock.monotonic() + following.seconds
        while not self._must_stop() and (left := end - self.host.clock.monotonic()) > 0:
            if self.host.clock.now() >= until:
                break
            self._pause(min(_POLL_SECONDS, left))
        self._policy.end_wait(following)
        self._update(consecutive_errors=self._policy.failures)

    def _must_stop(self) -> bool:
        return self._stop_now or self._runner.is_asked_to_end()

    def _must_end_engine(self) -> bool:
        """Whether the engine that works is ended; it is not where the loop is to stop after its cycle."""
        if self._state["status"] == "running" and self._must_stop():
            self._update(status="stopping")
        return self._stop_now

    def _end(self, status: str, reason: str) -> int:
        self._update(status=status, reason=reason, until=None, pid=None, pid_started=None)
        self._runner.forget_request()
        self._say(f"ended: {reason}")
        return 1 if status == "failed" else 0

    def _in_seconds(self, seconds: float) -> datetime:
        return self.host.clock.now() + timedelta(seconds=seconds)

    def _update(self, **changes: Any) -> None:
        self._state |= {**changes, "updated_at": format_iso(self.host.clock.now())}
        cycle_state.write_state(self.host.root, self._state)

    def _say(self, text: str) -> None:
        self.host.show_message(self._log.write(text))
