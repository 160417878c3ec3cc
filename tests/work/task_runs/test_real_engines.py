"""Three tasks by the real Claude Code, against a scripted provider on this machine.

``pip install claude-agent-sdk`` brings the program, 450 MB; ``CLEARED_REAL_CLAUDE`` names another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_provider import Call, FakeProvider, Reply, Request, too_many_requests
from harness import Workspace, take_ok
from real_engines import locate_engine
from tasking import Tasks, task

CLAUDE = locate_engine("claude")
pytestmark = pytest.mark.skipif(CLAUDE is None, reason="Claude Code is not installed: pip install claude-agent-sdk")
AGENT = '"""\nname: greet\ntrigger: on_demand\n"""\nctx_log("hello")\n'
WORK = {
    "T-001": "echo one > docs/T-001.txt",
    "T-002": "echo right > docs/T-002.txt",
    "T-003": f"cat > agents/greet.py <<'END'\n{AGENT}END",
}


class Model:
    """Answers as a model would that does its task by one command. ``dropped``, ``limited``: tasks of which the first
    answer breaks off, and is refused."""

    def __init__(self, dropped: str, limited: str) -> None:
        self.dropped, self.limited = [dropped], [limited]
        self.asked: list[str] = []

    def __call__(self, request: Request) -> Reply:
        names = [tool["name"] for tool in request.body.get("tools", ())]
        found = re.search(r"# (T-\d{3}): ", request.text)
        if "Bash" not in names or found is None:
            return Reply("ok")
        name = found[1]
        if name in self.dropped:
            self.dropped.remove(name)
            self.asked.append(f"{name} dropped")
            return Reply("It begins with some words.", cut_after=700)
        if name in self.limited:
            self.limited.remove(name)
            self.asked.append(f"{name} limited")
            refusal = too_many_requests()
            return Reply(refusal.text, status=429, kind=refusal.kind, headers={"x-should-retry": "false"})
        if "tool_result" in json.dumps(request.body["messages"][-1]):
            return Reply(f"did {name}")
        self.asked.append(name)
        return Reply(calls=(Call("Bash", {"command": WORK[name], "description": "do it"}),))


@pytest.fixture
def model() -> Model:
    return Model(dropped="T-001", limited="T-002")


@pytest.fixture
def provider(model: Model) -> Iterator[FakeProvider]:
    with FakeProvider(always=model) as provider:
        yield provider


def test_three_tasks_a_limit_in_the_middle_and_a_change_that_is_approved(
    ws: Workspace, provider: FakeProvider, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WORK, its proof: a stream that breaks off and a limit fail no task; what is for the gate waits for a person."""
    assert CLAUDE is not None
    (tmp_path / "home/.claude").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CLAUDE_BIN", str(CLAUDE))
    monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.anthropic_url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-api03-not-a-key")
    monkeypatch.setenv("LIMIT_WAIT_SECONDS", "1")
    ws.config("loop.ai.enabled=true")
    tasks = Tasks(ws)
    tasks.planned(
        task(1),
        task(2, requires=["T-001"], verification_command="grep -q right docs/T-002.txt"),
        task(3, requires=["T-002"], files=["agents/greet.py"], verification_command="grep -q hello agents/greet.py"),
    )
    done = tasks("run", "--engine", "claude", "--allow-ai", "--json")
    assert done.code == 7, (done, ws.read(".cleared/task-output/T-001.worker.txt"))
    assert [(t["id"], t["status"]) for t in done.json["tasks"]] == [
        ("T-001", "completed"),
        ("T-002", "completed"),
        ("T-003", "awaiting-approval"),
    ], done
    assert model.asked == ["T-001 dropped", "T-001", "T-002 limited", "T-002", "T-003"], model.asked
    assert "waiting: usage limit" in done.err, done
    take_ok(ws, "agent", "approve", done.json["tasks"][2]["proposal"])
    assert tasks("next").code == 6 and ws.json("cycle", "status")["total_tokens"] > 0
