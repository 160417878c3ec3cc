"""A disabled agent is started by nobody until a person enables it; no push enables it."""

from __future__ import annotations

import json

import pytest
from harness import Workspace, copy_books, refused, unchanged
from world import World

SWITCH = "agents/approvals/agents/ingest/switch.json"


def state(ws: Workspace) -> str:
    return str(next(a for a in ws.json("agent", "list") if a["name"] == "ingest")["state"])


def test_a_disabled_agent_is_run_by_nobody(ws: Workspace) -> None:
    """Dry runs work; its approval stays; list, status and doctor say it, and a monitor is not alarmed."""
    ws.drop("january.csv")
    ws.ok("agent", "disable", "ingest", "--reason", "it books the rent wrongly")
    with unchanged(ws):
        done = ws("agent", "run", "ingest")
        refused(done, 3, "disabled it on 2025-02-10: it books the rent wrongly", "cleared agent enable ingest")
        assert len(ws.run("ingest", "--dry-run")["entries"]) == 4
        refused(ws("agent", "disable", "ingest"), 3, "ingest is disabled already")
        refused(ws("agent", "disable", "nobody"), 2, "there is no agent 'nobody'")
    assert state(ws) == "disabled"
    (agent,) = (a for a in ws.json("status")["agents"] if a["name"] == "ingest")
    assert (agent["state"], agent["next_due"]) == ("disabled", None)
    assert ws.json("status")["trouble"] == ["the service is not up (cleared up)"]
    assert "disabled: ingest" in ws("doctor").out
    ws.ok("agent", "enable", "ingest")
    assert state(ws) == "starter" and ws.run("ingest")["result"]["imported"] == 4
    refused(ws("agent", "enable", "ingest"), 3, "ingest is enabled already")


def test_no_push_enables_what_a_person_disabled(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by removing the record, by bringing an old one back, nor by one that somebody else signed."""
    ws.ok("agent", "disable", "ingest")
    monkeypatch.setenv("CLEARED_CLOCK", "2025-02-10T07:00:00Z")
    ws.ok("agent", "enable", "ingest")
    enabled = ws.read(SWITCH)
    monkeypatch.setenv("CLEARED_CLOCK", "2025-02-10T08:00:00Z")
    ws.ok("agent", "disable", "ingest")
    disabled = json.loads(ws.read(SWITCH))

    def push(text: str | None) -> None:
        if text is None:
            ws.git("rm", "-q", SWITCH)
            ws.git("commit", "-qm", "pushed")
        else:
            ws.put(SWITCH, text)
            ws.commit(SWITCH, message="pushed")
        refused(ws("agent", "run", "ingest"), 3, "cleared agent enable ingest")
        assert state(ws) == "disabled"

    push(None)
    push(enabled)
    push(json.dumps({**disabled, "kind": "enabled", "at": "2030-01-01T00:00:00Z"}))
    push("{}")
    monkeypatch.setenv("CLEARED_CLOCK", "2025-02-10T09:00:00Z")
    ws.ok("agent", "enable", "ingest")
    assert state(ws) == "starter"


def test_another_clone_remembers_what_it_has_seen(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that once refused to start it goes on refusing when the record is gone."""
    ws.ok("agent", "disable", "ingest")
    monkeypatch.setenv("CLEARED_HOME", str(ws.root.parent / "another"))
    other = Workspace(copy_books(ws.root, ws.root.parent / "clone"))
    refused(other("agent", "run", "ingest"), 3, "disabled it on 2025-02-10")
    other.git("rm", "-q", SWITCH)
    other.git("commit", "-qm", "pushed")
    refused(other("agent", "run", "ingest"), 3, "the record of that was removed")


def test_what_triggers_it_waits_until_it_is_enabled(ws: Workspace) -> None:
    with World(ws) as world:
        ws.ok("agent", "disable", "ingest")
        ws.drop("january.csv")
        world.forward(minutes=5)
        assert ws.entries() == []
        ws.ok("agent", "enable", "ingest")
        world.forward(minutes=5)
        assert len(ws.entries()) == 4
