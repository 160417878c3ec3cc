"""JSON-RPC 2.0 as such (A9): the specification's own example exchanges, and what a hostile peer may send."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from cleared.sandbox.bridge import jsonrpc
from cleared.sandbox.bridge.jsonrpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Request,
    RpcError,
    answer_line,
    encode_frame,
    parse_line,
    read_line,
)


def server(request: Request) -> Any:
    """The methods of the specification's examples."""
    params = request.params
    match request.method:
        case "subtract" if isinstance(params, list):
            return params[0] - params[1]
        case "subtract" if isinstance(params, dict):
            return params["minuend"] - params["subtrahend"]
        case "sum":
            return sum(params)
        case "get_data":
            return ["hello", 5]
        case "update" | "notify_hello" | "notify_sum" | "nothing":
            return None
        case "echo":
            return params
        case "fails":
            raise RpcError(INVALID_PARAMS, data={"field": "x"})
        case "breaks":
            raise KeyError("inside")
        case "unwritable":
            return {1, 2}
    raise RpcError(METHOD_NOT_FOUND)


def error(code: int, message: str, id: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "error": {"code": code, "message": message}, "id": id}


INVALID = error(-32600, "Invalid Request")
PARSE = error(-32700, "Parse error")

# https://www.jsonrpc.org/specification#examples, in its order; its `foobar, "params": "bar", "baz]` is one line here.
SPECIFICATION = [
    (
        "positional",
        '{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}',
        {"jsonrpc": "2.0", "result": 19, "id": 1},
    ),
    (
        "positional, swapped",
        '{"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2}',
        {"jsonrpc": "2.0", "result": -19, "id": 2},
    ),
    (
        "named",
        '{"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3}',
        {"jsonrpc": "2.0", "result": 19, "id": 3},
    ),
    (
        "named, swapped",
        '{"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42, "subtrahend": 23}, "id": 4}',
        {"jsonrpc": "2.0", "result": 19, "id": 4},
    ),
    ("notification", '{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}', None),
    ("notification of no method", '{"jsonrpc": "2.0", "method": "foobar"}', None),
    ("no such method", '{"jsonrpc": "2.0", "method": "foobar", "id": "1"}', error(-32601, "Method not found", "1")),
    ("invalid JSON", '{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]', PARSE),
    ("invalid request", '{"jsonrpc": "2.0", "method": 1, "params": "bar"}', INVALID),
    (
        "batch, invalid JSON",
        '[ {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"}, {"jsonrpc": "2.0", "method" ]',
        PARSE,
    ),
    ("empty array", "[]", INVALID),
    ("invalid batch, not empty", "[1]", [INVALID]),
    ("invalid batch", "[1,2,3]", [INVALID, INVALID, INVALID]),
    (
        "batch",
        """[
        {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
        {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},
        {"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"},
        {"foo": "boo"},
        {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},
        {"jsonrpc": "2.0", "method": "get_data", "id": "9"}
        ]""",
        [
            {"jsonrpc": "2.0", "result": 7, "id": "1"},
            {"jsonrpc": "2.0", "result": 19, "id": "2"},
            INVALID,
            error(-32601, "Method not found", "5"),
            {"jsonrpc": "2.0", "result": ["hello", 5], "id": "9"},
        ],
    ),
    (
        "batch of notifications",
        """[
        {"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},
        {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}
        ]""",
        None,
    ),
]


def said(line: str | bytes) -> Any:
    reply = answer_line(line.encode() if isinstance(line, str) else line, server)
    if reply is None:
        return None
    assert reply.endswith(b"\n") and reply.count(b"\n") == 1 and reply.isascii()
    return json.loads(reply)


def bare(reply: Any) -> Any:
    """Without what the specification leaves to the server: an error's ``data``."""
    if isinstance(reply, list):
        return [bare(r) for r in reply]
    if isinstance(reply, dict) and "error" in reply:
        return {**reply, "error": {k: v for k, v in reply["error"].items() if k != "data"}}
    return reply


@pytest.mark.parametrize(("line", "reply"), [e[1:] for e in SPECIFICATION], ids=[e[0] for e in SPECIFICATION])
def test_a9_the_specifications_examples(line: str, reply: Any) -> None:
    assert bare(said(line)) == reply


def test_a9_a_null_result_is_answered() -> None:
    assert said('{"jsonrpc":"2.0","method":"nothing","id":1}') == {"jsonrpc": "2.0", "result": None, "id": 1}


def test_a9_bad_params_and_faults_have_their_codes() -> None:
    failed = said('{"jsonrpc":"2.0","method":"fails","id":1}')["error"]
    assert failed == {"code": -32602, "message": "Invalid params", "data": {"field": "x"}}
    broken = said('{"jsonrpc":"2.0","method":"breaks","id":1}')["error"]
    assert (broken["code"], broken["data"]["type"]) == (-32603, "KeyError")
    assert said('{"jsonrpc":"2.0","method":"unwritable","id":1}')["error"]["code"] == -32603
    assert said('{"jsonrpc":"2.0","method":"breaks"}') is None


@pytest.mark.parametrize(
    "line",
    [
        "NaN",
        '{"jsonrpc":"2.0","method":"echo","params":[NaN],"id":1}',
        '{"jsonrpc":"2.0","method":"echo","params":[-Infinity],"id":1}',
        '{"jsonrpc":"2.0","method":"echo","params":[1e999],"id":1}',
        '{"jsonrpc":"2.0","method":"echo","id":1e999}',
        "1" * 5_000,
        "[" * 100_000,
        '{"jsonrpc":"2.0","method":"echo","id":1,"params":' + "[" * 300 + "]" * 300 + "}",
        b"\xff\xfe\x00",
        b"\xef\xbb\xbf{}",
        "{",
        '{"a" "b"}',
        "\x00",
    ],
)
def test_a9_what_is_no_json_is_a_parse_error(line: str | bytes) -> None:
    assert bare(said(line)) == PARSE


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("NaN", "NaN is not JSON"),
        ("[-1e999]", "-1e999 is too large"),
        ("1" * 5_000, "a number has too many digits"),
        ("[" * 100_000, "nested deeper than 200"),
    ],
)
def test_a_parse_error_names_its_cause(line: str, cause: str) -> None:
    assert said(line)["error"]["data"] == cause


@pytest.mark.parametrize("letter", ["x", "é"])
def test_an_id_that_would_fit_into_no_reply_is_refused(letter: str) -> None:
    def ask_with(length: int) -> Any:
        return said(json.dumps({"jsonrpc": "2.0", "method": "nothing", "id": letter * length}, ensure_ascii=False))

    assert ask_with(10_000) == {"jsonrpc": "2.0", "result": None, "id": letter * 10_000}
    assert bare(ask_with(10_001)) == INVALID


@pytest.mark.parametrize(
    "line",
    [
        '{"method":"echo","id":1}',
        '{"jsonrpc":"1.0","method":"echo","id":1}',
        '{"jsonrpc":2.0,"method":"echo","id":1}',
        '{"jsonrpc":"2.0","method":"echo","params":3,"id":1}',
        '{"jsonrpc":"2.0","method":null,"id":1}',
        '{"jsonrpc":"2.0","id":1}',
    ],
)
def test_an_invalid_request_keeps_its_id(line: str) -> None:
    assert bare(said(line)) == error(-32600, "Invalid Request", 1)


@pytest.mark.parametrize("identity", ["true", "[1]", '{"a":1}'])
def test_an_id_is_a_text_a_number_or_null(identity: str) -> None:
    assert bare(said(f'{{"jsonrpc":"2.0","method":"echo","id":{identity}}}')) == INVALID
    assert said('{"jsonrpc":"2.0","method":"nothing","id":null}') == {"jsonrpc": "2.0", "result": None, "id": None}
    assert said('{"jsonrpc":"2.0","method":"nothing","id":1.5}')["id"] == 1.5


def test_answers_are_never_answered() -> None:
    assert said('{"jsonrpc":"2.0","result":1,"id":1}') is None
    assert said('[{"jsonrpc":"2.0","error":{"code":1,"message":"x"},"id":1}]') is None


def test_texts_survive_whatever_they_hold() -> None:
    texts = ["a\nb\r\u2028\u0085", "\ud800", "naïve 😀", "\x00", '"}\\']
    line = json.dumps({"jsonrpc": "2.0", "method": "echo", "params": texts, "id": "\udfff"})
    assert said(line) == {"jsonrpc": "2.0", "result": texts, "id": "\udfff"}


def test_a_fraction_is_a_float_and_the_last_of_two_keys_counts() -> None:
    reply = said('{"jsonrpc":"2.0","method":"echo","params":{"a":1,"a":0.10},"id":1}')
    assert reply["result"] == {"a": 0.1}
    parsed = parse_line(b'{"jsonrpc":"2.0","method":"echo","params":[0.5, 2]}')
    assert isinstance(parsed, Request) and [type(v) for v in parsed.params] == [float, int]


def test_long_lines_are_refused_and_the_next_one_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonrpc, "MAX_LINE", 100)
    stream = io.BytesIO(b"x" * 100_000 + b"\n\n \r\n" + b'{"a":1}\n' + b"y" * 101)
    with pytest.raises(RpcError) as refused:
        read_line(stream)
    assert refused.value.code == -32700
    assert read_line(stream) == b'{"a":1}\n'
    with pytest.raises(RpcError):
        read_line(stream)
    assert read_line(stream) is None
    with pytest.raises(ValueError, match="more than 100 bytes"):
        encode_frame({"result": "x" * 100})


def test_a_batch_is_bounded() -> None:
    assert bare(said("[" + ",".join("1" * 10_001) + "]")) == INVALID
