"""Telling phones, once a day at most, how many cards wait: who has asked for it, and when they are told.

A lock screen shows a message to everybody: it says a number, and nothing of what the cards are about. A message is sent
once at most: that a person is told is on the disk before it is, and what a push service did not take is tried again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.base.errors import BusyError, ClearedError, PolicyError, UsageError
from cleared.base.terminal import count_noun
from cleared.changes.decisions.authorization import find_authorization
from cleared.changes.host import Host
from cleared.gate.proposals.passkey_registration import read_passkeys
from cleared.service.notify.channels import Undelivered, escape_text
from cleared.service.notify.digest import load_open_cards
from cleared.service.notify.notifications import next_digest_at
from cleared.service.notify.push_key import read_push_key, render_public_key
from cleared.service.notify.push_sending import (
    PhoneGone,
    find_push_obstacle,
    push_message,
    read_phone_keys,
    read_push_address,
)
from cleared.service.notify.push_subscriptions import PushFile, PushState, Subscription
from cleared.trust.keys import own_public_key

MOST_PHONES: Final = 10
"""Of one person."""
_MOST_IN_ALL: Final = 100
_FIRST_RETRY, _LONGEST_RETRY = timedelta(minutes=1), timedelta(hours=1)
_KEEP_TRYING: Final = timedelta(hours=12)
_LOOK_AGAIN: Final = timedelta(minutes=10)
"""After what waits could not be read."""
_MAX_GIVEN: Final = 8_000
_MAX_TITLE: Final = 60


class _GivenKeys(Struct):
    p256dh: str
    auth: str


class _Given(Struct):
    """What a browser says of a subscription, as its standard has it."""

    endpoint: str
    keys: _GivenKeys


class PhoneMessages:
    """The messages to phones about one workspace. Several processes may use it."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._file = PushFile(host.root)

    def read_public_key(self) -> str:
        """The key that a phone takes messages of. Raises ``WorkspaceError`` as ``read_push_key`` does."""
        return render_public_key(read_push_key(self.host.root))

    # -- what a person asks for -----------------------------------------------------------------------------------

    def add_phone(self, given: str, passkey: str, place: str, origin: str) -> Subscription:
        """Have a phone get messages from now on. ``given``: what its browser said; the others: see ``Subscription``.

        Raises ``UsageError`` where that is no subscription, or there are too many, ``PolicyError`` where messages are
        off or whoever has signed in decides nothing here, and what ``PushFile.changing`` raises.
        """
        settings = self.host.config.notifications
        if (obstacle := find_push_obstacle(settings)) is not None:
            raise PolicyError(obstacle)
        try:
            read = msgspec.json.decode(given[:_MAX_GIVEN], type=_Given)
        except msgspec.MsgspecError:
            raise UsageError("this is no subscription of a browser", remedy="Load the page again.") from None
        read_push_address(read.endpoint, settings)
        read_phone_keys(read.keys.p256dh, read.keys.auth)
        person = self._require_person(passkey)
        made = format_iso(self.host.clock.now())
        new = Subscription(read.endpoint, read.keys.p256dh, read.keys.auth, person, passkey, place, origin, made)
        with self._file.changing(self.host.clock) as state:
            self._remove_strangers(state)
            others = [phone for phone in state.phones if phone.endpoint != new.endpoint]
            if sum(p.person == person for p in others) >= MOST_PHONES or len(others) >= _MOST_IN_ALL:
                raise UsageError("no more phones get messages", remedy="Remove one that you do not use any more.")
            state.phones = [*others, new]
        return new

    def list_phones(self, passkey: str) -> list[Subscription]:
        """The phones of whoever has signed in. Raises ``WorkspaceError``."""
        person_of = self._read_people()
        me = person_of(passkey)
        return [phone for phone in self._file.read_state().phones if person_of(phone.passkey) == me is not None]

    def remove_phone(self, phone_id: str, passkey: str) -> None:
        """Send a phone nothing more. Raises ``UsageError`` where the person has none of that id."""
        phone = self._find_phone(phone_id, passkey)
        with self._file.changing(self.host.clock) as state:
            state.drop_phones(lambda each: each.endpoint == phone.endpoint)

    def send_test(self, phone_id: str, passkey: str) -> None:
        """Send a message that says that it is a test.

        Raises ``UsageError`` where the person has no such phone, or it takes no messages any more, ``PolicyError``
        where they are off or it could not be sent.
        """
        if (obstacle := find_push_obstacle(self.host.config.notifications)) is not None:
            raise PolicyError(obstacle)
        phone = self._find_phone(phone_id, passkey)
        try:
            self._push(phone, "This is a test: messages come through.")
        except PhoneGone:
            with self._file.changing(self.host.clock) as state:
                state.drop_phones(lambda each: each.endpoint == phone.endpoint)
            raise UsageError(
                "this phone takes no messages any more, and was removed", remedy="Ask for them on the phone again."
            ) from None
        except Undelivered as error:
            raise PolicyError(f"the message was not taken: {error}", remedy="Try again later.") from None

    # -- what is due ----------------------------------------------------------------------------------------------

    def send_due_messages(self, now: datetime) -> datetime | None:
        """Send what is due. Returns when to call again; None where messages are off. Nothing is raised."""
        settings = self.host.config.notifications
        if find_push_obstacle(settings) is not None:
            return None
        try:
            due, text = self._claim_due(now)
            for phone in due:
                self._send_due(phone, text, now)
            waiting = [datetime.fromisoformat(each.due) for each in self._file.read_state().phones if each.due]
        except BusyError:
            return now + timedelta(seconds=1)
        except (ClearedError, OSError) as error:  # the disk is full, or what waits cannot be read
            self._note_error(str(error))
            return now + _LOOK_AGAIN
        return min([self._next_time(now), *waiting])

    def _claim_due(self, now: datetime) -> tuple[list[Subscription], str]:
        """Write down who is told now, and what; that is done once, whoever asks at the same time."""
        if not self._file.read_state().phones:
            return [], ""
        person_of = self._read_people()
        with self._file.changing(self.host.clock) as state:
            self._remove_strangers(state, person_of)
            for phone in state.phones:
                phone.person = person_of(phone.passkey) or ""
            people = {phone.person for phone in state.phones}
            old = format_iso(now - timedelta(days=3))
            told = {person: at for person, at in state.told.items() if old < at <= format_iso(now + timedelta(days=1))}
            new = {person for person in people if self._is_due(state, told.get(person), person, now)}
            latest = format_iso(now + _LONGEST_RETRY)
            for phone in state.phones:
                if phone.person in new:
                    phone.due, phone.attempts = format_iso(now), 0
            due = [phone for phone in state.phones if phone.due and not format_iso(now) < phone.due <= latest]
            state.told = {**told, **dict.fromkeys(new, format_iso(now))}
            for phone in due:
                phone.due = ""
            count = len(load_open_cards(self.host)) if due else 0
        self.host.report_step("phones claimed")
        if not count:
            return [], ""
        return due, count_noun(count, "card") + (" waits" if count == 1 else " wait")

    def _is_due(self, state: PushState, told: str | None, person: str, now: datetime) -> bool:
        """Whether a person is to be told. On the day of the last message they are not, however the time is changed."""
        zone = ZoneInfo(self.host.config.business.timezone)
        since = told or min(phone.made for phone in state.phones if phone.person == person)
        is_same_day = told is not None and _day_of(told, zone) >= now.astimezone(zone).date()
        return not is_same_day and self._next_time(datetime.fromisoformat(since)) <= now

    def _next_time(self, since: datetime) -> datetime:
        config = self.host.config
        return next_digest_at(since, config.notifications.daily_digest_time or "", config.business.timezone)

    def _send_due(self, phone: Subscription, text: str, now: datetime) -> None:
        error, is_gone = "", False
        try:
            self._push(phone, text)
        except PhoneGone:
            is_gone = True
        except (Undelivered, UsageError) as refused:
            error = " ".join(str(refused).split())
        with self._file.changing(self.host.clock) as state:
            if is_gone:
                state.drop_phones(lambda each: each.endpoint == phone.endpoint)
            elif error:
                state.last_error = self._clean_error(error)
                for each in state.phones:
                    if each.endpoint == phone.endpoint and not each.due:
                        _plan_retry(each, state.told.get(each.person, ""), now)
            else:
                state.last_sent_at, state.last_error = format_iso(now), None
                for each in state.phones:
                    each.attempts = 0 if each.endpoint == phone.endpoint else each.attempts

    def _push(self, phone: Subscription, text: str) -> None:
        host = self.host
        title = escape_text(host.redactor.redact_text(host.config.business.name), _MAX_TITLE)
        message = json.dumps({"title": title, "body": text, "place": phone.place}).encode("ascii")
        keys = (phone.p256dh, phone.auth)
        push_message(phone.endpoint, keys, message, phone.origin, host.config.notifications, host.root, host.clock)

    def _note_error(self, text: str) -> None:
        try:
            with self._file.changing(self.host.clock) as state:
                state.last_error = self._clean_error(text)
        except ClearedError:  # the very file cannot be written; ``status`` says what it finds
            return

    def _clean_error(self, text: str) -> str:
        return escape_text(self.host.redactor.redact_text(text))

    # -- who ------------------------------------------------------------------------------------------------------

    def _read_people(self) -> Callable[[str], str | None]:
        """Whose phone it is that a passkey asked for (empty: a link of the terminal); None where that counts no more:
        the passkey was removed, or its owner is no reviewer."""
        host = self.host
        with host.open_last_commit() as snapshot:
            rules = find_authorization(host, snapshot, "", "", person=False).rules
        names: dict[str, str] = {each.key: each.name for each in read_passkeys(host)}
        keys = {passkey: passkey for passkey in names} | {"": own_public_key(host.root)}
        names[""] = "you"

        def person_of(passkey: str) -> str | None:
            if passkey not in keys:
                return None
            return rules.reviewers.get(keys[passkey]) if rules.is_restricted else names[passkey]

        return person_of

    def _require_person(self, passkey: str) -> str:
        person = self._read_people()(passkey)
        if person is None:
            raise PolicyError(
                "only reviewers get messages about what waits, and whoever has signed in is none",
                remedy="Sign in with a passkey of one of them.",
            )
        return person

    def _remove_strangers(self, state: PushState, person_of: Callable[[str], str | None] | None = None) -> None:
        """Forget the phones of passkeys that were removed, and of who is no reviewer any more."""
        person_of = person_of or self._read_people()
        state.drop_phones(lambda phone: person_of(phone.passkey) is None)

    def _find_phone(self, phone_id: str, passkey: str) -> Subscription:
        for phone in self.list_phones(passkey):
            if phone.id == phone_id:
                return phone
        raise UsageError("this phone gets no messages", remedy="Load the page again.")


def _plan_retry(phone: Subscription, told: str, now: datetime) -> None:
    """When the phone is tried again; no more once what it would be told is old."""
    phone.attempts += 1
    planned = now + min(_FIRST_RETRY * 2 ** min(phone.attempts - 1, 10), _LONGEST_RETRY)
    is_old = not told or planned > datetime.fromisoformat(told) + _KEEP_TRYING
    phone.due = "" if is_old else format_iso(planned)


def _day_of(time: str, zone: ZoneInfo) -> date:
    return datetime.fromisoformat(time).astimezone(zone).date()
