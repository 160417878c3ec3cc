"""Rows in the review: asked about, confirmed, put back, taken back and explained, as entries are."""

from __future__ import annotations

import pytest
from harness import Workspace, refused
from modelled import open_host
from tables import MAY, define, put_prices

from cleared.review.card_view import show_card
from cleared.review.queue_snapshot import read_queue

ASK = """
table_put("prices", {"sku": "A", "price": "4.50"})
table_ask("prices", "A", "7 % more?")
"""
MAY_ASK = MAY.replace("table.write", "table.write, queue.write")


@pytest.fixture
def asked(ws: Workspace) -> Workspace:
    """A price that was raised by a run, which asks about it."""
    define(ws)
    put_prices(ws, ("A", "4.20"))
    ws.script(ASK, header=MAY_ASK)
    return ws


def test_a_card_says_what_changed_and_what_putting_back_brings(asked: Workspace) -> None:
    (card,) = asked.json("queue", "list")
    assert card["entry_id"] == "prices/A" and card["kind"] == "row"
    shown = asked.ok("queue", "show", card["id"]).out
    assert "changed: price 4.20 → 4.50" in shown and "7 % more?" in shown
    view = show_card(read_queue(open_host(asked.root)), card["id"])
    assert view.heading == "Row to confirm" and [choice.verb for choice in view.choices] == ["confirm", "reject"]
    assert [(part.title, part.lines) for part in view.sections[1:]] == [
        ("prices/A", ("price 4.50",)),
        ("Putting back", ("price 4.20",)),
    ]


def test_it_is_confirmed(asked: Workspace) -> None:
    assert asked.json("queue", "approve", "prices/A")["entries"] == ["prices/A"]
    assert asked.json("queue", "list") == [] and "A,4.50," in asked.read("records/prices.csv")
    asked.in_order()


def test_it_is_put_back_and_that_is_taken_back(asked: Workspace) -> None:
    asked.ok("queue", "reject", "prices/A", "--reason", "agreed otherwise")
    assert "A,4.20," in asked.read("records/prices.csv")
    asked.in_order()
    asked.ok("queue", "undo")
    assert "A,4.50," in asked.read("records/prices.csv")
    assert [card["entry_id"] for card in asked.json("queue", "list")] == ["prices/A"]
    asked.in_order()


def test_what_changed_since_is_not_taken_back(asked: Workspace) -> None:
    asked.ok("queue", "reject", "prices/A", "--reason", "no")
    put_prices(asked, ("A", "9.00"))
    refused(asked("queue", "undo"), 3, "prices/A has changed since")


TWICE = """
for price in ("5.20", "6.00"):
    table_put("prices", {"sku": "A", "price": price})
    table_ask("prices", "A", "dearer?")
"""


def asked_twice(ws: Workspace) -> tuple[str, str]:
    """The cards of one row that a run raised twice, the older value first."""
    define(ws)
    put_prices(ws, ("A", "4.20"))
    ws.script(TWICE, header=MAY_ASK)
    older, newer = sorted(ws.cards(), key=lambda card: str(card["title"]))
    return older["id"], newer["id"]


def test_putting_back_an_older_value_leaves_what_was_decided_since(ws: Workspace) -> None:
    older, newer = asked_twice(ws)
    ws.ok("queue", "approve", newer)
    done = ws.ok("queue", "reject", older, "--reason", "too dear")
    assert "prices/A is another one since that was asked: price 6.00. It stays so; only the card" in done.err
    assert "A,6.00," in ws.read("records/prices.csv") and ws.cards() == []
    ws.ok("queue", "undo")
    assert [card["entry_id"] for card in ws.cards()] == ["prices/A"] and "A,6.00," in ws.read("records/prices.csv")
    ws.in_order()


def test_confirming_an_older_value_says_nothing_of_the_one_that_stands(ws: Workspace) -> None:
    """Who approves is shown 5.20; the row is 6.00 by now, and its own card still asks."""
    older, newer = asked_twice(ws)
    shown = [show_card(read_queue(open_host(ws.root)), card).sections[-1] for card in (older, newer)]
    assert [part.title for part in shown] == ["Another one since that was asked", "Putting back"]
    done = ws.ok("queue", "approve", older)
    assert "prices/A is another one since that was asked: price 6.00. It stays so; only the card" in done.err
    assert [card["id"] for card in ws.cards()] == [newer]
    ws.ok("queue", "undo")
    assert {card["entry_id"] for card in ws.cards()} == {"prices/A"} and len(ws.cards()) == 2
    ws.in_order()


def test_two_cards_of_one_row_are_decided_together(ws: Workspace) -> None:
    older, newer = asked_twice(ws)
    refused(ws("queue", "approve", "prices/A"), 2, "2 cards wait for prices/A", older, newer)
    done = ws.ok("queue", "approve", newer, older, newer)
    assert "It stays so; only the card" in done.err and ws.cards() == []
    ws.ok("queue", "undo")
    assert len(ws.cards()) == 2
    ws.ok("queue", "reject", *(card["id"] for card in ws.cards()), "--reason", "too dear")
    assert ws.cards() == [] and "A,4.20," in ws.read("records/prices.csv")
    ws.in_order()


def test_of_two_values_the_one_that_stands_is_put_back_and_the_other_card_settled(ws: Workspace) -> None:
    older, newer = asked_twice(ws)
    ws.ok("queue", "reject", newer, "--reason", "too dear")
    assert "A,4.20," in ws.read("records/prices.csv")
    assert "another one since" not in ws.ok("queue", "reject", older, "--reason", "too dear").err
    assert "A,4.20," in ws.read("records/prices.csv") and ws.cards() == []
    ws.in_order()


def test_putting_back_leaves_what_a_person_corrected_since(ws: Workspace) -> None:
    older, newer = asked_twice(ws)
    ws.ok("queue", "correct", newer, "--set", "price=5.90")
    ws.ok("queue", "reject", older, "--reason", "too dear")
    assert "A,5.90," in ws.read("records/prices.csv")


def test_it_is_explained(asked: Workspace) -> None:
    said = asked.ok("why", "prices/A").out
    assert "prices/A  price 4.50" in said and "table_put" in said and "probe" in said
    assert asked.json("why", "prices/A")["row"]["values"] == {"sku": "A", "price": "4.50", "since": ""}


def test_a_row_without_a_card_is_not_rejected(asked: Workspace) -> None:
    asked.ok("queue", "approve", "prices/A")
    refused(asked("queue", "reject", "prices/A", "--reason", "no"), 2, "nothing asks about prices/A")


@pytest.mark.parametrize("name", ["A/B", "100%", "ü x", "a/../b", "%2F"])
def test_any_text_can_be_a_key(ws: Workspace, name: str) -> None:
    define(ws)
    made = ws.script(f'table_put("prices", {{"sku": {name!r}, "price": 1}})', header=MAY)
    ws.json("why", made["result"])
    assert ws.run("probe")["result"] == made["result"]
    ws.in_order()
