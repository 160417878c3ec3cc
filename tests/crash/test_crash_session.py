"""H15: a session is killed at each of its steps, and within its tools; going on ends as if nothing had been, and
nothing that acts is done twice."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kill_points import EVERY
from pydantic_ai.messages import ModelMessage
from session_doubles import DiskTools, FakeDoor, Reply, last_text, new_store, open_loop

from cleared.base.errors import WorkspaceError
from cleared.meta.session_loop import Outcome
from cleared.meta.session_store import SessionStore, list_sessions, open_session


def answer_from(messages: list[ModelMessage], info: Any) -> Reply:
    """A model that goes by what it reads only, as one in a new process would."""
    if last_text(messages).startswith(("[verify]", "[confirm]")):
        return "VERDICT: done"
    results = [part for message in messages for part in message.parts if part.part_kind == "tool-return"]

    def finished(tool: str, sign: str) -> bool:
        return any(part.tool_name == tool and sign in str(part.content) for part in results)

    if not finished("read", "x"):
        return [("read", {"name": "ingest"}), ("read", {"name": "digest"})]
    if not any(part.content == "written" for part in results) and not finished("write", "a.py"):
        return [("write", {"name": "a.py"})]
    if not finished("propose", "proposed as"):
        return [("propose", {})]
    return "I proposed it."


def run_session(store: SessionStore, folder: Path, kill: Callable[[str], None] = lambda _: None) -> Outcome:
    """Work on it, as a command would: start it or go on."""
    tools = DiskTools(folder / "tools.json", fail=lambda name: kill(f"in {name}"))
    with open_loop(store, FakeDoor(answer_from), tools, report_step=kill) as loop:
        return loop.run(None)


def list_steps(folder: Path) -> list[str]:
    """The steps of the whole session, in order."""
    folder.mkdir()
    steps: list[str] = []
    run_session(new_store(folder), folder, steps.append)
    return steps


def run_killed(store: SessionStore, folder: Path, at: int) -> bool:
    """Run it in a process that is killed at its step number ``at``; whether there was such a step."""
    child = os.fork()
    if not child:
        left = [at]

        def kill(step: str) -> None:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            run_session(store, folder, kill)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def check_ending(outcome: Outcome, folder: Path) -> None:
    assert (outcome.status, outcome.proposal, outcome.text) == ("done", "P1", "I proposed it.")
    assert json.loads((folder / "tools.json").read_text()) == {"writes": ["a.py"], "proposals": [1]}


def test_a_session_killed_at_any_step_goes_on(tmp_path: Path) -> None:
    """H15."""
    steps = list_steps(tmp_path / "whole")
    assert {"prompt", "request", "reply", "begun", "called", "result", "verify", "ended"} <= set(steps)
    assert {"in read", "in write", "in propose"} <= set(steps)
    first_and_last = {steps.index(step) + 1 for step in steps} | {len(steps) - steps[::-1].index(s) for s in steps}
    for at in range(1, len(steps) + 1) if EVERY else sorted(first_and_last):
        folder = tmp_path / str(at)
        folder.mkdir()
        store = new_store(folder)
        assert run_killed(store, folder, at), steps[at - 1]
        # The second process is killed too, a few steps later; the third one ends it.
        run_killed(open_session(folder / ".cleared", store.info.id), folder, 1 + at % 4)
        check_ending(run_session(open_session(folder / ".cleared", store.info.id), folder), folder)


def test_a_call_that_was_begun_is_answered_as_interrupted(tmp_path: Path) -> None:
    """H15: whether it was done is not known; the model is told what there is."""
    store = new_store(tmp_path)
    steps = list_steps(tmp_path / "whole")
    assert run_killed(store, tmp_path, 1 + steps.index("in propose"))
    events: list[dict[str, Any]] = []
    door = FakeDoor(answer_from)
    with open_loop(store, door, DiskTools(tmp_path / "tools.json"), events=events) as loop:
        check_ending(loop.run(None), tmp_path)
    told = next(event for event in events if event["type"] == "tool.finished")
    assert told["outcome"] == "interrupted"
    assert "not made again" in told["text"] and "proposed as P1; it stands" in told["text"]


def test_a_session_killed_while_room_is_made_goes_on(tmp_path: Path) -> None:
    """H9, H15: before and after what is left out, and the summary, are written."""

    def answer(messages: list[ModelMessage], info: Any) -> Reply:
        if last_text(messages).startswith("[verify]"):
            return "VERDICT: answered"
        if not info.function_tools:
            return "Read some files."
        return "I read them." if "Read some files." in repr(messages) else [("read", {"name": str(len(messages))})]

    def run(store: SessionStore, folder: Path, kill: Callable[[str], None] = lambda _: None) -> Outcome:
        tools = DiskTools(folder / "tools.json", big=2_000)
        limits = {"window": 3_000, "context": {"prune_protect": 700}, "report_step": kill}
        with open_loop(store, FakeDoor(answer), tools, **limits) as loop:
            return loop.run(None)

    for at in ("pruned", "compacted"):
        folder = tmp_path / at
        folder.mkdir()
        store = new_store(folder)
        child = os.fork()
        if not child:
            try:
                run(store, folder, lambda step: os.kill(os.getpid(), signal.SIGKILL) if step == at else None)  # noqa: B023
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"there was no step {at}"
        outcome = run(open_session(folder / ".cleared", store.info.id), folder)
        assert (outcome.status, outcome.text) == ("answered", "I read them.")


@pytest.mark.parametrize("torn", [b'{"kind":"begun","ca', b"\x00\x00\x00", b'{"kind":"begun","call":"c0"}', b"\xff"])
def test_a_torn_last_line_is_left_out(tmp_path: Path, torn: bytes) -> None:
    """H15: as after a power cut; a line without its end was never acted upon."""
    store = new_store(tmp_path)
    steps = list_steps(tmp_path / "whole")
    assert run_killed(store, tmp_path, 1 + steps.index("begun"))
    path = store.path / "messages.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    check_ending(run_session(store, tmp_path), tmp_path)
    assert path.read_bytes().startswith(whole)
    assert all(json.loads(line) for line in path.read_bytes().splitlines())


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b"[]",
        b'{"kind":"shout"}',
        b'{"kind":"begun","call":"unknown"}',
        b'{"kind":"result"}',
        b'{"kind":"reply","content":{"parts":[{"part_kind":"text"}]}}',
        b'{"kind":"prompt","purpose":"instruction"}',
        b'{"kind":"spent","usage":7}',
        b'{"kind":"ended","cost":"much"}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes) -> None:
    store = new_store(tmp_path)
    run_session(store, tmp_path)
    path = store.path / "messages.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], line + b"\n", *lines[1:]]))
    with pytest.raises(WorkspaceError, match=r"messages\.jsonl:2: this line is not a record"):
        run_session(store, tmp_path)


def test_sessions_are_listed_and_what_is_none_is_left_out(tmp_path: Path) -> None:
    store = new_store(tmp_path, "first")
    new_store(tmp_path, "second")
    state = tmp_path / ".cleared"
    (state / "sessions" / "S20250201T060000-zzzz").mkdir()
    (state / "sessions" / "S20250201T060000-0000").mkdir()
    (state / "sessions" / "note.txt").write_text("x")
    assert sorted(one.info.request for one in list_sessions(state)) == ["first", "second"]
    (store.path / "session.json").write_text('{"id": "S1"}')
    assert [one.info.request for one in list_sessions(state)] == ["second"]
    assert list_sessions(tmp_path / "none") == []
