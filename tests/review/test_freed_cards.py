"""A card decides about no other entry than the one it was opened for, and an entry that waits has a card: also after
git took something back, which frees numbers and leaves what the queue's files say."""

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


def take_back(ws: Workspace, *decision: str, then: str = "approve") -> None:
    """A decision, taken back by git once there was another one: the line that settles its card stays."""
    ws.ok(*decision)
    made = ws.head()
    ws.ok("queue", then, FOUR)
    ws.git("revert", "--no-edit", made)


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


# -- an entry that waits has a card ---------------------------------------------------------------------------------


def test_what_git_put_back_to_be_decided_is_asked_again(posted: Workspace) -> None:
    take_back(posted, "queue", "approve", TWO)
    assert TWO not in asked(posted).values()
    told = posted("check").out
    assert f"[asked] {TWO}: 2025-01-06 1500.00 'ACME INVOICE 12' waits" in told and f"queue approve {TWO}" in told
    accept(posted)
    assert list(asked(posted).values()) == [TWO]
    posted.in_order()
    posted.ok("queue", "approve", next(iter(asked(posted))))
    assert asked(posted) == {}
    posted.in_order()


def test_the_remedy_that_a_check_names_decides_it(posted: Workspace) -> None:
    take_back(posted, "queue", "approve", TWO)
    posted.ok("queue", "approve", TWO)
    assert "[asked]" not in posted("check").out
    accept(posted)
    assert asked(posted) == {}
    posted.in_order()


def test_it_is_asked_again_however_often_git_takes_it_back(posted: Workspace) -> None:
    take_back(posted, "queue", "approve", TWO)
    accept(posted)
    first = next(iter(asked(posted)))
    posted.ok("queue", "approve", TWO)
    made = posted.head()
    import_shop(posted)
    posted.ok("queue", "skip", NEXT)
    posted.git("revert", "--no-edit", made)
    accept(posted)
    again = {card for card, entry in asked(posted).items() if entry == TWO}
    assert len(again) == 1 and first not in again
    posted.in_order()


def test_a_script_asks_once_about_what_git_put_back(posted: Workspace) -> None:
    take_back(posted, "queue", "approve", TWO)
    for _ in range(2):
        posted.script(f'queue_add_review("{TWO}", "is it so?")', name="asker")
        assert list(asked(posted).values()) == [TWO]
    accept(posted)
    assert list(asked(posted).values()) == [TWO]
    posted.in_order()


def test_a_decision_that_git_took_back_is_none_for_scripts(posted: Workspace) -> None:
    body = '[d["entry_id"] for d in queue_decisions()]'
    take_back(posted, "queue", "approve", TWO)
    assert posted.script(body, name="reader")["result"] == [FOUR]


def test_a_check_has_a_line_asked_about_again(posted: Workspace) -> None:
    """Git took back what somebody had said of it."""
    posted.ok("queue", "reject", TWO, "--reason", "unclear", "--outcome", "suspense")
    [line] = asked(posted, "line")
    take_back(posted, "queue", "answer", line, "ignore")
    told = posted("check").out
    assert "[asked] checking 2025-01-06 1500.00 'ACME INVOICE 12' waits" in told and "cleared check --card" in told
    posted("check", "--card")
    [again] = asked(posted, "line")
    assert "[asked]" not in posted("check").out
    head = posted.head()
    posted("check", "--card")
    assert posted.head() == head
    accept(posted)
    posted.ok("queue", "correct", again, "--account", "4010")
    posted.in_order()


@pytest.mark.parametrize("words", [("answer", "ignore"), ("correct", "--account", "4010")])
def test_the_card_of_a_line_that_is_posted_again_is_void(posted: Workspace, words: tuple[str, ...]) -> None:
    take_back(posted, "queue", "reject", TWO, "--reason", "unclear", "--outcome", "suspense", then="skip")
    [line] = asked(posted, "line")
    before = posted.entries()
    done = posted.json("queue", words[0], line, *words[1:])
    assert "is gone" in done["said"][0] and posted.entries() == before and resolution(posted, line) == VOID
    accept(posted)
    assert sorted(asked(posted).values()) == [TWO, FOUR]
    posted.ok("queue", "reject", TWO, "--reason", "unclear", "--outcome", "suspense")
    assert len(asked(posted, "line")) == 1
    posted.in_order()


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
    told = posted("check").out
    assert f"[asked] the card {card} ('2025-02-03 77.00 NEW SHOP') asks about an entry that is gone" in told
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


def test_what_came_back_is_not_decided_by_the_card_of_who_had_its_number(posted: Workspace) -> None:
    """Git takes an import back, another entry gets the number, and git takes both of that back again."""
    free_number(posted)
    reverted = posted.head()
    accept(posted)
    import_shop(posted, OTHER)
    made = posted.head()
    [other] = [card for card, entry in asked(posted).items() if entry == NEXT]
    posted.ok("queue", "skip", TWO)
    posted.git("revert", "--no-edit", made)
    accept(posted)
    posted.git("revert", "--no-edit", reverted)
    accept(posted)
    assert [e["description"] for e in posted.entries() if e["entry_id"] == NEXT] == ["NEW SHOP"]
    [card] = [each for each, entry in asked(posted).items() if entry == NEXT]
    assert card != other and resolution(posted, other) == VOID
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
    assert f"cleared queue answer {card} different" in posted("check").out
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
