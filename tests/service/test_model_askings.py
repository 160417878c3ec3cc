"""The service goes on with other runs while a language model is asked for one; a real provider that does not answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from fake_provider import Call, FakeProvider, Reply
from modelled import KEY, use_model
from running import Up, eventually

pytestmark = pytest.mark.slow

ASKS = "trigger: event\nevent: ping\ngrants: [llm.classify:0.05, ctx.emit]\n"
BODY = 'found = llm_classify("TRAIN TO LYON", ["travel", "office"])\nctx_emit("asked." + str(found["choice"]))'
TRAVEL = Reply(calls=(Call("final_result", {"choice": "travel", "confidence": 0.9}),))


def held(go_on: threading.Event) -> Reply:
    """An answer that does not come before the event is set."""
    return Reply(calls=TRAVEL.calls, hold=go_on)


@pytest.fixture
def go_on() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def provider(up: Up, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    monkeypatch.setenv("TEST_MODEL_KEY", KEY)
    with FakeProvider() as provider:
        use_model(up.ws, provider)
        up.agent("asks", ASKS, BODY)
        up.agent("quick", "trigger: event\nevent: pong\n", 'ctx_emit("quick")')
        yield provider


def wait_until_asked(up: Up, provider: FakeProvider, times: int = 1) -> None:
    eventually(lambda: len(up.log("run.asks")) == times and len(provider.requests) == times)


def commits_of(up: Up, agent: str) -> int:
    shown = up.ws.git("log", "--format=%(trailers:key=Agent,valueonly)")
    return shown.split().count(agent)


def test_h18_the_service_runs_others_while_a_model_is_slow(
    up: Up, provider: FakeProvider, go_on: threading.Event
) -> None:
    """H18: a slow model stops no other run; the one that waits for it is committed once, when it has answered."""
    provider.script(held(go_on))
    up.start()
    up.ws.ok("event", "emit", "ping")
    wait_until_asked(up, provider)
    for times in (1, 2):
        up.ws.ok("event", "emit", "pong")
        eventually(lambda times=times: len(up.log("run.succeeded")) == times)  # type: ignore[misc]
    assert {row["agent"] for row in up.log("run.succeeded")} == {"quick"} and commits_of(up, "asks") == 0
    assert up.board()["running"] is None
    go_on.set()
    eventually(lambda: len(up.log("run.succeeded")) == 3)
    assert '"name":"asked.travel"' in up.ws.read_events()
    assert up.log("run.failed", "run.again", "delivery.busy") == []
    assert up.stop()[0] == 0
    assert commits_of(up, "asks") == 1 and len(provider.requests) == 1
    up.ws.in_order()


def test_sigterm_does_not_wait_for_a_model(up: Up, provider: FakeProvider, go_on: threading.Event) -> None:
    provider.script(held(go_on), TRAVEL)
    up.start()
    up.ws.ok("event", "emit", "ping")
    wait_until_asked(up, provider)
    code, err = up.stop()  # the answer does not come before the test ends
    assert code == 0 and "Traceback" not in err, err
    assert commits_of(up, "asks") == 0
    up.start()
    eventually(lambda: up.log("run.succeeded"))
    assert up.stop()[0] == 0
    assert commits_of(up, "asks") == 1 and up.log("run.failed") == []
    up.ws.in_order()


def test_a_kill_while_a_model_is_asked_loses_and_doubles_nothing(
    up: Up, provider: FakeProvider, go_on: threading.Event
) -> None:
    provider.script(*[held(go_on)] * 4, TRAVEL)
    up.ws.ok("event", "emit", "ping")
    for times in range(1, 5):
        process = up.start()
        wait_until_asked(up, provider, times)
        process.kill()
        process.wait()
    up.start()
    eventually(lambda: up.log("run.succeeded"))
    assert up.stop()[0] == 0
    assert commits_of(up, "asks") == 1 and up.log("run.failed", "delivery.given_up") == []
    up.ws.in_order()


def test_events_of_an_agent_that_waits_for_a_model_keep_their_order(
    up: Up, provider: FakeProvider, go_on: threading.Event
) -> None:
    provider.script(held(go_on))
    up.start()
    up.ws.ok("event", "emit", "ping")
    wait_until_asked(up, provider)
    up.ws.ok("event", "emit", "ping")
    up.ws.ok("event", "emit", "pong")
    eventually(lambda: up.log("run.succeeded"))
    assert len(up.log("run.asks")) == 1 and commits_of(up, "asks") == 0, "the second waits for the first"
    go_on.set()
    eventually(lambda: len(up.log("run.succeeded")) == 3)
    assert up.stop()[0] == 0
    assert commits_of(up, "asks") == 2 and len(provider.requests) == 1


def test_a_run_that_goes_on_after_a_question_stops_no_other(
    up: Up, provider: FakeProvider, go_on: threading.Event
) -> None:
    from cleared.changes.workspace_opening import open_workspace
    from cleared.review.card_decisions import answer_card

    provider.script(held(go_on))
    header = ASKS.replace("ctx.emit", "ctx.emit, queue.ask").replace("ping", "start")
    up.agent("careful", header, f'queue_ask("Really?", ["yes", "no"])\n{BODY}')
    up.start()
    up.ws.ok("event", "emit", "start")
    eventually(lambda: up.log("run.waiting"))
    [card] = up.ws.cards()
    answer_card(open_workspace(up.ws.root), card["id"], "yes")
    eventually(lambda: provider.requests)
    up.ws.ok("event", "emit", "pong")
    eventually(lambda: commits_of(up, "quick"))
    go_on.set()
    eventually(lambda: '"name":"asked.travel"' in up.ws.read_events())
    assert up.stop()[0] == 0
    assert len(provider.requests) == 1
    up.ws.in_order()
