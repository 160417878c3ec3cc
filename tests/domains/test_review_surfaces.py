"""The page and the prompts show and decide cards of another domain; neither knows it."""

from __future__ import annotations

from harness import Workspace
from modelled import open_host
from notes_domain import HEADER, PATH
from web_client import inner_server

from cleared.cli.tui.plain_prompts import PlainReview
from cleared.review.card_actions import ActionExecutor


def test_the_page_shows_confirms_and_takes_back(asked: Workspace) -> None:
    with inner_server(asked.root) as server:
        server.sign_in(server.code)
        queue = server.get("/queue")
        assert "2 cards to decide" in queue.text and "Note to confirm" in queue.text and "It says" in queue.text
        group = server.get(f"/queue/{queue.fields('card')[0]}/group")
        assert "2 × buy" in group.text and "· together" not in group.text
        queue = server.submit(queue, "/queue", ("choice", "suggested:BUY MILK"))
        assert "Corrected: buy milk" in queue.text and "1 card to decide" in queue.text
        queue = server.submit(queue, "/queue", ("choice", "confirm"))
        assert "Confirmed: buy bread" in queue.text
        queue = server.submit(queue, "/queue/undo")
        assert "Taken back: " in queue.text
    assert asked.read(PATH) == f"{HEADER}N1,buy milk\nN2,buy bread\nN1,BUY MILK\n"


def test_the_prompts_do_the_same(asked: Workspace) -> None:
    typed, said = iter(["y", "g", "a", "o", "a"]), list[str]()
    host = open_host(asked.root)
    PlainReview(ActionExecutor(lambda: host), lambda _: next(typed, None), said.append).run_prompts()
    text = "\n".join(said)
    assert "Note to confirm. 2 cards left, 0 done.\nbuy milk" in text and "Corrected: buy milk" in text
    assert "1 card, buy:" in text and "2 decisions made. 0 cards left." in text
