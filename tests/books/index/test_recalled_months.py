"""What is suggested for a card is the same with what is kept of months that are over, and without."""

from __future__ import annotations

import random
import shutil
from typing import Any

import pytest
from harness import Workspace, chase

from cleared.base.last_values import LastValues
from cleared.books.index import standing_books
from cleared.books.ledger import all_booked_lines
from cleared.books.ledger.all_booked_lines import AllBookedLines
from cleared.books.review.book_facts import read_book_facts
from cleared.changes.committed_cards import read_cards
from cleared.changes.workspace_opening import open_workspace
from cleared.git import Snapshot
from cleared.review.suggested_choices import list_suggestions

TEXTS = ("CORNER SHOP", "TEA HOUSE", "HOUSE OF TEA", "UBER TRIP")


def forget() -> None:
    """As in a new process."""
    standing_books._memory = LastValues(standing_books._MAX_ENTRIES)  # type: ignore[misc]


def suggest(ws: Workspace, cards: list[str], *, reads_again: bool = False) -> list[list[dict[str, Any]]]:
    if not reads_again:
        forget()
    host = open_workspace(ws.root)
    host.reads_again = reads_again
    return [list_suggestions(host, card) for card in cards]


def compare(ws: Workspace, cards: list[str]) -> list[list[dict[str, Any]]]:
    """Asked once, again, where nothing is kept, and by a process that keeps it in memory."""
    found = [suggest(ws, cards) for _ in range(2)]
    shutil.rmtree(ws.root / ".cleared/books")
    found += [suggest(ws, cards), suggest(ws, cards, reads_again=True)]
    assert found[1:] == found[:-1]
    return found[0]


@pytest.mark.parametrize("seed", range(2))
def test_it_is_suggested_as_all_months_say(ws: Workspace, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance, said = random.Random(seed), list[list[dict[str, Any]]]()
    for month in range(3, 8):
        monkeypatch.setenv("CLEARED_CLOCK", f"2025-{month:02d}-28T20:00:00Z")
        rows = [
            (
                f"{month:02d}/{n + 1:02d}/2025",
                f"{chance.choice(TEXTS)} {n:03d}",
                f"-{chance.randint(100, 900) / 100:.2f}",
            )
            for n in range(8)
        ]
        ws.drop(f"{month}.csv", chase(*rows))
        ws.run("ingest")
        titles = {card["id"]: card["title"] for card in ws.cards() if card["kind"] == "entry"}
        waiting = list(titles)
        said += compare(ws, waiting)
        for card in waiting[1:]:
            account = "5040" if "CORNER" in titles[card] else chance.choice(("5020", "5070"))
            ws.ok("queue", "correct", card, "--account", account)
        decided = [each for each in ws.entries() if each["status"].startswith("user-")]
        booked = [each["entry_id"] for each in decided if "CORNER" not in each["description"]]
        ws("queue", "correct", chance.choice(booked), "--account", "5070")  # of any month, in this one
        ws("journal", "void", chance.choice(booked), "--reason", "a test")
        said += compare(ws, waiting[:1])
    evidence = "".join(each["evidence"] for card in said for each in card)
    assert "It would have booked" in evidence and "HOUSE" in evidence, "else little is compared"


def test_months_that_are_over_are_asked_once(posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []
    original = all_booked_lines._list_decided_keys

    def note(part: Any, banks: frozenset[int]) -> list[Any]:
        asked.append(part.ends and part.ends[0][:7])
        return original(part, banks)

    note.__module__, note.__qualname__ = original.__module__, original.__qualname__
    monkeypatch.setattr(all_booked_lines, "_list_decided_keys", note)
    for month in (2, 3, 4):
        posted.ok("journal", "add", f"2025-{month:02d}-01", "by hand", "5020=7.00", "1010=-7.00")
    host = open_workspace(posted.root)
    for expected in (["2025-01", "2025-02", "2025-03", "2025-04"], ["2025-04"]):
        forget()
        asked.clear()
        with host.open_for_reading() as repo:
            snapshot = Snapshot(repo, repo.read_head())
            lines: AllBookedLines = read_book_facts(host, snapshot, read_cards(host, snapshot)).lines
            assert lines.decided_keys is not None
        assert asked == expected
