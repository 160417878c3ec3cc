"""Links to a server that runs, made by a command beside it: where nobody reads what the server prints. PAGE 1."""

from __future__ import annotations

import json
import time

import pytest
from harness import Workspace, refused
from running import eventually
from web_client import Server, inner_server


def split_link(printed: str) -> tuple[str, str]:
    """Address and code."""
    url, _, code = printed.strip().partition("/login#")
    return url, code


def test_a_new_link_signs_in_once_and_the_one_before_stays_good(ws: Workspace) -> None:
    with inner_server(ws.root) as server:
        link = ws.ok("server", "--link", "--port", str(server.port)).out
        assert ws.json("server", "--link", "--port", str(server.port))["link"] != link
        url, code = split_link(link)
        assert url.endswith(f":{server.port}") and server.sign_in(code).status == 303
        assert "Today" in server.get("/").text
        server.forget()
        assert server.sign_in(code).status == 403, "it counts once"
        for _ in range(12):
            assert server.sign_in("AAAA-BBBB").status == 403
        assert server.sign_in(server.code).status == 303, "wrong codes of others end no link"


def test_a_link_is_for_the_server_that_it_was_made_for_and_for_ten_minutes(ws: Workspace) -> None:
    from cleared.trust.keys import cleared_home

    with inner_server(ws.root) as server:
        _, code = split_link(ws.ok("server", "--link", "--port", str(server.port)).out)
        kept = next((cleared_home() / "sign-in-links").iterdir())
        assert kept.stat().st_mode & 0o077 == 0 and code not in kept.read_text()
        with inner_server(ws.root) as other:
            assert other.sign_in(code).status == 403
        kept.write_text(json.dumps(json.loads(kept.read_text()) | {"until": time.time() - 1}))
        assert server.sign_in(code).status == 403
    refused(ws("server", "--link", "--port", str(server.port)), 2, "no cleared server of yours", "cleared up --server")


def test_nothing_that_runs_for_the_program_makes_a_link(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    with inner_server(ws.root) as server:
        monkeypatch.setenv("CLEARED_JOB", "T-001")
        refused(ws("server", "--link", "--port", str(server.port)), 3)


def test_the_page_is_served_in_the_background(ws: Workspace) -> None:
    """No link lies in what the service printed; the command that started it has one, and so has each later one."""
    with inner_server(ws.root) as server:
        port = server.port  # which is free in a moment
    refused(ws("up", "--detach", "--server", "--port", "0"), 2, "needs one workspace, and a --port")
    done = ws.process("up", "--detach", "--server", "--port", str(port))
    try:
        assert done.code == 0, done.err
        printed = (ws.root / ".cleared/service.out").read_text()
        assert "cleared server --link" in printed and "/login#" not in printed
        for link in (done.out, ws.ok("server", "--link", "--port", str(port)).out):
            url, code = split_link(link)
            browser = Server.at(url, code)
            assert browser.sign_in(code).status == 303 and "Today" in browser.get("/").text
    finally:
        ws.ok("down")
    eventually(lambda: ws("server", "--link", "--port", str(port)).code == 2)


def test_the_service_of_the_system_serves_the_page(ws: Workspace) -> None:
    plain = ws.ok("service", "install", "--print").out
    assert '"up"\n' in plain
    served = ws.ok("service", "install", "--server", "--port", "8799", "--print").out
    assert '"up" "--server" "--port" "8799" "--no-link"\n' in served
