"""A card decides about no other entry than the one it was opened for, also after git took that back: its number is free
then, and the lines of the queue stay."""

from __future__ import annotations

import pytest
from harness import Workspace, chase

TWO, FOUR = "2025-01-002", "2025-01-004"
SHOP = ("02/03/2025", "NEW SHOP", "-77.00")
OTHER = ("02/04/2025", "OTHER SHOP", "-77.00")
NEXT = "2025-02-001"
VOID = "void: what it asks about is gone"


def accept(ws: Workspace) -> None:
    """Somebody answers for the newest revert."""
    commit = ws.git("log", "-1", "--format=%H", "--grep=This reverts commit").strip()
    ws.ok("accept", commit, "--reason", "meant so")


def asked(ws: Workspace, kind: str = "entry") -> dict[str, str]:
    """Open card → the entry that it asks about."""
    return {card["id"]: card["entry_id"] for card in ws.cards() if card["kind"] == kind}


def resolution(ws: Workspace, card: str) -> str:
    return str(next(each["resolution"] for each in ws.cards("--status", "all") if each["id"] == card))


def import_shop(ws: Workspace, row: tuple[str, str, str] = SHOP) -> None:
    ws.drop(f"{row[1]}.csv", chase(row))
    ws.run("ingest")


def free_number(ws: Workspace) -> str:
    """An import of one entry, taken back by git once there was a decision: the card that stays open."""
    import_shop(ws)
    made = ws.head()
    ws.ok("queue", "approve", FOUR)
    ws.git("revert", "--no-edit", made)
    return next(card for card, entry in asked(ws).items() if entry == NEXT)


def test_a_new_entry_on_the_number_of_a_decided_one_is_asked_about(posted: Workspace) -> None:
    import_shop(posted)
    made = posted.head()
    decided = next(card for card, entry in asked(posted).items() if entry == NEXT)
    posted.ok("queue", "skip", FOUR)
    posted.git("revert", "--no-edit", made)
    accept(posted)
    assert resolution(posted, decided) == VOID
    import_shop(posted, OTHER)
    assert [card for card, entry in asked(posted).items() if entry == NEXT] not in ([], [decided])
    posted.in_order()


# -- a card whose entry is gone -------------------------------------------------------------------------------------


def test_the_card_of_an_entry_that_is_gone_is_void_once_somebody_answers_for_it(posted: Workspace) -> None:
    card = free_number(posted)
    accept(posted)
    assert card not in asked(posted) and resolution(posted, card) == VOID
    posted.in_order()


@pytest.mark.parametrize("by_run", [True, False])
def test_who_gets_a_number_gets_no_card_of_another(posted: Workspace, by_run: bool) -> None:
    card = free_number(posted)
    if by_run:
        import_shop(posted, OTHER)
        [new] = [each for each, entry in asked(posted).items() if entry == NEXT]
        assert new != card
    else:
        posted.ok("journal", "add", "2025-02-04", "Depreciation", "5220=10", "1590=-10")
        assert NEXT not in asked(posted).values()
    assert resolution(posted, card) == VOID
    accept(posted)
    posted.in_order()


@pytest.mark.parametrize("words", [("approve",), ("reject", "--reason", "x"), ("correct", "--account", "5070")])
def test_a_decision_about_a_void_card_settles_it_alone(posted: Workspace, words: tuple[str, ...]) -> None:
    card = free_number(posted)
    before = posted.entries()
    done = posted.json("queue", words[0], card, *words[1:])
    assert posted.entries() == before and done["entries"] == [] and done["cards"] == [card]
    assert f"What the card {card} asks about is gone" in done["said"][0]
    assert resolution(posted, card) == VOID and posted.git("log", "-1", "--format=%s").strip() == f"void: card {card}"
    accept(posted)
    posted.in_order()


# -- other cards that name entries ----------------------------------------------------------------------------------


def propose_receipt(ws: Workspace) -> str:
    """The card that proposes a receipt for the entry of ``free_number``."""
    path = ws.root / "receipts/inbox/scan.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("Shop\nDate: 02/03/2025\nTotal $77.00\n")
    ws.ok("receipt", "add")
    [card] = asked(ws, "receipt")
    return card


def free_proposed(ws: Workspace) -> str:
    """The card of a receipt whose entry git has taken back."""
    import_shop(ws)
    made = ws.head()
    card = propose_receipt(ws)
    ws.git("revert", "--no-edit", made)
    return card


def test_a_receipt_is_not_linked_to_who_got_the_number(posted: Workspace) -> None:
    card = free_proposed(posted)
    import_shop(posted, OTHER)
    assert resolution(posted, card) == VOID
    [new] = asked(posted, "receipt")  # it fits the other one, too, and nobody was asked about that
    accept(posted)
    posted.in_order()
    posted.ok("queue", "answer", new, "link")
    assert [e["entries"] for e in posted.json("receipt", "list")["receipts"]] == [[NEXT]]
    posted.in_order()


def test_a_void_card_of_a_receipt_links_nothing(posted: Workspace) -> None:
    card = free_proposed(posted)
    done = posted.json("queue", "answer", card, "link")
    assert "is gone" in done["said"][0] and resolution(posted, card) == VOID
    assert [e["entries"] for e in posted.json("receipt", "list")["receipts"]] == [[]]
    accept(posted)
    import_shop(posted)  # the same again: nobody has answered whether it is its receipt
    assert len(asked(posted, "receipt")) == 1
    posted.in_order()
