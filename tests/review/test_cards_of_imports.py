"""A card about an import asks about nothing once that is taken back, by a decision or by git, and asks again with the
file."""

from __future__ import annotations

import pytest
from harness import Workspace, chase

JANUARY = chase(("01/03/2025", "ALPHA", "-4.00", "996.00"), ("01/05/2025", "BETA", "-6.00", "990.00"))
MARCH = chase(("03/03/2025", "GAMMA", "-4.00", "900.00"), ("03/05/2025", "DELTA", "-6.00", "894.00"))
INNER = chase(("03/03/2025", "GAMMA", "-4.00", "900.00"), ("03/05/2025", "DELTA", "-6.00", "800.00"))
LIKE = chase(("01/04/2025", "ALPHA STORE 7", "-4.00"), ("01/06/2025", "OTHER", "-9.00"))
VOID = "void: what it asks about is gone"


def bring(ws: Workspace, name: str, text: str) -> tuple[str, str]:
    """Import a file; the run, and its commit."""
    ws.drop(name, text)
    return str(ws.run("ingest")["run_id"]), ws.head()


def asked(ws: Workspace, kind: str = "balance_gap") -> list[str]:
    return [card["id"] for card in ws.cards() if card["kind"] == kind]


def take_back(ws: Workspace, commit: str) -> str:
    """By git, once something else was written into the queue, so that its lines stay; the revert."""
    ws.ok("queue", "approve", "2025-01-001")
    ws.git("revert", "--no-edit", commit)
    return ws.head()


@pytest.mark.parametrize("later", [MARCH, INNER])
def test_the_gap_of_an_import_that_git_took_back_is_settled(ws: Workspace, later: str) -> None:
    bring(ws, "january.csv", JANUARY)
    _, made = bring(ws, "march.csv", later)
    [card] = asked(ws)
    revert = take_back(ws, made)
    told = ws("check").out
    assert (
        f"the card {card} (" in told
        and f"asks about an import that is gone. Settle it: cleared queue answer {card} seen" in told
    )
    ws.ok("accept", revert, "--reason", "meant so")
    assert asked(ws) == []
    ws.in_order()
    bring(ws, "march.csv", later)
    assert len(asked(ws)) == 1, "the rows are missing all the same"
    ws.in_order()


def test_the_remedy_that_a_check_names_settles_it(ws: Workspace) -> None:
    bring(ws, "january.csv", JANUARY)
    _, made = bring(ws, "march.csv", MARCH)
    [card] = asked(ws)
    revert = take_back(ws, made)
    ws.ok("queue", "answer", card, "seen")
    ws.ok("accept", revert, "--reason", "meant so")
    ws.in_order()


def test_the_gap_of_a_file_that_came_again_stays(ws: Workspace) -> None:
    bring(ws, "january.csv", JANUARY)
    _, made = bring(ws, "march.csv", MARCH)
    before = asked(ws)
    revert = take_back(ws, made)
    bring(ws, "march.csv", MARCH)
    ws.ok("accept", revert, "--reason", "meant so")
    assert asked(ws) == before
    ws.in_order()


@pytest.mark.parametrize(
    "words", [("revert", "{}", "--yes"), ("import", "undo", "january.csv", "--reason", "wrong bank")]
)
def test_a_gap_beside_an_import_that_is_taken_back_is_settled(ws: Workspace, words: tuple[str, ...]) -> None:
    """Nothing is missing between a file and one that is not there any more."""
    run, _ = bring(ws, "january.csv", JANUARY)
    bring(ws, "march.csv", MARCH)
    assert len(asked(ws)) == 1
    ws.ok(*(word.format(run) for word in words))
    assert asked(ws) == []
    ws.in_order()


def test_look_alikes_of_an_import_that_git_took_back_are_settled(ws: Workspace) -> None:
    bring(ws, "january.csv", JANUARY)
    _, made = bring(ws, "like.csv", LIKE)
    [card] = asked(ws, "near_match")
    revert = take_back(ws, made)
    assert f"cleared queue answer {card} seen" in ws("check").out
    ws.ok("accept", revert, "--reason", "meant so")
    assert asked(ws, "near_match") == []
    bring(ws, "like.csv", LIKE)
    assert len(asked(ws, "near_match")) == 1
    ws.in_order()
