"""Messages that scripts send: after the commit, once, to the approved address; none is lost by a kill or an outage.

Row I8.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from harness import CLOCK, Workspace, fails, take_ok, unchanged
from mailserver import MailServer
from running import Up, eventually

from cleared.base.clock import FixedClock
from cleared.changes.workspace_opening import open_workspace
from cleared.service.notify.script_messages import ScriptMessages, messages_trouble

NOW = datetime(2025, 2, 10, 8, 0, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
SEND = 'notify_send("Two things", "first\\nsecond")'
HEADER = "grants: [notify.send, git.commit, queue.read]\n"


KILLED = """
import os, pathlib, signal, sys
from cleared.changes.workspace_opening import open_workspace
from cleared.service.notify.script_messages import send_after_run
from cleared.runs.execution import run_agent

def die(step):
    if step == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)

host = open_workspace(pathlib.Path(sys.argv[1]))
host.on_step = die
result = run_agent(host, "probe")
die("committed")
send_after_run(host, result)
"""


def outbox(ws: Workspace, now: datetime = NOW) -> ScriptMessages:
    return ScriptMessages(open_workspace(ws.root, clock=FixedClock(now)))


@pytest.fixture
def server() -> Iterator[MailServer]:
    found = MailServer()
    yield found
    found.close()


class Program:
    """A program outside the workspace that is given the messages, and fails while ``fails`` exists."""

    def __init__(self, folder: Path) -> None:
        self.path, self._kept, self.fails = folder / "notify.py", folder / "kept.jsonl", folder / "fails"
        self.path.write_text(
            f"#!{sys.executable}\nimport os, sys\nif os.path.exists({str(self.fails)!r}): sys.exit('no line')\n"
            f"open({str(self._kept)!r}, 'a').write(sys.stdin.read())\n"
        )
        self.path.chmod(0o755)

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._kept.read_text().splitlines()] if self._kept.exists() else []


@pytest.fixture
def program(ws: Workspace, tmp_path: Path) -> Program:
    (tmp_path / "bin").mkdir()
    found = Program(tmp_path / "bin")
    ws.config(f"notifications.command={found.path}", "notifications.method=exec")
    return found


def test_a_message_is_mailed_after_the_commit_to_the_approved_address(posted: Workspace, server: MailServer) -> None:
    """Row I8."""
    posted.config(
        "notifications.address=me@example.com",
        "notifications.smtp_host=localhost",
        f"notifications.smtp_port={server.port}",
        "notifications.smtp_security=none",
        "notifications.method=smtp",
    )
    body = (
        'cards = queue_pending()\nnotify_send(f"{len(cards)} wait", "Please look.", card_ids=[c["id"] for c in cards])'
    )
    made = posted.script(body, header=HEADER)
    (mail,) = server.mails
    assert mail["To"] == "me@example.com" and mail["Subject"] == "Acme: 2 wait"
    assert made["run_id"] in mail["X-Cleared-Key"]
    text = mail.get_content().replace("\r\n", "\n")
    cards = posted.json("queue", "list")
    assert text.startswith("Please look.\n\nTo decide:\n") and "cleared review" in text
    assert all(f"  {card['id']}  " in text for card in cards) and len(cards) == 2
    assert posted.json("status")["messages"]["waiting"] == 0


def test_a_dry_run_sends_nothing_and_shows_what_would_be_sent(ws: Workspace, program: Program) -> None:
    ws.agent("probe", SEND, HEADER)
    with unchanged(ws):
        shown = ws("agent", "run", "probe", "--dry-run")
    assert "would send: Two things" in shown.err and "    second" in shown.err
    assert ws.run("probe", "--dry-run")["messages"] == [{"subject": "Two things", "text": "first\nsecond", "cards": []}]
    assert program.messages == [] and ws.json("status")["messages"]["waiting"] == 0


def test_a_failed_run_sends_nothing(ws: Workspace, program: Program) -> None:
    fails(ws, f"{SEND}\n1 // 0", header=HEADER)
    assert outbox(ws).send_due_messages(NOW) is None and program.messages == []


def test_each_message_is_sent_once_also_when_read_again(ws: Workspace, program: Program) -> None:
    """Row I8."""
    made = ws.script(f"{SEND}\n{SEND}", header=HEADER)
    assert made["status"] == "succeeded"
    keys = [message["key"] for message in program.messages]
    assert keys == [f"message-{made['run_id']}-{n}" for n in (0, 1)]
    ws.put("notes.txt", "by hand")
    ws.commit("notes.txt")
    assert outbox(ws).send_due_messages(NOW) is None and len(program.messages) == 2
    ws.run("probe")
    assert len(program.messages) == 4 and len({message["key"] for message in program.messages}) == 4


def test_nothing_configured_is_said_and_fails_no_run(ws: Workspace) -> None:
    ws.agent("probe", SEND, HEADER)
    done = ws("agent", "run", "probe")
    assert done.code == 0 and "notifications.method is none" in done.err
    assert any("1 of your scripts' messages" in line for line in ws.json("status")["trouble"])
    assert "not sent" in ws("doctor").out


def test_an_outage_is_retried_with_growing_pauses_then_given_up_and_shown(ws: Workspace, program: Program) -> None:
    program.fails.touch()
    ws.agent("probe", SEND, HEADER)
    done = ws("agent", "run", "probe")
    assert done.code == 0 and "not sent yet (notify.py: exit code 1: no line)" in done.err
    now = datetime.fromisoformat(CLOCK)
    first = outbox(ws, now).send_due_messages(now + 2 * MINUTE)
    assert first == now + 4 * MINUTE, "the second pause is two minutes"
    state = outbox(ws, now).status_data()
    assert state["waiting"] == 1 and "no line" in messages_trouble(state)[0]
    assert outbox(ws, now + 4 * DAY).send_due_messages(now + 4 * DAY) is None
    assert "given up" in messages_trouble(outbox(ws, now + 4 * DAY).status_data())[0]
    program.fails.unlink()
    assert outbox(ws, now + 4 * DAY).send_due_messages(now + 4 * DAY) is None and program.messages == []


@pytest.mark.parametrize(("step", "times"), [("committed", 1), ("handed over", 2)])
def test_a_kill_loses_no_message(ws: Workspace, program: Program, step: str, times: int) -> None:
    """Killed after the commit: sent once. Killed between hand-over and note: twice, under the same key."""
    ws.agent("probe", SEND, HEADER)

    done = subprocess.run([sys.executable, "-c", KILLED, str(ws.root), step], check=False)
    assert done.returncode == -signal.SIGKILL
    now = datetime.now(UTC)
    assert outbox(ws, now).send_due_messages(now + MINUTE) is None
    assert outbox(ws, now).send_due_messages(now + 2 * MINUTE) is None
    assert len(program.messages) == times and len({message["key"] for message in program.messages}) == 1


def test_the_service_sends_what_its_runs_have_committed(up: Up, program: Program) -> None:
    header = "trigger: event\nevent: ping\ngrants: [notify.send]\n"
    up.agent("tells", header, SEND)
    up.start()
    up.ws.ok("event", "emit", "ping")
    eventually(lambda: program.messages)
    assert up.stop()[0] == 0
    (run,) = up.log("run.succeeded")
    up.start()
    eventually(lambda: up.ws.json("status")["messages"]["waiting"] == 0)
    assert up.stop()[0] == 0
    (message,) = program.messages
    assert message["subject"] == "Acme: Two things" and run["run"] in message["key"]


def test_another_clone_sends_nothing_of_it(ws: Workspace, program: Program) -> None:
    program.fails.touch()
    ws.script(SEND, header=HEADER)
    ws.git("clone", "-q", str(ws.root), str(ws.root.parent / "clone"))
    assert outbox(Workspace(ws.root.parent / "clone")).status_data()["waiting"] == 0


def test_texts_from_outside_are_escaped(ws: Workspace, program: Program) -> None:
    ws.script('notify_send("x\\u202ey", "a\\x1b[31mb\\u2028c" + "z" * 700)', header=HEADER)
    (message,) = program.messages
    assert "\\u202e" in message["subject"] and "\\x1b[31m" in message["text"]
    assert message["text"].count("z") == 700 and "\x1b" not in message["text"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (SEND + "\n" + f"[{SEND} for i in range(10)]", "more than 10 messages"),
        ('notify_send("", "x")', "the subject has 0 characters"),
        ('notify_send("x" * 151, "x")', "the subject has 151 characters"),
        ('notify_send("x", "x" * 20000)', "the limit is 10240"),
        ('notify_send("x", "x", card_ids=["nope"])', "there is no open card 'nope'"),
        ('notify_send("x", "x", card_ids=["nope"] * 101)', "names 101 cards"),
    ],
)
def test_what_is_too_much_is_refused(ws: Workspace, call: str, said: str) -> None:
    fails(ws, call, said, header=HEADER)


def test_nobody_else_emits_a_message(ws: Workspace) -> None:
    fails(ws, 'ctx_emit("notify.send", {"subject": "x", "text": "y"})', "told by the program itself")
    assert "told by the program itself" in ws("event", "emit", "notify.send").err


def test_the_template_of_a_morning_mail_passes_the_gate_and_says_what_it_may(posted: Workspace) -> None:
    posted.ok("agent", "new", "mail", "--template", "morning_mail")
    made = posted.json("agent", "propose", "mail")
    assert any("send you messages" in line for line in made["card"])
    take_ok(posted, "agent", "approve", made["id"])
    (message,) = posted.run("mail")["messages"]
    assert message["subject"] == "2 to decide" and len(message["cards"]) == 2
