"""Notifications: sent when something waits or failed, at least once, to a real mail server and a real command."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from harness import IDENTITY, Workspace, chase, refused, take_ok
from mailserver import MailServer, certificate
from running import eventually

from cleared.base.clock import FixedClock
from cleared.changes.workspace_opening import open_workspace
from cleared.service.notify import channels
from cleared.service.notify.notifications import Notifier, next_digest_at

NIGHT = datetime(2025, 2, 10, 2, 0, tzinfo=UTC)
MORNING = datetime(2025, 2, 10, 8, 0, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
PASSWORD = "hunter2-0123456789"


def notifier(ws: Workspace, now: datetime = NIGHT) -> Notifier:
    return Notifier(open_workspace(ws.root, clock=FixedClock(now)))


@pytest.fixture
def server() -> Iterator[MailServer]:
    found = MailServer()
    yield found
    found.close()


def by_mail(ws: Workspace, server: MailServer, *more: str) -> None:
    ws.config(
        "notifications.address=me@example.com",
        "notifications.smtp_host=localhost",
        f"notifications.smtp_port={server.port}",
        "notifications.smtp_security=none",
        *more,
        "notifications.method=smtp",
    )


WRONG = json.dumps(
    {
        "digest_at": None,
        "failures_at": None,
        "failures": [],
        "more": 0,
        "last_sent_at": None,
        "last_error": {},
        "outbox": [
            {
                "message": {"key": 1, "kind": [], "subject": {}, "lines": [], "at": "2025-02-10T02:00:00Z", "data": {}},
                "attempts": 0,
                "next": "2025-02-10T02:00:00Z",
            }
        ],
    }
).encode()


class Command:
    """A program outside the workspace that keeps what it is given."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "notify.py"
        self.kept = folder / "kept.jsonl"
        self.does("")

    def does(self, then: str) -> None:
        """What it does when it has kept the message."""
        self.path.write_text(
            f"#!{sys.executable}\nimport os, signal, subprocess, sys, time\n"
            f"open({str(self.kept)!r}, 'a').write(sys.stdin.read())\n{then}\n"
        )
        self.path.chmod(0o755)

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.kept.read_text().splitlines()] if self.kept.exists() else []


@pytest.fixture
def command(ws: Workspace, tmp_path: Path) -> Command:
    (tmp_path / "bin").mkdir()
    found = Command(tmp_path / "bin")
    ws.config(f"notifications.command={found.path}", "notifications.method=exec")
    return found


def planned(at: datetime | None) -> datetime:
    assert at is not None
    return at


# -- what is sent, and when -------------------------------------------------------------------------------------------


def test_nothing_is_sent_unless_it_is_switched_on(ws: Workspace) -> None:
    box = notifier(ws)
    box.record_failure("run-1", "ingest", "no", NIGHT)
    assert box.send_due_messages(NIGHT + DAY) is None
    assert box.status_data() == {
        "method": "none",
        "last_sent_at": None,
        "waiting": 0,
        "next_attempt_at": None,
        "last_error": None,
    }
    assert not (ws.root / ".cleared/notify.json").exists()


@pytest.mark.slow
def test_a_digest_says_once_a_day_what_waits(posted: Workspace, server: MailServer) -> None:
    posted.put("agents/ingest.py", posted.read("agents/ingest.py").replace("AWS", "AWSX"))
    posted.ok("agent", "propose", "ingest")
    by_mail(posted, server)
    box = notifier(posted)
    assert box.send_due_messages(NIGHT) == MORNING
    posted.script("1/0", code=1)
    assert box.send_due_messages(MORNING - MINUTE) == MORNING and not server.mails
    assert box.send_due_messages(MORNING) == MORNING + DAY
    (mail,) = server.mails
    assert mail["Subject"] == "Acme: 4 cards wait, 1 run failed"
    assert mail["To"] == "me@example.com" and "cleared" in mail["From"]
    assert server.envelopes == [("FROM:<me@example.com>", ["TO:<me@example.com>"])]
    text = mail.get_content()
    assert "    2  An entry to confirm or correct." in text and "P1: " in text
    assert "The oldest waits since 2025-02-10: 2025-01-0" in text and "probe: 1" in text and str(posted.root) in text
    assert box.send_due_messages(MORNING + 23 * HOUR) == MORNING + DAY
    box.send_due_messages(MORNING + DAY)
    assert [m["Subject"] for m in server.mails][1:] == ["Acme: 4 cards wait"]
    assert server.mails[0]["Message-ID"] != server.mails[1]["Message-ID"]
    assert box.status_data()["last_sent_at"] == "2025-02-11T08:00:00Z"
    assert not any("3d or longer" in m.get_content() for m in server.mails)
    box.send_due_messages(MORNING + 3 * DAY)
    assert "Waiting for 3d or longer:" in server.mails[-1].get_content(), "review.remind_after"


@pytest.mark.slow
def test_a_digest_names_what_approved_itself_and_how_agents_do(ws: Workspace, server: MailServer) -> None:
    ws.config("self_improvement.approve=additive")
    rows = [(f"01/0{n}/2025", f"BLUEBIRD {n}{n}", "-50.00") for n in (1, 2, 3)]
    ws.drop("a.csv", chase(*rows, ("01/09/2025", "TEA", "-3.00")))
    ws.run("ingest")
    ws.ok("queue", "correct", *(f"2025-01-00{n}" for n in (1, 2, 3)), "--account", "5020")
    by_mail(ws, server)
    box = notifier(ws)
    box.send_due_messages(NIGHT)
    assert ws.json("improve")["approved"] == ["P1"]
    box.send_due_messages(MORNING)
    text = server.mails[0].get_content()
    assert server.mails[0]["Subject"] == "Acme: 1 card waits, 1 change approved as you decided"
    assert "P1: BLUEBIRD (money out, from 20, up to 100) → 5020 from now on, as you decided 3 of 3 times" in text
    assert "take it back: cleared agent rollback ingest" in text
    assert "ingest: 1 run, 0 errors, 0% done without asking" in text
    box.send_due_messages(MORNING + DAY)
    assert server.mails[1]["Subject"] == "Acme: 1 card waits", "each once"


def test_nothing_is_sent_where_nothing_waits(ws: Workspace, server: MailServer) -> None:
    by_mail(ws, server)
    box = notifier(ws)
    box.send_due_messages(NIGHT)
    assert box.send_due_messages(MORNING) == MORNING + DAY
    assert not server.mails and box.status_data()["waiting"] == 0


def test_the_first_digest_of_a_month_says_through_which_day_each_account_is_complete(
    posted: Workspace, server: MailServer
) -> None:
    """Once a month, and also where nothing else waits."""
    posted.ok("queue", "approve", *[c["id"] for c in posted.cards()])
    posted.ok("reconcile", "1010", "--date", "2025-01-31", "--balance", "1446.40")
    by_mail(posted, server)
    box = notifier(posted)
    box.send_due_messages(NIGHT)
    box.send_due_messages(MORNING)
    assert not server.mails
    box.send_due_messages(MORNING + 20 * DAY)
    box.send_due_messages(MORNING + 21 * DAY)
    (mail,) = server.mails
    assert mail["Subject"] == "Acme: the month before"
    assert "Business checking: complete to the cent through 2025-01-31, reconciled through 2025-01-31" in " ".join(
        mail.get_content().split()
    )


def test_a_digest_that_was_slept_through_comes_once_and_late(posted: Workspace, server: MailServer) -> None:
    by_mail(posted, server)
    notifier(posted).send_due_messages(NIGHT)
    late = MORNING + 5 * DAY + 3 * HOUR
    again = notifier(posted)
    assert again.send_due_messages(late) == MORNING + 6 * DAY
    assert len(server.mails) == 1


def test_the_digest_goes_by_the_clocks_of_the_business(posted: Workspace, server: MailServer) -> None:
    by_mail(posted, server, "notifications.daily_digest_time=06:30", "business.timezone=America/New_York")
    assert notifier(posted).send_due_messages(NIGHT) == datetime(2025, 2, 10, 11, 30, tzinfo=UTC)
    posted.put("config.yaml", posted.read("config.yaml").replace('"06:30"', "~"))
    take_ok(posted, "config", "approve")
    assert notifier(posted).send_due_messages(MORNING + DAY) is None, "no time, no digest"


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        ("2025-03-29", "2025-03-29T01:30:00+00:00"),
        ("2025-03-30", "2025-03-30T01:30:00+00:00"),  # 02:30 does not exist: it is 03:30
        ("2025-10-26", "2025-10-26T00:30:00+00:00"),  # 02:30 comes twice: the first
        ("2025-10-27", "2025-10-27T01:30:00+00:00"),
    ],
)
def test_the_digest_comes_once_on_days_when_clocks_change(day: str, expected: str) -> None:
    """C1: DST gap and fold."""
    midnight = datetime.fromisoformat(f"{day}T00:00:00+01:00")
    found = next_digest_at(midnight - 2 * HOUR, "02:30", "Europe/Berlin")
    assert found.isoformat() == expected
    assert next_digest_at(found, "02:30", "Europe/Berlin") - found >= 23 * HOUR


def test_a_failed_run_is_told_within_a_minute_and_others_in_one_message(ws: Workspace, server: MailServer) -> None:
    by_mail(ws, server)
    box = notifier(ws)
    box.send_due_messages(NIGHT)
    box.record_failure("run-1", "ingest", "january.csv: no account fits\nsecond line", NIGHT)
    due = planned(box.send_due_messages(NIGHT))
    assert NIGHT < due <= NIGHT + MINUTE and not server.mails
    box.record_failure("run-2", "ingest", "again", NIGHT + timedelta(seconds=10))
    box.record_failure("run-2", "ingest", "again", NIGHT + timedelta(seconds=11))
    box.send_due_messages(due)
    (mail,) = server.mails
    assert mail["Subject"] == "Acme: 2 runs of ingest failed"
    text = mail.get_content()
    assert "january.csv: no account fits" in text and "cleared run show run-1" in text and text.count("run-2") == 1
    for minute in range(2, 14):
        box.record_failure(f"late-{minute}", f"agent{minute % 2}", "no", NIGHT + minute * MINUTE)
        again = planned(box.send_due_messages(NIGHT + minute * MINUTE))
    assert len(server.mails) == 1 and again <= due + 15 * MINUTE
    box.send_due_messages(again)
    assert [m["Subject"] for m in server.mails][1:] == ["Acme: 12 runs of 2 agents failed"]
    assert box.send_due_messages(again) == MORNING and box.status_data()["waiting"] == 0


def test_hundreds_of_failures_are_one_message_of_a_readable_length(ws: Workspace, server: MailServer) -> None:
    by_mail(ws, server)
    box = notifier(ws)
    for number in range(300):
        box.record_failure(f"run-{number}", "ingest", "x" * 5_000, NIGHT)
    box.send_due_messages(NIGHT + MINUTE)
    (mail,) = server.mails
    assert (
        mail["Subject"] == "Acme: 300 runs of ingest failed" and "and 280 more: cleared run list" in mail.get_content()
    )
    assert len(server.raw[0]) < 40_000
    assert (ws.root / ".cleared/notify.json").stat().st_size < 100_000


def test_failures_may_be_left_to_the_digest(ws: Workspace, server: MailServer) -> None:
    by_mail(ws, server, "notifications.on_failure=false")
    box = notifier(ws)
    box.record_failure("run-1", "ingest", "no", NIGHT)
    assert box.send_due_messages(NIGHT + MINUTE) == MORNING and not server.mails


# -- at least once ----------------------------------------------------------------------------------------------------


def test_what_cannot_be_sent_is_tried_again_ever_more_slowly_and_shown(ws: Workspace, server: MailServer) -> None:
    by_mail(ws, server)
    box = notifier(ws)
    server.refuse["MAIL"] = "451 come again later"
    box.record_failure("run-1", "ingest", "no", NIGHT)
    now = planned(box.send_due_messages(NIGHT))
    pauses = []
    for _ in range(8):
        following = planned(box.send_due_messages(now))
        pauses.append((following - now) // MINUTE)
        now = following
        if now > MORNING:
            break
    assert pauses[:8] == [1, 2, 4, 8, 16, 32, 60, 60]
    state = notifier(ws).status_data()  # as another process sees it
    assert state["waiting"] == 1 and "451 come again later" in state["last_error"] and state["last_sent_at"] is None
    del server.refuse["MAIL"]
    box.send_due_messages(now)
    assert len(server.mails) == 1
    assert notifier(ws).status_data()["waiting"] == 0 and notifier(ws).status_data()["last_error"] is None


def test_a_message_is_given_up_after_three_days(ws: Workspace, server: MailServer) -> None:
    by_mail(ws, server)
    box = notifier(ws)
    server.refuse["RCPT"] = "550 nobody of that name"
    box.record_failure("run-1", "ingest", "no", NIGHT)
    box.send_due_messages(NIGHT + MINUTE)
    box.send_due_messages(NIGHT + 2 * DAY)
    assert box.status_data()["waiting"] == 1 and "550 nobody of that name" in box.status_data()["last_error"]
    del server.refuse["RCPT"]
    box.send_due_messages(NIGHT + 4 * DAY)
    assert box.status_data()["waiting"] == 0 and not server.mails


@pytest.mark.parametrize("refusal", ["421 too busy", "554 no"])
def test_no_answer_and_any_refusal_is_no_exception(ws: Workspace, server: MailServer, refusal: str) -> None:
    by_mail(ws, server)
    box = notifier(ws)
    for verb in ("EHLO", "MAIL", "RCPT", "DATA"):
        server.refuse = {verb: refusal, "HELO": refusal}
        box.record_failure(f"run-{verb}", "ingest", "no", NIGHT)
        box.send_due_messages(NIGHT + HOUR)
        assert refusal in box.status_data()["last_error"], verb
    server.close()
    box.send_due_messages(NIGHT + 3 * HOUR)
    assert "refused" in box.status_data()["last_error"]


def test_a_mail_that_was_taken_is_not_sent_again_because_the_server_hangs_up(ws: Workspace, server: MailServer) -> None:
    by_mail(ws, server)
    box = notifier(ws)
    server.hang_up_after_data = True
    box.record_failure("run-1", "ingest", "no", NIGHT)
    box.send_due_messages(NIGHT + MINUTE)
    box.send_due_messages(NIGHT + HOUR)
    assert len(server.mails) == 1 and box.status_data()["last_error"] is None


def test_a_server_that_says_nothing_holds_nobody_up(
    ws: Workspace, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    monkeypatch.setattr(channels, "NETWORK_SECONDS", 3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        by_mail(ws, server)
        ws.config(f"notifications.smtp_port={silent.getsockname()[1]}")
        box = notifier(ws)
        box.record_failure("run-1", "ingest", "no", NIGHT)
        thread = threading.Thread(target=box.send_due_messages, args=(NIGHT + MINUTE,))
        thread.start()
        time.sleep(0.1)
        box.record_failure("run-2", "ingest", "no", NIGHT)  # told meanwhile, and a second tick
        assert box.send_due_messages(NIGHT + MINUTE) == NIGHT + MINUTE + timedelta(seconds=1)
        assert thread.is_alive(), "the second did not wait for the first"
        thread.join()
    assert "no answer within 3 seconds" in box.status_data()["last_error"] and box.status_data()["waiting"] == 2


@pytest.mark.slow
def test_a_kill_between_sending_and_noting_it_sends_it_again_with_the_same_key(ws: Workspace, command: Command) -> None:
    command.does("os.kill(os.getppid(), signal.SIGKILL)")
    program = (
        "import sys\nfrom pathlib import Path\nfrom datetime import datetime, timedelta\n"
        "from cleared.changes.workspace_opening import open_workspace\n"
        "from cleared.service.notify.notifications import Notifier\n"
        "box = Notifier(open_workspace(Path(sys.argv[1])))\nnow = datetime.fromisoformat(sys.argv[2])\n"
        "if sys.argv[3:]:\n    box.record_failure('run-1', 'ingest', 'no', now)\n"
        "box.send_due_messages(now + timedelta(minutes=1))\n"
    )
    argv = [sys.executable, "-c", program, str(ws.root), NIGHT.isoformat()]
    assert subprocess.run([*argv, "tell"], check=False).returncode == -9
    assert subprocess.run(argv, check=False).returncode == -9
    command.does("")
    assert subprocess.run(argv, check=False).returncode == 0
    assert subprocess.run(argv, check=False).returncode == 0
    assert len(command.messages) == 3 and len({m["key"] for m in command.messages}) == 1
    assert notifier(ws).status_data()["waiting"] == 0


def test_what_was_told_before_a_kill_is_sent_after_it(ws: Workspace, command: Command) -> None:
    notifier(ws).record_failure("run-1", "ingest", "no", NIGHT)
    notifier(ws).send_due_messages(NIGHT + MINUTE)
    assert [m["failures"][0]["run_id"] for m in command.messages] == ["run-1"]


@pytest.mark.parametrize(
    "damage",
    [b"", b"[]", b"{", b'{"outbox": 1}', b"\xff\xfe", b"[" * 100_000, b"null", b'{"failures": [{}]}', WRONG, None],
)
def test_a_damaged_state_begins_anew(ws: Workspace, command: Command, damage: bytes | None) -> None:
    path = ws.root / ".cleared/notify.json"
    if damage is None:
        path.mkdir(parents=True)
    else:
        ws.put(".cleared/notify.json", damage)
    box = notifier(ws)
    box.record_failure("run-1", "ingest", "no", NIGHT)
    box.send_due_messages(NIGHT + MINUTE)
    if damage is None:  # and where it cannot be kept, nothing is sent that might be sent for ever
        assert not command.messages and "notify.json" in box.status_data()["last_error"]
        path.rmdir()
        box.send_due_messages(NIGHT + 2 * MINUTE)
    assert len(command.messages) == 1 and json.loads(path.read_bytes())["outbox"] == []


def test_a_clock_that_is_set_back_delays_nothing_for_long(ws: Workspace, server: MailServer) -> None:
    """C1: the clock set back."""
    by_mail(ws, server)
    ahead = NIGHT + 400 * DAY
    box = notifier(ws)
    server.refuse["MAIL"] = "451 later"
    box.send_due_messages(ahead)
    box.record_failure("run-1", "ingest", "no", ahead)
    box.send_due_messages(ahead + MINUTE)
    box.record_failure("run-2", "ingest", "no", ahead)
    del server.refuse["MAIL"]
    box.send_due_messages(NIGHT)
    assert box.send_due_messages(NIGHT) == MORNING
    assert len(server.mails) == 2 and box.status_data()["waiting"] == 0


def test_a_queue_that_cannot_be_read_is_shown_and_looked_at_again(posted: Workspace, server: MailServer) -> None:
    by_mail(posted, server)
    box = notifier(posted)
    box.send_due_messages(NIGHT)
    head = posted.root / ".git/HEAD"
    kept = head.read_text()
    head.write_text("ref: refs/heads/nowhere\n")
    again = planned(box.send_due_messages(MORNING))
    assert MORNING < again <= MORNING + 10 * MINUTE and "cannot be read" in box.status_data()["last_error"]
    assert box.send_due_messages(MORNING + MINUTE) == again
    head.write_text(kept)
    assert box.send_due_messages(again) == MORNING + DAY
    assert len(server.mails) == 1 and box.status_data()["last_error"] is None


# -- mail -------------------------------------------------------------------------------------------------------------


def test_texts_from_outside_make_no_header_and_steer_no_terminal(ws: Workspace, server: MailServer) -> None:
    by_mail(ws, server)
    box = notifier(ws)
    evil = "x\r\nBcc: eve@example.com\r\n\r\n\x1b[2J\u202egpj\0.\r\n.\r\nMAIL FROM:<eve@example.com>"
    box.record_failure("run\r\nX-Evil: 1", evil, evil + "é" * 2_000, NIGHT)
    box.send_due_messages(NIGHT + MINUTE)
    (mail,) = server.mails
    assert server.envelopes == [("FROM:<me@example.com>", ["TO:<me@example.com>"])]
    assert mail["Bcc"] is None and mail["X-Evil"] is None
    assert mail["Subject"].startswith(r"Acme: x\r\nBcc: eve@example.com\r\n\r\n\x1b[2J\u202egpj\x00")
    text = mail.get_content()
    assert not {c for c in text if ord(c) < 32 and c not in "\r\n"} and "\u202e" not in text
    assert max(len(line) for line in server.raw[0].split(b"\r\n")) <= 78


def test_a_state_file_that_somebody_else_wrote_makes_no_header_either(ws: Workspace, server: MailServer) -> None:
    by_mail(ws, server)
    box = notifier(ws)
    box.record_failure("run-1", "ingest", "no", NIGHT)
    server.refuse["MAIL"] = "451 later"
    box.send_due_messages(NIGHT + MINUTE)
    path = ws.root / ".cleared/notify.json"
    state = json.loads(path.read_bytes())
    state["outbox"][0]["message"] |= {"subject": "a\nBcc: eve@x.org", "key": "k>\r\nBcc: eve@x.org", "lines": ["\x1b"]}
    path.write_text(json.dumps(state))
    server.refuse.clear()
    notifier(ws).send_due_messages(NIGHT + HOUR)
    (mail,) = server.mails
    assert mail["Bcc"] is None and mail.get_content().strip() == r"\x1b"


def test_a_mail_says_that_a_program_sent_it_and_names_itself(ws: Workspace, server: MailServer) -> None:
    by_mail(ws, server, "notifications.sender=books@example.org")
    box = notifier(ws)
    box.record_failure("run-1", "ingest", "Käse für 4 €", NIGHT)
    box.send_due_messages(NIGHT + MINUTE)
    (mail,) = server.mails
    key = mail["X-Cleared-Key"]
    assert mail["Message-ID"] == f"<{key}@example.org>" and key.startswith("failure-")
    assert mail["From"] == "cleared <books@example.org>" and mail["Auto-Submitted"] == "auto-generated"
    assert mail["Date"].datetime == NIGHT + MINUTE
    assert "Käse für 4 €" in mail.get_content() and server.raw[0].isascii()


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_mail_is_encrypted_and_the_server_is_checked(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, security: str
) -> None:
    pem = certificate(tmp_path)
    server = MailServer(pem=pem, at_once=security == "tls", password=PASSWORD)
    try:
        by_mail(ws, server, f"notifications.smtp_security={security}", "notifications.smtp_user=me")
        ws.config(f"notifications.smtp_password={PASSWORD}")
        box = notifier(ws)
        box.record_failure("run-1", "ingest", "no", NIGHT)
        box.send_due_messages(NIGHT + MINUTE)
        assert not server.mails and not server.logins and "certificate" in box.status_data()["last_error"].lower()
        monkeypatch.setenv("SSL_CERT_FILE", str(pem))
        box.send_due_messages(NIGHT + HOUR)
        assert len(server.mails) == 1 and server.logins == ["me"]
    finally:
        server.close()


def test_without_encryption_nothing_is_sent_where_it_was_asked_for(ws: Workspace, server: MailServer) -> None:
    by_mail(ws, server, "notifications.smtp_security=starttls")
    box = notifier(ws)
    box.record_failure("run-1", "ingest", "no", NIGHT)
    box.send_due_messages(NIGHT + MINUTE)
    assert not server.mails and "STARTTLS" in box.status_data()["last_error"]


def test_i1_the_password_is_nowhere_but_in_the_configuration(ws: Workspace, server: MailServer) -> None:
    """I1: not in git, not in the approved policy, not in a message or error, not in the state."""
    server.password = "another"
    by_mail(ws, server, "notifications.smtp_user=me")
    done = ws.ok("config", "set", "notifications.smtp_password", PASSWORD)
    ws.config("notifications.sender=you@example.com")
    approved = take_ok(ws, "config", "approve")
    box = notifier(ws)
    kept = ws.root / ".cleared/notify.json"
    box.record_failure(f"run-{PASSWORD}", f"a-{PASSWORD}", f"b {PASSWORD}", NIGHT)
    assert PASSWORD not in kept.read_text()
    box.send_due_messages(NIGHT + MINUTE)
    assert PASSWORD not in kept.read_text() and "[redacted]" in kept.read_text()
    assert "535 no: [redacted] is wrong" in box.status_data()["last_error"]
    server.password = PASSWORD
    box.send_due_messages(NIGHT + HOUR)
    assert b"[redacted]" in server.raw[0] and PASSWORD.encode() not in server.raw[0]
    assert PASSWORD not in done.out + done.err + approved.out + approved.err + ws.git("log", "-p", "--all")
    for path, data in ws.state().files.items():
        assert path == "config.yaml" or PASSWORD.encode() not in data, path
    for path in (ws.root / ".cleared").rglob("*"):
        assert not path.is_file() or PASSWORD.encode() not in path.read_bytes(), path
    refused(ws("config", "set", "notifications.smtp_password", "abc12"), 4, "at least 6 characters")


# -- a command --------------------------------------------------------------------------------------------------------


def test_a_command_gets_the_message_and_nothing_else(
    posted: Workspace, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    command.does(
        "import json\n"
        f"open({str(command.kept)!r}, 'a').write(json.dumps([sorted(os.environ), os.listdir(), sys.argv[1:], "
        "os.getpgid(0) == os.getpid(), os.path.exists('/dev/fd/150')]) + chr(10))"
    )
    monkeypatch.setenv("AWS_SECRET", "x")
    monkeypatch.setenv("TZ", "UTC")
    os.dup2(0, 150, inheritable=True)
    box = notifier(posted)
    box.send_due_messages(NIGHT)
    box.send_due_messages(MORNING)
    os.close(150)
    message, seen = command.messages
    environment, folder, arguments, own_group, open_file = seen  # type: ignore[misc]
    assert set(environment) - {"LC_CTYPE"} <= {"HOME", "LANG", "PATH", "TZ"} and "TZ" in environment
    assert folder == [] and arguments == [] and own_group and not open_file
    assert message["kind"] == "digest" and message["cards"] == {"entry": 2} and message["key"].startswith("digest-")
    assert message["subject"] == "Acme: 2 cards wait" and "An entry to confirm" in message["text"]
    assert message["oldest"]["kind"] == "entry" and message["workspace"] == str(posted.root)
    assert message["proposals"] == [] and message["failed"] == {} and message["at"] == "2025-02-10T08:00:00Z"


def test_a_command_that_fails_says_why_by_its_last_line(ws: Workspace, command: Command) -> None:
    command.does("sys.stderr.write('x' * 200_000 + '\\nthe last \\x1b[2J line\\n\\n'); sys.exit(7)")
    box = notifier(ws)
    box.record_failure("run-1", "ingest", "no", NIGHT)
    box.send_due_messages(NIGHT + MINUTE)
    assert box.status_data()["last_error"] == r"notify.py: exit code 7: the last \x1b[2J line"
    assert len(command.messages) == 1 and box.status_data()["waiting"] == 1


@pytest.mark.parametrize(
    "then",
    [
        "time.sleep(60)",
        "os.close(2); time.sleep(60)",
        "while True: sys.stderr.write('x' * 9999)",
        "subprocess.run(['sleep', '60'])",
    ],
)
def test_a_command_that_hangs_is_ended_with_all_it_started(
    ws: Workspace, command: Command, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    monkeypatch.setattr(channels, "COMMAND_SECONDS", 0.5)
    pid = command.kept.with_name("pid")
    command.does(f"open({str(pid)!r}, 'w').write(str(os.getpid()))\n{then}")
    box = notifier(ws)
    box.record_failure("run-1", "ingest", "no", NIGHT)
    box.send_due_messages(NIGHT + MINUTE)
    assert box.status_data()["last_error"] == "notify.py was ended after 0.5 seconds"

    def is_running() -> bool:
        shown = subprocess.run(["ps", "-A", "-o", "pgid=,stat="], capture_output=True, text=True, check=True).stdout
        return any(line.split()[0] == pid.read_text() and "Z" not in line for line in shown.splitlines())

    eventually(lambda: not is_running())  # killed is not yet ended


def test_what_a_command_leaves_running_is_not_waited_for(ws: Workspace, command: Command) -> None:
    command.does("subprocess.Popen(['sleep', '60'])")
    box = notifier(ws)
    box.record_failure("run-1", "ingest", "no", NIGHT)
    box.send_due_messages(NIGHT + MINUTE)
    assert box.status_data()["waiting"] == 0 and box.status_data()["last_error"] is None, "it is not ended as hanging"


def test_no_shell_reads_the_arguments(ws: Workspace, command: Command) -> None:
    command.does(f"open({str(command.kept)!r}, 'a').write(repr(sys.argv[1:]).replace(chr(39), chr(34)) + chr(10))")
    ws.config(f"notifications.command={command.path}, $(id) `id`; id, -x")
    box = notifier(ws)
    box.record_failure("run-1", "ingest", "no", NIGHT)
    box.send_due_messages(NIGHT + MINUTE)
    assert command.messages[1] == ["$(id) `id`; id", "-x"]  # type: ignore[comparison-overlap]


@pytest.mark.parametrize("argv", ["./tell.sh", "tell.sh", "sh, tell.sh", "link", "sh, {root}/tell.sh", "bin/sub/tell"])
def test_what_lies_in_the_workspace_is_not_run(
    ws: Workspace, command: Command, monkeypatch: pytest.MonkeyPatch, argv: str
) -> None:
    """Approved are the words; a file among them could be changed by anybody who can commit."""
    ws.put("tell.sh", f"#!/bin/sh\ntouch {ws.root}/ran\n").chmod(0o755)
    ws.put("bin/sub/tell", f"#!/bin/sh\ntouch {ws.root}/ran\n").chmod(0o755)
    (ws.root / "link").symlink_to(ws.root / "tell.sh")
    monkeypatch.setenv("PATH", f"{ws.root}:.:{os.environ['PATH']}")
    ws.config(f"notifications.command={argv.format(root=ws.root)}")
    box = notifier(ws)
    box.record_failure("run-1", "ingest", "no", NIGHT)
    box.send_due_messages(NIGHT + MINUTE)
    assert "workspace" in box.status_data()["last_error"] and not (ws.root / "ran").exists()


@pytest.mark.parametrize("argv", ["no-such-program-here", "/no/such/program", "/etc/passwd"])
def test_a_program_that_is_not_there_is_an_error_to_show(ws: Workspace, command: Command, argv: str) -> None:
    ws.config(f"notifications.command={argv}")
    box = notifier(ws)
    box.record_failure("run-1", "ingest", "no", NIGHT)
    box.send_due_messages(NIGHT + MINUTE)
    assert argv in box.status_data()["last_error"] and box.status_data()["waiting"] == 1


# -- policy -----------------------------------------------------------------------------------------------------------


def test_a_clone_sends_nothing_until_its_settings_are_trusted(
    posted: Workspace, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRIGGERS: notifications are inert in a clone until ``cleared trust``."""
    subprocess.run(
        ["git", "clone", "-q", f"file://{posted.root}", str(tmp_path / "copy")],
        check=True,
        env=os.environ | IDENTITY,
        capture_output=True,
    )
    there = Workspace(tmp_path / "copy")
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "other"))

    def a_day() -> None:
        box = notifier(there)
        box.send_due_messages(NIGHT)
        box.record_failure("run-1", "ingest", "no", NIGHT)
        box.send_due_messages(NIGHT + MINUTE)
        box.send_due_messages(MORNING)

    a_day()
    assert notifier(there).status_data()["method"] == "none" and not command.messages
    take_ok(there, "trust", "--yes")
    a_day()
    assert [m["kind"] for m in command.messages] == ["failure", "digest"]


def test_an_edit_takes_effect_when_it_is_approved(posted: Workspace, command: Command) -> None:
    before = posted.read("config.yaml")
    posted.put("config.yaml", before.replace(str(command.path), "/bin/false"))
    box = notifier(posted)
    box.record_failure("run-1", "ingest", "no", NIGHT)
    box.send_due_messages(NIGHT + MINUTE)
    assert len(command.messages) == 1
    take_ok(posted, "config", "approve")
    box.host = open_workspace(posted.root, clock=FixedClock(NIGHT))
    box.record_failure("run-2", "ingest", "no", NIGHT)
    box.send_due_messages(NIGHT + HOUR)
    assert len(command.messages) == 1 and "false: exit code 1" in box.status_data()["last_error"]


def test_the_password_needs_no_approval_and_stays_beside_a_policy_that_waits(ws: Workspace) -> None:
    ws.config(f"notifications.smtp_password={PASSWORD}")
    ws.put("config.yaml", ws.read("config.yaml").replace("auto_confirm: 0.95", "auto_confirm: 0.1"))
    host = open_workspace(ws.root)
    assert host.policy is not None and [key for key, *_ in host.policy.unapproved] == ["thresholds.auto_confirm"]
    assert host.config.notifications.smtp_password == PASSWORD and host.config.thresholds.auto_confirm == 0.95
    assert host.redactor.redact_text(f"a {PASSWORD} b") == "a [redacted] b"


def test_i1_of_a_password_in_a_text_that_is_cut_short_nothing_is_left(ws: Workspace, command: Command) -> None:
    """I1: nor of one in the title of a card."""
    ws.config(f"notifications.smtp_password={PASSWORD}")
    name = "x" * 140 + PASSWORD
    ws.put_config(ws.read("config.yaml").replace("name: Acme", f"name: {name}"))
    box = notifier(ws)
    box.record_failure("run-1", "ingest", "no", NIGHT)
    box.send_due_messages(NIGHT + MINUTE)
    (message,) = command.messages
    assert message["business"] == "x" * 140 + "[redacted]" and PASSWORD[:5] not in json.dumps(message)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("method: smtp", "smtp needs notifications.address and notifications.smtp_host"),
        ("method: exec", "exec needs notifications.command"),
        ("method: mail", "is not one of none, smtp, email, exec; did you mean email?"),
        ("method: email", "email needs notifications.address"),
        ("address: 'a@b.c, d@e.f'", "is not a mail address"),
        ('address: "a@b.c\\nBcc: d@e.f"', "is not a mail address"),
        ("sender: nobody", "is not a mail address"),
        ("smtp_host: 'a b'", "is not a server's name"),
        ("smtp_port: 0", "between 1 and 65535"),
        ("daily_digest_time: 8am", "must be a time, HH:MM"),
        ("{smtp_host: mail.example.com, smtp_user: me, smtp_security: none}", "for all to read"),
        ("command: [' ']", "names no program"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(ws: Workspace, text: str, said: str) -> None:
    ws.put("config.yaml", f"notifications: {text}" if text[0] == "{" else f"notifications:\n  {text}\n")
    refused(ws("queue", "list"), 4, "config.yaml:", "notifications.", said)


def test_the_state_can_be_read_by_its_owner_alone(ws: Workspace, command: Command) -> None:
    notifier(ws).send_due_messages(NIGHT)
    assert stat.S_IMODE((ws.root / ".cleared").stat().st_mode) == 0o700
