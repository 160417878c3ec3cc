"""``cleared mcp`` on its standard streams: the official client, and clients that are none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from harness import Workspace, here
from mcp_clients import call, program, talk_stdio, text_of
from patience import PATIENCE
from proposing import text

from cleared.api.mcp_server.stdio_transport import MAX_MESSAGE_BYTES
from cleared.workspace.lock import writer_lock

pytestmark = pytest.mark.slow

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "raw", "version": "1"},
}


class RawClient:
    """Lines to and from the real process."""

    def __init__(self, ws: Workspace, *options: str) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(program(ws, *options), stdin=pipe, stdout=pipe, stderr=pipe)

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def ask(self, number: int, method: str, **params: Any) -> None:
        self.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode())

    def reply(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        reply = json.loads(self.process.stdout.readline())
        assert isinstance(reply, dict) and reply["jsonrpc"] == "2.0"
        return reply

    def greet(self) -> None:
        self.ask(0, "initialize", **HELLO)
        assert self.reply()["result"]["serverInfo"]["name"] == "cleared"
        self.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')

    def end(self) -> tuple[int, bytes, str]:
        """Exit code, what was still on stdout, stderr."""
        out, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, errors.decode()


def wait_for_lock_message(client: RawClient) -> None:
    """Until the server says on stderr that a call waits for the writer lock."""
    assert client.process.stderr is not None
    while b"waiting for" not in (line := client.process.stderr.readline()):
        assert line


def test_two_official_clients_list_call_and_are_refused(posted: Workspace) -> None:
    """H17: two real processes on one workspace at once; only the proposals are new."""

    async def talk(client: Any) -> list[Any]:
        names = {t.name for t in (await client.list_tools()).tools}
        assert {"agent_list", "agent_propose", "why"} <= names and "agent_run" not in names
        path = f"agents/probe{uuid4().hex}.py"
        return [
            await client.call_tool("journal_list", {"month": "2025-01"}),
            await client.call_tool("agent_propose", {"texts": {path: text("1")}}),
            await client.call_tool("agent_approve", {"id": "P1"}),
            await client.call_tool("agent_run", {"name": "ingest"}),
        ]

    for entries, proposed, approved, ran in talk_stdio(posted, talk, talk):
        assert len(entries.structured_content["items"]) == 4
        assert proposed.structured_content["status"] == "open"
        assert approved.is_error and "deciding is for a person" in text_of(approved)
        assert ran.is_error and "mcp.allow_run is off" in text_of(ran)
    assert [p["status"] for p in posted.json("queue", "list") if p["kind"] == "proposal"] == ["open", "open"]
    assert not list(posted.root.glob("agents/probe*"))


def test_stdout_is_the_protocol_and_nothing_else(posted: Workspace) -> None:
    """Lines that are no messages are answered, and the next is served; the end of stdin ends the process."""
    client = RawClient(posted)
    client.greet()
    for line in (b"{", b"[1, 2]", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"jsonrpc": "2.0", "id": 1, "method": 5}'):
        client.send(line)
        reply = client.reply()
        assert reply["id"] is None and reply["error"]["code"] == -32700
    for identity in (b"null", b"1.5", b"true", b"[1]", b"1e999"):
        client.send(b'{"jsonrpc": "2.0", "method": "tools/list", "id": ' + identity + b"}")
        reply = client.reply()
        assert reply["id"] is None and "an id is a text or a whole number" in reply["error"]["data"], identity
    client.send(b"x" * (MAX_MESSAGE_BYTES * 5 // 2))
    assert f"more than {MAX_MESSAGE_BYTES} bytes" in client.reply()["error"]["data"]
    client.send(b"")
    client.ask(2, "tools/call", name="agent_check", arguments={"texts": {"agents/a.py": text("print('on stdout?')")}})
    client.ask(3, "no/such/method")
    replies = {r["id"]: r for r in (client.reply(), client.reply())}
    assert replies[2]["result"]["structuredContent"] and replies[3]["error"]["code"] == -32601
    assert client.process.stdin is not None
    client.process.stdin.close()
    client.process.stdin = None
    assert client.end()[:2] == (0, b"")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_ends_it_at_once(posted: Workspace, number: int, code: int) -> None:
    """Though the client's end is open, and a call waits for the lock: without a traceback, and nothing is left over."""
    client = RawClient(posted)
    client.greet()
    with writer_lock(posted.root / ".cleared", 0, "the test"):
        client.ask(1, "tools/call", name="agent_propose", arguments={"texts": {"agents/a.py": text("1")}})
        wait_for_lock_message(client)
        client.process.send_signal(number)
        done, out, errors = client.end()
    assert (done, out) == (code, b"") and "Traceback" not in errors
    assert ("interrupted" in errors) == (number == signal.SIGINT)
    posted.ok("check")


def test_a_client_that_leaves_cuts_nothing_off(posted: Workspace) -> None:
    """A call that waits for the lock when the client closes its end is finished; then the process ends."""
    client = RawClient(posted)
    client.greet()
    with writer_lock(posted.root / ".cleared", 0, "the test"):
        client.ask(1, "tools/call", name="agent_propose", arguments={"texts": {"agents/a.py": text("1")}})
        wait_for_lock_message(client)
        assert client.process.stdin is not None
        client.process.stdin.close()
        client.process.stdin = None
    code, _, errors = client.end()
    assert code == 0 and "Traceback" not in errors
    assert posted.json("agent", "diff", "P1")["id"] == "P1"


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="children are counted in /proc")
def test_no_process_outlives_a_killed_server(posted: Workspace) -> None:
    client = RawClient(posted)
    client.greet()
    endless = text("n = 0\nwhile True:\n    n += 1")
    client.ask(1, "tools/call", name="agent_dry_run", arguments={"name": "a", "texts": {"agents/a.py": endless}})
    children = Path(f"/proc/{client.process.pid}/task")
    while not (found := [p for t in children.glob("*/children") for p in t.read_text().split()]):
        assert client.process.poll() is None
        time.sleep(0.01)
    client.process.kill()
    client.end()
    deadline = time.monotonic() + PATIENCE
    while any(Path(f"/proc/{p}").exists() and _is_alive(p) for p in found):
        assert time.monotonic() < deadline, "a child of the server runs on"
        time.sleep(0.05)


def _is_alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_it_says_once_that_the_key_has_no_passphrase(posted: Workspace) -> None:
    """H17: on stderr; not where it has one."""
    from cleared.trust import keys, sealed_key

    said = []
    for protect in (False, True):
        if protect:
            path, secret = keys.cleared_home() / keys.KEY, keys.new_secret()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(sealed_key.seal_key(secret, keys.public_half(secret), "four words like these"))
            path.chmod(0o600)
        client = RawClient(posted)
        client.greet()
        assert client.process.stdin is not None
        client.process.stdin.close()
        client.process.stdin = None
        said.append(client.end()[2].count("cleared key protect"))
    assert said == [1, 0]


def test_it_says_what_is_missing(ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No extra, no workspace, wrong options: one sentence and an exit code."""
    outside = here("mcp", "-C", str(tmp_path))
    assert outside.code == 4 and outside.out == "" and "config.yaml" in outside.err
    assert ws("mcp", "--json").code == 2
    monkeypatch.setattr("cleared.api.mcp_server.server_process.find_spec", lambda name: None)
    missing = ws("mcp")
    assert missing.code == 2 and missing.out == ""
    assert missing.err.strip() == (
        "cleared: cleared mcp needs one more package, the MCP SDK. In the checkout: pip install '.[mcp]'"
    )


def test_the_core_does_not_need_the_sdk() -> None:
    """Nothing that other commands import imports it."""
    code = (
        "import sys, cleared.cli.commands, cleared.service.operations.table; "
        "import cleared.api.mcp_server.client_calls, cleared.cli.mcp; "
        "print([m for m in sys.modules if m.split('.')[0] in ('mcp', 'mcp_types', 'uvicorn', 'pydantic')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == "[]"


def test_one_call_is_one_talk(posted: Workspace) -> None:
    """The shortest use: a client that asks one thing and leaves."""
    [result] = talk_stdio(posted, call("journal_balance", account=1010))
    assert result.structured_content["items"][0]["balance"] == "1446.40"
