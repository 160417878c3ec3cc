"""What a page must bear: cookies of another port, a thousand connections, markup in every text. Row I4."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest
from harness import Workspace, chase, copy_books
from hostile_books import post_texts
from patience import PATIENCE
from web_client import OUTSIDE, Server, inner_server, page_server

pytestmark = pytest.mark.slow

MARKUP = "\"'><img src=x onerror=alert(1)><script>alert(2)</script>{{7*7}}"
ODD = "\u202egnp.exe\x1b[31m\u2066"
CHART = "accounts/chart-of-accounts.csv"


@pytest.fixture
def server(posted: Workspace) -> Iterator[Server]:
    with inner_server(posted.root) as running:
        running.sign_in(running.code)
        yield running


def test_i4_a_cookie_opens_nothing_but_what_it_is_for(server: Server, starting_point: Path, tmp_path: Path) -> None:
    """Row I4: whoever has the cookie all the same opens nothing without the path, which is a secret of its own; whoever
    has the path, nothing without the cookie; and nobody anything elsewhere."""
    with inner_server(copy_books(starting_point, tmp_path / "others")) as other:
        made = other.sign_in(other.code).headers["set-cookie"]
        assert "HttpOnly" in made and "samesite=strict" in made.lower() and f"Path={other.home};" in made
        assert other.home.startswith("/s/") and len(other.home) >= 25 and made.count(other.home[3:]) == 1
        value = server.cookie.partition("=")[2]
        renamed = f"{other.cookie.partition('=')[0]}={value}"
        for asked, path, cookie in (
            (server, "/queue", server.cookie),
            (server, f"{other.home}/queue", server.cookie),
            (server, f"{server.home}/queue", other.cookie),
            (server, f"{server.home}/queue", None),
            (server, f"{server.home[:-1]}/queue", server.cookie),
            (server, f"/s/{server.home}/queue", server.cookie),
            (other, f"{server.home}/queue", server.cookie),
            (other, f"{other.home}/queue", server.cookie),
            (other, f"{other.home}/queue", renamed),
        ):
            page = asked.send("GET", path, headers={"Cookie": cookie})
            assert page.status == 303 and page.headers["location"] == "/login", (path, cookie)
        both = {"Cookie": f"{server.cookie}; {other.cookie}; {other.cookie.partition('=')[0]}x=1"}
        assert other.send("GET", f"{other.home}/queue", headers=both).status == 200, "beside others"
        token = server.get("/").fields("token")[0]
        for path in ("/queue/undo", "/sign-out"):
            page = other.send("POST", path, [("token", token)])
            assert page.status == 409, "the token of one session is none of another"


def test_a_thousand_connections_keep_nobody_from_deciding(server: Server, posted: Workspace) -> None:
    """A thousand connections, half of them with the beginning of a request; a person reads and decides meanwhile."""
    place = ("127.0.0.1", server.port)
    with contextlib.ExitStack() as stack:
        for number in range(1_000):
            wire = stack.enter_context(socket.create_connection(place, 30))
            if number % 2:
                with contextlib.suppress(OSError):  # closed, for the newer ones
                    wire.sendall(b"POST /queue HTTP/1.1\r\nHost: localhost:%d\r\nX-Slow: " % server.port)
        queue = server.get("/queue")
        assert queue.status == 200 and "2 cards" in queue.text
        assert "Confirmed" in server.submit(queue, "/queue", ("choice", "confirm")).text
    assert len(posted.cards()) == 1


class Elements(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, body: str) -> None:
        super().__init__()
        self.odd: list[str] = []
        self.links: set[str] = set()
        self.asked: set[str] = set()
        self.feed(body)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        src = values.get("src") or ""
        if tag in ("img", "iframe", "object") or (tag == "script" and not src.startswith("/static/")):
            self.odd.append(tag)
        self.odd += [name for name in values if name.startswith("on") or name == "style"]
        for name in ("href", "action", "src", "hx-get", "data-live"):
            if name not in values:
                continue
            address = values.get(name) or ""
            self.asked |= {address}
            if not address.startswith(("/", "#")) or address.startswith("//"):
                self.odd.append(address)
        if tag == "a" and (values.get("href") or "").startswith("/"):
            self.links.add(str(values["href"]))


def test_markup_in_every_text_is_text(posted: Workspace) -> None:
    """Bank texts, headers of scripts, account names, reasons, entries, file names, queries."""
    hostile = MARKUP + ODD
    posted.drop("hostile.csv", chase(("02/01/2025", MARKUP.replace('"', ""), "-9.00")))
    posted.run("ingest")
    post_texts(posted, (MARKUP,))
    source = posted.read("agents/ingest.py")
    posted.put("agents/evil.py", source.replace("name: ", f"name: {MARKUP} ", 1))
    posted.put(
        "agents/other.py", f'"""\nname: other\ndescription: {MARKUP}\n"""\nctx_log("{MARKUP}".replace("x", "y"))\n'
    )
    chart = posted.read(CHART)
    assert "Meals" in chart
    posted.put(CHART, chart.replace("Meals", f'"{MARKUP.replace(chr(34), chr(34) * 2)}"', 1))
    posted.commit(CHART, message="names")
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        card = server.get("/queue").fields("card")[0]
        todo = [
            "/",
            "/queue",
            "/agents",
            "/runs",
            "/books",
            "/books/entries",
            "/chat",
            "/loop",
            "/reports",
            *(
                f"{path}{quote(hostile)}"
                for path in (
                    "/agents/",
                    "/runs/",
                    "/books/entries/",
                    "/queue/",
                    "/work/",
                    "/chat/",
                    "/w/",
                    "/books/entries?text=",
                    "/queue?q=",
                    "/books/entries?month=",
                    "/books/entries?account=",
                    f"/queue?card={card}&q=",
                    f"/queue/accounts?card={card}&q=",
                    "/queue?card=",
                )
            ),
        ]
        seen: set[str] = set()
        shown = 0
        while todo and len(seen) < 120:
            path = todo.pop()
            if path in seen or "/file." in path:
                continue
            seen.add(path)
            page = server.get(path)
            assert page.status < 500 or (path == "/loop" and page.status == 503), (path, page.text)
            if "text/html" not in page.headers.get("content-type", ""):
                continue
            elements = Elements(page.body)
            assert elements.odd == [], (path, elements.odd)
            inside = (f"{server.home}/", "#", *OUTSIDE)
            assert page.status == 303 or all(each.startswith(inside) for each in elements.asked), (path, elements.asked)
            assert not {"\u202e", "\u2066", "\x1b"} & set(page.body), path
            shown += "{{7*7}}" in page.text
            todo += sorted(elements.links - seen)
        assert shown > 5, "the texts are on many pages"
        queue = server.get(f"/queue?card={card}")
        answer = server.submit(queue, "/queue", ("choice", "reject"), ("reason", hostile))
        assert Elements(answer.body).odd == []
        answer = server.submit(server.get("/queue"), "/queue", ("choice", hostile))
        assert Elements(answer.body).odd == []
        answer = server.upload(server.get("/"), {f"a{MARKUP.replace(chr(34), '')}.csv": b"x"})
        assert Elements(answer.body).odd == [] and answer.status < 500


@pytest.mark.parametrize("is_signed_in", [False, True])
def test_what_is_no_form_is_refused_in_words(server: Server, is_signed_in: bool) -> None:
    """A sender names the character set of a form: some make what no text can hold, others nothing at all."""
    form = 'multipart/form-data; boundary="B"'
    part = b'--B\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n--B--\r\n'
    sent = [
        (f"{form}; charset=unicode_escape", part % (b"code", b"", rb"\ud800")),
        (f"{form}; charset=utf-7", part % (b"question", b"", b"+2AA-")),
        (f"{form}; charset=utf-7", part % (b"+2AA-", b"", b"x")),
        (f"{form}; charset=utf-7", part % (b"file", b'; filename="+2AA-.csv"', b"x")),
        (f"{form}; charset=undefined", part % (b"code", b"", b"x")),
        (form, b"--B\r\nContent-Disposition: form-data\r\n\r\nx\r\n--B--\r\n"),
        ("multipart/form-data", b"x"),
    ]
    cookie = {} if is_signed_in else {"Cookie": None}
    for path in ("/queue", "/files") if is_signed_in else ("/login", "/passkeys/new"):
        for kind, body in sent:
            page = server.send("POST", path, body=body, headers={"Content-Type": kind, **cookie})
            assert page.status == (404 if is_signed_in else 400), (path, kind, page.status)
            assert "the form cannot be read" in page.text


def test_what_a_client_sends_is_not_said_on_the_terminal(posted: Workspace) -> None:
    """Whoever reaches the port could fill its log: the library that reads forms warns of each one that is none."""
    with page_server(posted) as server:
        kind = {"Content-Type": "multipart/form-data; boundary=B", "Cookie": None}
        for form in (b"--B--x", b'--B\r\nX"y: z\r\n\r\nx\r\n--B--\r\n'):
            assert server.send("POST", "/login", body=form, headers=kind).status in (400, 403)
        server.process.terminate()
        said = server.process.communicate(timeout=PATIENCE)[1].decode()
    assert all("cleared" in line or "link" in line for line in said.splitlines()), said
