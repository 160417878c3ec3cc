"""What takes longer than somebody waits: it goes on without the page, and says how far it is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from harness import JANUARY, Workspace
from patience import PATIENCE
from web_client import Page, Server, inner_server

from cleared.web import long_work, work_pages
from cleared.web.long_work import MAX_ACTIVE, LongWork, Work
from cleared.web.site import Decided, Site


@pytest.fixture
def server(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(work_pages, "QUICK_SECONDS", 0.0)
    with inner_server(ws.root) as running:
        running.sign_in(running.code)
        yield running


def send_way(server: Server, way: str) -> Page:
    token = server.get("/agents/ingest").fields("token")[0]
    return server.send("POST", "/agents/ingest", [("token", token), ("way", way)])


def test_a_long_run_says_how_far_it_is_and_can_be_left(
    server: Server, ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C10: a dry run and an import show progress, hold no other page, and what came of them is found again."""
    posted, let_go = threading.Event(), threading.Event()
    count_call = Work.count_call

    def count_and_wait(work: Work, name: str) -> None:
        count_call(work, name)
        if work.entries:
            posted.set()
            assert let_go.wait(PATIENCE)

    assert "handed in: january.csv" in server.upload(server.get("/"), {"january.csv": JANUARY.encode()}).text
    monkeypatch.setattr(Work, "count_call", count_and_wait)
    for way, title, outcome in (("dry-run", "Dry run of ingest", "4 entries"), ("run", "Run of ingest", "succeeded")):
        posted.clear()
        let_go.clear()
        address = send_way(server, way).headers["location"]
        assert posted.wait(PATIENCE)
        page = server.get(address)
        assert title in page.text and "1 entry so far" in page.text and "can be left" in page.text
        assert f"At work: {title}" in server.get("/books").text
        let_go.set()
        assert outcome in server.follow(Page(303, {"location": address}, "")).text
        assert "At work" not in server.get("/books").text
        assert outcome in server.follow(server.get(address)).text, "and again"
        server.get(address)  # a page that loads again before the answer came asks twice
        assert server.follow(server.get(address)).body.count('<p class="message ') == (way == "run")
        looked = server.send("GET", address, headers={"HX-Request": "true"})
        assert looked.headers["hx-refresh"] == "true" and looked.body == "", "a part of a page has no scripts"
    assert len(ws.entries()) == 4
    assert server.get("/work/none").status == 404


def test_a_refusal_comes_to_the_page_that_asks(server: Server) -> None:
    page = server.follow(
        server.send(
            "POST",
            "/agents/none",
            [
                ("token", server.get("/agents/ingest").fields("token")[0]),
                ("way", "run"),
            ],
        )
    )
    assert page.status in (404, 409) and "none" in page.text and "Traceback" not in page.body


def test_only_so_much_is_worked_on_at_once() -> None:
    let_go, works = threading.Event(), LongWork()

    def wait(_: Work) -> long_work.Finish:
        assert let_go.wait(PATIENCE)
        return lambda page: page.go_to("/")

    begun = [works.begin(str(number), wait) for number in range(MAX_ACTIVE)]
    with pytest.raises(Exception, match="other things are at work"):
        works.begin("one more", wait)
    let_go.set()
    assert all(work.has_ended.wait(PATIENCE) for work in begun) and works.list_active() == []


def test_a_run_that_is_repeated_from_its_card_can_be_left(
    server: Server, ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C9: Run again is long work, too; what came of it is told to the browser that asked."""
    ws.agent("fails", "journal_list(month='2025-99')")
    assert ws("agent", "run", "fails").code == 1
    ws.agent("fails", "ctx_log('mended')")
    (card,) = (c for c in ws.cards() if c["kind"] == "failed_run")
    let_go, act = threading.Event(), Site.act_as_person

    def wait_and_act(*arguments: Any, **options: Any) -> Decided:
        assert let_go.wait(PATIENCE)
        return act(*arguments, **options)

    monkeypatch.setattr(Site, "act_as_person", wait_and_act)
    page = server.get(f"/queue?card={card['id']}")
    sent = server.send(
        "POST",
        "/queue",
        [
            ("token", page.fields("token")[0]),
            ("card", card["id"]),
            ("digest", page.fields("digest")[0]),
            ("choice", "retry"),
        ],
    )
    assert "Run again" in server.get(sent.headers["location"]).text and "At work" in server.get("/books").text
    let_go.set()
    assert "fails ran" in server.follow(sent).text and ws.cards() == []


def test_files_are_handed_in_and_imported_in_one_step(server: Server, ws: Workspace) -> None:
    """PAGE 5: what could not be read is said beside what was booked."""
    today = server.get("/")
    assert "Hand in and import" in today.text
    files = {"january.csv": JANUARY.encode(), "notes.csv": b"no bank\n"}
    ended = server.upload(today, files, ("way", "import"))
    assert "handed in: january.csv" in ended.text and "2 booked, 2 for you" in ended.text, ended.text
    assert "notes.csv was not imported" in ended.text and "2 cards to decide" in ended.text
    assert len(ws.entries()) == 4 and not (ws.root / "import/january.csv").exists()
    again = server.upload(ended, {"january.csv": JANUARY.encode()}, ("way", "import"))
    assert "0 booked, " in again.text and len(ws.entries()) == 4
    ws.in_order()
