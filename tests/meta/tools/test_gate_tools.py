"""Checking, trying and proposing a draft; what the gate last said of it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from harness import Workspace, take_ok, unchanged
from proposing import THRESHOLD, history, text
from tool_session import Session

from cleared.meta.tools.overlay import Overlay

GOOD = text('print("hello")\n1', name="Coffee")
BAD = text("import os\n1", name="Coffee")


def test_a_draft_becomes_a_card_and_the_live_scripts_stay(session: Session) -> None:
    """H1: written, checked, proposed; nothing of the workspace's scripts changes before a person approves."""
    ws = session.ws
    assert session.tools.evidence().state == "nothing_written"
    session.ok("write_file", file_path="agents/coffee.py", content=GOOD)
    assert session.tools.evidence().state == "unchecked"
    assert "passes the gate" in session.ok("agent_check")
    assert session.tools.evidence().state == "passed"
    answer = session.ok("propose", message="Coffee is greeted.")
    assert answer.startswith("Proposed as P1: ") and "| " in answer
    evidence = session.tools.evidence()
    assert (evidence.state, evidence.proposal, evidence.paths) == ("proposed", "P1", ("agents/coffee.py",))
    assert not (ws.root / "agents/coffee.py").exists()
    take_ok(ws, "agent", "approve", "P1")
    assert ws.read("agents/coffee.py") == GOOD


def test_findings_name_line_and_remedy_and_block(session: Session) -> None:
    session.ok("write_file", file_path="agents/coffee.py", content=BAD)
    found = session.ok("agent_check")
    assert "does not pass the gate" in found and "agents/coffee.py:6" in found and "Remedy: Remove it." in found
    evidence = session.tools.evidence()
    assert evidence.state == "blocked" and "[import]" in evidence.findings[0]
    with unchanged(session.ws):
        session.failed("propose", "does not pass the gate", "[import]", message="x")
    session.ok("write_file", file_path="agents/coffee.py", content=GOOD)
    assert session.tools.evidence().state == "unchecked", "the gate said it of another draft"


def test_a_check_after_a_failed_edit_says_that_the_draft_is_unchanged(session: Session) -> None:
    """Else the old findings read as those of the edit that was not made."""
    session.ok("write_file", file_path="agents/coffee.py", content=BAD)
    assert "[host]" not in session.ok("agent_check")
    session.failed("str_replace", "", file_path="agents/coffee.py", old="nowhere", new="x")
    for tool in ("agent_check", "try"):
        told = session.tools.call(tool, {}).text
        assert told.startswith("[host] Your last call of str_replace failed: the draft is what it was before it.")
    session.ok("write_file", file_path="agents/coffee.py", content=GOOD)
    assert "[host]" not in session.ok("agent_check")


def test_evidence_outlives_the_process(session: Session) -> None:
    session.ok("write_file", file_path="agents/coffee.py", content=GOOD)
    session.ok("propose", message="x")
    again = Session(session.ws)
    assert again.tools.evidence().proposal == "P1"
    assert "It was proposed before, unchanged P1" in again.ok("propose", message="x")


def test_a_session_has_one_open_proposal(session: Session) -> None:
    """A newer one takes the older one's place, also where it changes fewer files; others' stay."""
    ws = session.ws
    ws.put("agents/by-hand.py", text("1"))
    ws.json("agent", "propose", "by-hand")
    session.ok("write_file", file_path="agents/coffee.py", content=GOOD)
    session.ok("write_file", file_path="rules/house.md", content="Be brief.\n")
    session.ok("propose", message="first")
    session.overlay.write_files({"agents/coffee.py": None})
    session.ok("propose", message="second")
    assert proposal_states(ws) == {"P1": "open", "P2": "superseded", "P3": "open"}


def proposal_states(ws: Workspace) -> dict[str, str]:
    states = {}
    for folder in (ws.root / "queue/proposals").iterdir():
        decision = folder / "decision.json"
        states[folder.name.split("-")[0]] = json.loads(decision.read_text())["status"] if decision.exists() else "open"
    return states


def test_history_says_what_would_have_been_different(ws: Workspace, start: Callable[[Workspace], Session]) -> None:
    history(ws)
    session = start(ws)
    session.ok(
        "write_file", file_path="agents/ingest.py", content=ws.read("agents/ingest.py").replace(THRESHOLD, "0.97")
    )
    with unchanged(ws):
        found = session.ok("history_try", name="ingest")
    assert "Over the last 2 runs of ingest: 2 entries changed" in found
    assert "| " in found and "AWS" in found and "pending-review" in found
    session.failed("history_try", "no agent", name="nobody")


def test_nothing_written_is_nothing_to_propose(session: Session) -> None:
    session.failed("propose", "your draft is empty", message="x")
    session.failed("agent_check", "your draft is empty")
    session.ok("write_file", file_path="scratch/notes.txt", content="x")
    same = (session.ws.root / "agents/ingest.py").read_text()
    session.ok("write_file", file_path="agents/ingest.py", content=same)
    session.failed("propose", "your draft is empty", message="x")
    assert session.tools.evidence().state == "nothing_written"
    assert "agents/ingest.py: lint passed" in session.ok("agent_check", name="ingest")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sandbox", "{confine: off}"),
        ("llm", "{model: evil}"),
        ("gate", "{past_runs: 1}"),
        ("limits", "{max_amount: 1}"),
        ("notifications", "{method: exec, command: [/bin/sh]}"),
        ("self_improvement", "{max_changes_per_night: 999}"),
    ],
)
def test_settings_that_hold_scripts_back_are_not_for_a_session(session: Session, key: str, value: str) -> None:
    """Not even to try them: a check would run scripts under them."""
    committed = session.ws.git("show", "HEAD:config.yaml")
    lines = [line for line in committed.splitlines() if not line.startswith(f"{key}:")]
    session.ok("write_file", file_path="config.yaml", content="\n".join([*lines, f"{key}: {value}", ""]))
    for name in ("agent_check", "propose"):
        result = session.tools.call(name, {"message": "x"} if name == "propose" else {})
        assert result.outcome == "failed" and (
            "does not change these settings" in result.text or "is not valid" in result.text
        )


def test_a_threshold_is_proposed_like_a_script(session: Session) -> None:
    committed = session.ws.git("show", "HEAD:config.yaml")
    lines = [line for line in committed.splitlines() if not line.startswith("thresholds:")]
    if any("auto_confirm" in line for line in lines):
        changed = committed.replace("auto_confirm: 0.95", "auto_confirm: 0.96")
    else:
        changed = committed.rstrip("\n") + "\nthresholds:\n  auto_confirm: 0.96\n"
    session.ok("write_file", file_path="config.yaml", content=changed.rstrip("\n") + "\n")
    assert "0.96" in session.ok("propose", message="Ask me more often.")


def test_a_draft_that_is_damaged_is_not_used(session: Session) -> None:
    from cleared.base.errors import WorkspaceError

    session.ok("write_file", file_path="agents/coffee.py", content=GOOD)
    next((session.overlay.folder / "contents").iterdir()).write_bytes(b"other")
    with pytest.raises(WorkspaceError, match="not what was written"):
        Overlay(session.overlay.folder)


def test_a_new_agent_is_tried_and_nothing_is_kept(session: Session) -> None:
    """Row H19."""
    body = (
        'ctx_log("hello")\nnotify_send("Good morning", "Nothing waits.")\n'
        'journal_add_double("2025-01-03", "GITHUB", 5020, 1010, "4.00")\n{"done": 1}'
    )
    session.ok("write_file", file_path="agents/coffee.py", content=text(body, name="Coffee"))
    with unchanged(session.ws):
        found = session.ok("try", name="coffee")
    for said in (
        '{"done": 1}',
        "log: coffee: hello",
        "message: Good morning",
        "Nothing waits.",
        "entries: 1",
        "GITHUB",
    ):
        assert said in found, found
    assert session.tools.evidence().state == "unchecked", "trying is not checking"


def test_what_ends_a_tried_agent_is_said_with_its_line(session: Session) -> None:
    session.ok("write_file", file_path="agents/coffee.py", content=text('decimal("x")', name="Coffee"))
    found = session.ok("try", name="coffee")
    assert "coffee failed" in found and "'x' is not a number" in found and "Remedy: " in found
    session.failed("try", name="nobody")
