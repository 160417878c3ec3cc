"""Messages to phones: once a day at most, to whoever counts, encrypted and signed, to push services alone.

The push service is a real one on loopback; it verifies and decrypts what it takes.
"""

from __future__ import annotations

import json
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from harness import Workspace, copy_books
from patience import PATIENCE
from push_service import PushService
from reviewers import People
from running import Up, eventually
from soft_passkey import SoftPasskey, register_device

from cleared.base.clock import FixedClock
from cleared.base.errors import ClearedError, UsageError
from cleared.changes.workspace_opening import open_workspace
from cleared.gate.proposals.passkey_registration import remove_passkey
from cleared.service.notify import push_sending
from cleared.service.notify.phone_messages import MOST_PHONES, PhoneMessages
from cleared.trust.keys import cleared_home

NIGHT = datetime(2025, 2, 10, 2, 0, tzinfo=UTC)
MORNING = datetime(2025, 2, 10, 8, 0, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
PAGE = "https://books.example.org:8443"

KILLED = """
import os, pathlib, signal, sys
from datetime import datetime
from cleared.base.clock import FixedClock
from cleared.changes.workspace_opening import open_workspace
from cleared.service.notify.phone_messages import PhoneMessages

now = datetime.fromisoformat(sys.argv[2])
host = open_workspace(pathlib.Path(sys.argv[1]), clock=FixedClock(now))
host.on_step = lambda step: os.kill(os.getpid(), signal.SIGKILL) if step == "phones claimed" else None
PhoneMessages(host).send_due_messages(now)
"""


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PushService]:
    found = PushService(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(found.pem))
    yield found
    found.close()


def allow(ws: Workspace, service: PushService, *more: str) -> None:
    ws.config(f"notifications.push_hosts=[{service.host}]", "notifications.push=true", *more)


def phones(ws: Workspace, now: datetime = NIGHT) -> PhoneMessages:
    return PhoneMessages(open_workspace(ws.root, clock=FixedClock(now)))


def add(ws: Workspace, service: PushService, name: str = "ana", passkey: str = "", now: datetime = NIGHT) -> None:
    phones(ws, now).add_phone(service.phone(name).subscription, passkey, "", PAGE)


def send(ws: Workspace, now: datetime) -> datetime | None:
    return phones(ws, now).send_due_messages(now)


def test_a_phone_is_told_once_a_day_and_nothing_of_what_the_cards_are_about(
    posted: Workspace, service: PushService
) -> None:
    allow(posted, service)
    add(posted, service)
    assert send(posted, NIGHT) == MORNING and not service.taken
    assert send(posted, MORNING) == MORNING + DAY
    assert service.messages == [{"title": "Acme", "body": "2 cards wait", "place": ""}]
    _, headers, body = service.taken[0]
    assert (headers["content-encoding"], headers["ttl"], headers["topic"]) == ("aes128gcm", "43200", "cards")
    assert b"cards wait" not in body
    claims, key = service.claims()
    assert claims["aud"] == f"https://{service.host}" and claims["sub"] == "https://books.example.org"
    assert MORNING.timestamp() < claims["exp"] <= (MORNING + DAY).timestamp()
    assert key == phones(posted).read_public_key()
    for name in ("push-key", next((cleared_home() / "push").glob("*.json")).relative_to(cleared_home())):
        assert stat.S_IMODE((cleared_home() / name).stat().st_mode) == 0o600
    for later in (MINUTE, HOUR, 15 * HOUR):
        send(posted, MORNING + later)
    posted.config("notifications.daily_digest_time=18:00")  # another time on the same day brings no second one
    send(posted, MORNING + 11 * HOUR)
    assert len(service.taken) == 1
    send(posted, MORNING + DAY + 10 * HOUR)
    assert len(service.taken) == 2 and service.claims()[1] == key
    assert posted.json("status")["phones"]["phones"] == 1 and "1 phone, last sent" in posted.ok("status").out


def test_nothing_is_sent_where_nothing_waits_or_messages_are_off(posted: Workspace, service: PushService) -> None:
    allow(posted, service)
    add(posted, service)
    posted.config("notifications.push=false")
    assert send(posted, MORNING) is None
    posted.config("notifications.push=true")
    posted.ok("queue", "approve", *[card["id"] for card in posted.cards()])
    send(posted, MORNING)
    assert not service.taken


def test_a_clone_tells_nobody_before_it_is_trusted(
    posted: Workspace, service: PushService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(posted, service)
    add(posted, service)
    subprocess.run(["git", "clone", "-q", str(posted.root), str(tmp_path / "clone")], check=True)
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "another"))
    clone = Workspace(tmp_path / "clone")
    assert send(clone, MORNING) is None
    with pytest.raises(ClearedError, match="messages to phones are off"):
        add(clone, service)


def test_two_at_once_tell_a_phone_once(posted: Workspace, service: PushService) -> None:
    """Two services, such as of two working trees, look at the same moment."""
    allow(posted, service)
    add(posted, service)
    begin = threading.Barrier(2)

    def look() -> None:
        messages = phones(posted, MORNING)
        begin.wait(30)
        while (again := messages.send_due_messages(MORNING)) is not None and again < MORNING + HOUR:
            pass

    both = [threading.Thread(target=look) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join(PATIENCE)
    assert len(service.taken) == 1


def test_a_kill_never_has_a_phone_told_twice_a_day(posted: Workspace, service: PushService) -> None:
    allow(posted, service)
    add(posted, service)
    argv = [sys.executable, "-c", KILLED, str(posted.root), MORNING.isoformat()]
    assert subprocess.run(argv, check=False).returncode == -signal.SIGKILL
    send(posted, MORNING + MINUTE)
    assert not service.taken, "it may have been sent before the kill"
    send(posted, MORNING + DAY)
    assert len(service.taken) == 1


def test_what_a_push_service_does_not_take_is_tried_again_and_a_phone_that_is_gone_is_removed(
    posted: Workspace, service: PushService
) -> None:
    allow(posted, service)
    for name in ("busy", "gone", "missing", "moved"):
        add(posted, service, name)
    service.answers |= {"/push/busy": 503, "/push/gone": 410, "/push/missing": 404, "/push/moved": 307}
    assert send(posted, MORNING) == MORNING + MINUTE
    left = {phone.endpoint.rsplit("/", 1)[1] for phone in phones(posted).list_phones("")}
    assert left == {"busy", "moved"}, "a redirect is followed nowhere, and is no reason to forget a phone"
    assert "503" in posted.ok("status").out or "307" in posted.ok("status").out
    assert "phones are not told" in posted("doctor").out
    del service.answers["/push/busy"]
    send(posted, MORNING + MINUTE)
    assert [path for path, _, _ in service.taken] == ["/push/busy"]
    now = MORNING + MINUTE
    while (again := send(posted, now)) is not None and again < MORNING + DAY:
        assert again > now
        now = again
    assert len(service.taken) == 1 and now > MORNING + 11 * HOUR, "the one that moved was tried for half a day"
    assert "“localhost: 307”" in posted.ok("status").out
    (moved,) = (phone for phone in phones(posted).list_phones("") if phone.endpoint.endswith("moved"))
    phones(posted).remove_phone(moved.id, "")
    assert "phones are not told" not in posted.ok("status").out, "the other one is"


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://fcm.googleapis.com/x",
        "https://localhost/x",
        "https://127.0.0.1/x",
        "https://[::1]/x",
        "https://169.254.169.254/latest",
        "https://fcm.googleapis.com:8443/x",
        "https://fcm.googleapis.com.evil.example/x",
        "https://fcm.googleapis.com@evil.example/x",
        "https://evil.example#fcm.googleapis.com",
        "https://evilpush.apple.com/x",
        "https://fcm.googleapis.com/x\r\nHost: evil",
        "https://fcm.googleapis.com/" + "x" * 2_000,
        "file:///etc/passwd",
        "",
    ],
)
def test_only_push_services_are_asked(posted: Workspace, service: PushService, endpoint: str) -> None:
    allow(posted, service)
    given = json.dumps({"endpoint": endpoint, "keys": service.phone().keys})
    with pytest.raises(UsageError):
        phones(posted).add_phone(given, "", "", PAGE)
    assert phones(posted).list_phones("") == []


def test_a_known_name_that_leads_to_this_network_is_not_asked(
    posted: Workspace, service: PushService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever answers for names says where; the settings of these books name no host there."""
    allow(posted, service)
    given = json.dumps({"endpoint": "https://fcm.googleapis.com/fcm/send/1", "keys": service.phone().keys})
    phones(posted).add_phone(given, "", "", PAGE)

    def resolve(*_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (place, 443)) for place in ("127.0.0.1", "10.1.2.3")]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    send(posted, MORNING)
    assert "leads to this machine or network" in posted.json("status")["phones"]["last_error"]


@pytest.mark.parametrize(
    "given", ["", "[]", "{", '{"endpoint": 1}', json.dumps({"endpoint": "https://fcm.googleapis.com/x", "keys": {}})]
)
def test_what_is_no_subscription_is_refused(posted: Workspace, service: PushService, given: str) -> None:
    allow(posted, service)
    with pytest.raises(UsageError, match="no subscription of a browser"):
        phones(posted).add_phone(given, "", "", PAGE)


def test_keys_that_are_none_and_too_many_phones_are_refused(posted: Workspace, service: PushService) -> None:
    allow(posted, service)
    good = service.phone().keys
    for keys in (good | {"auth": "AAAA"}, good | {"p256dh": "AAAA"}, good | {"p256dh": good["p256dh"][:-4] + "AAAA"}):
        with pytest.raises(UsageError, match="no subscription"):
            phones(posted).add_phone(json.dumps({"endpoint": service.phone().endpoint, "keys": keys}), "", "", PAGE)
    for number in range(MOST_PHONES):
        add(posted, service, f"phone{number}")
    add(posted, service, "phone0")  # once more is still one
    with pytest.raises(UsageError, match="no more phones"):
        add(posted, service, "one-more")


def test_a_removed_passkey_and_a_person_who_is_no_reviewer_are_told_nothing(
    posted: Workspace, service: PushService, tmp_path: Path
) -> None:
    allow(posted, service)
    passkey = register_device(posted.root, SoftPasskey(), "Ana")
    add(posted, service, "terminal")
    add(posted, service, "ana", passkey.key)
    with pytest.raises(ClearedError, match="only reviewers get messages"):
        add(posted, service, "stranger", "passkey:books.example.org:AAAA")
    assert [phone.person for phone in phones(posted).list_phones(passkey.key)] == ["Ana"], "each sees their own"
    remove_passkey(open_workspace(posted.root), passkey.id)
    send(posted, MORNING)
    assert [path for path, _, _ in service.taken] == ["/push/terminal"]
    file = next((cleared_home() / "push").glob("*.json"))
    assert "/push/ana" not in file.read_text()
    People(posted, tmp_path, ["ben"])
    send(posted, MORNING + DAY)
    assert len(service.taken) == 1 and "/push/" not in file.read_text()


def test_nobody_reads_or_plants_a_phone_from_outside(posted: Workspace, service: PushService) -> None:
    """The file and the key are their owner's alone; damaged or open to others, nothing is sent."""
    allow(posted, service)
    add(posted, service)
    file = next((cleared_home() / "push").glob("*.json"))
    assert not (set(posted.git("ls-files").splitlines()) & {"push-key"}) and posted.root not in file.parents
    file.chmod(0o644)
    send(posted, MORNING)
    assert "others can read" in " ".join(posted.ok("status").out.split())
    file.chmod(0o600)
    key = cleared_home() / "push-key"
    key.write_text("none")
    key.chmod(0o600)
    send(posted, MORNING)
    assert not service.taken and "is damaged" in posted.json("status")["phones"]["last_error"]


def test_a_missing_package_is_named(posted: Workspace, service: PushService, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(posted, service)
    monkeypatch.setattr(push_sending, "_PACKAGES", ("py_vapid", "no_such_package"))
    assert send(posted, MORNING) is None
    with pytest.raises(ClearedError, match="pip install"):
        add(posted, service)


def test_a_copy_of_the_books_tells_nobody_of_the_phones_of_the_other(
    posted: Workspace, service: PushService, tmp_path: Path
) -> None:
    allow(posted, service)
    add(posted, service)
    copy = Workspace(copy_books(posted.root, tmp_path / "copy"))
    send(posted, MORNING)
    send(copy, MORNING)
    assert len(service.taken) == 1


def test_the_service_tells_a_phone_that_another_process_has_added(up: Up, service: PushService) -> None:
    """With the real clock: what was due while nobody served is told once, and the phone asked before."""
    up.ws.drop("january.csv")
    up.ws.run("ingest")
    allow(up.ws, service)
    add(up.ws, service, now=datetime.now(UTC) - 2 * DAY)
    up.start()
    eventually(lambda: service.taken)
    assert service.messages[0]["body"] == "2 cards wait"
    up.stop()
    up.start()
    eventually(lambda: up.board().get("ready"))
    up.stop()
    assert len(service.taken) == 1
