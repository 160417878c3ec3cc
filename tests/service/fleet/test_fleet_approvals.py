"""What has no effect in a workspace of a fleet, as nobody has approved it, or no approval of it counts, is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from fleets import FleetOfOne
from harness import CLOCK, name_shown, take_ok, trust_books
from web_client import inner_server

from cleared.trust import key_protection, passphrase

pytestmark = pytest.mark.slow

DAILY = '"""\nname: daily\ntrigger: schedule\nschedule: 0 6 * * *\n"""\n1\n'

NEXT_STEP = "say of acme once more: cleared fleet add NAME GIT-URL"


def look(fleet: FleetOfOne) -> str:
    """What is wrong, once a worker has looked at what was pushed."""
    fleet.ws.ok("sync")
    fleet.make_due(CLOCK)
    fleet.work("one", CLOCK)
    return str(fleet.row()["problem"])


def test_an_agent_that_nobody_has_approved_is_a_problem_until_it_is(fleet: FleetOfOne) -> None:
    ws = fleet.ws
    assert look(fleet) == ""
    ws.put("agents/daily.py", DAILY)
    ws.commit("agents/daily.py")
    assert look(fleet) == (
        "daily is not run: nobody has approved this version. Have it checked and approved: cleared agent propose "
        "daily. A commit alone approves nothing."
    )
    status = fleet.owner.json("status")
    assert status["problems"] == 1 and status["neediest"][0]["has_problem"]
    fleet.work("one", "2025-02-12T06:00:30Z")  # its time has come, and it is held
    assert fleet.row()["problem"].count("daily") == 2
    take_ok(ws, "agent", "approve", str(ws.json("agent", "propose", "daily")["id"]))
    assert look(fleet) == ""


def test_the_owners_clone_names_the_commands_of_the_fleet(fleet: FleetOfOne) -> None:
    """It has no service of its own; and whose approvals count is said to workers by ``fleet add``."""
    desk = fleet.desk
    shown = desk.ok("status").out
    assert "the workers of a fleet (cleared fleet status acme)" in shown and "cleared up" not in shown
    assert desk.ok("status", "--check").out == "healthy\n" and desk.json("status")["fleet"] == "acme"
    assert fleet.ws.json("status")["fleet"] is None and "cleared up" in fleet.ws.ok("status").out
    named = f"reviewers:\n  - {{name: ana, key: {desk.json('queue', 'reviewers')['key']!r}}}\n"
    for ws in (desk, fleet.ws):
        ws.put("config.yaml", f"{ws.read('config.yaml').rstrip()}\n{named}")
        said = take_ok(ws, "config", "approve")
        assert (NEXT_STEP in said.err) is (ws is desk), said
        ws.put("config.yaml", ws.read("config.yaml").replace("name: ana", "name: anna"))
        said = take_ok(ws, "agent", "approve", str(ws.json("agent", "propose", "config.yaml")["id"]))
        assert (NEXT_STEP in said.err) is (ws is desk), said


def test_the_page_names_the_command_that_tells_workers_who_approves(fleet: FleetOfOne) -> None:
    """As the terminal does; on one machine, and for other settings, there is nothing to say."""
    desk, phrase = fleet.desk, "correct horse battery staple"
    rule = f"{{name: ana, key: {desk.json('queue', 'reviewers')['key']!r}}}"
    with passphrase.asking_with(lambda prompt: phrase):
        key_protection.protect_key()
    passphrase.forget_secrets()
    with fleet.serving() as server, inner_server(fleet.ws.root) as alone:
        for page, ws, prefix in ((server, desk, "/w/acme"), (alone, fleet.ws, "")):
            page.sign_in(page.code)
            for added in ("webhooks:\n  rate: 7\n", f"reviewers:\n  - {rule}\n"):
                ws.put("config.yaml", f"{ws.read('config.yaml').rstrip()}\n{added}")
                asked = page.get(f"{prefix}/settings")
                shown = [("digest", asked.fields("digest")[0]), *(("key", name) for name in asked.fields("key"))]
                answer = page.submit(asked, f"{prefix}/settings", *shown, ("passphrase", phrase))
                assert "1 setting approved" in answer.text, answer.text
                assert (NEXT_STEP in answer.text) is (ws is desk and "reviewers" in added), answer.text
        for old, new in (("rate: 7", "rate: 8"), ("name: ana", "name: anna")):  # now by a proposal
            desk.put("config.yaml", desk.read("config.yaml").replace(old, new))
            proposed = str(desk.json("agent", "propose", "config.yaml")["id"])
            asked = server.get("/w/acme/queue")
            shown = [("choice", "approve"), ("number", proposed), ("passphrase", phrase)]
            answer = server.submit(asked, "/w/acme/queue", *shown)
            assert f"{proposed} is live now" in answer.text, answer.text
            assert (NEXT_STEP in answer.text) is ("anna" in new), answer.text


def test_settings_that_wait_for_approval_are_a_problem_until_they_do_not(fleet: FleetOfOne) -> None:
    ws = fleet.ws
    ws.put("config.yaml", f"{ws.read('config.yaml').rstrip()}\nwebhooks:\n  rate: 7\n")
    ws.commit("config.yaml")
    assert look(fleet).startswith("config.yaml: not approved yet, and not in force: webhooks.rate.")
    take_ok(ws, "config", "approve")
    assert look(fleet) == ""


def test_an_approval_of_somebody_whom_the_owner_does_not_trust_is_a_problem_until_they_do(
    fleet: FleetOfOne, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws = fleet.ws

    def trust_anew() -> None:
        words = ("add", "acme", str(fleet.shared))
        shown = fleet.owner(*words)
        again = name_shown(words, shown)
        assert again is not None, shown
        fleet.owner.ok(*again)
        assert look(fleet) == ""

    keys = {}
    for number, name in enumerate(("ben", "cleo")):
        with monkeypatch.context() as patch:
            (tmp_path / name).mkdir()
            patch.setenv("CLEARED_HOME", str(tmp_path / name))
            trust_books(ws.root)
            keys[name] = ws.json("queue", "reviewers")["key"]
            if number:
                take_ok(ws, "config", "set", "webhooks.rate", "7")
            else:
                ws.put("agents/daily.py", DAILY)
                take_ok(ws, "agent", "approve", str(ws.json("agent", "propose", "daily")["id"]))
            ws.ok("sync")
        why = look(fleet)
        begins = "agents/approvals/config.json: the settings were approved" if number else "daily is not run: approved"
        assert why.startswith(begins) and "with a key that is not trusted" in why, why
        assert "say whether you trust them: cleared fleet add acme GIT-URL." in why, why
        fleet.desk("sync", "origin")
        trust_anew()
    fleet.desk.ok("trust", "--forget", keys["ben"])  # who has left
    assert fleet.owner("add", "acme", str(fleet.shared)).code == 3, "it asks about them"
    fleet.add("--nobody-new")
    assert look(fleet).startswith("daily is not run: ")
