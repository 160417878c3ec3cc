"""Messages that scripts send with ``notify_send``: read from the commits of their runs, and handed over once each.

What is to be sent stands in a run's commit. It comes from there into a file of this machine, together with how far
commits were read, and stays in it until a channel has accepted it. So nothing is lost by a kill, and nothing is sent
again by a re-run, a replay or another clone. Only a kill between a hand-over and its note repeats the hand-over: under
the same key, by which the receiver can tell.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, to_builtins

from cleared.base.clock import format_iso
from cleared.base.errors import BusyError, WorkspaceError
from cleared.base.file_source import list_dated
from cleared.base.safe_files import read_stable, write_atomic
from cleared.base.short_text import quote_text
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.git import Repository, Snapshot
from cleared.primitives.ctx import NOTIFY_SEND_EVENT
from cleared.runs.outcome import RunResult
from cleared.service.notify.channels import Message, Undelivered, escape_text, send_message
from cleared.service.notify.messages import make_message, redact_message, say_where_to_decide
from cleared.service.notify.notifier_state import QueuedMessage, check_time, parse_queued
from cleared.triggers.event_stream import RecordedEvent, read_events_since
from cleared.workspace.lock import ensure_state_dir, writer_lock

STATE_FILE: Final = "script-messages.json"
"""Under ``.cleared/``."""
LOCK_FILE: Final = "script-messages.lock"
KEEP_UNSENT: Final = timedelta(days=3)
"""A message that no channel accepts is given up after this, and is shown as given up for as long again."""
_FIRST_RETRY, _LONGEST_RETRY = timedelta(minutes=1), timedelta(hours=1)
_MAX_KEYS: Final = 1_000
_MAX_WAITING: Final = 500
_MAX_BYTES: Final = 1 << 25
_WAIT_SECONDS: Final = 45.0
"""How long a command waits for another process that is sending."""
_LINE: Final = 300
"""Characters of a line of the text before it is broken."""


class OutboxState(Struct):
    """What is known of the messages, which outlives the process. Times are UTC, ISO 8601."""

    cursor: str | None = None
    """The commit up to which messages were read."""
    keys: list[str] = []
    """Those read last, so that a history that was rewritten gives none again."""
    outbox: list[QueuedMessage] = []
    given_up: list[dict[str, str]] = []
    """Subject and time of messages that no channel accepted in time."""
    last_sent_at: str | None = None
    last_error: str | None = None


class ScriptMessages:
    """The messages of one workspace's scripts. Several processes may use it: a lock keeps them apart."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def send_due_messages(self, now: datetime, *, wait_seconds: float = 0.0) -> datetime | None:
        """Send what is due. Returns when to call again; None where nothing waits.

        It may take as long as the network and a command may. What cannot be sent is tried again later; nothing is
        raised. ``wait_seconds``: for how long to wait for another process that is sending.
        """
        folder = self.host.layout.state_dir
        try:
            with writer_lock(folder, wait_seconds, "sending messages", clock=self.host.clock, name=LOCK_FILE):
                return self._send(now)
        except BusyError:
            return now + timedelta(seconds=1)
        except WorkspaceError:  # a full disk, or a history that is being changed: nothing was sent that is not noted
            return now + _FIRST_RETRY

    def status_data(self) -> dict[str, Any]:
        """How many wait, those of commits that nobody has read yet too; what was given up; the last error."""
        state = self._read_state()
        waiting, now = len(state.outbox), self.host.clock.now()
        with self.host.open_for_reading() as repo:
            waiting += len(self._read_new(repo, state, now)[0])
        return {
            "waiting": waiting,
            "last_sent_at": state.last_sent_at,
            "last_error": state.last_error,
            "next_attempt_at": min((queued.next for queued in state.outbox), default=None),
            "given_up": [each["subject"] for each in state.given_up if each["at"] > format_iso(now - 2 * KEEP_UNSENT)],
        }

    def _send(self, now: datetime) -> datetime | None:
        state = self._read_state()
        with self.host.open_for_reading() as repo:
            new, cursor = self._read_new(repo, state, now)
        if cursor != state.cursor:
            state.cursor = cursor
            state.keys = [*state.keys, *(str(recorded.event.key) for recorded in new)][-_MAX_KEYS:]
            messages = [_message_of(self.host, recorded, now) for recorded in new]
            room = max(0, _MAX_WAITING - len(state.outbox))
            state.outbox += [QueuedMessage(message, next=format_iso(now)) for message in messages[:room]]
            _note_given_up(state, messages[room:], now)
            if new or self._path.exists():
                self._write_state(state)  # before anything is sent: it is the note that it was read
        self._give_up_old(state, now)
        if self.host.config.notifications.method in (None, "none"):
            return None
        latest = format_iso(now + _LONGEST_RETRY)
        for queued in [each for each in state.outbox if not format_iso(now) < each.next <= latest]:
            self._hand_over(state, queued, now)
        return min((datetime.fromisoformat(queued.next) for queued in state.outbox), default=None)

    def _read_new(self, repo: Repository, state: OutboxState, now: datetime) -> tuple[list[RecordedEvent], str | None]:
        """The messages in the commits after the cursor, and the new cursor. Without one: of the last three days."""
        head = repo.read_head()
        if head == state.cursor:
            return [], head
        source = CommittedSource(Snapshot(repo, head))
        start = Snapshot(repo, state.cursor) if state.cursor and repo.has_in_history(state.cursor) else None
        files = [
            path
            for path in reversed(list_dated(source, self.host.layout.events))
            if start is None or start.find_blob_id(path) != source.snapshot.find_blob_id(path)
        ]
        if not any(NOTIFY_SEND_EVENT.encode() in (source.read(path) or b"") for path in files):
            return [], head
        known, oldest = set(state.keys), format_iso(now - KEEP_UNSENT)
        found = read_events_since(self.host, repo, head, state.cursor, lambda name: name == NOTIFY_SEND_EVENT, now)
        new = [
            recorded
            for recorded in found
            if str(recorded.event.key) not in known and (state.cursor or _begun_at(recorded) > oldest)
        ]
        return new, head

    def _hand_over(self, state: OutboxState, queued: QueuedMessage, now: datetime) -> None:
        host = self.host
        try:
            send_message(redact_message(host, queued.message), host.config.notifications, host.root, host.clock)
        except Undelivered as error:
            queued.attempts += 1
            pause = min(_FIRST_RETRY * 2 ** min(queued.attempts - 1, 10), _LONGEST_RETRY)
            queued.next = format_iso(now + pause)
            state.last_error = escape_text(host.redactor.redact_text(str(error)))
        else:
            host.report_step("handed over")
            state.outbox.remove(queued)
            state.last_sent_at, state.last_error = format_iso(now), None
        self._write_state(state)

    def _give_up_old(self, state: OutboxState, now: datetime) -> None:
        oldest = format_iso(now - KEEP_UNSENT)
        old = [queued for queued in state.outbox if queued.message.at <= oldest]
        if old:
            state.outbox = [queued for queued in state.outbox if queued not in old]
            _note_given_up(state, [queued.message for queued in old], now)
            self._write_state(state)

    # -- the file -------------------------------------------------------------------------------------------------

    @property
    def _path(self) -> Path:
        return self.host.layout.state_dir / STATE_FILE

    def _read_state(self) -> OutboxState:
        """The state; an empty one where there is no file, or it is damaged."""
        try:
            data = json.loads(read_stable(self._path, _MAX_BYTES)[0])
            return OutboxState(
                data["cursor"] and str(data["cursor"]),
                [str(key) for key in data["keys"]],
                [parse_queued(queued) for queued in data["outbox"]],
                [{"subject": escape_text(each["subject"]), "at": check_time(each["at"])} for each in data["given_up"]],
                data["last_sent_at"] and check_time(data["last_sent_at"]),
                data["last_error"] and escape_text(data["last_error"]),
            )
        except (WorkspaceError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return OutboxState()

    def _write_state(self, state: OutboxState) -> None:
        """Raises ``WorkspaceError`` where the disk does not take it."""
        ensure_state_dir(self._path.parent)
        write_atomic(self._path, json.dumps(to_builtins(state), ensure_ascii=True).encode())


def _note_given_up(state: OutboxState, messages: list[Message], now: datetime) -> None:
    state.given_up += [{"subject": message.subject, "at": format_iso(now)} for message in messages]
    del state.given_up[:-20]


def _begun_at(recorded: RecordedEvent) -> str:
    """When its run began, as the run's id says; UTC, ISO 8601."""
    stamp = recorded.made_by[:16]
    return f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:11]}:{stamp[11:13]}:{stamp[13:]}"


def _message_of(host: Host, recorded: RecordedEvent, now: datetime) -> Message:
    """The message that a run staged. Its payload was attested, but is read as anything from outside."""
    payload = recorded.event.payload if isinstance(recorded.event.payload, Mapping) else {}
    subject, text, cards = (payload.get(name) for name in ("subject", "text", "cards"))
    listed = [
        {"id": str(card.get("id")), "title": str(card.get("title"))}
        for card in (cards if isinstance(cards, list) else [])
        if isinstance(card, Mapping)
    ]
    lines = [part for line in str(text or "").splitlines() for part in _break_line(line)]
    if listed:
        lines += ["", "To decide:", *(f"  {card['id']}  {card['title']}" for card in listed)]
        lines += ["", say_where_to_decide(host)]
    run = recorded.made_by
    lines += ["", "-- ", f"Sent by a script of yours: cleared run show {run}"]
    data = {"run": run, "cards": listed}
    key = f"message-{str(recorded.event.key).replace('/', '-')}"
    return make_message(host, "script", str(subject or "a message"), lines, data, now, key)


def _break_line(line: str) -> list[str]:
    return [line[at : at + _LINE] for at in range(0, len(line), _LINE)] or [""]


def messages_trouble(state: Mapping[str, Any]) -> list[str]:
    """What a person should look at, of ``ScriptMessages.status_data``; empty is healthy."""
    gone = [quote_text(subject, _LINE) for subject in state["given_up"]]
    trouble = [f"a message of a script was given up, nothing took it in time: {each}" for each in gone]
    if state["waiting"]:
        cause = "notifications.method is none, or the service is not up (cleared up)"
        if error := state["last_error"]:
            cause = quote_text(error, _LINE)
        trouble.insert(0, f"{state['waiting']} of your scripts' messages not sent: {cause}")
    return trouble


def send_after_run(host: Host, result: RunResult) -> list[str]:
    """Send what a run that somebody started has staged, if it was committed. Returns lines that say what became of it;
    a message that could not be sent fails no run."""
    count = len(result.messages)
    if not count or not result.commits or result.status != "succeeded":
        return []
    some = "1 message" if count == 1 else f"{count} messages"
    if host.config.notifications.method in (None, "none"):
        return [f"{some} not sent: notifications.method is none. It waits for {KEEP_UNSENT.days} days."]
    box = ScriptMessages(host)
    if box.send_due_messages(host.clock.now(), wait_seconds=_WAIT_SECONDS) is None:
        return [f"{some} sent"]
    cause = box.status_data()["last_error"]
    return [f"{some} not sent yet{f' ({cause})' if cause else ''}: cleared up goes on trying; see cleared status"]
