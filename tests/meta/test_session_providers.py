"""Sessions over the wire: the real door and the real packages, to a server that speaks the providers' protocols."""

from __future__ import annotations

import os
import signal
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fake_provider import Call, FakeProvider, Reply, Request, bad_key, context_too_long, huge, too_many_requests
from harness import Workspace
from modelled import MODELS, door_of, open_host, use_model
from session_doubles import NOW, DiskTools

from cleared.base.clock import FixedClock
from cleared.meta.session_loop import LoopLimits, Outcome, SessionLoop
from cleared.meta.session_store import SessionStore, create_session

WRITE = Reply("I write it.", calls=(Call("write", {"name": "a.py"}), Call("propose", {})))
SURE = ("I proposed it.", "VERDICT: done")


class Chat:
    """One session on one workspace; each ``run`` is a process of its own."""

    def __init__(self, ws: Workspace, folder: Path) -> None:
        self.ws, self.tools = ws, DiskTools(folder / "tools.json")
        self.events: list[dict[str, Any]] = []
        self.store: SessionStore = create_session(
            ws.root / ".cleared",
            request="Batch my notifications",
            author="chat",
            clock=FixedClock(NOW),
            system_prompt="You write agents.",
        )

    def run(self, prompt: str | None = None, **how: Any) -> Outcome:
        host = open_host(self.ws.root)
        door = door_of(host, session=self.store.info.id, **how)
        limits = LoopLimits.read_settings(host.config.llm, door.context_window)
        try:
            with SessionLoop(
                self.store, door, self.tools, limits=limits, clock=FixedClock(NOW), emit=self.events.append
            ) as loop:
                return loop.run(prompt)
        finally:
            door.close()


@pytest.mark.parametrize("kind", MODELS)
def test_a_request_is_completed_over_each_protocol(
    ws: Workspace, provider: FakeProvider, tmp_path: Path, kind: str
) -> None:
    """H1, H11, H12: calls, results and verification in the provider's own form; tokens and dollars are counted."""
    use_model(ws, provider, kind)
    provider.script(WRITE, *SURE)
    chat = Chat(ws, tmp_path)
    outcome = chat.run()
    assert (outcome.status, outcome.proposal, outcome.text) == ("done", "P1", "I proposed it.")
    assert chat.tools.state == {"writes": ["a.py"], "proposals": [1]}
    assert outcome.usage.requests == 3 and outcome.usage.input_tokens == 300 and outcome.cost > 0
    first, second = provider.requests[0], provider.requests[1]
    assert "You write agents." in first.text and "Batch my notifications" in first.text
    assert "agents/ingest.py" in first.text and {"read", "write", "propose"} <= _tool_names(first)
    assert "proposed as P1" in second.text and first.body["stream"] is True
    said = "".join(event["text"] for event in chat.events if event["type"] == "message.delta")
    assert said.startswith("I write it.I proposed it.")


def _tool_names(request: Request) -> set[str]:
    return {tool.get("name") or tool["function"]["name"] for tool in request.body["tools"]}


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
def test_malformed_arguments_are_answered_and_the_history_stays_sendable(
    ws: Workspace, provider: FakeProvider, tmp_path: Path, kind: str
) -> None:
    use_model(ws, provider, kind)
    provider.script(Reply(calls=(Call("write", '{"name": "a'), Call("nope", {}))), WRITE, *SURE)
    chat = Chat(ws, tmp_path)
    assert chat.run().status == "done"
    outcomes = [event["outcome"] for event in chat.events if event["type"] == "tool.finished"]
    assert outcomes == ["invalid", "invalid", "ok", "ok"]


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
def test_a_length_that_is_refused_is_compacted_once(
    ws: Workspace, provider: FakeProvider, tmp_path: Path, kind: str
) -> None:
    """H13."""
    use_model(ws, provider, kind)
    reads = [Reply(calls=(Call("read", {"name": str(number)}),)) for number in range(6)]
    provider.script(*reads, context_too_long(), "I read six files.", WRITE, *SURE)
    chat = Chat(ws, tmp_path)
    chat.tools.big = 8_000
    outcome = chat.run()
    assert outcome.status == "done", outcome
    assert [event["forced"] for event in chat.events if event["type"] == "context.compacted"] == [True]
    assert "I read six files." in provider.requests[8].text and len(provider.requests[8].text) < 40_000
    assert not provider.left


def test_a_key_that_is_refused_ends_it_and_a_limit_is_waited_for(
    ws: Workspace, provider: FakeProvider, tmp_path: Path
) -> None:
    """H13: and the session goes on where it stopped."""
    use_model(ws, provider)
    chat = Chat(ws, tmp_path)
    provider.script(WRITE, bad_key())
    outcome = chat.run()
    assert (outcome.status, outcome.reason) == ("failed", "authentication") and "cleared llm" in outcome.message
    provider.script(too_many_requests(retry_after=1), *SURE)
    assert chat.run().proposal == "P1"
    assert chat.tools.state == {"writes": ["a.py"], "proposals": [1]}


def test_a_cap_ends_it_with_its_reason(ws: Workspace, provider: FakeProvider, tmp_path: Path) -> None:
    """H12."""
    use_model(ws, provider)
    provider.script(Reply(calls=(Call("read", {"name": "a"}),), input_tokens=100_000), WRITE, *SURE)
    chat = Chat(ws, tmp_path)
    outcome = chat.run(max_cost=Decimal("0.25"))
    assert (outcome.status, outcome.reason, outcome.exit_code) == ("stopped", "max_cost", 1)
    assert Decimal("0.2") < outcome.cost <= Decimal("0.5") and chat.tools.state["writes"] == []


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
@pytest.mark.parametrize(
    "reply",
    [Reply(raw=b"<html>busy</html>"), Reply(raw=b"[" * 100_000), Reply("cut", cut_after=200), huge(), Reply("")],
    ids=["html", "deep", "cut", "huge", "empty"],
)
def test_hostile_answers_are_outcomes(
    ws: Workspace, provider: FakeProvider, tmp_path: Path, kind: str, reply: Reply
) -> None:
    """Whatever comes, it is an outcome and the session can go on."""
    use_model(ws, provider, kind, session_budget="1000", daily_budget="1000")
    chat = Chat(ws, tmp_path)
    with FakeProvider(always=reply) as hostile:
        url = hostile.anthropic_url if kind == "anthropic" else hostile.openai_url
        ws.ok("config", "set", "llm.base_url", url)
        outcome = chat.run()
    assert outcome.status in ("failed", "stopped"), outcome
    ws.ok("config", "set", "llm.base_url", provider.anthropic_url if kind == "anthropic" else provider.openai_url)
    provider.script(WRITE, *SURE)
    assert chat.run().status == "done"


def test_ctrl_c_while_the_provider_is_silent(ws: Workspace, provider: FakeProvider, tmp_path: Path) -> None:
    use_model(ws, provider)
    silent = threading.Event()

    def answer(request: Request) -> Reply:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        return Reply("never heard", hold=silent)

    provider.script(answer)
    chat = Chat(ws, tmp_path)
    assert chat.run().status == "interrupted"
    silent.set()
    provider.script(WRITE, *SURE)
    assert chat.run().status == "done"
