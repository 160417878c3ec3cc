"""The published example, whole: "Batch my notifications into a morning email" (document 003)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from fake_provider import FakeProvider
from harness import Workspace, take_ok
from mailserver import MailServer
from proposing import propose
from scripted_model import script_change, use_provider, write_file
from world import World

from cleared.changes.workspace_opening import open_workspace
from cleared.meta.system_prompt import build_system_prompt
from cleared.service.notify.script_messages import ScriptMessages

pytestmark = pytest.mark.usefixtures("model_key")


@pytest.fixture
def server() -> Iterator[MailServer]:
    running = MailServer()
    yield running
    running.close()


def digest_of_the_example(ws: Workspace) -> str:
    """The agent that the model is shown as a worked example: what it learns from must work."""
    blocks = re.findall(r"```python\n(.*?)```", build_system_prompt(open_workspace(ws.root)).text, re.S)
    return next(block for block in blocks if "Morning Digest" in block)


def test_h1_the_morning_email_is_live_next_morning(ws: Workspace, provider: FakeProvider, server: MailServer) -> None:
    """H1: an agent that notifies each time; a request; one proposal of two files; approved; next morning one mail at 6
    with everything that waits, and no single note any more."""
    ws.config(
        "notifications.address=me@example.com",
        "notifications.smtp_host=localhost",
        f"notifications.smtp_port={server.port}",
        "notifications.smtp_security=none",
        "notifications.method=smtp",
        "notifications.daily_digest_time=23:00",
        "self_improvement.cooldown_hours=0",
    )
    use_provider(ws, provider)
    quiet = ws.read("agents/ingest.py")
    anchor = re.search(r"^( *)git_commit\(.*\n", quiet, re.M)
    assert anchor is not None
    note = f'{anchor[1]}notify_send(subject="Imported " + str(total_imported), text="One note for each import.")\n'
    ws.put("agents/ingest.py", quiet.replace(anchor[0], anchor[0] + note))
    grants = propose(ws, "ingest")
    take_ok(ws, "agent", "approve", grants["id"])
    ws.drop("january.csv")
    ws.run("ingest")
    assert [mail["Subject"] for mail in server.mails] == ["Acme: Imported 4"]

    digest = digest_of_the_example(ws)
    script_change(
        provider,
        write_file("agents/digest.py", digest),
        write_file("agents/ingest.py", quiet),
        message="One mail at 6 in the morning; single notifications stop.",
    )
    done = ws("meta", "Batch my notifications into a morning email")
    assert done.code == 0, done
    proposal = re.search(r"^(P\d+)  ", done.out, re.M)
    assert proposal is not None
    assert (
        "ingest may no longer send you messages" in done.out
        and "digest is new." in done.out
        and "digest may " in done.out
    )
    assert "digest runs every day at 06:00, " in done.out
    take_ok(ws, "agent", "approve", proposal[1])

    server.mails.clear()
    with World(ws, "2025-02-10T20:00:00Z") as world:
        ws.drop("february.csv")
        world.until("2025-02-11T05:59:00Z")
        assert server.mails == []
        world.until("2025-02-11T06:05:00Z")
        assert [row["agent"] for row in world.ran("digest")] == ["digest"]
        # As the process of the service does between two runs.
        ScriptMessages(open_workspace(ws.root, clock=world.time)).send_due_messages(world.time.at)
    (mail,) = server.mails
    waiting = [card for card in ws.cards() if card["kind"] == "entry"]
    assert mail["Subject"].endswith("waiting for you") and all(card["id"] in mail.get_content() for card in waiting)
    ws.ok("check")
