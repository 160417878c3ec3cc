"""Webhooks: signed calls start agents, each exactly once. Row C9."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Workspace, refused, unchanged
from program_client import Program, sign, webhook_agent
from running import Up, eventually
from web_client import inner_server, page_server
from world import World

from cleared.triggers import webhook_calls
from cleared.triggers.webhook_calls import WebhookCall, WebhookCalls
from cleared.web import webhook_intake
from cleared.web.call_rates import CallRates
from cleared.web.client_file import WebhookSecret
from cleared.web.webhook_secrets import find_signer


@pytest.fixture
def program(ws: Workspace) -> Iterator[Program]:
    """A sender of calls for the agent ``orders``; no service is up."""
    secret = webhook_agent(ws)
    with inner_server(ws.root) as server:
        yield Program(server, secret=secret)


def runs(ws: Workspace) -> list[str]:
    return ws.git("log", "--format=%s", "--grep=Agent: orders").split("\n")[:-1]


def test_c9_a_signed_call_runs_its_agent_once_and_its_body_is_data(ws: Workspace, program: Program, up: Up) -> None:
    """Row C9."""
    up.start()
    status, answer = program.hook("msg_1", {"order": 7, "note": "\u202e</script>"}, query="?wait=30")
    assert status == 200 and answer["key"] == "hook/msg_1", answer
    assert answer["run"]["status"] == "succeeded" and answer["run"]["result"] == {"order": 7, "note": "\u202e</script>"}
    assert program.hook("msg_1")[0] == 409, "a replay, though its signature is good"
    status, answer = program.hook("msg_2")
    assert (status, answer) == (202, {"key": "hook/msg_2", "agent": "orders"})
    eventually(lambda: len(runs(ws)) == 2)
    assert ws.trailers()["Event"] == "webhook hook/msg_2" and json.loads(ws.trailers()["Data"]) == {"order": 7}
    up.stop()


def test_an_agent_is_tried_over_the_sample_of_its_header_before_it_is_approved(ws: Workspace) -> None:
    header = '"""\nname: orders\ntrigger: webhook\nsample: {"order": 3}\n"""\n'
    ws.put("agents/orders.py", f'{header}ctx_event()["payload"]["order"]\n')
    with unchanged(ws):
        assert ws.json("agent", "run", "orders", "--dry-run")["result"] == 3
        assert ws.json("agent", "run", "orders", "--dry-run", "--data", '{"order": 4}')["result"] == 4
        half = ws("agent", "run", "orders", "--dry-run", "--data", r'{"order": "\ud800"}')
        refused(half, 2, "half a character")
        refused(ws("webhook", "add", "orders"), 2, "'orders' is not approved yet", "cleared agent propose orders")
    ws.commit("agents/orders.py", *ws.approve("agents/orders.py"), message="agent: orders")
    assert {a["name"]: a["on"] for a in ws.json("status")["agents"]}["orders"] == ["webhook"]


def test_c9_what_is_not_signed_is_not_taken(ws: Workspace, program: Program) -> None:
    """Row C9: 401 without; also for an agent that is not there, so that nobody learns which are."""
    body, good = b'{"order": 1}', program.secret
    other = str(ws.json("webhook", "add", "orders")["secret"])
    now = time.time()
    for headers in (
        {},
        sign("whsec_" + "A" * 44, body, "a"),
        sign(good, body + b" ", "a"),
        sign(good, body, "a", now - 600),
        sign(good, body, "a", now + 600),
        {**sign(good, body, "a"), "webhook-id": "b"},
        {**sign(good, body, "a"), "webhook-signature": "v1"},
        {**sign(good, body, "a"), "webhook-signature": "v1,%%"},
        {**sign(good, body, "a"), "webhook-timestamp": "nan"},
        {**sign(good, body, "a"), "webhook-timestamp": "9" * 400},
    ):
        assert program.send("POST", "/hooks/orders", body, **headers).status == 401, headers
        assert program.send("POST", "/hooks/nobody", body, **headers).status == 401
    for agent in ("orders", "nobody"):
        assert program.send("POST", f"/hooks/{agent}", b"\xff", **sign(good, b"\xff", "a")).status == 400, "not UTF-8"
    ws.ok("webhook", "remove", "orders")
    assert ws.json("webhook", "list") == []
    assert [program.send("POST", "/hooks/orders", body, **sign(each, body, "c")).status for each in (good, other)] == [
        401,
        401,
    ]
    assert webhook_calls.count_waiting_calls(ws.root) == 0


def test_what_is_signed_but_no_call_is_refused(ws: Workspace, program: Program) -> None:
    for call_id, body in (
        ("a.b", b"{}"),
        ("a" * 201, b"{}"),
        ("a", b"{"),
        ("b", b"NaN"),
        ("c", b"[" * 300 + b"]" * 300),
        ("half", rb'{"order": "\ud800"}'),
        ("nul", rb'{"order": "a\u0000b"}'),
        ("digits", b"9" * 5_000),
        ("latin", b'{"order": "\xe9"}'),
    ):
        page = program.send("POST", "/hooks/orders", body, **sign(program.secret, body, call_id))
        assert page.status == 400 and "sys." not in page.text, (call_id, page)
    slashes = rb'{"order": "a\\u0000b"}'
    assert program.send("POST", "/hooks/orders", slashes, **sign(program.secret, slashes, "s")).status == 202
    large = b'"' + b"x" * (64 << 10) + b'"'
    assert program.send("POST", "/hooks/orders", large, **sign(program.secret, large, "d")).status == 413
    body = b'{"order": 1}'
    signed = sign(program.secret, body, "e")
    assert program.send("POST", "/hooks/orders", body, **signed, Host="evil.example").status == 400
    assert program.send("POST", "/hooks/orders", body, **signed, Origin="http://evil.example").status == 403
    ws.put("agents/orders.py", '"""\nname: orders\ntrigger: on_demand\n"""\n1\n')
    ws.commit("agents/orders.py")
    assert program.send("POST", "/hooks/orders", body, **signed).status == 404
    assert ws("webhook", "add", "orders").code == 2 and ws("webhook", "add", "../x").code == 2
    assert webhook_calls.count_waiting_calls(ws.root) == 1


def test_a_call_that_is_nested_deeply_stops_no_work(ws: Workspace, program: Program, up: Up) -> None:
    """The card of a failed run holds the call: it would be more than a line of the queue may have."""
    deep, deepest = (b"[" * levels + b"]" * levels for levels in (91, 90))
    refusal = program.send("POST", "/hooks/orders", deep, **sign(program.secret, deep, "a"))
    assert refusal.status == 400 and "nested deeper than 90" in refusal.text, refusal
    up.start()
    status, answer = program.hook("b", json.loads(deepest), query="?wait=30")
    assert status == 200 and answer["run"]["status"] == "failed", answer
    up.stop()
    ws.ok("check")
    assert [card["agent"] for card in ws.cards()] == ["orders"]


def test_a_call_with_what_is_no_number_is_told_why(program: Program) -> None:
    for number, cause in ((b"NaN", "NaN is not JSON"), (b"[1e999]", "1e999 is too large")):
        page = program.send("POST", "/hooks/orders", number, **sign(program.secret, number, "a"))
        assert page.status == 400 and cause in page.text, page


def test_a_sender_that_is_too_fast_is_told_to_wait(ws: Workspace, program: Program) -> None:
    ws.config("webhooks.rate=3")
    statuses = [program.hook(f"m{n}")[0] for n in range(5)]
    assert statuses == [202, 202, 202, 429, 429]
    other = Program(program.server, secret=ws.json("webhook", "add", "orders")["secret"])
    assert other.hook("n1")[0] == 202, "another secret is another client"


def test_rates_fill_up_again() -> None:
    now = [0.0]
    rates = CallRates(lambda: now[0])
    assert [rates.seconds_to_wait("a", 2) for _ in range(3)] == [0, 0, 30] and rates.seconds_to_wait("b", 2) == 0
    now[0] = 30
    assert rates.seconds_to_wait("a", 2) == 0 and rates.seconds_to_wait("a", 2) == 30


def test_c9_no_kill_and_no_loss_of_the_runtime_folder_loses_or_doubles_a_call(ws: Workspace, program: Program) -> None:
    """Row C9: killed after each step from the answer to the end of the run; ``.cleared/`` deleted in between."""
    with page_server(ws, sign_in=False) as server:
        assert Program(server, secret=program.secret).hook("m1")[0] == 202
        server.end(signal.SIGKILL)
    assert "waiting until it is: 1 webhook call" in " ".join(ws.json("status")["trouble"])
    with World(ws) as world:  # noticed, but the process dies before the run
        assert world.service is not None
        world.service._refresh_view(world.time.at)
        world.service.webhooks.add_due_deliveries(world.service.view, world.service._timing.begin_step(world.time.at))
        assert [kind for _, kind, _ in world.waiting()] == ["webhook"]
        world.stop()
        for path in (ws.root / ".cleared").glob("inbox.db*"):
            path.unlink()
        world.start()
        world.service.handler.on_ended = None  # the run is committed, and the process dies before it is written down
        world.until_run()
        assert len(runs(ws)) == 1 and webhook_calls.count_waiting_calls(ws.root) == 1
        world.stop()
        world.start()
        world.settle()
        assert len(runs(ws)) == 1 and webhook_calls.count_waiting_calls(ws.root) == 0
        world.stop()
        for path in (ws.root / ".cleared").glob("inbox.db*"):
            path.unlink()
        world.start()
        world.settle()
    assert len(runs(ws)) == 1


def test_a_call_is_held_until_its_agent_is_approved_and_a_failed_run_is_told(ws: Workspace, program: Program) -> None:
    ws.config("triggers.retries=0")
    ws.put("agents/orders.py", '"""\nname: orders\ntrigger: webhook\n"""\n1 / ctx_event()["payload"]["order"]\n')
    ws.commit("agents/orders.py")
    calls = WebhookCalls(ws.root)
    assert program.hook("m1", {"order": 0})[0] == 202
    with World(ws) as world:
        world.settle()
        assert world.waiting() == [("orders", "webhook", "held")]
        ws.commit("agents", *ws.approve("agents/orders.py"), message="approve")
        world.settle()
        assert world.waiting() == []
    state = calls.find_state("orders", "m1")
    assert state is not None and state.is_settled and state.result is not None
    assert state.result["status"] == "failed" and "division" in state.result["error"]["message"]
    card = next(card for card in ws.cards() if card["kind"] == "failed_run")
    assert card["details"]["event"]["payload"] == {"order": 0}
    calls.close()


LIMITED = '''"""
name: orders
trigger: webhook
max_calls: 2
"""
order = ctx_event()["payload"]["order"]
for n in range(2 if order == 0 else 0):
    ctx_log("one call too many")
{"order": 10 / (order + 1)}
'''


def test_c9_a_call_that_fails_holds_up_those_of_its_ordering_key_alone(ws: Workspace, program: Program) -> None:
    """Row C9. What the script fails over is not tried again; what a limit ended is, and its followers wait."""
    ws.config("triggers.retries=2")
    ws.put("agents/orders.py", LIMITED)
    ws.commit("agents", *ws.approve("agents/orders.py"), message="approve")
    sent = [("bad", -1, ""), ("limited", 0, "?ordering_key=anna"), ("after", 1, "?ordering_key=anna")]
    sent += [("alone", 2, ""), ("other", 3, "?ordering_key=bert")]
    assert [program.hook(name, {"order": n}, query=query)[0] for name, n, query in sent] == [202] * 5
    refused = program.hook("odd", query="?ordering_key=a%20b")
    assert refused[0] == 400 and "ordering_key" in str(refused[1])
    with World(ws) as world:
        began = world.time.at
        world.until(began)
        assert world.keys("orders") == ["hook/alone", "hook/other"]
        assert [row["key"] for row in world.log("run.failed")] == ["hook/bad", "hook/limited"]
        assert [row["key"] for row in world.log("delivery.given_up")] == ["hook/bad"]
        world.forward(minutes=1)
        assert world.keys("orders")[2:] == ["hook/after"] and world.waiting() == []
    bodies = [card["details"]["event"]["payload"] for card in ws.cards() if card["kind"] == "failed_run"]
    assert {"order": -1} in bodies and {"order": 0} in bodies


def test_no_stored_call_ends_the_service(ws: Workspace) -> None:
    """What an older version took in: half a character, which no file and no commit takes."""
    from datetime import UTC, datetime

    webhook_agent(ws)
    calls = WebhookCalls(ws.root)
    assert calls.add_call(WebhookCall("orders", "half", r'{"order": "\ud800"}', datetime(2025, 2, 10, tzinfo=UTC)))
    with World(ws) as world:
        world.settle()
        assert world.waiting() == []
    state = calls.find_state("orders", "half")
    assert state is not None and state.is_settled and state.result is not None
    assert state.result["result"]["order"] == "?"
    calls.close()


def test_calls_that_come_at_once_are_stored_once_and_no_more_than_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from concurrent.futures import ThreadPoolExecutor
    from datetime import UTC, datetime

    (tmp_path / ".git").mkdir()
    calls, now = WebhookCalls(tmp_path), datetime(2025, 2, 10, tzinfo=UTC)
    monkeypatch.setattr(webhook_calls, "MAX_WAITING", 20)
    with ThreadPoolExecutor(16) as pool:
        new = list(pool.map(lambda n: calls.add_call(WebhookCall("a", f"m{n % 20}", "1", now)), range(40)))
    assert sum(new) == 20
    from cleared.base.errors import BusyError

    with pytest.raises(BusyError, match="wait for their runs"):
        calls.add_call(WebhookCall("a", "more", "1", now))
    calls.settle_call("a", "hook/m0", now)
    assert not calls.add_call(WebhookCall("a", "m0", "1", now)), "a replay after its run, too"
    assert calls.add_call(WebhookCall("a", "more", "1", now))
    calls.remove_old(now + webhook_calls.KEEP_FOR * 2)
    assert calls.find_state("a", "m0") is None and calls.find_state("a", "m1") is not None
    calls.close()


def test_a_call_whose_wait_has_ended_keeps_no_other_from_waiting(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One may wait at a time: the second does, once the first is answered, and so after one that broke off."""
    waited: list[str] = []

    async def wait_for_none(request: object, site: object, call: WebhookCall, seconds: float) -> None:
        waited.append(call.key)
        if len(waited) == 1:
            raise OSError("the wait broke off")

    monkeypatch.setattr(webhook_intake, "_MAX_WAITERS", 1)
    monkeypatch.setattr(webhook_intake, "_await_run", wait_for_none)
    assert [program.hook(f"msg_{n}", query="?wait=30")[0] for n in (1, 2, 3)] == [500, 202, 202]
    assert waited == ["hook/msg_1", "hook/msg_2", "hook/msg_3"]


def test_the_verifier_agrees_with_the_schemes_own_example() -> None:
    """The vector of https://github.com/standard-webhooks/standard-webhooks; all that is wrong with it is its time."""
    from unittest.mock import patch

    secret = WebhookSecret("x", "a", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "")
    body = b'{"test": 2432232314}'
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    assert find_signer([secret], body, headers) is None
    with patch("standardwebhooks.webhooks.datetime") as clock:
        from datetime import UTC, datetime

        clock.fromtimestamp = datetime.fromtimestamp
        clock.now = lambda tz: datetime.fromtimestamp(1614265330, UTC)
        assert find_signer([secret], body, headers) is secret
        assert find_signer([secret], body + b" ", headers) is None


def test_a_sender_that_is_slow_or_never_ends_holds_up_nobody(program: Program) -> None:
    """A thousand connections that send nothing, and one that sends its body byte by byte."""
    place = ("127.0.0.1", program.server.port)
    with contextlib.ExitStack() as stack:
        for _ in range(1_000):
            stack.enter_context(socket.create_connection(place, 30))
        slow = stack.enter_context(socket.create_connection(place, 30))
        slow.sendall(b"POST /hooks/orders HTTP/1.1\r\nHost: localhost:%d\r\nContent-Length: 10\r\n\r\n{" % place[1])
        statuses = {program.send("GET", "/healthz").status for _ in range(3)}
        assert statuses <= {200, 503}
        eventually(lambda: program.hook("m1")[0] in (202, 409))
    eventually(lambda: program.send("GET", "/healthz").status == 200)


def test_who_sends_half_a_body_is_not_waited_for_and_not_worth_a_word(
    program: Program, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("cleared.web.program_requests.BODY_SECONDS", 0.2)
    monkeypatch.setattr("cleared.web.request_guard.BODY_SECONDS", 0.4)
    capfd.readouterr()
    for path, status in ((b"/hooks/orders", b"408"), (b"/login", b"408")):
        head = b"POST %s HTTP/1.1\r\nHost: localhost:%d\r\nOrigin: http://localhost:%d\r\nContent-Length: 9\r\n"
        kind = b"Content-Type: application/x-www-form-urlencoded\r\n\r\n{"
        port = program.server.port
        with socket.create_connection(("127.0.0.1", port), 20) as wire:
            wire.sendall(head % (path, port, port) + kind)
            assert wire.recv(12) == b"HTTP/1.1 " + status
        with socket.create_connection(("127.0.0.1", port), 20) as wire:
            wire.sendall(head % (path, port, port) + kind)
    assert program.hook("m1")[0] == 202 and capfd.readouterr().err == ""


def test_a_secret_is_in_no_log_and_in_no_commit(
    ws: Workspace, program: Program, up: Up, capfd: pytest.CaptureFixture[str]
) -> None:
    up.start()
    assert program.hook("m1", query="?wait=30")[0] == 200
    _, service = up.stop()
    texts = [service, capfd.readouterr().err, ws.git("log", "-p", "--all")]
    texts += [
        path.read_bytes().decode("utf-8", "replace") for path in (ws.root / ".cleared").rglob("*") if path.is_file()
    ]
    secret = program.secret.removeprefix("whsec_")
    assert not [text[:200] for text in texts if secret in text]
