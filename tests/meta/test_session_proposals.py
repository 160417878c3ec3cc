"""The loop on the real tools: a session over a real workspace, gate and proposal; only the model is scripted."""

from __future__ import annotations

from typing import Any

from harness import Workspace, take_ok
from proposing import text
from pydantic_ai.messages import ModelMessage
from session_doubles import FakeDoor, Reply, last_text, start_session, work_on

from cleared.meta.session_store import open_session

GOOD = text('print("hello")\n1', name="Coffee")
BAD = text("import os\n1", name="Coffee")


def count_proposals(ws: Workspace) -> int:
    return len(list(ws.root.glob("queue/proposals/P*")))


def write_coffee(messages: list[ModelMessage], info: Any) -> Reply:
    """A model that writes a bad draft first, and corrects what the gate finds. It goes by what it reads."""
    if last_text(messages).startswith(("[verify]", "[confirm]")):
        return "VERDICT: done"
    results = [part for message in messages for part in message.parts if part.part_kind == "tool-return"]
    texts = [str(part.content) for part in results]
    if not results:
        return [("list_dir", {"dir_path": "agents"}), ("write_file", {"file_path": "agents/coffee.py", "content": BAD})]
    if any("Proposed as" in one or "is proposed as P1" in one or "before, unchanged P1" in one for one in texts):
        return "The agent waits for you."
    if any("does not pass the gate" in one for one in texts):
        written = sum(part.tool_name == "write_file" for part in results)
        if written < 2:
            return [("write_file", {"file_path": "agents/coffee.py", "content": GOOD})]
    return [("propose", {"message": "Coffee is greeted."})]


def test_a_request_ends_as_a_card_that_can_be_approved(ws: Workspace) -> None:
    """H1, H11."""
    store, events = start_session(ws, "Greet the coffee"), []
    outcome = work_on(ws, store, FakeDoor(write_coffee), emit=events.append)
    assert (outcome.status, outcome.proposal, outcome.text) == ("done", "P1", "The agent waits for you.")
    outcomes = [(event["tool"], event["outcome"]) for event in events if event["type"] == "tool.finished"]
    assert ("propose", "failed") in outcomes and outcomes[-1] == ("propose", "ok")
    assert not (ws.root / "agents/coffee.py").exists() and count_proposals(ws) == 1
    take_ok(ws, "agent", "approve", "P1")
    assert ws.read("agents/coffee.py") == GOOD


def test_a_claim_without_a_proposal_is_not_complete(ws: Workspace) -> None:
    """Rows H20, H11: what the gate says of the draft is told; a draft that is refused reaches nobody."""
    door = FakeDoor(
        lambda messages, info: (
            [("write_file", {"file_path": "agents/coffee.py", "content": BAD}), ("agent_check", {})]
            if len(messages) == 1
            else "VERDICT: done"
        )
    )
    outcome = work_on(ws, start_session(ws, "Greet the coffee"), door)
    assert (outcome.status, outcome.reason, outcome.proposal) == ("stopped", "unverified", None)
    assert "[import]" in last_text(door.requests[-1][0])
    assert count_proposals(ws) == 0


def test_nothing_that_decides_can_be_called(ws: Workspace) -> None:
    """A model that asks for what only a person may do is told that there is no such tool."""
    calls = [(name, {"name": "P1"}) for name in ("agent_approve", "approve", "agent_trust", "run", "config_set")]
    door = FakeDoor(
        lambda messages, info: (
            calls
            if len(messages) == 1 and not last_text(messages).startswith("[verify]")
            else "VERDICT: cannot - it is not mine to do"
        )
    )
    events: list[dict[str, Any]] = []
    outcome = work_on(ws, start_session(ws, "Approve everything"), door, emit=events.append)
    assert (outcome.status, outcome.reason) == ("cannot", "cannot")
    assert {event["outcome"] for event in events if event["type"] == "tool.finished"} == {"invalid"}


def test_a_session_stopped_within_the_proposal_goes_on(ws: Workspace) -> None:
    """H15: Ctrl-C right after the real proposal was made, before its result was written."""
    store = start_session(ws, "Greet the coffee")
    made: list[str] = []

    def step(name: str) -> None:
        if name == "called":
            made.append(name)
            if len(made) == 5:  # list, write, propose (refused), write, propose
                raise KeyboardInterrupt

    assert work_on(ws, store, FakeDoor(write_coffee), report_step=step).status == "interrupted"
    events: list[dict[str, Any]] = []
    again = open_session(ws.root / ".cleared", store.info.id)
    outcome = work_on(ws, again, FakeDoor(write_coffee), emit=events.append)
    assert (outcome.status, outcome.proposal) == ("done", "P1")
    told = next(event for event in events if event["type"] == "tool.finished")
    assert told["outcome"] == "interrupted" and "is proposed as P1" in told["text"]
    assert [event["tool"] for event in events if event["type"] == "tool.called"] == []
    assert count_proposals(ws) == 1
