"""Running one delivery at a time, and handling how it ended: done, retried, held, split or given up.

A run that asks a language model is left meanwhile, and taken up again with the answers.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.base.errors import BusyError, Interrupted, PolicyError, UsageError, WorkspaceError
from cleared.changes.consumed_events import AlreadyRun
from cleared.changes.host import Host
from cleared.runs.model_asking import ModelAsker, WaitsForModel
from cleared.runs.outcome import RunResult
from cleared.sandbox.trigger_kinds import EVENT, SCHEDULE, WEBHOOK
from cleared.service.actions import ServiceActions
from cleared.triggers import service_notices
from cleared.triggers.agent_triggers import TriggeredAgent, TriggerIndex
from cleared.triggers.dropped_files import make_file_event
from cleared.triggers.pending_deliveries import Delivery, Inbox
from cleared.triggers.service_log import ServiceLog
from cleared.workspace.lock import count_waiters, read_holder

MAX_CRASHES: Final = 5
"""A delivery at which the process was killed this often counts as a failed run."""
MAX_SET_ASIDE: Final = 3
"""Files in a row that are set aside. After these the agent is thought to be at fault, and further files wait."""
_HOUR: Final = timedelta(hours=1)
_YIELD_SECONDS: Final = 2.0
"""Seconds for which a command that a person waits for goes first."""


class _WaitingRun(Struct, frozen=True):
    """A run of an agent that goes on when a model has answered; it began at ``began``."""

    key: str | None
    asker: ModelAsker
    began: datetime


class DeliveryRunner:
    """Runs the deliveries of one service, and remembers what its runs have shown so far."""

    def __init__(self, actions: ServiceActions, log: ServiceLog, version: Callable[[str], str]) -> None:
        self.actions, self.log, self.version = actions, log, version
        self.on_failed: Callable[[str, str, str, datetime], None] | None = None
        """Called with run, agent, cause and time of a run that failed."""
        self.on_run: Callable[[Delivery | None], None] | None = None
        """Called with the delivery when its run begins, and with None when it has ended."""
        self.on_ended: Callable[[Delivery, RunResult | None, bool], None] | None = None
        """Called when a run for a delivery has ended, with its result, and when the delivery is settled without one;
        last: whether it is settled now."""
        self.last_agent = ""
        """The agent that was run last."""
        self._ran: dict[str, tuple[datetime, datetime]] = {}
        self._by_events: dict[str, deque[datetime]] = {}
        self._set_aside_in_row: dict[str, int] = {}
        self._waiting: dict[str, _WaitingRun] = {}

    @property
    def agents_asking(self) -> Collection[str]:
        """The agents whose runs wait for a model: nothing is run for them meanwhile."""
        return [agent for agent, run in self._waiting.items() if run.asker.is_asking]

    def reset_agent(self, agent: str) -> None:
        """Forget the failures of an agent whose script has changed."""
        self._set_aside_in_row.pop(agent, None)

    def was_running(self, agent: str, at: datetime) -> bool:
        """Whether a run of the agent was on at that time."""
        began, ended = self._ran.get(agent, (None, None))
        return began is not None and ended is not None and began < at <= ended

    def run_next(self, host: Host, inbox: Inbox, triggers: TriggerIndex) -> bool:
        """Run the delivery whose turn it is, or settle it otherwise; False where there is none.

        Raises ``WorkspaceError`` where nothing can be run in this workspace, ``Interrupted`` where a person breaks the
        run off; the delivery waits then.
        """
        now = host.clock.now()
        delivery = inbox.next_delivery(now, self.agents_asking)
        if delivery is None:
            return False
        listener = triggers.listeners.get(delivery.agent)
        if listener is None or not listener.is_triggered_by(delivery.event):
            why = "the agent is gone" if listener is None else "it does not wait for that any more"
            self.log("delivery.dropped", agent=delivery.agent, key=delivery.event.key, why=why)
            inbox.finish_delivery(delivery, now)
            self._report_end(delivery, None, is_settled=True)
            return True
        if delivery.starts >= MAX_CRASHES:
            why = f"the process died {delivery.starts} times while it ran"
            service_notices.report_crash(host, delivery.agent, delivery.event, why)
            self._handle_failure(host, inbox, delivery, listener, why)
            return True
        waiting = self._waiting.get(delivery.agent)
        goes_on = waiting is not None and waiting.key == delivery.event.key
        if not goes_on and self._exceeds_event_rate(host, inbox, delivery, now):
            return True
        self._yield_to_waiters(host)
        self._run_delivery(host, inbox, delivery, listener)
        return True

    def _run_delivery(self, host: Host, inbox: Inbox, delivery: Delivery, listener: TriggeredAgent) -> None:
        agent, event, began = delivery.agent, delivery.event, host.clock.now()
        self.last_agent = agent
        waiting = self._waiting.pop(agent, None)
        if waiting is not None and waiting.key == event.key:
            began = min(began, waiting.began)
        inbox.count_start(delivery)
        if self.on_run:
            self.on_run(delivery)
        try:
            result = self.actions.run_agent(host, agent, event)
        except AlreadyRun:
            self.log("delivery.known", agent=agent, kind=event.kind, key=event.key)
            self._finish_delivery(host, inbox, delivery)
            return
        except WaitsForModel as wait:
            self._waiting[agent] = _WaitingRun(event.key, wait.asker, began)
            inbox.retry_delivery(delivery, host.clock.now(), str(wait), failed=False)
            self.log(
                "run.asks",
                f"{agent} waits for a language model; other agents run meanwhile",
                agent=agent,
                kind=event.kind,
                key=event.key,
            )
            return
        except (PolicyError, UsageError) as error:
            self._handle_refusal(host, inbox, delivery, str(error))
            return
        except BusyError as error:
            inbox.retry_delivery(delivery, host.clock.now() + timedelta(seconds=1), str(error), failed=False)
            self.log("delivery.busy", agent=agent, kind=event.kind, key=event.key, why=str(error))
            return
        except (WorkspaceError, Interrupted, KeyboardInterrupt) as error:
            inbox.retry_delivery(delivery, host.clock.now(), str(error), failed=False)
            if not isinstance(error, WorkspaceError):
                self.log("run.interrupted", agent=agent, kind=event.kind, key=event.key)
            raise
        finally:
            self._ran[agent] = (began, host.clock.now())
            if self.on_run:
                self.on_run(None)
        self._report_end(delivery, result, is_settled=False)
        self._handle_result(host, inbox, delivery, listener, result)

    def _report_end(self, delivery: Delivery, result: RunResult | None, *, is_settled: bool) -> None:
        if self.on_ended:
            self.on_ended(delivery, result, is_settled)

    def _handle_result(
        self, host: Host, inbox: Inbox, delivery: Delivery, listener: TriggeredAgent, result: RunResult
    ) -> None:
        about: dict[str, Any] = {
            "agent": delivery.agent,
            "kind": delivery.event.kind,
            "key": delivery.event.key,
            "run": result.run_id,
            "ms": result.duration_ms,
            "commit": result.commits[0] if result.commits else None,
        }
        for warning in result.warnings:
            text = f"{delivery.agent}: {warning}"
            self.log("run.warning", text, level="warning", agent=delivery.agent, run=result.run_id)
        if result.status == "failed":
            cause = str(result.error)
            self.log("run.failed", f"{delivery.agent} failed: {cause.splitlines()[0]}", level="error", **about)
            if self.on_failed:
                self.on_failed(result.run_id, delivery.agent, cause, host.clock.now())
            again = delivery.event.kind != WEBHOOK.name or result.error is None or not result.error.is_of_script
            self._handle_failure(host, inbox, delivery, listener, cause, may_retry=again)
            return
        if result.status == "waiting":
            self.log("run.waiting", result.cards[0].title, **about)
        else:
            text = f"{delivery.agent}: {result.message}" if result.commits else ""
            self.log("run.succeeded", text, **about, cards=len(result.cards))
        self._set_aside_in_row.pop(delivery.agent, None)
        self._finish_delivery(host, inbox, delivery)

    def _finish_delivery(self, host: Host, inbox: Inbox, delivery: Delivery) -> None:
        remaining = [file for file in delivery.event.files if (host.root / file[0]).exists()]
        inbox.finish_delivery(delivery, host.clock.now(), remaining, self.version(delivery.agent))
        self._report_end(delivery, None, is_settled=True)

    def _handle_refusal(self, host: Host, inbox: Inbox, delivery: Delivery, why: str) -> None:
        """The agent may not run now: drop a schedule's delivery, which comes again by itself; hold any other."""
        self.log(
            "run.refused",
            f"{delivery.agent} was not run: {why}" if delivery.why != why else "",
            level="warning",
            agent=delivery.agent,
            kind=delivery.event.kind,
            key=delivery.event.key,
            why=why,
        )
        if delivery.event.kind == SCHEDULE.name:
            inbox.finish_delivery(delivery, host.clock.now())
        else:
            inbox.hold_delivery(delivery, why)

    def _handle_failure(
        self,
        host: Host,
        inbox: Inbox,
        delivery: Delivery,
        listener: TriggeredAgent,
        cause: str,
        *,
        may_retry: bool = True,
    ) -> None:
        """``may_retry``: False for a call whose script fails over its body, as it would again: later calls wait."""
        settings, now = host.config.triggers, host.clock.now()
        retries = listener.header.retries if listener.header.retries is not None else settings.retries
        if may_retry and delivery.failures < retries:
            wait = min(settings.retry_seconds * 2**delivery.failures, 3_600.0)
            inbox.retry_delivery(delivery, now + timedelta(seconds=wait), cause, failed=True)
            self.log("run.again", agent=delivery.agent, key=delivery.event.key, seconds=wait)
        elif len(delivery.event.files) > 1:
            self._split_files(inbox, delivery, listener, retries, cause, now)
        elif delivery.event.files:
            self._set_file_aside(host, inbox, delivery, cause, now)
        else:
            self.log(
                "delivery.given_up",
                level="error",
                agent=delivery.agent,
                kind=delivery.event.kind,
                key=delivery.event.key,
                runs=delivery.failures + 1,
                why=cause,
            )
            self._finish_delivery(host, inbox, delivery)

    def _split_files(
        self, inbox: Inbox, delivery: Delivery, listener: TriggeredAgent, failures: int, cause: str, now: datetime
    ) -> None:
        """Replace the delivery by two with half of its files each, to find out which file makes the run fail."""
        files = list(delivery.event.files)
        with inbox.transaction():
            inbox.drop_delivery(delivery)
            for half in (files[: len(files) // 2], files[len(files) // 2 :]):
                inbox.add_delivery(
                    delivery.agent, make_file_event(listener, half, now), now, failures=failures, why=cause
                )
        self.log("files.split", agent=delivery.agent, key=delivery.event.key, files=len(files))

    def _set_file_aside(self, host: Host, inbox: Inbox, delivery: Delivery, cause: str, now: datetime) -> None:
        agent, (path, digest) = delivery.agent, delivery.event.files[0]
        if self._set_aside_in_row.get(agent, 0) >= MAX_SET_ASIDE:
            why = f"{MAX_SET_ASIDE} files in a row failed, so it may be the agent's fault: {cause}"
            self.log("files.wait", f"{agent}: {path} waits for an hour. {why}", level="error", agent=agent, file=path)
            inbox.retry_delivery(delivery, now + _HOUR, why, failed=False)
            return
        new_path = service_notices.set_file_aside(host, agent, path, digest, cause, delivery.failures + 1)
        self._set_aside_in_row[agent] = self._set_aside_in_row.get(agent, 0) + 1
        as_name = f" as {new_path}" if new_path else ""
        self.log(
            "file.set_aside",
            f"{path} was set aside{as_name}: it makes {agent} fail",
            level="error",
            agent=agent,
            file=path,
            to=new_path,
        )
        self._finish_delivery(host, inbox, delivery)

    def _exceeds_event_rate(self, host: Host, inbox: Inbox, delivery: Delivery, now: datetime) -> bool:
        """Whether events have started the agent so often within the hour that this one has to wait."""
        if delivery.event.kind != EVENT.name:
            return False
        times = self._by_events.setdefault(delivery.agent, deque())
        while times and not now - _HOUR < times[0] <= now:  # a later time is of a clock that was set back since
            times.popleft()
        most = host.config.triggers.max_event_runs
        if len(times) < most:
            times.append(now)
            return False
        why = f"events started it {most} times within an hour"
        inbox.retry_delivery(delivery, times[0] + _HOUR, why, failed=False)
        self.log("event.rate", f"{delivery.agent} waits: {why}", level="warning", agent=delivery.agent)
        service_notices.report_event_rate(host, delivery.agent, delivery.event.name, most, format_iso(now)[:13])
        return True

    def _yield_to_waiters(self, host: Host) -> None:
        """Let a command that a person waits for take the lock first: the lock itself keeps no order."""
        began = host.clock.monotonic()
        state = host.layout.state_dir
        while count_waiters(state) and read_holder(state) is None and host.clock.monotonic() - began < _YIELD_SECONDS:
            time.sleep(0.01)
