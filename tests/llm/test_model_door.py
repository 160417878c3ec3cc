"""Calls through the packages of the providers, to a server that speaks their protocols (H12, H13)."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from decimal import Decimal
from typing import Any

import pytest
from fake_provider import (
    Call,
    FakeProvider,
    Reply,
    Request,
    bad_key,
    context_too_long,
    huge,
    no_such_model,
    overloaded,
    too_many_requests,
)
from harness import Workspace, take_ok
from modelled import KEY, MODELS, Pauses, door_of, open_host, use_model

from cleared.base.errors import PolicyError, WorkspaceError
from cleared.llm.failures import ModelFailed
from cleared.llm.model_door import ModelDoor
from cleared.llm.single_call import ask_once
from cleared.llm.spending import SpendingStopped

KINDS = tuple(MODELS)
ANSWER = {"type": "object", "properties": {"word": {"enum": ["yes", "no"]}}, "required": ["word"]}


def ask(door: ModelDoor, prompt: str = "How are you?", **how: Any) -> Any:
    return ask_once(door, "Be brief.", prompt, **how)


def ask_with_tools(door: ModelDoor, *, stream: bool = False, steps: int = 1) -> str:
    """A turn as a session has it: tools are called until there is an answer."""
    from pydantic_ai import Agent

    agent = Agent(
        door.model, instructions="Be brief.", model_settings=door.settings(), capabilities=door.capabilities()
    )

    @agent.tool_plain
    def look(where: str) -> str:
        return f"saw {where}"

    async def turn() -> str:
        if stream:
            async with agent.run_stream("Look.") as result:
                return str(await result.get_output())
        return (await agent.run("Look.")).output

    return asyncio.run(turn())


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_is_sent_answered_and_recorded(ws: Workspace, provider: FakeProvider, kind: str) -> None:
    use_model(ws, provider, kind)
    provider.script(Reply("Well.", input_tokens=1000, output_tokens=100, cached_tokens=200))
    door = door_of(open_host(ws.root))
    assert ask(door) == "Well."
    [request] = provider.requests
    assert request.headers["authorization"] == f"Bearer {KEY}" and KEY not in request.text
    assert request.body["model"] == MODELS[kind] and request.body["max_tokens"] == 16_384
    assert "Be brief." in request.text and request.headers["accept-encoding"] == "identity"
    listed = {"anthropic": "0.00396", "openai": "0.0025", "openrouter": "0.0025"}
    assert door.spent == Decimal(listed[kind])
    [row] = door.spending.store.list_usage("2025-01-01")
    assert (row.day, row.purpose, row.calls, row.failed, row.unfinished) == ("2025-02-10", "test", 1, 0, 0)
    assert (row.input_tokens, row.output_tokens, row.cached_tokens, row.cost) == (1000, 100, 200, door.spent)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_turns_with_tools(ws: Workspace, provider: FakeProvider, kind: str, stream: bool) -> None:
    use_model(ws, provider, kind)
    provider.script(Reply("", (Call("look", {"where": "there"}),)), Reply("Nothing there."))
    door = door_of(open_host(ws.root))
    assert ask_with_tools(door, stream=stream) == "Nothing there."
    assert [bool(r.body.get("stream")) for r in provider.requests] == [stream, stream]
    assert "saw there" in provider.requests[1].text
    [row] = door.spending.store.list_usage("2025-01-01")
    assert (row.calls, row.input_tokens, row.output_tokens, row.failed) == (2, 200, 40, 0)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("arguments", ['{"where": ', "[1, 2]", '{"elsewhere": 1}', "42"])
@pytest.mark.parametrize("kind", ["anthropic", "openai"])
def test_malformed_tool_calls_are_told_to_the_model(
    ws: Workspace, provider: FakeProvider, kind: str, arguments: str, stream: bool
) -> None:
    use_model(ws, provider, kind)
    provider.script(Reply(calls=(Call("look", arguments),)), Reply(calls=(Call("look", {"where": "x"}),)), "Done.")
    assert ask_with_tools(door_of(open_host(ws.root)), stream=stream) == "Done."
    assert len(provider.requests) == 3


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_h13_a_busy_provider_is_asked_again(ws: Workspace, provider: FakeProvider, stream: bool) -> None:
    """H13: 429 and 5xx with pauses that double, or as long as the provider asks; each attempt is recorded."""
    use_model(ws, provider)
    provider.script(too_many_requests(), overloaded(), too_many_requests(retry_after=30), overloaded(503), "Here.")
    pauses, messages = Pauses(), list[str]()
    door = door_of(open_host(ws.root, messages=messages), pauses)
    assert ask_with_tools(door, stream=stream) == "Here."
    assert pauses.seconds == [1, 2, 30, 8]
    assert "trying again in 30 s" in messages[2]
    [row] = door.spending.store.list_usage("2025-01-01")
    assert (row.calls, row.failed, row.cost) == (5, 4, Decimal("0.0006"))


def test_h13_it_is_not_asked_for_ever(ws: Workspace, provider: FakeProvider) -> None:
    """H13: bounded; and a pause that is longer than a minute is told, not waited for."""
    use_model(ws, provider)
    pauses = Pauses()
    door = door_of(open_host(ws.root), pauses)
    provider.script(*[overloaded()] * 5)
    with pytest.raises(ModelFailed, match="cannot answer at the moment") as failure:
        ask(door)
    assert failure.value.kind == "unavailable" and pauses.seconds == [1, 2, 4, 8] and not provider.left
    provider.script(too_many_requests(retry_after=3600))
    with pytest.raises(ModelFailed, match="takes no more calls"):
        ask(door)
    assert len(pauses.seconds) == 4


def test_h13_the_settings_say_how_long_and_how_often(ws: Workspace, provider: FakeProvider) -> None:
    """H13: a silent model is given up after ``llm.timeout``, and asked again ``llm.retries`` times."""
    use_model(ws, provider, timeout="1", retries="1")
    hold, pauses = threading.Event(), Pauses()
    provider.script(Reply("late", hold=hold), Reply("late", hold=hold))
    with pytest.raises(ModelFailed) as failure:
        ask(door_of(open_host(ws.root), pauses))
    hold.set()
    assert failure.value.kind == "timeout" and pauses.seconds == [1] and not provider.left


def test_a_slow_model_comes_to_its_end(ws: Workspace, provider: FakeProvider) -> None:
    """A model of one token a second may say as much as ``llm.max_tokens`` allows, after its silence."""
    use_model(ws, provider, timeout="600", max_tokens="4000")
    assert door_of(open_host(ws.root)).settings()["request_timeout"] == 4_600


@pytest.mark.parametrize(
    ("reply", "kind", "text"),
    [
        (bad_key(), "authentication", "refuses the key"),
        (no_such_model(), "not_found", "has no model 'claude-sonnet-4-5'"),
        (context_too_long(), "context_length", "longer than claude-sonnet-4-5 can read"),
        (huge(), "unreadable", "longer than 8 MB"),
        (Reply(status=302, headers={"location": "https://evil.example/"}), "unreadable", "another address"),
        (Reply(raw=b"<html>Welcome to the hotel</html>"), "garbage", "makes no sense"),
        (Reply(raw=b'{"a": '), "garbage", "makes no sense"),
        (Reply(raw=b'{"content": 7, "usage": []}'), "garbage", "makes no sense"),
        (Reply(raw=b"\x1f\x8b", headers={"content-encoding": "gzip"}), "unreadable", "compressed"),
    ],
    ids=["key", "model", "context", "10MB", "redirect", "html", "broken", "odd", "gzip"],
)
def test_h13_what_does_not_pass_is_not_tried_again(
    ws: Workspace, provider: FakeProvider, reply: Reply, kind: str, text: str
) -> None:
    """H13: a wrong key never; everything that a provider can send is one clear refusal."""
    use_model(ws, provider)
    provider.script(reply)
    pauses = Pauses()
    with pytest.raises(ModelFailed, match=text) as failure:
        ask(door_of(open_host(ws.root), pauses))
    assert failure.value.kind == kind and pauses.seconds == [] and len(provider.requests) == 1
    assert len(str(failure.value)) < 600


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_key_is_refused_and_nowhere_shown(ws: Workspace, provider: FakeProvider, kind: str) -> None:
    use_model(ws, provider, kind)
    provider.script(Reply(f"invalid key {KEY}", status=401, kind="authentication_error"))
    with pytest.raises(ModelFailed, match="refuses the key") as failure:
        ask(door_of(open_host(ws.root)))
    assert KEY not in str(failure.value) and "[redacted]" in str(failure.value)


def test_h13_a_connection_that_is_cut_is_tried_again(ws: Workspace, provider: FakeProvider) -> None:
    """H13: and what was sent and perhaps worked on counts against the budget."""
    use_model(ws, provider)
    provider.script(Reply("Well.", cut_after=40), "Here.")
    door = door_of(open_host(ws.root))
    assert ask(door) == "Here."
    [row] = door.spending.store.list_usage("2025-01-01")
    assert row.failed == 1 and row.cost > Decimal("0.06")


def test_a_server_that_is_not_there(ws: Workspace, provider: FakeProvider) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        use_model(ws, provider, "openai", base_url=f"http://127.0.0.1:{unused.getsockname()[1]}/v1")
        door = door_of(open_host(ws.root))
        with pytest.raises(ModelFailed, match="cannot be reached") as failure:
            ask(door)
    assert failure.value.kind == "connection" and door.spent == 0


def test_a_server_that_speaks_no_tls(ws: Workspace, provider: FakeProvider) -> None:
    use_model(ws, provider, base_url=provider.anthropic_url.replace("http:", "https:"))
    with pytest.raises(ModelFailed) as failure:
        ask(door_of(open_host(ws.root)))
    assert failure.value.kind == "tls" and provider.requests == []


def test_h12_the_budget_of_a_session(ws: Workspace, provider: FakeProvider) -> None:
    """H12: a session's budget holds over all that its processes spent, and ends it with its reason."""
    use_model(ws, provider, session_budget="0.10")
    provider.script(Reply("a", output_tokens=4000), Reply("b", output_tokens=4000))
    assert ask(door_of(open_host(ws.root), session="S1")) == "a"
    again = door_of(open_host(ws.root), session="S1")
    assert ask(again) == "b" and again.spent == Decimal("0.1206")
    with pytest.raises(
        SpendingStopped, match=r"budget of this session does not hold another call: \$0.1206 of \$0.10"
    ) as stop:
        ask(again)
    assert (stop.value.reason, stop.value.exit_code) == ("session_budget", 1) and len(provider.requests) == 2
    provider.script("another")
    assert ask(door_of(open_host(ws.root), session="S2")) == "another"


def test_h12_the_lowest_cap_counts(ws: Workspace, provider: FakeProvider) -> None:
    """H12: what the command allows, below the session's budget; what was spent before the command does not count."""
    use_model(ws, provider)
    provider.script(*[Reply("a", output_tokens=2000)] * 3)
    ask(door_of(open_host(ws.root), session="S1"))
    door = door_of(open_host(ws.root), session="S1", max_cost=Decimal("0.05"))
    ask(door)
    ask(door)
    with pytest.raises(SpendingStopped) as stop:
        ask(door)
    assert stop.value.reason == "max_cost" and "$0.0606 of $0.05" in str(stop.value)


def test_h12_the_budget_of_a_day_is_for_all_and_ends_at_midnight_of_the_business(
    ws: Workspace, provider: FakeProvider
) -> None:
    """H12: in ``business.timezone``."""
    use_model(ws, provider, daily_budget="0.05")
    ws.ok("config", "set", "business.timezone", "America/New_York")
    provider.script(Reply("a", output_tokens=4000), "b")
    ask(door_of(open_host(ws.root, "2025-02-10T04:30:00Z"), session="S1"))
    with pytest.raises(SpendingStopped) as stop:
        ask(door_of(open_host(ws.root, "2025-02-10T04:59:59Z"), session="S2", purpose="other"))
    assert stop.value.reason == "daily_budget"
    assert ask(door_of(open_host(ws.root, "2025-02-10T05:00:00Z"), session="S2")) == "b"


def test_h12_a_call_whose_process_was_killed_is_not_free(ws: Workspace, provider: FakeProvider) -> None:
    """H12: it stands in the record as begun, at what it may have cost."""
    use_model(ws, provider)
    host = open_host(ws.root)
    killed = door_of(host, session="S1")
    killed.spending.begin_call(1000)
    killed.close()
    door = door_of(open_host(ws.root), session="S1")
    assert door.spent == Decimal("0.06444")
    [row] = door.spending.store.list_usage("2025-01-01")
    assert (row.calls, row.unfinished) == (1, 1)


def test_what_the_provider_says_it_cost_counts(ws: Workspace, provider: FakeProvider) -> None:
    """OpenRouter's own figure, in a whole answer and in a stream; one that cannot be is not believed."""
    use_model(ws, provider, "openrouter")
    provider.script(Reply("a", cost=0.25), Reply("b", cost=0.125), Reply("c", cost=-7.0), Reply("d", cost=1e300))
    door = door_of(open_host(ws.root))
    ask(door)
    assert door.spent == Decimal("0.25") and provider.requests[0].body["usage"] == {"include": True}
    ask_with_tools(door, stream=True)
    assert door.spent == Decimal("0.375")
    ask(door)
    ask(door)
    assert door.spent == Decimal("0.375") + 2 * Decimal("0.00036")


def test_a_model_without_a_price_is_not_asked(ws: Workspace, provider: FakeProvider) -> None:
    use_model(ws, provider, "openai", model="llama3.2")
    with pytest.raises(WorkspaceError, match=r"what llama3.2 costs is not known") as refusal:
        door_of(open_host(ws.root))
    assert "llm.prices" in str(refusal.value) and provider.requests == []
    path = ws.root / "config.yaml"
    path.write_text(path.read_text() + "  prices: {llama3.2: {input: 1, output: 2}}\n")
    with pytest.raises(WorkspaceError):
        door_of(open_host(ws.root))  # nobody has approved that price
    take_ok(ws, "config", "approve")
    provider.script(Reply("a", input_tokens=1000, output_tokens=1000))
    door = door_of(open_host(ws.root))
    ask(door)
    assert door.spent == Decimal("0.003")


def test_a_free_model_has_no_budget(ws: Workspace, provider: FakeProvider) -> None:
    use_model(ws, provider, "openai", model="llama3.2", daily_budget="0", prices="{llama3.2: {input: 0, output: 0}}")
    provider.script("a")
    assert ask(door_of(open_host(ws.root), max_cost=Decimal(0))) == "a"


def test_an_answer_of_a_given_form(ws: Workspace, provider: FakeProvider) -> None:
    use_model(ws, provider)

    def answer(word: str) -> Any:
        return lambda request: Reply(calls=(Call(request.body["tools"][0]["name"], {"word": word}),))

    provider.script(answer("perhaps"), answer("yes"))
    assert ask(door_of(open_host(ws.root)), output_schema=ANSWER, max_tokens=50) == {"word": "yes"}
    assert "does not fit" in provider.requests[1].text and provider.requests[0].body["max_tokens"] == 50
    provider.script(*[answer("perhaps")] * 2)
    with pytest.raises(ModelFailed) as failure:
        ask(door_of(open_host(ws.root)), output_schema=ANSWER)
    assert failure.value.kind == "garbage"


def test_asked_where_an_event_loop_runs_already(ws: Workspace, provider: FakeProvider) -> None:
    use_model(ws, provider)
    provider.script("a", "b")
    door = door_of(open_host(ws.root))

    async def within() -> list[str]:
        return [ask(door), ask(door)]

    assert asyncio.run(within()) == ["a", "b"]


def test_no_key_goes_where_it_is_not_meant_to(
    ws: Workspace, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an address of one's own, the key of the provider's server stays here, and what packages would read."""
    settings = {"provider": "openai", "model": "gpt-4.1", "base_url": provider.openai_url}
    for name, value in settings.items():
        ws.ok("config", "set", f"llm.{name}", value)
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://evil.example/v1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    provider.script("a")
    assert ask(door_of(open_host(ws.root), environ={"OPENAI_API_KEY": KEY})) == "a"
    assert KEY not in json.dumps(dict(provider.requests[0].headers))
    ws.ok("config", "set", "llm.provider", "anthropic")
    ws.ok("config", "set", "llm.base_url", provider.anthropic_url)
    ws.ok("config", "set", "llm.model", "claude-sonnet-4-5")
    provider.script("b")
    assert ask(door_of(open_host(ws.root), environ={"ANTHROPIC_API_KEY": KEY})) == "b"
    assert KEY not in json.dumps(dict(provider.requests[1].headers))


def test_a_pushed_address_gets_nothing(ws: Workspace, provider: FakeProvider) -> None:
    """What is not approved does not count, whoever committed it."""
    use_model(ws, provider)
    path = ws.root / "config.yaml"
    path.write_text(path.read_text().replace(provider.anthropic_url, "https://evil.example"))
    door = door_of(open_host(ws.root))
    assert door.choice.base_url == provider.anthropic_url


def test_a_model_that_waits_for_approval_is_named(ws: Workspace) -> None:
    path = ws.root / "config.yaml"
    path.write_text(path.read_text() + "\nllm: {provider: openai, model: gpt-4.1}\n")
    with pytest.raises(WorkspaceError, match=r"llm.model, llm.provider in config.yaml waits for approval"):
        door_of(open_host(ws.root))


def test_no_key_crosses_a_network_unencrypted(ws: Workspace, provider: FakeProvider) -> None:
    use_model(ws, provider, base_url="http://192.0.2.1:8000/v1")
    with pytest.raises(PolicyError, match="over plain http"):
        door_of(open_host(ws.root))


def test_a_missing_key_is_one_sentence(ws: Workspace) -> None:
    ws.ok("config", "set", "llm.provider", "anthropic")
    ws.ok("config", "set", "llm.model", "claude-sonnet-4-5")
    with pytest.raises(WorkspaceError, match=r"there is no key for anthropic.*export ANTHROPIC_API_KEY"):
        door_of(open_host(ws.root), environ={})


def test_the_key_is_known_to_the_redaction(ws: Workspace, provider: FakeProvider) -> None:
    use_model(ws, provider)
    host = open_host(ws.root)
    door_of(host)
    assert host.redactor.redact_text(f"a {KEY} b") == "a [redacted] b"
    ws.ok("config", "set", "business.name", "Other")
    host.refresh_settings()
    assert KEY not in host.redactor.redact_text(KEY)


def test_a_model_of_a_test(ws: Workspace) -> None:
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[TextPart("made up")])

    door = door_of(open_host(ws.root), model=FunctionModel(answer), session="S1")
    assert ask(door) == "made up" and door.spent == 0 and door.context_window == 128_000
    [row] = door.spending.store.list_usage("2025-01-01")
    assert row.calls == 1


def test_requests_seen(provider: FakeProvider) -> None:
    """The fake provider's own marks are where the tests look for them."""
    body = {"messages": [{"content": "a"}, {"content": [{"cache_control": {}}]}], "system": [{"cache_control": {}}]}
    assert Request("/v1/messages", {}, body).marks == ["system", "messages.1"]
