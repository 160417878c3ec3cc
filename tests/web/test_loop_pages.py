"""The loop's page and tree: ``cleared loop serve``, and as pages of the server; to be read only."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPMessage

import pytest
from harness import Workspace
from listening import list_listening, list_loopback
from patience import PATIENCE
from program_client import Program
from web_client import inner_server

from cleared.base.clock import SystemClock
from cleared.jobs import file_schemas, loop_state, status_tree
from cleared.jobs.runtime_directory import RuntimeDirectory, own_runtime
from cleared.web.http_server import HttpServer
from cleared.web.loop_pages import make_loop_application
from cleared.workspace.loopback_listener import open_listener
from cleared.workspace.settings.config_file import load_config_file

CLOCK = SystemClock()


@dataclass(frozen=True)
class Got:
    status: int
    headers: HTTPMessage
    body: bytes


@dataclass(frozen=True)
class Page:
    port: int

    def ask(self, method: str = "GET", path: str = "/", body: bytes | None = None, **headers: str) -> Got:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
            answer = connection.getresponse()
            return Got(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def send(self, data: bytes) -> bytes:
        """What comes back for these bytes, until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), 20) as connection:
            connection.sendall(data)
            found = b""
            while part := connection.recv(65_536):
                found += part
            return found


@contextmanager
def served(runtime: RuntimeDirectory) -> Iterator[Page]:
    """The same server in this process: a start of Python costs more than these tests do."""
    server, ready = HttpServer(), threading.Event()
    with open_listener(0, 256) as listener:
        port = listener.port
        app = make_loop_application(runtime, [f"127.0.0.1:{port}", f"localhost:{port}"])
        thread = threading.Thread(target=server.serve, args=(app, listener, ready.set))
        thread.start()
        try:
            assert ready.wait(PATIENCE)
            yield Page(port)
        finally:
            server.end()
            thread.join(PATIENCE)


@contextmanager
def process(ws: Workspace, *options: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """The command."""
    started = ws.start("loop", "serve", "--port", "0", *options)
    try:
        assert started.stderr is not None
        line = started.stderr.readline().decode()
        found = re.match(r"http://127\.0\.0\.1:(\d+)/", line)
        assert found, line
        yield int(found[1]), started
    finally:
        if started.poll() is None:
            started.send_signal(signal.SIGINT)
            started.communicate(timeout=PATIENCE)


@pytest.fixture
def page(ws: Workspace) -> Iterator[Page]:
    with served(own(ws)) as found:
        yield found


def own(ws: Workspace) -> RuntimeDirectory:
    runtime = own_runtime(ws.root, load_config_file(ws.root / "config.yaml"))
    runtime.make_folders()
    return runtime


def row(number: int, summary: str) -> dict[str, object]:
    at = "2025-02-10T06:00:00Z"
    return {
        "job_id": f"job_20250210T060000Z_git_status_summary_{number}",
        "kind": "git_status_summary",
        "target": "git status",
        "by": "person",
        "status": "succeeded",
        "started_at": at,
        "ended_at": at,
        "duration_sec": 0.5,
        "exit_code": 0,
        "summary": summary,
    }


def put_down(runtime: RuntimeDirectory, *summaries: str) -> None:
    """A loop has been there, with jobs that said this."""
    found = loop_state.fresh_state(CLOCK.now(), "0" * 16)
    for number, summary in enumerate(summaries, 1):
        found["jobs"].append(row(number, summary))  # type: ignore[arg-type]
        found["knowledge"].append(
            {
                "at": "2025-02-10T06:00:00Z",
                "kind": "git_status_summary",
                "target": summary[:300],
                "job_id": f"job_20250210T060000Z_git_status_summary_{number}",
                "text": summary,
            }
        )
        found["safety_stops"].append(
            {"at": "2025-02-10T06:00:00Z", "kind": summary[:100], "target": "", "by": "person", "reason": summary}
        )
    loop_state.save_state(runtime, found, CLOCK)
    status_tree.export_tree(runtime, found, CLOCK)


# -- what there is --------------------------------------------------------------------------------------------------


def test_the_page_says_how_the_loop_is_and_what_its_jobs_said(ws: Workspace, page: Page) -> None:
    ws.ok("loop", "run", "--once", "--enqueue", "git_status_summary")
    got = page.ask()
    text = got.body.decode()
    assert got.status == 200
    assert got.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "not running" in text and "1 succeeded, 0 failed" in text
    assert re.search(r"<td>job_\w+_git_status_summary</td>", text)
    assert '<meta http-equiv="refresh" content="5">' in text


def test_the_tree_is_given_as_the_loop_wrote_it(ws: Workspace, page: Page) -> None:
    ws.ok("loop", "run", "--once", "--enqueue", "git_status_summary")
    got = page.ask(path="/tree.json")
    assert got.headers["Content-Type"] == "application/json"
    found = json.loads(got.body)
    file_schemas.check_record("tree", found, "tree")
    assert found == ws.json("loop", "tree")


def test_a_poller_is_sent_the_tree_again_only_when_it_has_changed(ws: Workspace, page: Page) -> None:
    put_down(own(ws), "one")
    first = page.ask(path="/tree.json")
    tag = first.headers["ETag"]
    for given in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = page.ask(path="/tree.json", If_None_Match=given)
        assert (again.status, again.body, again.headers["ETag"]) == (304, b"", tag)
    put_down(own(ws), "one", "two")
    other = page.ask(path="/tree.json", If_None_Match=tag)
    assert other.status == 200
    assert other.headers["ETag"] != tag
    assert json.loads(other.body)["jobs"][-1]["summary"] == "two"


def test_head_is_get_without_the_body(ws: Workspace, page: Page) -> None:
    put_down(own(ws), "one")
    for path in ("/", "/tree.json", "/healthz"):
        whole, head = page.ask(path=path), page.ask("HEAD", path)
        assert (head.status, head.body) == (200, b"")
        assert dict(head.headers) == dict(whole.headers)


def test_health_is_told_and_nothing_else_is_there(page: Page) -> None:
    assert page.ask(path="/healthz").body == b"ok\n"
    for path in ("/index.html", "/jobs", "/../etc/passwd", "/%2e%2e/", "/tree.json/", "/single_agent_state.json"):
        assert page.ask(path=path).status == 404


def test_every_answer_forbids_a_browser_all_but_to_show_it(ws: Workspace, page: Page) -> None:
    put_down(own(ws), "one")
    for path in ("/", "/tree.json", "/healthz", "/nothing"):
        headers = page.ask(path=path).headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert "Access-Control-Allow-Origin" not in headers
        assert "Server" not in headers


def test_where_there_is_no_loop_yet_it_says_so_and_goes_on(ws: Workspace, page: Page) -> None:
    got, data = page.ask(), page.ask(path="/tree.json")
    assert (got.status, data.status) == (503, 503)
    assert "there is no loop in" in got.body.decode()
    assert json.loads(data.body)["error"]["type"] == "UsageError"
    assert data.headers["Retry-After"] == "5"
    put_down(own(ws), "one")
    assert (page.ask().status, page.ask(path="/tree.json").status) == (200, 200)


@pytest.mark.parametrize("damage", [b"", b'{"schema_version": "single_agent_tree_v1"', b"[]", b"\xff\xfe"])
def test_a_damaged_tree_is_said_to_be_one(ws: Workspace, page: Page, damage: bytes) -> None:
    runtime = own(ws)
    put_down(runtime, "one")
    runtime.tree_path.write_bytes(damage)
    for path in ("/", "/tree.json"):
        got = page.ask(path=path)
        assert got.status == 503
        assert b"single_agent_tree.json" in got.body
        assert b"Traceback" not in got.body


# -- what is not to be done -------------------------------------------------------------------------------------------


def test_nothing_can_be_written_with_or_without_a_token(ws: Workspace, page: Page) -> None:
    """I4: loopback only; nothing is posted without a token, and as there is nothing to post, with none either."""
    put_down(own(ws), "one")
    before = ws.state()
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"):
        for path in ("/", "/tree.json", "/jobs"):
            for given in ({}, {"Authorization": "Bearer abc"}, {"Origin": f"http://localhost:{page.port}"}):
                got = page.ask(method, path, b"kind=agent_run" * 1000, **given)
                assert got.status == (404 if path == "/jobs" else 405)
    assert ws.state().changed_since(before) == set()


def test_it_listens_on_loopback_only(page: Page) -> None:
    """I4"""
    assert list_listening(page.port) == list_loopback()


def test_another_name_in_the_host_header_is_refused(ws: Workspace, page: Page) -> None:
    """A page of somebody else's whose name has been pointed at this machine gets nothing."""
    put_down(own(ws), "a secret plan")
    for host in ("evil.example", f"127.0.0.1.evil.example:{page.port}", "evil.example:80", "localhost.", "", "[::2]"):
        got = page.ask(path="/tree.json", Host=host)
        assert got.status == 400 and b"secret" not in got.body
    assert page.send(b"GET /healthz HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    two = b"GET /healthz HTTP/1.1\r\nHost: localhost:%d\r\nHost: evil\r\n\r\n" % page.port
    assert page.send(two).startswith(b"HTTP/1.1 400 ")
    for host in (f"localhost:{page.port}", f"LOCALHOST:{page.port}", f"127.0.0.1:{page.port}"):
        assert page.ask(path="/healthz", Host=host).status == 200


def test_what_is_no_request_is_told_so(page: Page) -> None:
    for request in (
        b"garbage\r\n\r\n",
        b"GET / HTTP/9.9.9\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70_000,
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
    ):
        assert page.send(request).startswith(b"HTTP/1.1 400 "), request[:40]
        assert page.ask(path="/healthz").status == 200


# -- texts of others --------------------------------------------------------------------------------------------------

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</td></table><iframe src='//evil.example'>",
    "</style><style>*{display:none}",
    "a\u202egnp.exe",
    "\x1b[2J\x1b]0;title\x07bell",
    "zero\u200bwidth\ufeff",
    "a\udc80b",
    "&lt;already&gt;",
]


def test_texts_of_others_are_shown_and_not_obeyed(ws: Workspace, page: Page) -> None:
    put_down(own(ws), *HOSTILE)
    text = page.ask().body.decode("utf-8")
    body = text.partition("<body>")[2]
    assert set(re.findall(r"</?([a-z0-9]+)", body)) <= {
        "main",
        "h1",
        "h2",
        "dl",
        "dt",
        "dd",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "p",
        "a",
        "div",
        "body",
        "html",
    }
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in body
    assert "a\\u202egnp.exe" in body
    assert "\\x1b[2J" in body
    assert "zero\\u200bwidth\\ufeff" in body
    assert "a\\udc80b" in body
    assert "&amp;lt;already&amp;gt;" in body
    assert all(c == "\n" or c.isprintable() for c in text)
    data = page.ask(path="/tree.json").body
    assert data.isascii()
    assert [j["summary"] for j in json.loads(data)["jobs"]] == HOSTILE


# -- many, slow, gone -------------------------------------------------------------------------------------------------


def test_pollers_get_whole_trees_while_the_loop_writes(ws: Workspace, page: Page) -> None:
    runtime = own(ws)
    put_down(runtime, "0")
    done = threading.Event()

    def write() -> int:
        number = 0
        while not done.is_set():
            number += 1
            put_down(runtime, *(f"{number} " + "x" * 500 for _ in range(number % 25 + 1)))
        return number

    def poll(_: int) -> None:
        tag = ""
        for _ in range(3):
            got = page.ask(path="/tree.json", **({"If_None_Match": tag} if tag else {}))
            assert got.status in (200, 304), got.body
            if got.status == 200:
                found = json.loads(got.body)
                file_schemas.check_record("tree", found, "tree")
                assert len({j["summary"] for j in found["jobs"]}) == 1
            tag = got.headers["ETag"]

    with ThreadPoolExecutor(11) as pool:
        writer = pool.submit(write)
        try:
            list(pool.map(poll, range(10)))
        finally:
            done.set()
        assert writer.result() > 1


def test_clients_that_dawdle_stop_nobody_else(ws: Workspace, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than are let in at a time, and one that sends a byte every now and then."""
    put_down(own(ws), "one")
    monkeypatch.setattr("cleared.web.http_server.HEAD_SECONDS", 1.0)
    with contextlib.ExitStack() as stack:
        place = ("127.0.0.1", page.port)
        held = [stack.enter_context(socket.create_connection(place, 20)) for _ in range(600)]
        for one in held:
            with contextlib.suppress(OSError):
                one.sendall(b"GET / HTTP/1.1\r\nHost: loc")
        assert page.ask().status == 200 and page.ask(path="/tree.json").status == 200
        last = held[-1]
        with pytest.raises(OSError):  # at some time the server has had enough
            for _ in range(400):
                last.sendall(b"a")
                time.sleep(0.05)
    assert page.ask().status == 200


# -- as a command -----------------------------------------------------------------------------------------------------


def test_the_command_ends_well_also_with_a_client_on_and_one_that_went_away(ws: Workspace) -> None:
    """E32: a loop elsewhere has a page of its own, here as in the server's pages."""
    put_down(own(ws), *("x" * 900 for _ in range(25)))
    with process(ws, "--runtime-dir", str(own(ws).folder)) as (port, started):
        assert Page(port).ask(path="/tree.json").status == 200
        for _ in range(10):
            with socket.create_connection(("127.0.0.1", port), 20) as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % port)
        taken = ws("loop", "serve", "--port", str(port))
        assert taken.code == 5 and f"port {port} of 127.0.0.1 cannot be used" in taken.err and "--port" in taken.err
        with socket.create_connection(("127.0.0.1", port), 20) as connection:
            connection.sendall(b"GET / HTT")
            started.send_signal(signal.SIGTERM)
            out, err = started.communicate(timeout=PATIENCE)
        assert (started.returncode, out, err) == (0, b"", b"")


def test_without_its_packages_the_command_says_what_does(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cleared.web.page_server._PACKAGES", ("no_such_package",))
    done = ws("loop", "serve")
    assert done.code == 2 and "cleared loop serve needs more packages" in done.err
    assert "cleared loop tree --json prints the same tree" in done.err


def test_the_server_shows_the_loop_to_who_has_signed_in_and_its_tree_to_a_token(ws: Workspace) -> None:
    put_down(own(ws), "swept the floor")
    token = ws.json("token", "add", "monitor")["token"]
    with inner_server(ws.root) as server:
        program = Program(server, token)
        assert program.send("GET", "/loop/tree.json").body == own(ws).tree_path.read_text()
        assert Program(server).send("GET", "/loop/tree.json").status == 401
        assert server.get("/loop").status == 303
        server.sign_in(server.code)
        page = server.get("/loop")
        assert (
            page.status == 200
            and "swept the floor" in page.text
            and f'href="{server.home}/loop/tree.json"' in page.body
        )
        assert "swept the floor" in server.get("/loop/tree.json").body
