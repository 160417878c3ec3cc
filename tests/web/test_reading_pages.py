"""What a page says first, what it folds away, and where a drawing ends."""

from __future__ import annotations

import re

from harness import Workspace, chase
from web_client import inner_server


def test_why_an_entry_is_so_is_said_in_words_first_and_by_hashes_last(posted: Workspace) -> None:
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        why = server.get("/books/entries/2025-01-001").text.partition(" Why ")[2]
    [first, *_] = re.findall(r"\b[0-9a-f]{40}\b", why)
    assert 0 < why.index("The bank said") < why.index("Evidence") < why.index(first)


def test_why_says_which_decision_git_took_back(posted: Workspace) -> None:
    posted.ok("queue", "approve", "2025-01-002")
    posted.git("revert", "--no-edit", "HEAD")
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        later = server.get("/books/entries/2025-01-002").text.partition("Decided later")[2]
    assert f"ACME INVOICE 12, which was taken back already by git, in commit {posted.head()[:7]}" in " ".join(
        later.split()
    )


def test_the_calls_of_a_run_are_folded_away_below_what_came_of_it(posted: Workspace) -> None:
    run = posted.json("run", "list")[0]["run_id"]
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        body = server.get(f"/runs/{run}").body
    folded = body.index("journal_add_double")
    opened = body.rindex("<details", 0, folded)
    assert "</details>" not in body[opened:folded] and not re.match(r"<details[^>]* open", body[opened:])
    assert body.index("4 transactions from 1 file") < opened


def test_an_empty_queue_of_new_books_offers_no_undo(ws: Workspace) -> None:
    with inner_server(ws.root) as server:
        server.sign_in(server.code)
        queue = server.get("/queue")
    assert "Nothing waits for you" in queue.text and "Undo" not in queue.text


def test_a_drawing_ends_where_the_books_do_and_has_an_axis(posted: Workspace) -> None:
    posted.drop("march.csv", chase(("03/03/2025", "GITHUB", "-4.00"), ("03/20/2025", "AWS EMEA", "-9.00")))
    posted.run("ingest")
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        drawings = [server.get(f"/reports/{name}?period=2025").body for name in ("pnl", "cash-flow")]
    for body in drawings:
        [drawn] = re.findall(r"<svg.*?</svg>", body, re.S)
        assert "2025-03" in drawn and "2025-04" not in drawn and "<line" in drawn, drawn
