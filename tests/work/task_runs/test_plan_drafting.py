"""A list of tasks that a program writes from a text: shown, and taken by a person or not at all."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from fake_engine import FakeEngine, result
from fake_provider import Call, FakeProvider, Reply
from harness import Workspace, refused, take_ok, unchanged
from modelled import KEY, use_model
from tasking import Tasks, task
from terminals import run_on_terminal

pytestmark = pytest.mark.slow

PRD = "# Greetings\n\nSay hello, in two steps.\n"
ENGINE = ("--engine", "claude", "--allow-ai")


@pytest.fixture
def tasks(ws: Workspace, engine: FakeEngine) -> Tasks:
    ws.config("loop.ai.enabled=true", f"loop.ai.program_folders=[{sys.prefix}, {sys.base_prefix}]")
    tasks = Tasks(ws)
    tasks.planned(task(1))
    ws.put("PRD.md", PRD)
    return tasks


def writes(*wanted: dict[str, Any], **more: str) -> dict[str, Any]:
    return {"write": {"plan.json": json.dumps(wanted), **more}, "stdout": result()}


def test_an_engine_writes_it_and_a_person_takes_it(tasks: Tasks, engine: FakeEngine) -> None:
    """WORK 2: of its clone one file is taken; in a script its digest says that it was seen."""
    wrong = task(2, requires=["T-003"]), task(3, requires=["T-002"])
    right = task(2), task(3, requires=["T-002"])
    tasks.ws.put("docs/tasks/T-001.json", json.dumps(task(1, title="Do as the push says")))
    engine.plan(writes(*wrong), writes(*right, **{"docs/more.txt": "x", "docs/tasks/T-009.json": "{}"}))
    with unchanged(tasks.ws):
        done = tasks("plan", "--from", str(tasks.ws.root / "PRD.md"), *ENGINE)
        assert done.code == 3 and "T-002 → T-003 → T-002" in done.err and "is verified by: test -s" in done.err, done
        draft = str(tasks.ws.root / ".cleared/task-plans/PRD.json")
        again = tasks("plan", draft)
        assert again.code == 3 and f"cleared task plan {draft} --digest " in again.err, again
    first, second = (call["prompt"] for call in engine.calls)
    assert "Say hello, in two steps." in first and "Ids go on from T-002" in first and "T-001 (pending)\n" in first
    assert "as the push says" not in first
    tasks.ws.put("docs/tasks/T-001.json", json.dumps(task(1)))
    assert "accounts/chart" not in first and "lead in a circle" in second and "lead in a circle" not in first
    take_ok(tasks.ws, "task", "plan", draft)
    assert list(tasks.states()) == ["T-001", "T-002", "T-003"] and tasks("check").code == 0
    assert not (tasks.ws.root / "docs/more.txt").exists() and not (tasks.ws.root / ".cleared/task-plans/clone").exists()
    assert tasks.ws.json("cycle", "status")["total_cost"] == "0.50"


def test_the_model_of_the_settings_writes_it_else(
    tasks: Tasks, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", KEY)
    use_model(tasks.ws, provider)
    provider.script(Reply(calls=(Call("final_result", {"tasks": [task(2)]}),)))
    done = tasks("plan", "--from", str(tasks.ws.root / "PRD.md"))
    assert done.code == 3 and "T-002" in done.err and tasks.states() == {"T-001": "pending"}, done
    assert "Say hello, in two steps." in json.dumps(provider.requests[0].body)
    take_ok(tasks.ws, "task", "plan", str(tasks.ws.root / ".cleared/task-plans/PRD.json"))
    assert list(tasks.states()) == ["T-001", "T-002"]


@pytest.mark.parametrize(
    ("step", "code", "said"),
    [
        (writes(task(1)), 1, "T-001 is there already"),
        ({"write": {"plan.json": "no"}, "stdout": result()}, 1, "it is not JSON"),
        ({"stdout": result()}, 4, "plan.json"),
        ({"exit": 3}, 3, "no plan was written"),
        ({"stdout": result("You've hit your usage limit. Try again in 1 hour.", error=True)}, 3, "usage limit"),
    ],
)
def test_what_is_no_plan_changes_nothing(
    tasks: Tasks, engine: FakeEngine, step: dict[str, Any], code: int, said: str
) -> None:
    engine.plan(step)
    with unchanged(tasks.ws):
        done = tasks("plan", "--from", str(tasks.ws.root / "PRD.md"), *ENGINE)
    assert done.code == code and said in done.err and "Traceback" not in done.err, done


def test_a_text_that_a_commit_brought_guides_no_engine_unseen(tasks: Tasks, engine: FakeEngine) -> None:
    """D23"""
    tasks.ws.commit("PRD.md")
    engine.plan(writes(task(2)))
    done = tasks("plan", "--from", str(tasks.ws.root / "PRD.md"), *ENGINE)
    assert done.code == 3 and "would guide an engine" in done.err and engine.calls == [], done
    digest = done.err.rsplit("--digest ", 1)[1].rstrip(".\n")
    done = tasks("plan", "--from", str(tasks.ws.root / "PRD.md"), *ENGINE, "--digest", digest)
    assert done.code == 3 and "task-plans/PRD.json --digest" in done.err and len(engine.calls) == 1, done
    refused(tasks("plan", "--from", str(tasks.ws.root / "PRD.md"), "--engine", "claude"), 3, "--allow-ai")
    tasks.ws.put("empty.md", "\n")
    refused(tasks("plan", "--from", str(tasks.ws.root / "empty.md"), *ENGINE), 2, "the text is empty")


def test_on_a_terminal_it_is_shown_and_asked_about(tasks: Tasks, engine: FakeEngine) -> None:
    engine.plan(writes(task(2, verification_command="touch /tmp/evil\x1b[8m")))
    argv = ("task", "plan", "--from", str(tasks.ws.root / "PRD.md"), *ENGINE)
    code, said = run_on_terminal(tasks.ws.root, argv, [("May this machine run these commands?", "n\n")])
    assert code == 1 and "touch /tmp/evil" in said and "\x1b[8m" not in said and len(tasks.states()) == 1, said
    code, said = run_on_terminal(tasks.ws.root, argv, [("May this machine run these commands?", "y\n")])
    assert code == 0 and said.count("May this machine run") == 1, "asked again, though it was shown before"
    assert tasks.ws.json("task", "show", "T-002")["sealed"] == "yes", said
