"""``cleared rpc``: one contract for primitives over both transports, the commands, and who may connect."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from harness import CLOCK, Workspace, refused, unchanged
from patience import PATIENCE
from peers import Peer, peer, request

from cleared.api.rpc.workspace_server import ONLY_IN_A_RUN, CurrentHandler, RequestHandler
from cleared.base.clock import clock_from
from cleared.base.errors import ClearedError, PolicyError, PrimitiveError, UsageError
from cleared.base.json_values import from_wire, to_wire
from cleared.changes.workspace_opening import open_workspace
from cleared.sandbox.bridge.jsonrpc import Request, RpcError, answer_line

# -- one contract, two transports -------------------------------------------------------------------------------------


class Refused(Exception):
    """What any transport tells of a refusal."""

    def __init__(self, type: str, message: str, remedy: str | None, field: str | None) -> None:
        super().__init__(message)
        self.told = (type, message, remedy, field)


Caller = Callable[..., Any]


@pytest.fixture(params=["direct", "json-rpc"])
def call(request: pytest.FixtureRequest, posted: Workspace) -> Caller:
    """``call(name, *args, **kwargs)`` over a transport."""
    service = RequestHandler(open_workspace(posted.root, clock=clock_from(CLOCK)))

    def direct(name: str, *args: Any, **kwargs: Any) -> Any:
        with service.open_dispatcher() as dispatcher:
            try:
                return dispatcher.call_primitive(name, args, kwargs)
            except ClearedError as e:
                raise Refused(type(e).__name__, e.message, e.remedy, e.place.field if e.place else None) from None

    def wired(name: str, *args: Any, **kwargs: Any) -> Any:
        assert not (args and kwargs), "JSON-RPC has one or the other"
        params = to_wire(list(args) or kwargs)
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": name, "params": params})
        told = json.loads(answer_line(line.encode(), service.handle_request) or b"")
        if "error" in told:
            data = told["error"]["data"]
            raise Refused(data["type"], data["message"], data["remedy"], (data["place"] or {}).get("field"))
        return from_wire(told["result"])

    return direct if request.param == "direct" else wired


def test_contract_decimals_are_decimals(call: Caller) -> None:
    parts = call("money_allocate", Decimal("10.00"), [1, 1, 1])
    assert parts == [Decimal("3.34"), Decimal("3.33"), Decimal("3.33")]
    assert [type(p) for p in parts] == [Decimal] * 3 and str(parts[0]) == "3.34"
    assert call("money_allocate", total="0.10", weights=[Decimal("0.5"), 0.5]) == [Decimal("0.05")] * 2
    balance = call("journal_balance", account_id=1010)
    assert type(balance) is Decimal and balance == Decimal("1446.40")


def test_contract_none_lists_and_dicts(call: Caller) -> None:
    assert call("accounts_get", 1010)["parent_id"] is None
    assert call("config_get", "no.such.key", None) is None
    assert call("config_get", key="no.such.key", default={"a": [1, None, True, 2.5]}) == {"a": [1, None, True, 2.5]}
    entries = call("journal_query", status=None, year=2025, month=1)
    assert [e["entry_id"] for e in entries] == [f"2025-01-00{n}" for n in (1, 2, 3, 4)]
    assert entries[0]["amount"] == Decimal("4.00") and entries[0]["lines"][0]["debit"] == Decimal("4.00")
    assert call("journal_query", year=1999) == []
    assert call("accounts_exists", 1010) is True and call("accounts_exists", 4) is False
    assert len(call("queue_pending")) == 2


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "type", "field", "said"),
    [
        ("journal_qery", (), {}, "UnknownPrimitive", None, "journal_qery"),
        ("accounts_get", (), {}, "PrimitiveError", "account_id", "needs account_id"),
        ("accounts_get", (1, 2), {}, "PrimitiveError", None, "at most 1"),
        ("accounts_get", (), {"acount_id": 1}, "PrimitiveError", "acount_id", "no argument"),
        ("accounts_get", (9999,), {}, "PrimitiveError", "account_id", "9999"),
        ("accounts_get", ("x",), {}, "PrimitiveError", "account_id", "not an account number"),
        ("accounts_get", (1010.0,), {}, "PrimitiveError", "account_id", "not an account number"),
        ("money_allocate", ("1.005", [1]), {}, "PrimitiveError", "total", "money_allocate"),
        ("money_allocate", ("1", []), {}, "PrimitiveError", "weights", ""),
        ("journal_query", (), {"status": "conFirmed"}, "PrimitiveError", "status", "not a status"),
        ("git_log", (0,), {}, "PrimitiveError", "limit", "limit is 0"),
        ("config_get", ("no.such.key",), {}, "PrimitiveError", None, "no.such.key"),
        ("config_get", ("thresholds", [[[]]] * 3, 3), {}, "PrimitiveError", None, "at most 2"),
        ("journal_void", ("2025-01-001", "no"), {}, "PolicyError", None, "no run"),
        ("git_commit", ("x",), {}, "PolicyError", None, "no run"),
        ("ctx_emit", ("a.b",), {}, "PolicyError", None, "no run"),
        ("importer_scan", (), {}, "PolicyError", None, "no run"),
    ],
)
def test_contract_refusals(
    call: Caller, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], type: str, field: str | None, said: str
) -> None:
    with pytest.raises(Refused) as refused:
        call(name, *args, **kwargs)
    told_type, message, remedy, told_field = refused.value.told
    assert told_type == type and said in message and remedy
    assert told_field == field or (name == "config_get" and field is None)


# -- the service ------------------------------------------------------------------------------------------------------


@pytest.fixture
def service(posted: Workspace) -> RequestHandler:
    return RequestHandler(open_workspace(posted.root, clock=clock_from(CLOCK)))


def ask(service: Any, method: str, params: Any = None) -> Any:
    return service.handle_request(Request(method, [] if params is None else params, 1))


def refusal(service: Any, method: str, params: Any = None) -> RpcError:
    with pytest.raises(RpcError) as refused:
        ask(service, method, params)
    return refused.value


def test_a9_the_codes_of_refusals(service: RequestHandler) -> None:
    assert refusal(service, "nope").code == -32601
    assert "journal.list" in refusal(service, "journal.lst").data["remedy"]
    assert refusal(service, "accounts_get", {}).code == -32602
    assert refusal(service, "accounts_get", [1, 2]).code == -32602
    assert refusal(service, "accounts_get", [{"$decimal": "x"}]).code == -32602
    assert refusal(service, "agent.show").code == -32602
    assert refusal(service, "agent.show", {"nam": "x"}).code == -32602
    assert refusal(service, "agent.show", ["a", "b"]).code == -32602
    for params in ({"limit": "1"}, {"limit": True}, {"limit": 0}, {"limit": 10**30}, {"agent": 3}):
        assert refusal(service, "run.list", params).code == -32602, params
    assert refusal(service, "queue.list", {"status": "shut"}).code == -32602
    unknown = refusal(service, "agent.show", ["nope"])
    assert (unknown.code, unknown.data["type"], unknown.data["exit_code"]) == (-32000, "UsageError", 2)
    assert "ingest" in unknown.data["remedy"]


def test_a9_null_means_absent_for_every_optional_parameter(posted: Workspace, service: RequestHandler) -> None:
    """Fault 24: of commands and of primitives, by name and by position; where null is a value of its own, it is one."""
    assert ask(service, "run.list", {"limit": None, "agent": None}) == ask(service, "run.list")
    assert ask(service, "queue.list", [None]) == ask(service, "queue.list")
    assert ask(service, "git_log", {"limit": None}) == ask(service, "git_log", [None]) == ask(service, "git_log")
    assert ask(service, "config_get", ["no.such.key", None]) is None
    assert refusal(service, "agent.show", [None]).data["place"]["field"] == "name"
    assert refusal(service, "accounts_get", [None]).data["place"]["field"] == "account_id"
    line = b'{"jsonrpc":"2.0","id":1,"method":"accounts.list","params":null}'
    assert json.loads(answer_line(line, service.handle_request) or b"")["result"] == ask(service, "accounts.list")


def test_what_is_about_a_run_is_refused_outside_of_one(service: RequestHandler) -> None:
    given = {"ctx_log": ["x"], "script_run": ["vendor_name"], "importer_deduplicate": [[]]}
    for name in ONLY_IN_A_RUN:
        refused = refusal(service, name, given.get(name, []))
        assert refused.code == -32000 and "run" in refused.message and "cleared agent run" in refused.data["remedy"]
    for name, primitive in service.host.registry.items():
        if primitive.effect.value != "read":
            refused = refusal(service, name, {})
            assert (refused.code, refused.data["type"]) == (-32000, "PolicyError"), name


def test_there_is_no_decision_among_the_methods(service: RequestHandler) -> None:
    for method in ("journal.void", "period.close", "period.reopen", "agent.approve", "queue.resolve", "import", "init"):
        assert refusal(service, method, ["2025-01-001"]).code == -32601


def test_the_commands_say_what_the_command_line_says(posted: Workspace, service: RequestHandler) -> None:
    for method, params, argv in (
        ("agent.list", {}, ["agent", "list"]),
        ("agent.show", {"name": "ingest"}, ["agent", "show", "ingest"]),
        ("run.list", {"limit": 5}, ["run", "list", "--limit", "5"]),
        ("queue.list", {}, ["queue", "list"]),
        ("journal.list", {"month": "2025-01"}, ["journal", "list", "--month", "2025-01"]),
        ("journal.balance", {}, ["journal", "balance"]),
        ("accounts.list", {}, ["accounts", "list"]),
        ("period.list", {}, ["period", "list"]),
    ):
        said = ask(service, method, params)
        assert said == posted.json(*argv), method
        json.dumps(said, allow_nan=False)
    assert ask(service, "check") == []
    run_id = ask(service, "run.list", [1])[0]["run_id"]
    assert json.dumps(ask(service, "run.show", {"id": run_id}))
    assert len(ask(service, "journal.list", {"status": "pending-review"})) == 2
    assert len(ask(service, "journal.list", {"text": "github", "limit": 1})) == 1
    assert {p["name"] for p in ask(service, "primitives.list")} == set(service.host.registry)


def test_agent_run_is_the_one_path(ws: Workspace) -> None:
    ws.drop("january.csv")
    service = RequestHandler(open_workspace(ws.root, clock=clock_from(CLOCK)))
    before = ws.head()
    rehearsed = ask(service, "agent.run", {"name": "ingest", "dry_run": True})
    assert rehearsed["status"] == "dry_run" and len(rehearsed["entries"]) == 4 and ws.head() == before
    ran = ask(service, "agent.run", ["ingest"])
    assert ran["status"] == "succeeded" and ran["commits"] == [ws.head()]
    assert ran["entries"][0]["amount"] == "4.00"
    assert ran["run_id"] in [r["run_id"] for r in ask(service, "run.list", {"agent": "ingest"})]
    ws.agent("probe", "accounts_get(4)")
    failed = ask(service, "agent.run", ["probe"])
    assert failed["status"] == "failed" and failed["error"]["primitive"] == "accounts_get"
    for params in (["nope"], ["../x"], ["ingest", 1], {"name": 3}, {}, ["ingest", False, None, 3], ["ingest"] * 5):
        refusal(service, "agent.run", params)


def test_agent_run_takes_what_the_command_takes(ws: Workspace) -> None:
    """Fault 18: a payload, and the card of what failed; with the command's refusals."""
    ws.agent("probe", 'ctx_log("ran")\nctx_event()["payload"]')
    service = RequestHandler(open_workspace(ws.root, clock=clock_from(CLOCK)))
    assert ask(service, "agent.run", {"name": "probe", "data": {"a": [1, None]}})["result"] == {"a": [1, None]}
    assert ask(service, "agent.run", {"name": "probe"})["result"] is None
    assert ask(service, "agent.run", {"name": "probe", "dry_run": True, "data": "x"})["result"] == "x"
    ws.agent("fails", 'accounts_get(ctx_event()["payload"])')
    assert ask(service, "agent.run", {"name": "fails", "data": 4})["status"] == "failed"
    card = next(c["id"] for c in ws.cards() if c["agent"] == "fails")
    for more in ({"dry_run": True}, {"data": 1}):
        said = refusal(service, "agent.run", {"name": "fails", "again": card, **more})
        assert said.data["exit_code"] == 2 and "goes without" in said.message
    assert refusal(service, "agent.run", {"name": "probe", "again": card}).data["exit_code"] == 2
    ran = ask(service, "agent.run", {"name": "fails", "again": card})
    by_command = ws("agent", "run", "fails", "--again", card, "--json")
    assert ran["status"] == "failed" and ran["error"] == by_command.json["error"]
    assert ws("agent", "run", "fails", "--again", card, "--data", "1").code == 2


def test_a_payload_that_is_nested_deeply_stops_no_work(ws: Workspace) -> None:
    """The card of a failed run holds the payload: it would be more than a line of the queue may have."""
    ws.agent("fails", 'accounts_get(ctx_event()["payload"])')
    service = RequestHandler(open_workspace(ws.root, clock=clock_from(CLOCK)))
    deep, deepest = ("[" * levels + "]" * levels for levels in (91, 90))
    with unchanged(ws):
        said = refusal(service, "agent.run", {"name": "fails", "data": json.loads(deep)})
        assert said.code == -32602 and "data cannot be taken: nested deeper than 90" in said.data["message"]
        nul = refusal(service, "agent.run", {"name": "fails", "data": "a\0b"})
        assert nul.code == -32602 and "the character NUL" in nul.data["message"]
        refused(ws("agent", "run", "fails", "--data", deep), 2, "nested deeper than 90")
    assert ask(service, "agent.run", {"name": "fails", "data": json.loads(deepest)})["status"] == "failed"
    ws.ok("check")
    assert [card["agent"] for card in ws.cards()] == ["fails"]


def test_every_request_sees_the_books_of_that_moment(ws: Workspace) -> None:
    current = CurrentHandler(lambda: open_workspace(ws.root, clock=clock_from(CLOCK)))
    assert ask(current, "journal_query") == []
    ws.drop("january.csv")
    ws.run("ingest")
    assert len(ask(current, "journal_query")) == 4
    assert ask(current, "config_get", ["thresholds.auto_confirm"]) != 0.5
    ws.config("thresholds.auto_confirm=0.5")
    assert ask(current, "config_get", ["thresholds.auto_confirm"]) == 0.5
    ws.put("config.yaml", "business: [\n")
    assert refusal(current, "journal_query").code == -32000
    assert refusal(current, "journal_query").data["exit_code"] == 4


def test_discover_describes_what_can_be_called(service: RequestHandler) -> None:
    found = ask(service, "rpc.discover")
    json.dumps(found, allow_nan=False)
    methods = {m["name"]: m for m in found["methods"]}
    assert {"agent.run", "journal.list", "journal_query", "money_allocate"} <= set(methods)
    assert not {"journal_add_double", "git_commit", *ONLY_IN_A_RUN} & set(methods)
    taken = [(p["name"], p["required"]) for p in methods["agent.run"]["params"]]
    assert taken == [("name", True), ("dry_run", False), ("data", False), ("again", False)]
    assert methods["accounts_get"]["params"] == [
        {"name": "account_id", "required": True, "schema": {"type": "integer", "minimum": 1}}
    ]
    assert "#/$defs/decimal" in json.dumps(methods["money_allocate"]) and "decimal" in found["$defs"]


def test_reading_changes_nothing(posted: Workspace, service: RequestHandler) -> None:
    posted.ok("task", "init")
    before = posted.state()
    for name, primitive in service.host.registry.items():
        if (
            primitive.effect.value == "read"
            and name not in ONLY_IN_A_RUN
            and not any(p.required for p in primitive.takes.params)
        ):
            ask(service, name)
    assert posted.state() == before and posted.git("status", "--porcelain") == ""


# -- processes --------------------------------------------------------------------------------------------------------


def rpc(ws: Workspace, *argv: str) -> list[str]:
    return [sys.executable, "-m", "cleared", "rpc", *argv, "-C", str(ws.root)]


def test_stdio_answers_line_by_line_until_its_end(posted: Workspace) -> None:
    with peer(rpc(posted, "--stdio")) as server:
        assert server.ask("journal_balance", [1010])["result"] == {"$decimal": "1446.40"}
        server.write(b"what?\n\n")
        assert server.get()["error"]["code"] == -32700
        server.send(
            {"jsonrpc": "2.0", "method": "accounts.list"}, request("x", "accounts_exists", {"account_id": 1010})
        )
        assert server.get() == {"jsonrpc": "2.0", "id": "x", "result": True}
        server.send([request(1, "accounts_exists", [1010]), request(2, "nope")])
        assert [r["id"] for r in server.get()] == [1, 2]
        server.send(request(3, "accounts_get", ["\ud800"]))
        assert server.get()["error"]["code"] == -32602
        posted.agent("probe", 'print(\'{"jsonrpc":"2.0","id":1,"result":"forged"}\')\nctx_log(\'hi\')\n3')
        assert server.ask("agent.run", ["probe"])["result"]["result"] == 3
        assert server.silent()
        assert server.close_input() == 0


def test_stdio_outside_of_a_workspace_is_refused(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "cleared", "rpc", "--stdio", "-C", str(tmp_path)]
    done = subprocess.run(argv, input=b"", capture_output=True, check=False)
    assert done.returncode == 4 and done.stdout == b"" and b"Traceback" not in done.stderr


class Client:
    """A connection to a Unix socket."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rwb")

    def ask(self, method: str, params: Any = None) -> Any:
        self.file.write(json.dumps(request(1, method, params)).encode() + b"\n")
        self.file.flush()
        return json.loads(self.file.readline())

    def close(self) -> None:
        self.file.close()
        self.socket.close()


def served(path: Path) -> None:
    waited = threading.Event()
    for _ in range(int(PATIENCE * 20)):
        if path.exists():
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(str(path))
                    return
                except OSError:
                    pass
        waited.wait(0.05)
    raise AssertionError("nobody listens")


@pytest.fixture
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Short enough for a socket's address."""
    import tempfile

    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder) / "rpc.sock"


@pytest.fixture
def server(posted: Workspace, path: Path) -> Iterator[Peer]:
    with peer(rpc(posted, "--socket", str(path)), stderr=subprocess.PIPE) as found:
        served(path)
        yield found


def test_the_socket_is_the_users_alone_and_serves_many(server: Peer, path: Path) -> None:
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600
    clients = [Client(path) for _ in range(5)]
    for client in clients:
        client.file.write(b"nonsense\n")
        client.file.flush()
        assert json.loads(client.file.readline())["error"]["code"] == -32700
        assert client.ask("journal_balance", [1010])["result"] == {"$decimal": "1446.40"}
    for client in clients:
        client.close()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_the_socket_goes_with_its_server(server: Peer, path: Path, how: signal.Signals) -> None:
    idle = Client(path)
    assert idle.ask("accounts_exists", [1010])["result"] is True
    server.process.send_signal(how)
    assert server.process.wait(PATIENCE) == (0 if how == signal.SIGTERM else 130)
    assert not path.exists()
    assert idle.file.readline() == b""
    idle.close()
    assert b"Traceback" not in server.process.stderr.read()  # type: ignore[union-attr]


def test_a_live_socket_is_refused_and_a_dead_one_replaced(posted: Workspace, server: Peer, path: Path) -> None:
    done = posted.process("rpc", "--socket", str(path))
    assert done.code == 5 and "already" in done.err and "Traceback" not in done.err
    server.process.kill()
    server.process.wait()
    assert path.exists()
    with peer(rpc(posted, "--socket", str(path))):
        served(path)
        client = Client(path)
        assert client.ask("accounts_exists", [1010])["result"] is True
        client.close()


def test_what_is_no_socket_is_left_alone(posted: Workspace, path: Path) -> None:
    path.write_text("mine")
    link = path.with_name("link")
    link.symlink_to(path)
    for target in (path, link, path.parent, path.parent / "no" / "such", path.parent / ("x" * 200)):
        done = posted.process("rpc", "--socket", str(target))
        assert done.code == 2 and "Traceback" not in done.err, done
    assert path.read_text() == "mine" and link.is_symlink()


def test_another_users_process_is_hung_up_on(posted: Workspace, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cleared.api.rpc.unix_socket import SocketServer, peer_uid

    with SocketServer(path, lambda r: "secret") as found:
        threading.Thread(target=found.accept_connections, daemon=True).start()
        friend = Client(path)
        assert friend.ask("x")["result"] == "secret"
        friend.close()
        monkeypatch.setattr("cleared.api.rpc.unix_socket.peer_uid", lambda c: os.getuid() + 1)
        stranger = Client(path)
        assert stranger.file.readline() == b""
        stranger.close()
    ours, theirs = socket.socketpair()
    assert peer_uid(ours) == os.getuid()
    ours.close()
    theirs.close()


@pytest.mark.skipif(os.getuid() != 0, reason="needs a second user to be")
def test_the_kernel_says_who_connects(path: Path) -> None:
    from cleared.api.rpc.unix_socket import SocketServer

    with SocketServer(path, lambda r: "secret") as found:
        threading.Thread(target=found.accept_connections, daemon=True).start()
        path.parent.chmod(0o755)
        path.chmod(0o666)  # the mode alone would let them in
        code = (
            f"import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect({str(path)!r})\n"
            's.sendall(b\'{"jsonrpc":"2.0","id":1,"method":"x"}\\n\')\nprint(s.recv(100))'
        )
        done = subprocess.run(["/usr/bin/env", "python3", "-c", code], user=65534, capture_output=True, check=False)
        assert b"secret" not in done.stdout, done


def test_too_many_clients_are_told_so(path: Path) -> None:
    from cleared.api.rpc.unix_socket import MAX_CONNECTIONS, SocketServer

    with SocketServer(path, lambda r: 1) as found:
        threading.Thread(target=found.accept_connections, daemon=True).start()
        clients = [Client(path) for _ in range(MAX_CONNECTIONS)]
        assert [c.ask("x")["result"] for c in clients] == [1] * MAX_CONNECTIONS
        late = Client(path)
        assert json.loads(late.file.readline())["error"]["data"]["type"] == "BusyError"
        late.close()
        for client in clients:
            client.close()


def test_errors_are_of_the_documented_classes() -> None:
    from cleared.base.errors import Place
    from cleared.sandbox.bridge.error_codec import refusal_error

    place = Place("a.csv", 3, None, "amount")
    for error in (UsageError("u"), PolicyError("p"), PrimitiveError("x", place=place, remedy="r")):
        told = refusal_error(error)
        assert told.code == -32000 and told.data["type"] == type(error).__name__
        assert told.data["exit_code"] == int(error.exit_code)
    assert told.data["place"] == {"file": "a.csv", "line": 3, "column": None, "field": "amount"}
