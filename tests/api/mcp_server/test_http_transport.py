"""``cleared mcp --http``: only for programs of this machine that know the token."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from harness import Workspace, copy_books, environment
from listening import list_listening, list_loopback, take_port
from mcp_clients import HttpServer, http_server, program, text_of
from proposing import text

from cleared.api.mcp_server.http_transport import load_token
from cleared.base.errors import WorkspaceError
from cleared.changes.workspace_opening import open_workspace
from cleared.jobs.forbidden_files import ForbiddenFiles

pytestmark = pytest.mark.slow

LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).encode()
HELLO = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
    }
).encode()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, starting_point: Path) -> Iterator[tuple[Workspace, HttpServer]]:
    """One server for the tests that leave it as it is."""
    home = tmp_path_factory.mktemp("http")
    with pytest.MonkeyPatch.context() as patch:
        # A folder of its own: this user must not have seen settings approved in another copy of these books.
        patch.setenv("CLEARED_HOME", str(home / "cleared-home"))
        for key, value in environment(home).items():
            patch.setenv(key, value)
        ws = Workspace(copy_books(starting_point, home / "books"))
        ws.drop("january.csv")
        ws.run("ingest")
        with http_server(ws) as server:
            yield ws, server


Served = tuple[Workspace, HttpServer]


def test_two_official_clients_list_call_and_are_refused(served: Served) -> None:
    """H17: both at once; only the proposals are new."""
    ws, server = served

    async def talk(client: Any) -> list[Any]:
        names = {t.name for t in (await client.list_tools()).tools}
        assert {"agent_list", "agent_propose"} <= names and "agent_run" not in names
        path = f"agents/probe{uuid4().hex}.py"
        return [
            await client.call_tool("journal_list", {"month": "2025-01"}),
            await client.call_tool("agent_propose", {"texts": {path: text("1")}}),
            await client.call_tool("agent_approve", {"id": "P1"}),
        ]

    for entries, proposed, approved in server.talk(talk, talk):
        assert len(entries.structured_content["items"]) == 4
        assert proposed.structured_content["status"] == "open"
        assert approved.is_error and "deciding is for a person" in text_of(approved)
    assert not list(ws.root.glob("agents/probe*"))


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"Authorization": None}, 401),
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer "}, 401),
        ({"Authorization": "Bearer " + "A" * 43}, 401),
        ({"Authorization": "Bearer \xe9\xff"}, 401),
        ({"Authorization": "Basic " + "A" * 43}, 401),
        ({"Host": None}, 400),
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:{port}"}, 421),
        ({"Host": "127.0.0.1"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Host": "127.0.0.1.evil.example:{port}"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Content-Type": "text/plain"}, 400),
    ],
    ids=str,
)
def test_others_are_refused(served: Served, changed: dict[str, str | None], status: int) -> None:
    """H17: without the token, by another name, from a page of elsewhere; and nothing of the books is said."""
    _, server = served
    headers = {k: v.format(port=server.port) if v is not None else None for k, v in changed.items()}
    found, said = server.post(HELLO, **headers)
    assert found == status, said
    assert len(said) < 500 and server.token not in said and "Traceback" not in said
    assert server.post(HELLO, Host=f"localhost:{server.port}", Origin=f"http://localhost:{server.port}")[0] == 200


@pytest.mark.parametrize(
    ("body", "statuses"),
    [
        (b"x" * (10 << 20), {413}),
        (b"{", {400}),
        (b"", {400}),
        (b"[]", {400}),
        (b"[" * 100_000, {400}),
        (b'{"jsonrpc": "2.0", "id": 1}', {400}),
        (b"\xff\xfe", {400}),
        (LIST, {400, 404}),
    ],
    ids=["10 MB", "half", "nothing", "batch", "deep", "no method", "no text", "no greeting"],
)
def test_bodies_that_are_no_requests_are_refused(served: Served, body: bytes, statuses: set[int]) -> None:
    _, server = served
    for headers in ({}, {"MCP-Protocol-Version": "2026-07-28"}):
        status, said = server.post(body, headers)
        assert status in statuses, (headers, said)
        assert len(said) < 2_000 and "Traceback" not in said and 'File "' not in said
    assert server.post(HELLO)[0] == 200


def test_a_connection_that_is_cut_disturbs_nobody(served: Served) -> None:
    """In the head, in the body, and while the answer is made."""
    _, server = served
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n"
    head += "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    for start in (
        head[:40],
        f"{head}Content-Length: 1000\r\n\r\n{{",
        f"{head}Content-Length: {len(HELLO)}\r\n\r\n{HELLO.decode()}",
    ):
        with socket.create_connection(("127.0.0.1", server.port)) as wire:
            wire.sendall(start.encode())
    assert server.post(HELLO)[0] == 200
    assert server.process.poll() is None


def test_it_listens_on_loopback_only(served: Served) -> None:
    _, server = served
    assert list_listening(server.port) == list_loopback()


def test_the_token_is_shown_once_and_kept_private(ws: Workspace) -> None:
    """A new one on stderr, once; then only where it lies. Ctrl-C ends the server though a client is connected."""
    shown = []
    for _ in range(2):
        with http_server(ws) as server:
            assert stat.S_IMODE(server.token_file.stat().st_mode) == 0o600
            assert ws.git("status", "--porcelain") == ""
            with socket.create_connection(("127.0.0.1", server.port)):
                code, errors = server.end(signal.SIGINT)
            assert code == 130 and "Traceback" not in errors and server.url in errors
            shown.append((server.token, server.token in errors))
    assert shown == [(shown[0][0], True), (shown[0][0], False)] and len(shown[0][0]) >= 40


def test_a_token_that_others_may_know_is_replaced(ws: Workspace) -> None:
    """One that others could read, a link, another's text, or one that came with the repository."""
    host = open_workspace(ws.root)
    token, path, is_new = load_token(host)
    assert is_new and load_token(host) == (token, path, False)
    assert ForbiddenFiles(ws.root).explain_refusal(path), "no job reads it"
    path.chmod(0o644)
    second = load_token(host)
    assert second[2] and second[0] != token and stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("short\n")
    third = load_token(host)
    assert third[2]
    other = ws.root / "other"
    other.write_text("B" * 43)
    other.chmod(0o600)
    path.unlink()
    path.symlink_to(other)
    assert load_token(host)[2] and not path.is_symlink() and other.read_text() == "B" * 43
    path.write_text("C" * 43)
    ws.git("add", "-f", ".cleared/mcp-token.secret")
    ws.git("commit", "-qm", "a present")
    with pytest.raises(WorkspaceError, match="planted"):
        load_token(open_workspace(ws.root))


def test_a_taken_port_is_said(ws: Workspace) -> None:
    with take_port("127.0.0.1") as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            program(ws, "--http", "--port", port), capture_output=True, text=True, env=dict(os.environ)
        )
    assert done.returncode == 5 and done.stdout == ""
    assert f"port {port} of 127.0.0.1" in done.stderr and "--port" in done.stderr and "Traceback" not in done.stderr
