"""What a browser has once, it does not ask for again; what it asks for is small; events end with the session."""

from __future__ import annotations

import gzip
import http.client
import re

from harness import Workspace
from patience import PATIENCE
from web_client import Server, inner_server


def ask(server: Server, path: str) -> http.client.HTTPResponse:
    """As a browser does, which takes compressed answers."""
    wire = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    own = {"Host": f"localhost:{server.port}", "Cookie": server.cookie, "Accept-Encoding": "gzip"}
    wire.request("GET", path, headers=own)
    return wire.getresponse()


def test_files_are_kept_by_their_content_and_all_is_compressed(posted: Workspace) -> None:
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        plain = server.get("/queue").body
        answer = ask(server, f"{server.home}/queue")
        assert answer.headers["Content-Encoding"] == "gzip" and answer.headers["Cache-Control"] == "no-store"
        packed = answer.read()
        assert len(packed) < len(plain) / 2 and gzip.decompress(packed).decode().startswith("<!doctype html>")
        addresses = set(re.findall(r'"(/static/[^"]+)"', plain))
        assert len(addresses) == 7
        for address in addresses:
            assert re.fullmatch(r"/static/[0-9a-f]{16}/[a-z.]+", address), address
            answer = ask(server, address)
            assert answer.status == 200 and answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        name = "page.js"
        for address in (f"/static/{name}", f"/static/{'0' * 16}/{name}", "/static/../page.py", "/static/x"):
            answer = ask(server, address)
            assert answer.headers["Cache-Control"] == "no-store", address
            assert (answer.status == 200) == (address == f"/static/{name}"), address


def test_the_events_of_a_page_end_with_its_session(posted: Workspace) -> None:
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        page = server.get("/")
        events = ask(server, f"{server.home}/live")
        assert events.headers.get("Content-Encoding") is None and events.readline().startswith(b"data: ")
        server.send("POST", "/sign-out", [("token", page.fields("token")[0])])
        said = events.read().decode()
        assert said.rstrip().endswith("event: end\ndata: signed out"), said
