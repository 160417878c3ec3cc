"""A card asks about an entry that stands, also where the entry came back under another id."""

from __future__ import annotations

from harness import Workspace

FOUR = "2025-01-004"


def about(ws: Workspace) -> dict[str, str]:
    """Card → entry or bank line that it asks about, of the coffee."""
    found = {}
    for card in ws.cards():
        if "COFFEE" in card["title"]:
            found[card["id"]] = card["entry_id"] or card["kind"]
    return found


def test_voiding_what_came_back_settles_its_card(posted: Workspace) -> None:
    posted.ok("queue", "correct", FOUR, "--account", "5060")
    posted.ok("queue", "undo")
    [again] = about(posted).values()
    assert again != FOUR
    posted.ok("journal", "void", again, "--reason", "a test")
    assert list(about(posted).values()) == ["line"]
    posted.ok("queue", "undo")
    [third] = about(posted).values()
    assert third not in (FOUR, again, "line")
    posted.in_order()
