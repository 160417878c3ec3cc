"""The bank says another amount under an id that it has used: both are booked, and one answer says which counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Workspace, chase, refused
from reviewers import People
from statement_files import Line, Told, write_ofx

NUMBER = ("config", "set", "bank_accounts.checking.match.account", "1234567890")


def ofx(amount: str, day: str = "2025-01-08", *, id: str = "T1") -> str:
    return write_ofx(Told(lines=[Line(day, amount, "DINER 12", id), Line("2025-01-09", "-4.00", "GITHUB *PRO", "T2")]))


def take_file(ws: Workspace, name: str, data: str) -> None:
    ws.drop(name, data)
    ws.run("ingest")


def checking(ws: Workspace) -> str:
    rows = ws.json("journal", "balance")
    return next((str(row["balance"]) for row in rows if row["account_id"] == 1010), "0.00")


def revision(ws: Workspace) -> dict[str, object]:
    (card,) = (card for card in ws.cards() if card["kind"] == "revision")
    return card


@pytest.fixture
def revised(ws: Workspace) -> Workspace:
    """A tip came on top: 20.00 was reported, then 23.50."""
    ws.ok(*NUMBER)
    for name, amount in (("first.ofx", "-20.00"), ("second.ofx", "-23.50")):
        take_file(ws, name, ofx(amount))
    assert checking(ws) == "-47.50", "both are booked, and a card asks"
    return ws


def test_the_new_amount_takes_the_place_of_the_old_one(revised: Workspace) -> None:
    ws = revised
    card = str(revision(ws)["id"])
    shown = ws.ok("queue", "show", card).out
    told = ws("reconcile", "1010", "--date", "2025-01-31", "--balance", "-27.50").out
    assert f"until its card is answered (cleared queue show {card}):\n  checking: the bank reported T1" in told
    assert shown.count("DINER 12") >= 2 and "-20.00" in shown and "-23.50" in shown, "both rows"
    refused(ws("period", "close", "2025-01", "--despite", "it counts"), 3, "now as -23.50")
    ws.ok("queue", "answer", card, "replace")
    assert checking(ws) == "-27.50"
    assert not [each for each in ws.cards() if each["kind"] in ("revision", "line")]
    assert not [each for each in ws.cards() if each["kind"] == "entry" and "20.00" in str(each["title"])]
    ws.in_order()
    for amount in ("-20.00", "-23.50"):
        take_file(ws, "again.ofx", ofx(amount))
    assert checking(ws) == "-27.50", "neither comes back by itself"
    ws.in_order()


def test_the_earlier_amount_stays_where_the_older_file_came_later(ws: Workspace) -> None:
    ws.ok(*NUMBER)
    for name, amount in (("second.ofx", "-23.50"), ("first.ofx", "-20.00")):
        take_file(ws, name, ofx(amount))
    waiting = sorted(str(card["title"]) for card in ws.cards())
    assert revision(ws)["title"] == "checking: the bank reported T1 as -23.50, now as -20.00"
    ws.ok("queue", "answer", str(revision(ws)["id"]), "keep")
    assert checking(ws) == "-27.50"
    assert not [each for each in ws.cards() if each["kind"] in ("revision", "line") or "20.00" in str(each["title"])]
    ws.ok("queue", "undo")
    assert checking(ws) == "-47.50" and sorted(str(card["title"]) for card in ws.cards()) == waiting
    ws.ok("queue", "answer", str(revision(ws)["id"]), "keep")
    for amount in ("-20.00", "-23.50"):
        take_file(ws, "again.ofx", ofx(amount))
    assert checking(ws) == "-27.50", "neither comes back by itself"
    refused(ws("import", "undo", "second.ofx"), 3, "the row 2025-01-08 -20.00 is set aside for it", "--despite")
    take_file(ws, "third.ofx", ofx("-25.00"))
    ws.ok("queue", "answer", str(revision(ws)["id"]), "replace")
    assert checking(ws) == "-29.00"
    ws.in_order()


def test_an_answer_about_a_revised_row_is_taken_back(revised: Workspace) -> None:
    ws = revised
    waiting = sorted(str(card["title"]) for card in ws.cards())
    ws.ok("queue", "answer", str(revision(ws)["id"]), "replace")
    ws.ok("queue", "undo")
    assert checking(ws) == "-47.50"
    assert sorted(str(card["title"]) for card in ws.cards()) == waiting
    ws.in_order()
    ws.ok("queue", "answer", str(revision(ws)["id"]), "both")
    assert checking(ws) == "-47.50" and not [card for card in ws.cards() if card["kind"] == "revision"]
    ws.in_order()


def test_the_new_amount_takes_the_place_of_an_entry_that_was_corrected(revised: Workspace) -> None:
    ws = revised
    (old,) = (entry for entry in ws.entries() if entry["amount"] == "20.00")
    ws.ok("queue", "correct", old["entry_id"], "--account", "5060")
    ws.ok("queue", "answer", str(revision(ws)["id"]), "replace")
    assert checking(ws) == "-27.50"
    assert "20.00" not in {row["balance"] for row in ws.json("journal", "balance")}
    ws.in_order()


def test_nothing_is_replaced_by_a_row_that_is_not_booked(revised: Workspace) -> None:
    ws = revised
    (new,) = (entry["entry_id"] for entry in ws.entries() if entry["amount"] == "23.50")
    ws.ok("queue", "reject", new, "--reason", "no tip", "--outcome", "suspense")
    (held,) = (card for card in ws.cards() if card["kind"] == "line")
    ws.ok("queue", "answer", str(held["id"]), "ignore")
    card = str(revision(ws)["id"])
    refused(ws("queue", "answer", card, "replace"), 3, "nothing would be booked", "Answer keep")
    ws.ok("queue", "answer", card, "keep")
    assert checking(ws) == "-24.00"
    ws.in_order()


def test_a_row_that_was_replaced_is_asked_about_where_the_newer_one_is_taken_back(revised: Workspace) -> None:
    ws = revised
    ws.ok("queue", "answer", str(revision(ws)["id"]), "replace")
    refused(ws("import", "undo", "second.ofx"), 3, "the row 2025-01-08 -20.00 is set aside for it", "--despite")
    ws.ok("import", "undo", "second.ofx", "--despite", "a file of tests")
    assert checking(ws) == "-4.00"
    (held,) = (card for card in ws.cards() if card["kind"] == "line")
    assert held["title"] == "2025-01-08 -20.00 DINER 12: what counted instead was taken back"
    ws.ok("queue", "correct", str(held["id"]), "--account", "5070")
    assert checking(ws) == "-24.00"
    ws.in_order()
    take_file(ws, "again.ofx", ofx("-23.50"))
    ws.ok("queue", "answer", str(revision(ws)["id"]), "replace")
    assert checking(ws) == "-27.50" and not [card for card in ws.cards() if card["kind"] == "line"]
    ws.in_order()


def test_a_row_that_was_replaced_is_not_asked_about_again_where_a_third_amount_comes(revised: Workspace) -> None:
    ws = revised
    ws.ok("queue", "answer", str(revision(ws)["id"]), "replace")
    take_file(ws, "third.ofx", ofx("-25.00"))
    assert revision(ws)["title"] == "checking: the bank reported T1 as -23.50, now as -25.00"
    ws.ok("queue", "answer", str(revision(ws)["id"]), "replace")
    assert checking(ws) == "-29.00"
    ws.in_order()


def test_a_revised_row_that_is_held_as_its_day_is_closed_is_asked_about(ws: Workspace) -> None:
    ws.ok(*NUMBER)
    take_file(ws, "first.ofx", ofx("-20.00"))
    ws.ok("period", "close", "2025-01", "--with-pending", "--despite", "no statement yet")
    take_file(ws, "second.ofx", ofx("-23.50"))
    assert checking(ws) == "-24.00"
    ws.ok("queue", "answer", str(revision(ws)["id"]), "replace")
    (held,) = (card for card in ws.cards() if card["kind"] == "line")
    refused(ws("queue", "approve", str(held["id"])), 2, "queue correct", "queue answer", "ignore")
    ws.ok("queue", "correct", str(held["id"]), "--account", "5070")
    assert checking(ws) == "-27.50"
    ws.in_order()


def test_an_answer_says_that_the_row_that_counts_is_not_booked_yet(revised: Workspace) -> None:
    """Fault: after an undo neither of the two was booked, and nothing said that one waits."""
    ws = revised
    (old,) = (entry["entry_id"] for entry in ws.entries() if entry["amount"] == "20.00")
    ws.ok("queue", "reject", old, "--reason", "what is it?", "--outcome", "suspense")
    ws.ok("queue", "answer", str(revision(ws)["id"]), "replace")
    ws.ok("queue", "undo")
    told = ws.ok("queue", "answer", str(revision(ws)["id"]), "keep")
    (held,) = (str(card["id"]) for card in ws.cards() if card["kind"] == "line")
    assert checking(ws) == "-4.00"
    says = f"the line of -20.00 on 2025-01-08, which counts now, is not booked yet: cleared queue show {held}"
    assert says in told.out + told.err, told
    ws.ok("queue", "correct", held, "--account", "5070")
    assert checking(ws) == "-24.00"
    ws.in_order()


def test_to_replace_a_large_amount_takes_two_however_small_the_new_one_is(ws: Workspace, tmp_path: Path) -> None:
    ws.ok(*NUMBER)
    for name, amount in (("first.ofx", "-2000.00"), ("second.ofx", "-23.50")):
        take_file(ws, name, ofx(amount))
    people, card = People(ws, tmp_path, two="1000"), str(revision(ws)["id"])
    assert "you are the first" in people.ok("ana", "queue", "answer", card, "replace").err
    assert checking(ws) == "-2027.50"
    people.ok("ben", "queue", "agree", card)
    assert checking(ws) == "-27.50"
    ws.in_order()


@pytest.mark.parametrize("together", [True, False])
def test_a_row_of_csv_is_known_by_the_id_that_a_later_file_gave_it(ws: Workspace, *, together: bool) -> None:
    ws.ok(*NUMBER)
    files = [
        ("1.csv", chase(("01/08/2025", "DINER 12", "-20.00"), ("01/09/2025", "GITHUB *PRO", "-4.00"))),
        ("2.ofx", ofx("-20.00")),
        ("3.ofx", ofx("-23.50")),
    ]
    for name, data in files:
        ws.drop(name, data)
        if not together:
            ws.run("ingest")
    if together:
        ws.run("ingest")
    assert revision(ws)["title"] == "checking: the bank reported T1 as -20.00, now as -23.50"
    ws.ok("queue", "answer", str(revision(ws)["id"]), "replace")
    assert checking(ws) == "-27.50"
    ws.in_order()


def test_ids_of_an_import_that_was_taken_back_are_forgotten(ws: Workspace) -> None:
    ws.ok(*NUMBER)
    take_file(ws, "1.csv", chase(("01/08/2025", "DINER 12", "-20.00"), ("01/09/2025", "GITHUB *PRO", "-4.00")))
    take_file(ws, "2.ofx", ofx("-20.00"))
    ws.ok("import", "undo", "2.ofx")
    take_file(ws, "3.ofx", ofx("-23.50", "2025-01-28"))
    assert not [card for card in ws.cards() if card["kind"] == "revision"]


def test_where_git_took_one_of_the_amounts_back_an_answer_settles_the_card_alone(revised: Workspace) -> None:
    """Else it would void the entry of the one that is left."""
    ws, made, card = revised, revised.head(), str(revision(revised)["id"])
    first = next(e["entry_id"] for e in ws.entries() if e["amount"] == "20.00")
    ws.ok("queue", "approve", first)
    ws.git("revert", "--no-edit", made)
    revert = ws.head()
    assert f"asks about an import that is gone. Settle it: cleared queue answer {card} both" in ws("check").out
    assert "is gone" in ws.json("queue", "answer", card, "replace")["said"][0]
    assert checking(ws) == "-24.00"
    ws.ok("accept", revert, "--reason", "meant so")
    ws.in_order()
    take_file(ws, "second.ofx", ofx("-23.50"))
    assert revision(ws)["id"] != card, "it is asked again"
    ws.in_order()


def test_where_the_import_of_the_earlier_amount_is_undone_nothing_is_asked(revised: Workspace) -> None:
    revised.ok("import", "undo", "first.ofx", "--reason", "wrong file")
    assert not [each for each in revised.cards() if each["kind"] == "revision"]
    revised.in_order()


@pytest.mark.parametrize(("answer", "balance"), [("replace", "972.50"), ("keep", "976.00")])
def test_a_row_revised_to_an_earlier_day_moves_a_balance_once(ws: Workspace, answer: str, balance: str) -> None:
    """A file that ends before the old day says no more of it: its row looks like one that came late."""
    ws.ok(*NUMBER)
    kept = Line("2025-01-12", "-4.00", "GITHUB *PRO", "T2")
    take_file(ws, "first.ofx", write_ofx(Told(lines=[Line("2025-01-10", "-20.00", "DINER 12", "T1"), kept])))
    ws.ok("journal", "open")
    take_file(ws, "second.ofx", write_ofx(Told(lines=[Line("2025-01-08", "-23.50", "DINER 12", "T1")])))
    ws.ok("queue", "answer", str(revision(ws)["id"]), answer)
    assert checking(ws) == balance
    assert f"1010,2025-01-12,{balance},met" in ws.read("books/bank/reconciliations-2025-01.csv").splitlines()[-1]
    ws.in_order()


def test_a_row_replaced_after_its_month_was_closed_is_in_transit(ws: Workspace) -> None:
    """Its entry is taken back in the next month, and the row that counts is booked there."""
    ws.ok(*NUMBER)
    kept = Line("2025-01-12", "-4.00", "GITHUB *PRO", "T2")
    take_file(ws, "first.ofx", write_ofx(Told(lines=[Line("2025-01-10", "-20.00", "DINER 12", "T1"), kept])))
    ws.ok("journal", "open")
    ws.ok("queue", "approve", *[str(card["id"]) for card in ws.cards() if card["kind"] == "entry"])
    ws.ok("period", "close", "2025-01", "--despite", "it counts")
    take_file(ws, "second.ofx", write_ofx(Told(lines=[Line("2025-01-10", "-23.50", "DINER 12", "T1"), kept])))
    (held,) = (str(card["id"]) for card in ws.cards() if card["kind"] == "line")
    ws.ok("queue", "answer", str(revision(ws)["id"]), "replace")
    ws.in_order()
    ws.ok("queue", "correct", held, "--account", "5070")
    ws.in_order()
    assert checking(ws) == "972.50"
    assert "complete to the cent through 2025-01-12 (-3.50 of it is in transit" in ws.ok("status").out
    told = ws.ok("reconcile", "1010", "--date", "2025-01-12", "--balance", "972.50").out
    assert "The books have 976.00: -3.50 of it is in transit, in 2 lines that are booked on other days." in told
