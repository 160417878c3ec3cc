"""Ctrl-C and ``cancel`` end the turn and keep the session; caps and failures of the provider end it with a reason."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import exceptions
from pydantic_ai.models.function import FunctionModel
from session_doubles import DiskTools, FakeDoor, last_text, new_store, open_loop, play

from cleared.base.errors import ExitCode, WorkspaceError
from cleared.llm.spending import SpendingStopped

WORK = ([("write", {"name": "a.py"}), ("propose", {})], "I proposed it.", "VERDICT: done", "VERDICT: done")


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_while_the_model_speaks_keeps_the_session(tmp_path: Path) -> None:
    async def speak(messages: Any, info: Any) -> Any:
        yield "Well, "
        press_ctrl_c()
        await asyncio.sleep(60)
        yield "never"

    store, tools, events = new_store(tmp_path), DiskTools(tmp_path / "tools.json"), []
    door = FakeDoor(play("x"))
    door.model = FunctionModel(stream_function=speak)
    with open_loop(store, door, tools, events=events) as loop:
        outcome = loop.run(None)
        assert (outcome.status, outcome.exit_code) == ("interrupted", ExitCode.INTERRUPTED)
    assert [event["text"] for event in events if event["type"] == "message.delta"] == ["Well, "]
    assert events[-1]["type"] == "session.ended" and events[-1]["status"] == "interrupted"
    with open_loop(store, FakeDoor(play(*WORK)), tools) as loop:
        assert loop.run(None).proposal == "P1"


def test_ctrl_c_in_a_tool_leaves_a_call_that_is_not_made_again(tmp_path: Path) -> None:
    """The user says something else then: what is open is answered first."""
    store = new_store(tmp_path)
    tools = DiskTools(tmp_path / "tools.json", fail=lambda name: press_ctrl_c() if name == "propose" else None)
    door = FakeDoor(play(WORK[0]))
    with open_loop(store, door, tools) as loop:
        assert loop.run(None).status == "interrupted"
        tools.fail = lambda name: None
        door.answer = play("It waits for you.", "VERDICT: answered", "VERDICT: answered")
        outcome = loop.run("Is it proposed?")
    assert (outcome.status, outcome.proposal) == ("done", "P1"), "it stands, and was never announced"
    assert tools.state == {"writes": ["a.py"], "proposals": [1]}
    answered = [part.content for part in door.requests[1][0][2].parts]
    assert answered[0] == "written" and answered[1].startswith("[interrupted]")
    assert last_text(door.requests[1][0]) == "Is it proposed?"


@pytest.mark.parametrize("where", ["request", "reply", "begun", "called", "result", "prompt"])
def test_ctrl_c_at_any_step_keeps_the_session(tmp_path: Path, where: str) -> None:
    pressed: list[str] = []

    def step(name: str) -> None:
        if name == where and not pressed:
            pressed.append(name)
            press_ctrl_c()

    store, tools, door = new_store(tmp_path), DiskTools(tmp_path / "tools.json"), FakeDoor(play("x"))

    def answer(messages: Any, info: Any) -> Any:
        if last_text(messages).startswith(("[verify]", "[confirm]")):
            return "VERDICT: done"
        results = [str(p.content) for m in messages for p in m.parts if p.part_kind == "tool-return"]
        if not any(text == "written" or "a.py" in text for text in results):
            return [("write", {"name": "a.py"})]
        return "I proposed it." if any("proposed as" in text for text in results) else [("propose", {})]

    door.answer = answer
    with open_loop(store, door, tools, report_step=step) as loop:
        assert loop.run(None).status == "interrupted"
        outcome = loop.run(None)
    assert (outcome.status, outcome.text) == ("done", "I proposed it.")
    assert tools.state == {"writes": ["a.py"], "proposals": [1]}


def test_another_thread_cancels_the_turn(tmp_path: Path) -> None:
    speaking = threading.Event()

    async def speak(messages: Any, info: Any) -> Any:
        yield "Well, "
        speaking.set()
        await asyncio.sleep(60)

    door, tools = FakeDoor(play("x")), DiskTools(tmp_path / "tools.json")
    door.model = FunctionModel(stream_function=speak)
    with open_loop(new_store(tmp_path), door, tools) as loop:

        def cancel() -> None:
            speaking.wait()
            loop.cancel()

        thread = threading.Thread(target=cancel)
        thread.start()
        assert loop.run(None).status == "interrupted"
        thread.join()


def test_a_cap_on_spending_stops_it(tmp_path: Path) -> None:
    """H12: with its reason, and exit code 1; what was done so far stays."""
    door, tools = FakeDoor(play(*WORK)), DiskTools(tmp_path / "tools.json")

    def answer(messages: Any, info: Any) -> Any:
        if len(door.requests) == 2:
            raise SpendingStopped("daily_budget", Decimal(5), Decimal(5), Decimal(0))
        return WORK[0]

    store = new_store(tmp_path)
    door.answer = answer
    with open_loop(store, door, tools) as loop:
        outcome = loop.run(None)
        assert (outcome.status, outcome.reason, outcome.exit_code) == ("stopped", "daily_budget", ExitCode.FAILED)
        assert "does not hold another call" in outcome.message and outcome.cost == Decimal("0.02")
        door.answer = play(*WORK[1:])
        assert loop.run(None).proposal == "P1"
    assert tools.state == {"writes": ["a.py"], "proposals": [1]}


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (exceptions.ModelAuthenticationError("m", "no"), "authentication"),
        (exceptions.ModelRateLimitError("m", "no"), "rate_limit"),
        (exceptions.ModelConnectionError("m", "no"), "connection"),
        (exceptions.ModelAPIError("m", "no"), "garbage"),
        (exceptions.UnexpectedModelBehavior("odd"), "garbage"),
    ],
)
def test_what_a_provider_does_is_an_outcome(tmp_path: Path, error: Exception, reason: str) -> None:
    def fail(messages: Any, info: Any) -> Any:
        raise error

    door, tools, store = FakeDoor(fail), DiskTools(tmp_path / "tools.json"), new_store(tmp_path)
    with open_loop(store, door, tools) as loop:
        outcome = loop.run(None)
        assert (outcome.status, outcome.reason, outcome.exit_code) == ("failed", reason, ExitCode.FAILED)
        door.answer = play(*WORK)
        assert loop.run(None).status == "done", "it can be resumed"


def test_a_reader_of_events_that_goes_away_is_no_fault_of_the_model(tmp_path: Path) -> None:
    def emit(event: dict[str, Any]) -> None:
        if event["type"] == "message.delta":
            raise BrokenPipeError("stdout is closed")

    store, tools = new_store(tmp_path), DiskTools(tmp_path / "tools.json")
    with open_loop(store, FakeDoor(play("Hello.")), tools, emit=emit) as loop, pytest.raises(BrokenPipeError):
        loop.run(None)
    with open_loop(store, FakeDoor(play(*WORK)), tools) as loop:
        assert loop.run(None).status == "done"


def test_a_step_that_cannot_be_written_stops_before_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk: nothing is done that a resumed session would not know of."""
    store, tools = new_store(tmp_path), DiskTools(tmp_path / "tools.json")
    real, count = os.fsync, [0]

    def fsync(descriptor: int) -> None:
        count[0] += 1
        if count[0] > 1:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with open_loop(store, FakeDoor(play(*WORK)), tools) as loop, pytest.raises(WorkspaceError, match="disk is full"):
        loop.run(None)
    assert tools.state["writes"] == []
    monkeypatch.undo()
    with open_loop(store, FakeDoor(play(*WORK)), tools) as loop:
        assert loop.run(None).status == "done"
