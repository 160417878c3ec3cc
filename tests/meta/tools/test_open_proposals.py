"""A second request builds on what waits already: it is shown, read, contained, and never displaced unseen."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from difflib import unified_diff

import pytest
from harness import Workspace, take_ok
from proposing import text
from tool_session import Session

from cleared.workspace.location import cleared_home

GOOD = text('print("hello")\n1', name="Coffee")
MORE = text('print("hello")\nprint("and more")\n1', name="Coffee")
OTHER = text('print("other")\n1', name="Coffee")
SECOND = "S20250210T070000-0b2c"


@pytest.fixture
def second(ws: Workspace) -> Iterator[Session]:
    session = Session(ws, SECOND, "meta")
    yield session
    session.tools.close()


def propose_first(session: Session) -> None:
    session.ok("write_file", file_path="agents/coffee.py", content=GOOD)
    session.ok("write_file", file_path="rules/house.md", content="Be brief.\n")
    session.ok("propose", message="Coffee is greeted.")


def decision_of(ws: Workspace, number: str) -> dict[str, str]:
    (folder,) = (ws.root / "queue/proposals").glob(f"{number}-*")
    decided: dict[str, str] = json.loads((folder / "decision.json").read_text())
    return decided


def test_a_second_request_builds_on_what_waits(ws: Workspace, session: Session, second: Session) -> None:
    """Row H21."""
    propose_first(session)
    state = second.tools.initial_state()
    assert "P1 (agents/coffee.py, rules/house.md)" in state and '| +print("hello")' in state
    source = second.ok("agent_read", name="coffee")
    assert "as P1 proposes it" in source and 'print("hello")' in source
    assert "| " in second.ok("read_file", file_path="rules/house.md"), "nobody approved it: it is quoted"
    second.ok("apply_patch", patch="--- a/agents/coffee.py\n+++ b/agents/coffee.py\n" + patch_of(GOOD, MORE))
    answer = second.ok("propose", message="And more.")
    assert "It takes the place of P1 by chat" in answer and "It has all of the change of P1, too." in answer
    decided = decision_of(ws, "P1")
    assert (decided["status"], decided["reason"]) == ("superseded", "P2 took its place and contains it")
    take_ok(ws, "agent", "approve", "P2")
    assert (ws.read("agents/coffee.py"), ws.read("rules/house.md")) == (MORE, "Be brief.\n")


def patch_of(old: str, new: str) -> str:
    return "".join(list(unified_diff(old.splitlines(True), new.splitlines(True)))[2:])


def test_nothing_is_displaced_unseen(ws: Workspace, session: Session, second: Session) -> None:
    second.tools.initial_state()
    second.ok("write_file", file_path="agents/coffee.py", content=OTHER)
    propose_first(session)
    second.failed("propose", "which you had not seen", '| +print("hello")', message="Other.")
    answer = second.ok("propose", message="Other.")
    assert "It does not contain all of P1" in answer and 'agents/coffee.py: + print("hello")' in answer
    assert decision_of(ws, "P1")["reason"] == "P2 took its place"


def test_what_was_rejected_meanwhile_is_told_once(ws: Workspace, session: Session, second: Session) -> None:
    propose_first(session)
    second.tools.initial_state()
    second.ok("write_file", file_path="agents/coffee.py", content=MORE)
    second.ok("agent_check")
    take_ok(ws, "agent", "reject", "P1", "--reason", "too friendly")
    second.failed("propose", "rejected", "P1: too friendly", message="More.")
    second.ok("propose", message="More.")


def test_what_came_from_elsewhere_is_no_base(ws: Workspace, session: Session, second: Session) -> None:
    """Only what this machine examined itself is built on: a pushed proposal says of itself what it likes."""
    propose_first(session)
    shutil.rmtree(cleared_home() / "shown")
    assert "P1" not in second.tools.initial_state()
    second.failed("read_file", "no file", file_path="rules/house.md")
