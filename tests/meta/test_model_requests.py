"""Requests of a session through the packages of the providers, to a server that speaks their protocols (H10, H13)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_provider import Call, FakeProvider, Reply, bad_key, context_too_long, huge, overloaded, too_many_requests
from harness import Workspace
from modelled import Pauses, door_of, open_host, use_model

from cleared.base.errors import ClearedError
from cleared.meta.model_requests import ContextTooLong, ModelRequests
from cleared.meta.tools.tool import Tool

SCHEMA = {"type": "object", "properties": {"where": {"type": "string"}}}
TOOLS = {"look": Tool("look", "Look somewhere.", SCHEMA, True, False)}
LOOK = Reply(calls=(Call("look", {"where": "there"}),))


def converse(ws: Workspace, turns: int, pauses: Pauses | None = None) -> tuple[str, list[Any]]:
    """A session that looks ``turns`` times and then says something; the text that was shown, and its messages."""
    from pydantic_ai.messages import ModelRequest, ToolReturnPart, UserPromptPart

    door = door_of(open_host(ws.root), pauses, session="S1")
    requests = ModelRequests(door, TOOLS, "Be brief.")
    shown: list[str] = []
    messages: list[Any] = [ModelRequest(parts=[UserPromptPart("Look.")])]
    try:
        for _ in range(turns + 1):
            reply = requests.ask(messages, 10, shown.append)
            messages.append(reply)
            calls = [part for part in reply.parts if part.part_kind == "tool-call"]
            if calls:
                returns = [ToolReturnPart(call.tool_name, "nothing there", call.tool_call_id) for call in calls]
                messages.append(ModelRequest(parts=returns))
    finally:
        requests.close()
        door.close()
    return "".join(shown), messages


@pytest.mark.parametrize("enabled", [True, False])
def test_h10_marks_for_the_providers_cache(ws: Workspace, provider: FakeProvider, enabled: bool) -> None:
    """H10: the system prompt and the last two messages are marked, and no others; none where it is switched off."""
    use_model(ws, provider, cache_enabled=json.dumps(enabled))
    provider.script(LOOK, LOOK, LOOK, "Done.")
    text, messages = converse(ws, 3)
    assert text == "Done." and "CachePoint" not in repr(messages)
    positions = [(0,), (0, 2), (2, 4), (4, 6)]
    expected = [["system", *(f"messages.{n}" for n in each)] for each in positions] if enabled else [[]] * 4
    assert [request.marks for request in provider.requests] == expected


@pytest.mark.parametrize("enabled", [True, False])
def test_h10_marks_through_openrouter(ws: Workspace, provider: FakeProvider, enabled: bool) -> None:
    """H10: the system prompt (which is the first message there) and the last message."""
    use_model(ws, provider, "openrouter", model="anthropic/claude-sonnet-4.5", cache_enabled=json.dumps(enabled))
    provider.script(LOOK, LOOK, "Done.")
    converse(ws, 2)
    expected = [["messages.0", f"messages.{last}"] for last in (1, 3, 5)] if enabled else [[]] * 3
    assert [request.marks for request in provider.requests] == expected


def test_h10_others_are_sent_no_marks(ws: Workspace, provider: FakeProvider) -> None:
    use_model(ws, provider, "openai")
    provider.script(LOOK, "Done.")
    converse(ws, 1)
    assert [request.marks for request in provider.requests] == [[], []]


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
def test_h13_a_session_asks_a_busy_provider_again(ws: Workspace, provider: FakeProvider, kind: str) -> None:
    """H13: in a stream too, also where it breaks off in the middle of a sentence."""
    use_model(ws, provider, kind)
    provider.script(too_many_requests(retry_after=7), overloaded(), Reply("It is so", cut_after=900), "It is done.")
    pauses = Pauses()
    text, messages = converse(ws, 0, pauses)
    assert text.endswith("It is done.") and pauses.seconds[:2] == [7, 2] and len(pauses.seconds) == 3
    assert messages[-1].parts[-1].content == "It is done." and len(messages) == 2


def test_h13_a_wrong_key_ends_it_at_once(ws: Workspace, provider: FakeProvider) -> None:
    use_model(ws, provider)
    provider.script(bad_key())
    pauses = Pauses()
    with pytest.raises(ClearedError, match="key"):
        converse(ws, 0, pauses)
    assert pauses.seconds == [] and len(provider.requests) == 1


def test_h13_too_long_a_context_is_told_apart(ws: Workspace, provider: FakeProvider) -> None:
    use_model(ws, provider)
    provider.script(context_too_long())
    with pytest.raises(ContextTooLong):
        converse(ws, 0)
    assert len(provider.requests) == 1


def test_ten_megabytes_end_in_one_clear_refusal(ws: Workspace, provider: FakeProvider) -> None:
    use_model(ws, provider)
    provider.script(huge())
    text, _ = converse(ws, 0)
    assert len(text) < 1_000_000
