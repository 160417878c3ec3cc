"""Telling a person what waits and what failed: when a message is due, and that none is lost.

A message is on disk before it is sent and until it was taken, so a kill in between sends it again, under the same key.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final

from cleared.cards import queue_files
from cleared.cards.age import overdue_cards
from cleared.cards.card import Card
from cleared.cards.kinds import PROPOSAL, kind_named
from cleared.changes.book_sources import CommittedSource
from cleared.changes.host import Host
from cleared.changes.trace import KEEP_RUNS, TraceStore
from cleared.clock import format_iso
from cleared.config.model import Notifications
from cleared.errors import ClearedError, WorkspaceError
from cleared.notify.channels import Message, Undelivered, escape_text, send_message
from cleared.safe_files import read_stable, write_atomic
from cleared.vcs import Snapshot
from cleared.workspace.lock import ensure_state_dir

STATE_FILE: Final = "notify.json"
"""Under ``.cleared/``."""
GATHER_FAILURES: Final = timedelta(seconds=30)
"""How long after a failure others are waited for, to go into the same message."""
FAILURES_EVERY: Final = timedelta(minutes=15)
KEEP_UNDELIVERED: Final = timedelta(days=3)
"""A message that nobody took is given up after this."""
_FIRST_RETRY, _LONGEST_RETRY = timedelta(minutes=1), timedelta(hours=1)
_MAX_LISTED: Final = 20
_MAX_SUBJECT: Final = 150
_MAX_BYTES: Final = 1 << 22


@dataclass(slots=True)
class _QueuedMessage:
    """A message that was not taken yet."""

    message: Message
    attempts: int = 0
    next: str = ""
    """When it is tried (again); UTC, ISO 8601."""


@dataclass(slots=True)
class _NotifierState:
    """What outlives the process. Times are UTC, ISO 8601, which sort as texts do."""

    digest_at: str | None = None
    """When it was last looked whether anything waits."""
    failures_at: str | None = None
    failures: list[dict[str, str]] = field(default_factory=list)
    """Runs that no message tells of yet: run_id, agent, cause, at."""
    more: int = 0
    """How many beside those."""
    outbox: list[_QueuedMessage] = field(default_factory=list)
    last_sent_at: str | None = None
    last_error: str | None = None


class Notifier:
    """Sends what ``notifications`` says, for one workspace. Any thread may call it.

    ``host`` may be replaced by one that was opened anew: its configuration is read at each call.
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        self._lock = threading.Lock()
        self._sending = False
        self._unwritten = False
        self._look_again: datetime | None = None
        """When the queue is looked at again that could not be read."""
        self._state = _load_state(self._state_path)

    def record_failure(self, run_id: str, agent: str, cause: str, at: datetime) -> None:
        """A run failed. It is on disk when this returns (where the disk takes it); ``tick`` says when to send."""
        if not _is_enabled(self.host.config.notifications) or not self.host.config.notifications.on_failure:
            return
        told = self.host.redactor.redact_data({"run_id": run_id, "agent": agent, "cause": cause, "at": format_iso(at)})
        told["cause"] = told["cause"][:1_000]
        with self._lock:
            if any(f["run_id"] == told["run_id"] for f in self._state.failures):
                return
            if len(self._state.failures) < _MAX_LISTED:
                self._state.failures.append(told)
            else:
                self._state.more += 1
            self._write_state()

    def send_due_messages(self, now: datetime) -> datetime | None:
        """Send what is due. When to call again; None: nothing is planned. Call it after ``failed`` as well.

        It may take as long as the network and a command may; a second call meanwhile returns at once. What cannot be
        sent is tried again, not raised.
        """
        settings = self.host.config.notifications
        if not _is_enabled(settings):
            return None
        with self._lock:
            if self._sending:
                return now + timedelta(seconds=1)
            self._sending = True
        try:
            if not self._prepare_messages(now, settings):
                return now + _FIRST_RETRY
            # What is planned for later than is ever planned was planned before the clock was set back.
            for waiting in [
                w for w in self._state.outbox if not format_iso(now) < w.next <= format_iso(now + _LONGEST_RETRY)
            ]:
                self._send_queued(waiting, now, settings)
            with self._lock:
                return self._next_call_at(now, settings)
        finally:
            with self._lock:
                self._sending = False

    def status_data(self) -> dict[str, Any]:
        """For ``cleared status``: the method, what was sent last, how many messages wait, what went wrong last."""
        with self._lock:
            state = self._state
            return {
                "method": self.host.config.notifications.method or "none",
                "last_sent_at": state.last_sent_at,
                "waiting": len(state.outbox) + bool(state.failures),
                "next_attempt_at": min((w.next for w in state.outbox), default=None),
                "last_error": state.last_error,
            }

    # -- what is due ----------------------------------------------------------------------------------------------

    def _prepare_messages(self, now: datetime, settings: Notifications) -> bool:
        """Write the messages that are due; whether they are on disk, as they must be before they are sent."""
        with self._lock:
            state = self._state
            old = format_iso(now - KEEP_UNDELIVERED)
            state.outbox = [w for w in state.outbox if w.message.at > old]
            state.failures = [f for f in state.failures if f["at"] > old] if settings.on_failure else []
            state.more = state.more if state.failures else 0
            if state.digest_at is None or state.digest_at > format_iso(
                now + timedelta(days=1)
            ):  # new; the clock was set back
                state.digest_at = format_iso(now)
                self._unwritten = True
            due = self._failures_due_at()
            if due is not None and not now < due <= now + FAILURES_EVERY + GATHER_FAILURES:
                self._queue_message(_failure_message(self.host, state.failures, state.more, now), now)
                state.failures, state.more, state.failures_at = [], 0, format_iso(now)
            since = datetime.fromisoformat(state.digest_at)
        self._prepare_digest(since, now, settings)
        with self._lock:
            return not self._unwritten or self._write_state()

    def _prepare_digest(self, since: datetime, now: datetime, settings: Notifications) -> None:
        due = self._digest_due_at(settings)
        if due is None or due > now or (self._look_again is not None and self._look_again > now):
            return
        try:
            cards, failed = _open_cards(self.host), _count_failed_runs(self.host, since)
        except (ClearedError, OSError, sqlite3.Error, ValueError) as error:
            with self._lock:
                self._state.last_error = self._clean_error(f"what waits cannot be read: {error}")
                self._look_again = now + _FIRST_RETRY * 10
                self._unwritten = True
            return
        with self._lock:
            self._look_again = None
            # The one before, if nobody took it, tells nothing that this one does not.
            self._state.outbox = [w for w in self._state.outbox if w.message.kind != "digest"]
            if not self._state.outbox:
                self._state.last_error = None
            if cards or failed:
                self._queue_message(_digest_message(self.host, cards, failed, now), now)
            self._state.digest_at = format_iso(now)
            self._unwritten = True

    def _queue_message(self, message: Message, now: datetime) -> None:
        self._state.outbox.append(_QueuedMessage(message, next=format_iso(now)))
        self._unwritten = True

    def _failures_due_at(self) -> datetime | None:
        """When the failures that wait make a message; not before the last one that told of failures was taken."""
        state = self._state
        if not state.failures or any(w.message.kind == "failure" for w in state.outbox):
            return None
        first = datetime.fromisoformat(state.failures[0]["at"]) + GATHER_FAILURES
        if state.failures_at is None:
            return first
        return max(first, datetime.fromisoformat(state.failures_at) + FAILURES_EVERY)

    def _digest_due_at(self, settings: Notifications) -> datetime | None:
        if settings.daily_digest_time is None or self._state.digest_at is None:
            return None
        since = datetime.fromisoformat(self._state.digest_at)
        return next_digest_at(since, settings.daily_digest_time, self.host.config.business.timezone)

    def _next_call_at(self, now: datetime, settings: Notifications) -> datetime | None:
        digest = self._digest_due_at(settings)
        if digest is not None and self._look_again is not None:
            digest = self._look_again
        planned = [digest, self._failures_due_at(), *(datetime.fromisoformat(w.next) for w in self._state.outbox)]
        if self._unwritten:
            planned.append(now + _FIRST_RETRY)
        return min((p for p in planned if p is not None), default=None)

    # -- sending --------------------------------------------------------------------------------------------------

    def _send_queued(self, waiting: _QueuedMessage, now: datetime, settings: Notifications) -> None:
        try:
            send_message(_redact_message(self.host, waiting.message), settings, self.host.root, self.host.clock)
        except Undelivered as error:
            with self._lock:
                waiting.attempts += 1
                pause = min(_FIRST_RETRY * 2 ** min(waiting.attempts - 1, 10), _LONGEST_RETRY)
                waiting.next = format_iso(now + pause)
                self._state.last_error = self._clean_error(str(error))
                self._write_state()
            return
        with self._lock:
            self._state.outbox.remove(waiting)
            self._state.last_sent_at, self._state.last_error = format_iso(now), None
            self._write_state()

    def _clean_error(self, text: str) -> str:
        return escape_text(self.host.redactor.redact_text(text))

    # -- the file -------------------------------------------------------------------------------------------------

    @property
    def _state_path(self) -> Path:
        return self.host.layout.state_dir / STATE_FILE

    def _write_state(self) -> bool:
        """Keep the state; False where the disk does not take it (then it is tried again at the next call)."""
        try:
            ensure_state_dir(self.host.layout.state_dir)
            write_atomic(self._state_path, json.dumps(asdict(self._state), ensure_ascii=True).encode())
        except WorkspaceError as error:
            self._unwritten = True
            self._state.last_error = self._clean_error(str(error))
            return False
        self._unwritten = False
        return True


def next_digest_at(since: datetime, at: str, zone: str) -> datetime:
    """The first time after ``since`` at which the clocks of ``zone`` show ``at`` (HH:MM); UTC.

    Where they never show it, as they are put forward, it is as much later; where they show it twice, the first.
    """
    from zoneinfo import ZoneInfo

    place, shown = ZoneInfo(zone), time.fromisoformat(at)
    day: date = since.astimezone(place).date()
    while True:
        moment = datetime.combine(day, shown, place).astimezone(UTC)
        if moment > since:
            return moment
        day += timedelta(days=1)


def _is_enabled(settings: Notifications) -> bool:
    return settings.method not in (None, "none")


def _load_state(path: Path) -> _NotifierState:
    """The state as it was kept; from the beginning where there is none, or it is damaged."""
    try:
        data = json.loads(read_stable(path, _MAX_BYTES)[0])
        outbox = [
            _QueuedMessage(
                Message(**{**w["message"], "lines": tuple(map(str, w["message"]["lines"]))}),
                int(w["attempts"]), _check_time(w["next"]),
            )
            for w in data["outbox"]
        ]  # fmt: skip
        for message in (w.message for w in outbox):
            _check_time(message.at)
            texts = (message.key, message.kind, message.subject)
            if not isinstance(message.data, dict) or not all(isinstance(text, str) for text in texts):
                return _NotifierState()
        failures = [{key: str(f[key]) for key in ("run_id", "agent", "cause", "at")} for f in data["failures"]]
        for f in failures:
            _check_time(f["at"])
        return _NotifierState(
            data["digest_at"] and _check_time(data["digest_at"]),
            data["failures_at"] and _check_time(data["failures_at"]),
            failures, int(data["more"]), outbox, data["last_sent_at"] and _check_time(data["last_sent_at"]),
            data["last_error"] and escape_text(data["last_error"]),
        )  # fmt: skip
    except (WorkspaceError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return _NotifierState()


def _check_time(text: str) -> str:
    if format_iso(datetime.fromisoformat(text)) != text:
        raise ValueError(text)
    return text


# --- what is told -----------------------------------------------------------------------------------------------------


def _open_cards(host: Host) -> list[Card]:
    """Oldest first."""
    with host.open_for_reading() as repo:
        found = queue_files.load_cards(CommittedSource(Snapshot(repo, repo.read_head())), host.layout.queue_dir)
    return [card for card in found.values() if card.status == "open"]


def _count_failed_runs(host: Host, since: datetime) -> Counter[str]:
    """Agent → how many runs of it failed."""
    found: Counter[str] = Counter()
    for run in TraceStore(host.layout.state_dir).list_runs(KEEP_RUNS):
        if run["status"] == "failed" and not run["dry_run"]:
            ended = datetime.fromisoformat(run["started_at"]) + timedelta(milliseconds=run["duration_ms"] or 0)
            found[run["agent"]] += ended > since
    return +found


def _digest_message(host: Host, cards: list[Card], failed: Counter[str], now: datetime) -> Message:
    kinds = Counter(card.kind for card in cards)
    proposals = [card for card in cards if card.kind == PROPOSAL.name]
    said = [_count_text(len(cards), "card") + (" waits" if len(cards) == 1 else " wait")] if cards else []
    said += [_count_text(failed.total(), "run") + " failed"] if failed else []
    lines = [f"{', '.join(said)}.", ""]
    lines += [f"{count:>5}  {kind_named(kind).meaning}" for kind, count in kinds.most_common()]
    if cards:
        lines += ["", f"The oldest waits since {cards[0].created_at[:10]}: {cards[0].title}"]
    late = overdue_cards(cards, now, host.config.review.remind_after)
    if late:
        lines += ["", f"Waiting for {host.config.review.remind_after} or longer:"]
        lines += _list_items([f"{card.created_at[:10]} {card.title}" for card in late])
    if proposals:
        lines += ["", "To approve or to reject:", *_list_items([card.title for card in proposals])]
    if failed:
        lines += ["", "Runs that failed since the last digest:"]
        lines += _list_items([f"{agent}: {count}" for agent, count in failed.most_common()])
    lines += ["", f"Look and decide: cleared review, in {host.root}"]
    data = {
        "cards": dict(kinds), "oldest": _card_summary(cards[0]) if cards else None,
        "overdue": [_card_summary(card) for card in late[:_MAX_LISTED]],
        "proposals": [_card_summary(card) for card in proposals[:_MAX_LISTED]], "failed": dict(failed),
    }  # fmt: skip
    return _make_message(host, "digest", ", ".join(said), lines, data, now)


def _failure_message(host: Host, failures: list[dict[str, str]], more: int, now: datetime) -> Message:
    total = len(failures) + more
    agents = sorted({f["agent"] for f in failures})
    who = agents[0] if len(agents) == 1 else f"{len(agents)} agents"
    subject = f"{who} failed" if total == 1 else f"{_count_text(total, 'run')} of {who} failed"
    lines: list[str] = []
    for f in failures:
        cause = f["cause"].strip().splitlines() or ["no cause is known"]
        lines += [f"{f['agent']} failed at {f['at']}:", *(f"  {line}" for line in cause[:5])]
        lines += [f"  cleared run show {f['run_id']}", ""]
    if more:
        lines += [f"and {more} more: cleared run list", ""]
    lines.append(f"The workspace is {host.root}")
    return _make_message(host, "failure", subject, lines, {"failures": failures, "count": total}, now)


def _make_message(
    host: Host, kind: str, said: str, lines: list[str], data: Mapping[str, Any], now: datetime
) -> Message:
    name = host.config.business.name
    whole = {"workspace": str(host.root), "business": name, **data}
    made = Message(f"{kind}-{secrets.token_hex(12)}", kind, f"{name}: {said}", tuple(lines), format_iso(now), whole)
    # In this order: of a secret that is cut short, something would be left.
    made = _redact_message(host, made)
    return replace(made, subject=escape_text(made.subject, _MAX_SUBJECT), lines=tuple(map(escape_text, made.lines)))


def _redact_message(host: Host, message: Message) -> Message:
    hide = host.redactor
    if not hide:
        return message
    return replace(
        message,
        subject=hide.redact_text(message.subject),
        lines=tuple(hide.redact_data(message.lines)),
        data=hide.redact_data(message.data),
    )


def _card_summary(card: Card) -> dict[str, str]:
    return {"id": card.id, "kind": card.kind, "title": card.title, "since": card.created_at}


def _list_items(items: list[str]) -> list[str]:
    left = len(items) - _MAX_LISTED
    return [*(f"  {item}" for item in items[:_MAX_LISTED]), *([f"  and {left} more"] if left > 0 else [])]


def _count_text(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
