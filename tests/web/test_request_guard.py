"""Who is let in: this machine's browser that has signed in, from the page's own origin. Row I4."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import Workspace
from web_client import Server, page_server

from cleared.web.access import CODE_SECONDS, MAX_SESSIONS, MAX_TRIES, SESSION_SECONDS, Access


@pytest.fixture
def server(posted: Workspace) -> Iterator[Server]:
    with page_server(posted) as server:
        yield server


def test_i4_who_has_not_signed_in_sees_and_does_nothing(server: Server, posted: Workspace) -> None:
    """Row I4: on loopback alone, and each POST needs the session and its token."""
    queue, before = server.get("/queue"), posted.head()
    good = [("card", queue.fields("card")[0]), ("digest", queue.fields("digest")[0]), ("choice", "confirm")]
    token = ("token", queue.fields("token")[0])
    for path in ("/", "/queue", "/runs", "/books", "/agents/ingest", "/nothing"):
        page = server.send("GET", path, headers={"Cookie": None})
        assert page.status == 303 and page.headers["location"] == "/login" and "ACME" not in page.body
    assert server.send("GET", "/live", headers={"Cookie": None}).status == 403
    tried = [
        server.send("POST", "/queue", [token, *good], headers={"Cookie": None}),
        server.send("POST", "/queue", [token, *good], headers={"Cookie": f"cleared-{server.port}=x"}),
        server.send("POST", "/queue", good),
        server.send("POST", "/queue", [("token", "wrong"), *good]),
        server.send("POST", "/queue", [token, *good], headers={"Origin": "http://evil.example"}),
        server.send("POST", "/queue", [token, *good], headers={"Origin": f"http://localhost:{server.port + 1}"}),
        server.send("POST", "/queue", [token, *good], headers={"Origin": "null"}),
        server.send("POST", "/queue", [token, *good], headers={"Origin": None}),
        server.send("POST", "/queue", [token, *good], headers={"Host": "evil.example"}),
        server.send("POST", "/queue", body=b"\xff\xfe%", headers={"Content-Type": "multipart/form-data"}),
    ]
    assert [page.status for page in tried] == [303, 303, 409, 409, 403, 403, 403, 403, 400, 404]
    assert posted.head() == before
    assert "Confirmed" in server.follow(server.send("POST", "/queue", [token, *good])).text


def test_a_name_of_elsewhere_is_not_answered(server: Server) -> None:
    """DNS rebinding: a page of another name that leads here gets nothing."""
    for host in ("evil.example", f"evil.example:{server.port}", "localhost", f"127.0.0.1:{server.port + 1}", None):
        page = server.send("GET", "/", headers={"Host": host})
        assert page.status == 400 and "ACME" not in page.body
    assert server.send("GET", "/healthz", headers={"Host": f"127.0.0.1:{server.port}"}).body == '{"ok":true}'


def test_no_page_can_be_framed_or_run_what_is_not_ours(server: Server) -> None:
    for path in ("/", "/queue", "/login", "/static/page.js", "/nothing"):
        headers = server.get(path).headers
        policy = headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
        assert headers["x-frame-options"] == "DENY" and headers["x-content-type-options"] == "nosniff"
    assert "<script>" not in server.get("/queue").body and "style=" not in server.get("/queue").body


def test_what_is_too_large_is_refused_before_it_is_read(server: Server) -> None:
    page = server.send("POST", "/files", headers={"Content-Length": str(1 << 40)}, body=b"x")
    assert page.status == 413 and "At most 64 MB" in page.body


def test_signing_out_ends_the_session(server: Server) -> None:
    token = ("token", server.get("/").fields("token")[0])
    assert server.send("POST", "/sign-out", [token]).headers["location"] == "/login"
    assert server.get("/queue").status == 303


def test_a_code_counts_once(posted: Workspace) -> None:
    with page_server(posted, "--code", sign_in=False) as server:
        assert len(server.code) == 9 and server.get("/").status == 303
        assert server.sign_in("WRONG-ONE").status == 403 and server.cookie == ""
        assert server.sign_in(f" {server.code.lower()} ").status == 303 and server.get("/").status == 200
        server.forget()
        assert server.sign_in(server.code).status == 403
        code, errors = server.end()
    assert code == 0 and f"Code: {server.code}" in errors and "#" not in errors


def test_wrong_codes_end_no_link(posted: Workspace) -> None:
    """Any program of this machine can send some. A link's code cannot be guessed, and needs no end."""
    with page_server(posted, sign_in=False) as server:
        for wrong in ["AAAA-AAAA", "A" * 43] * (MAX_TRIES + 1):
            assert server.sign_in(wrong).status == 403
        assert server.sign_in(server.code).status == 303 and server.get("/queue").status == 200


def test_codes_and_sessions_end() -> None:
    now = [0.0]
    access = Access(lambda: now[0])
    code, late = access.make_link_code(), access.make_typed_code()
    session = access.open_session(code)
    assert session is not None and access.open_session(code) is None
    cookies = {session.cookie_name: session.cookie}
    now[0] = CODE_SECONDS + 1
    assert access.open_session(late) is None and access.find_session(session.path, cookies) is session
    now[0] += SESSION_SECONDS + 1
    assert access.find_session(session.path, cookies) is None
    guessed, link = access.make_typed_code(), access.make_link_code()
    for _ in range(MAX_TRIES):
        assert access.open_session("AAAA-AAAA") is None
    assert access.open_session(guessed) is None, "no typed code counts after so many wrong ones"
    assert access.open_session(access.make_typed_code()) is not None
    assert access.open_session(link) is not None, "one that cannot be guessed does"
    opened = [access.open_session(access.make_link_code()) for _ in range(MAX_SESSIONS + 5)]
    found = [each and access.find_session(each.path, {each.cookie_name: each.cookie}) for each in opened]
    assert len(list(filter(None, found))) == MAX_SESSIONS
