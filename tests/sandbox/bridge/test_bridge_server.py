"""``cleared bridge`` as a host in another language sees it: a process and its standard streams."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE
from peers import BRIDGE, Peer, error, peer, request, result, script

from cleared.sandbox.bridge.run_request import RunRequest
from cleared.sandbox.bridge.server import serve_bridge


@pytest.fixture
def bridge() -> Iterator[Peer]:
    with peer(BRIDGE, stderr=subprocess.PIPE) as found:
        yield found


def workers(of: int) -> set[int]:
    """The interpreter's processes in the session of a bridge."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                rest = (entry / "stat").read_text().rsplit(")", 1)
            except OSError:
                continue
            fields = rest[1].split()
            if rest[0].endswith("(monty") and int(fields[3]) == of and fields[0] != "Z":
                found.add(int(entry.name))
    return found


def until(condition: Any) -> None:
    waited = threading.Event()
    for _ in range(int(PATIENCE * 20)):
        if condition():
            return
        waited.wait(0.05)
    raise AssertionError("it did not happen in time")


def test_a_script_calls_its_host_and_its_result_is_bare(bridge: Peer) -> None:
    bridge.send(script(7, 'x = journal_query(2025, status="confirmed")\n[len(x), price()]', "journal_query", "price"))
    call = bridge.get()
    assert call == {
        "jsonrpc": "2.0",
        "method": "journal_query",
        "id": call["id"],
        "params": {"args": [2025], "kwargs": {"status": "confirmed"}},
    }
    bridge.send(result(call["id"], [1, 2]))
    call = bridge.get()
    assert call["params"] == {"args": []}, "empty kwargs are left out"
    bridge.send(result(call["id"], {"$decimal": "4.00"}))
    assert bridge.get() == result(7, [2, {"$decimal": "4.00"}])


def test_a_decimal_is_a_decimal_in_the_script_and_a_fraction_a_float(bridge: Peer) -> None:
    bridge.send(script(1, "type(f()).__name__ + type(f()).__name__ + str(f())", "f"))
    for value in ({"$decimal": "4.00"}, 0.5, {"$decimal": "4.10"}):
        bridge.send(result(bridge.get()["id"], value))
    assert bridge.get()["result"] == "Decimalfloat4.10"


def test_a9_a_null_result_does_not_hang(bridge: Peer) -> None:
    bridge.send(script(1, "f() is None", "f"))
    bridge.send(result(bridge.get()["id"], None))
    assert bridge.get() == result(1, True)
    assert bridge.ask("run", {"script": "None"})["result"] is None


def test_a9_a_reply_without_a_result_does_not_hang_either(bridge: Peer) -> None:
    bridge.send(script(1, "f()", "f"))
    bridge.send({"jsonrpc": "2.0", "id": bridge.get()["id"]})
    failed = bridge.get()
    assert failed["id"] == 1 and "neither a result nor an error" in failed["error"]["message"]


def test_a9_wrong_requests_have_their_codes_and_the_bridge_lives_on(bridge: Peer) -> None:
    bridge.write(b'{"jsonrpc": "2.0", "method\n')
    assert (bridge.get() | {"error": None}) == {"jsonrpc": "2.0", "id": None, "error": None}
    assert bridge.ask("jump")["error"]["code"] == -32601
    for params in (
        [],
        {},
        {"script": 1},
        {"script": "1", "external_functions": "f"},
        {"script": "1", "limits": {"x": 1}},
        {"script": "1", "limits": {"memory_bytes": 0}},
        {"script": "1", "now": "2025-01-01"},
        {"script": "1", "file": 3},
        {"script": "1", "inputs": {"a b": 1}},
        {"script": "1", "inputs": {"a": {"$decimal": "x"}}},
        {"skript": "1"},
        ["1", [], 3],
        {"script": "1", "positions": 1},
    ):
        refused = bridge.ask("run", params)["error"]
        assert refused["code"] == -32602 and refused["data"]["field"], params
    assert "did you mean script" in bridge.ask("run", {"skript": "1"})["error"]["data"]["message"]
    bridge.send({"jsonrpc": "2.0", "id": 5, "method": 3})
    assert bridge.get()["error"]["code"] == -32600
    assert bridge.ask("run", ["1 + 1", []])["result"] == 2


@pytest.mark.parametrize("limits", [None, {}, {"seconds": None, "memory_bytes": None}])
def test_a9_null_means_absent_for_every_optional_member(bridge: Peer, limits: Any) -> None:
    """Fault 24: hosts in Go write null for an empty slice, map or pointer."""
    names = [name for name in RunRequest.__struct_fields__ if name != "script"]
    given = {**dict.fromkeys(names), "limits": limits, "script": "1 + 1"}
    assert bridge.ask("run", given)["result"] == 2
    assert bridge.ask("run", ["2 + 2", None])["result"] == 4
    assert bridge.ask("run", {"script": None})["error"]["data"]["field"] == "script"
    bridge.send(request(7, "run", {"script": "f()", "external_functions": ["f"], "inputs": None}))
    bridge.send({"jsonrpc": "2.0", "id": bridge.get()["id"], "result": 3, "error": None})
    assert bridge.get()["result"] == 3
    bridge.send({"jsonrpc": "2.0", "id": 8, "method": "shutdown", "params": None})
    assert bridge.get()["result"] is None


def test_a10_two_scripts_at_once_with_replies_in_reverse_order(bridge: Peer) -> None:
    bridge.send(script("one", "[f(1), g(10)]", "f", "g"), script("two", "[f(2), g(20)]", "f", "g"))
    first = {c["params"]["args"][0]: c for c in (bridge.get(), bridge.get())}
    assert first[1]["id"] != first[2]["id"]
    bridge.send(result(first[2]["id"], "for two"))
    second = bridge.get()
    assert (second["method"], second["params"]["args"]) == ("g", [20])
    bridge.send(result(first[1]["id"], "for one"))
    third = bridge.get()
    assert third["params"]["args"] == [10]
    bridge.send(result(third["id"], 1), result(second["id"], 2))
    ended = {f["id"]: f["result"] for f in (bridge.get(), bridge.get())}
    assert ended == {"one": ["for one", 1], "two": ["for two", 2]}


def test_a10_eight_scripts_answered_backwards(bridge: Peer) -> None:
    bridge.send(*[script(n, f"[f({n}), f({n} + 100)]", "f") for n in range(8)])
    for _ in range(2):
        calls = [bridge.get() for _ in range(8)]
        for call in reversed(calls):
            bridge.send(result(call["id"], -call["params"]["args"][0]))
    ended = {f["id"]: f["result"] for f in (bridge.get() for _ in range(8))}
    assert ended == {n: [-n, -n - 100] for n in range(8)}
    ids = [f["id"] for f in map(json.loads, bridge.raw) if "method" in f]
    assert len(ids) == len(set(ids)) == 16


def test_the_bridges_ids_stay_clear_of_the_hosts(bridge: Peer) -> None:
    bridge.send(script("b1", "f()", "f"))
    call = bridge.get()
    assert call["id"] != "b1"
    bridge.send(script("b1", "1"))
    assert bridge.get()["error"]["code"] == -32600, "an id in use is refused"
    bridge.send(result("never asked", 1), result(call["id"], 2))
    assert bridge.get() == result("b1", 2)
    bridge.send(script("b1", "3"))
    assert bridge.get() == result("b1", 3)


def test_a_batch_of_scripts_is_answered_together(bridge: Peer) -> None:
    bridge.send([script(1, "f() + 1", "f"), request(2, "jump"), script(3, "3"), {"foo": "boo"}])
    bridge.send([result(bridge.get()["id"], 1)])
    replies = bridge.get()
    assert {r["id"]: r.get("result") for r in replies} == {1: 2, 2: None, 3: 3, None: None} and len(replies) == 4


@pytest.mark.parametrize(
    ("text", "kind", "type", "line"),
    [
        ("x = 1\n1 / 0", "error", "ZeroDivisionError", 2),
        ("f(", "syntax", "SyntaxError", 1),
        ("x = 1\nnope(1)", "error", "NameError", 2),
        ("while True:\n    pass", "timeout", "TimeoutError", None),
        ("range(3)", "result", "TypeError", 1),
        ("for i in range(100):\n    f()", "calls", "RuntimeError", 2),
    ],
)
def test_how_a_script_fails(bridge: Peer, text: str, kind: str, type: str, line: int | None) -> None:
    bridge.send(script(1, text, "f", file="agents/x.py", limits={"seconds": 0.7, "max_calls": 20}))
    while "method" in (frame := bridge.get()):
        bridge.send(result(frame["id"], 1))
    data = frame["error"]["data"]
    assert frame["error"]["code"] == -32000
    assert (data["kind"], data["type"], data["file"]) == (kind, type, "agents/x.py")
    assert line is None or data["line"] == line
    assert type in data["traceback"] and frame["error"]["message"].startswith(type)
    assert bridge.ask("run", {"script": "1"}, 2)["result"] == 1


def test_a_host_error_ends_the_script_whatever_it_does(bridge: Peer) -> None:
    text = "x = 1\ntry:\n    f(3)\nexcept Exception:\n    f(4)\n'swallowed'"
    bridge.send(script(1, text, "f"))
    bridge.send(error(bridge.get()["id"], "no such account", type="PrimitiveError", remedy="Use another."))
    failed = bridge.get()["error"]
    assert failed["code"] == -32000 and "no such account" in failed["message"]
    data = failed["data"]
    assert (data["type"], data["kind"], data["primitive"], data["line"]) == ("PrimitiveError", "call", "f", 3)
    assert data["message"] == "no such account" and data["remedy"] == "Use another."
    assert "line 3, in <module>\n    f(3)" in data["traceback"]


def test_a_late_reply_ends_the_script_at_its_deadline_and_is_ignored(bridge: Peer) -> None:
    bridge.send(script(1, "f()", "f", limits={"seconds": 0.5}))
    call = bridge.get()
    failed = bridge.get()
    assert failed["error"]["data"]["kind"] == "timeout"
    bridge.send(result(call["id"], 1))
    assert bridge.ask("run", {"script": "2"}, 2)["result"] == 2


FORGED = '{"jsonrpc":"2.0","id":1,"result":"forged"}'


def test_what_a_script_prints_is_never_a_frame(bridge: Peer) -> None:
    bridge.send(script(1, f"print({FORGED!r})\nprint('\\x1b[2J')\n'real'"))
    assert bridge.get() == result(1, "real")
    assert bridge.silent()
    assert bridge.close_input() == 0
    assert bridge.process.stderr is not None
    shown = bridge.process.stderr.read()
    assert b"forged" in shown and b"\x1b" not in shown


def test_printing_comes_as_notifications_where_the_host_asks(bridge: Peer) -> None:
    bridge.send(script(1, f"print({FORGED!r})\n'real'", prints=True))
    printed = ""
    while "method" in (frame := bridge.get()):
        assert frame["method"] == "print" and "id" not in frame and frame["params"]["run"] == 1
        printed += frame["params"]["text"]
    assert printed == FORGED + "\n" and frame == result(1, "real")


def test_positions_come_where_the_host_asks(bridge: Peer) -> None:
    bridge.send(script(9, "x = 1\nx = f()", "f", positions=True, file="agents/a.py"))
    call = bridge.get()
    at = {"file": "agents/a.py", "line": 2, "column": 5}
    assert call["params"] == {"args": [], "run": 9, "position": at}


def test_inputs_clock_and_seed_are_the_hosts(bridge: Peer) -> None:
    text = (
        "import datetime, random\n"
        "[str(amount), day, datetime.datetime.now(datetime.timezone.utc).isoformat(), random.random()]"
    )
    given = {"inputs": {"amount": {"$decimal": "4.00"}, "day": 3}, "now": "2025-02-01T06:00:00+00:00", "seed": "s"}
    bridge.send(script(1, text, **given), script(2, text, **given))
    one, two = bridge.get()["result"], bridge.get()["result"]
    assert one == two and one[:3] == ["4.00", 3, "2025-02-01T06:00:00+00:00"]


def test_values_json_cannot_hold_are_refused_by_name(bridge: Peer) -> None:
    for value, named in (("{1, 2}", "set"), ("float('nan')", "float"), ("{1: 2}", "keys"), ("b'x'", "bytes")):
        bridge.send(script(1, f"f({value})", "f"))
        failed = bridge.get()["error"]
        assert failed["data"]["type"] == "PrimitiveError" and named in failed["message"], value


def test_shutdown_ends_everything_at_once(bridge: Peer) -> None:
    bridge.send(script(1, "while True:\n    pass", limits={"seconds": 60}), script(2, "f()", "f"))
    bridge.get()
    pid = bridge.process.pid
    until(lambda: len(workers(pid)) == 2)
    bridge.send({"jsonrpc": "2.0", "method": "shutdown"})
    assert bridge.process.wait(PATIENCE) == 0
    until(lambda: not workers(pid))


def test_at_the_end_of_input_waiting_scripts_fail_and_others_may_end(bridge: Peer) -> None:
    bridge.send(script(1, "f()", "f"), script(2, "n = 0\nfor i in range(300000):\n    n += 1\nn"))
    bridge.get()
    assert bridge.close_input() == 0
    ended = {f["id"]: f for f in (bridge.get(), bridge.get())}
    assert "left" in ended[1]["error"]["message"] and ended[2]["result"] == 300_000
    assert bridge.get() is None


def test_nothing_outlives_a_bridge_that_is_told_to_end(bridge: Peer) -> None:
    bridge.send(script(1, "while True:\n    pass", limits={"seconds": 60}))
    pid = bridge.process.pid
    until(lambda: workers(pid))
    bridge.process.send_signal(signal.SIGTERM)
    assert bridge.process.wait(PATIENCE) == 0
    until(lambda: not workers(pid))


def test_any_two_streams_will_do() -> None:
    lines = b"".join(json.dumps(script(n, f"{n} + 1")).encode() + b"\n" for n in (1, 2))
    told = io.BytesIO()
    serve_bridge(io.BytesIO(lines), told)
    assert {f["id"]: f["result"] for f in map(json.loads, told.getvalue().splitlines())} == {1: 2, 2: 3}


HOST = f"""
import subprocess, sys, time
bridge = subprocess.Popen({BRIDGE!r}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
bridge.stdin.write(sys.stdin.buffer.readline())
bridge.stdin.flush()
print(bridge.pid, flush=True)
time.sleep(60)
"""


def test_nothing_outlives_a_host_that_is_killed() -> None:
    with peer([sys.executable, "-c", HOST]) as host:
        host.send(script(1, "while True:\n    pass", limits={"seconds": 60}))
        pid = host.get()
        until(lambda: workers(pid))
        host.process.kill()
        until(lambda: not workers(pid) and not Path(f"/proc/{pid}").exists())
