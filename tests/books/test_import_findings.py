"""What an import shows beside its rows, in its own commit: each matter one card, once and for all."""

from __future__ import annotations

from harness import Workspace, chase, copy_books, refused

ROWS = [(f"{month:02}/03/2025", "GITHUB *PRO", "-4.00") for month in range(1, 5)]
POST = """
for f in importer_scan():
    for t in importer_parse(f["name"]):
        if t["amount"] < 0:
            journal_add_double(date=t["date"], description=t["description"], debit_account=5030,
                credit_account=f["ledger_account"], amount=-t["amount"], reference=t["reference"],
                status="auto-confirmed", confidence=1, evidence="test")
        else:
            journal_add_double(date=t["date"], description=t["description"], debit_account=f["ledger_account"],
                credit_account=4900, amount=t["amount"], reference=t["reference"],
                status="auto-confirmed", confidence=1, evidence="test")
    importer_mark_processed(f["name"])
git_commit("imported")
"""


def odd(ws: Workspace, *options: str) -> list[tuple[str, str]]:
    return sorted((c["details"]["what"], c["id"]) for c in ws.cards(*options) if c["kind"] == "recurring")


def test_a_doubled_charge_is_one_card_in_every_clone(ws: Workspace) -> None:
    ws.drop("a.csv", chase(*ROWS))
    ws.run("ingest")
    assert odd(ws) == []
    other = Workspace(copy_books(ws.root, ws.root.parent / "clone"))
    april = chase(("04/09/2025", "GITHUB *PRO", "-4.00"), ("04/10/2025", "COFFEE", "-4.50"))
    for each in (ws, other):
        each.drop("b.csv", april)
        assert len(each.run("ingest")["commits"]) == 1
    ((what, card),) = odd(ws)
    assert what == "doubled" and odd(other) == [(what, card)]
    ws.ok("queue", "answer", card, "seen")
    ws.ok("import", "undo", "b.csv", "--despite", "again")
    ws.drop("b.csv", april)
    ws.run("ingest")
    assert odd(ws) == [] and odd(ws, "--status", "all") == [(what, card)]
    ws.in_order()


def test_a_late_charge_is_said_once_and_stop_is_heard(ws: Workspace) -> None:
    ws.drop("a.csv", chase(*ROWS))
    ws.run("ingest")
    for name, day in (("b.csv", "05/20/2025"), ("c.csv", "06/20/2025")):
        ws.drop(name, chase((day, "COFFEE", "-4.50")))
        ws.run("ingest")
        ((what, card),) = odd(ws)
        assert what == "missing"
    title = next(c["title"] for c in ws.cards() if c["id"] == card)
    assert title == "checking: GITHUB PRO did not come: it was due about 2025-05-03, the last was -4.00 on 2025-04-03"
    ws.ok("queue", "answer", card, "stop")
    ws.drop(
        "d.csv",
        chase(*((f"{m:02}/03/2025", "GITHUB *PRO", "-4.00") for m in (7, 8, 9)), ("11/20/2025", "COFFEE", "-4.50")),
    )
    ws.run("ingest")
    assert odd(ws) == []


def test_guesses_that_wait_are_no_history(ws: Workspace) -> None:
    ws.drop("a.csv", chase(*((day, "NOBODY KNOWS IT", amount) for day, _, amount in ROWS)))
    ws.run("ingest")
    ws.drop("b.csv", chase(("05/20/2025", "COFFEE", "-4.50")))
    ws.run("ingest")
    assert odd(ws) == []


def add_savings(ws: Workspace) -> None:
    text = ws.read("config.yaml")
    second = (
        "  - id: savings\n    name: Savings\n    type: savings\n    ledger_account: 1020\n    format: chase_checking\n"
    )
    second += "    match: { folder: savings }\n"
    ws.put_config(text.replace("\n  # A second account", f"\n{second}\n  # A second account", 1))


def test_b24_two_sides_of_one_transfer_are_proposed_and_paired_with_one_answer(ws: Workspace) -> None:
    """B24: booked otherwise at first; both go through 1090 then, and undo takes it back."""
    add_savings(ws)
    ws.drop("a.csv", chase(("01/20/2025", "TO SAVINGS", "-500.00")))
    ws.drop("savings/b.csv", chase(("01/22/2025", "FROM CHECKING", "500.00"), ("01/23/2025", "INTEREST", "0.12")))
    ws.script(POST)
    (card,) = (c for c in ws.cards() if c["kind"] == "transfer")
    assert [row["text"] for row in card["details"]["rows"]] == ["TO SAVINGS", "FROM CHECKING"]
    assert len(ws.json("transfers")["proposed"]) == 1
    ws.ok("queue", "answer", card["id"], "pair")
    found = ws.json("transfers")
    assert [(p["in"]["amount"], p["days"]) for p in found["pairs"]] == [("500.00", 2)] and not found["proposed"]
    assert [r["balance"] for r in ws.json("journal", "balance", "1090")] == ["0.00"]
    ws.in_order()
    ws.ok("queue", "undo")
    assert len(ws.json("transfers")["pairs"]) == 0
    ids = [ws.json("transfers")["proposed"][0][side]["entry_id"] for side in ("out", "in")]
    assert "Both sides are in:" in (ws.ok("transfers", "pair", *ids), ws.ok("transfers"))[1].out
    assert ws("transfers", "pair", *ids).code == 3
    assert ws("transfers", "pair", ids[0], ids[0]).code == 2
    ws.in_order()


def test_b24_who_says_that_it_is_a_transfer_has_decided_about_both_sides(ws: Workspace) -> None:
    """B24: the side that was booked so already, and waited, is confirmed; undo has it wait again."""
    add_savings(ws)
    ws.drop("a.csv", chase(("01/20/2025", "ONLINE TRANSFER TO SAV 5566", "-500.00")))
    ws.drop("savings/b.csv", chase(("01/22/2025", "FROM CHECKING", "500.00")))
    ws.run("ingest")
    waiting = {(c["kind"], c["title"]) for c in ws.cards()}
    (card,) = (c for c in ws.cards() if c["kind"] == "transfer")
    ws.ok("queue", "answer", card["id"], "pair")
    assert ws.cards() == [] and len(ws.json("transfers")["pairs"]) == 1
    assert [r["balance"] for r in ws.json("journal", "balance", "1090")] == ["0.00"]
    ws.in_order()
    ws.ok("queue", "undo")
    assert {(c["kind"], c["title"]) for c in ws.cards()} == waiting and len(waiting) == 3
    ws.in_order()


def test_the_card_of_a_transfer_names_what_an_undo_brought_back(ws: Workspace) -> None:
    """Also where it waits all the while, and only one of its sides was decided."""
    add_savings(ws)
    ws.drop("a.csv", chase(("01/20/2025", "TO SAVINGS", "-500.00")))
    ws.drop("savings/b.csv", chase(("01/22/2025", "FROM CHECKING", "500.00")))
    ws.script(POST)

    def ask() -> tuple[str, list[str]]:
        [card] = [c for c in ws.cards() if c["kind"] == "transfer"]
        entries, rows = card["details"]["entries"], [row["entry"] for row in card["details"]["rows"]]
        standing = {e["entry_id"] for e in ws.entries() if e["status"] != "voided"}
        assert rows == entries and standing >= set(entries), (entries, standing)
        return str(card["id"]), list(entries)

    for is_paired in (True, False):
        card, entries = ask()
        ws.ok("queue", *(("answer", card, "pair") if is_paired else ("correct", entries[0], "--account", "5070")))
        ws.ok("queue", "undo")
        assert ask()[1] != entries
        ws.in_order()
    ws.ok("queue", "answer", ask()[0], "pair")
    assert len(ws.json("transfers")["pairs"]) == 1
    ws.in_order()


def test_a_transfer_that_is_decided_side_by_side_is_asked_no_more(ws: Workspace) -> None:
    add_savings(ws)
    ws.drop("a.csv", chase(("01/20/2025", "TO SAVINGS", "-500.00")))
    ws.drop("savings/b.csv", chase(("01/22/2025", "FROM CHECKING", "500.00")))
    ws.script(POST)

    def ask() -> list[str]:
        return [c["id"] for c in ws.cards() if c["kind"] == "transfer"]

    (card,) = ask()
    first, second = (r["entry"] for r in next(c for c in ws.cards() if c["id"] == card)["details"]["rows"])
    ws.ok("queue", "correct", first, "--account", "1090")
    assert ask() == [card], "the other side is not decided yet"
    ws.ok("queue", "correct", second, "--account", "1090", "--counterparty", "Own savings")
    assert ask() == [] and len(ws.json("transfers")["pairs"]) == 1
    ws.ok("queue", "undo")
    assert len(ask()) == 1
    ws.in_order()


PAIRED = "is one side of a transfer already, with"


def test_a_side_of_a_transfer_is_no_side_of_another(ws: Workspace) -> None:
    """By command and by card; what was taken out of its transfer can be paired again, as can a voided one's other."""
    add_savings(ws)
    ws.drop("a.csv", chase(("01/20/2025", "TO SAVINGS", "-50.00"), ("01/21/2025", "TO SAVINGS TOO", "-50.00")))
    ws.drop("savings/b.csv", chase(("01/22/2025", "FROM CHECKING", "50.00")))
    ws.script(POST)
    ids = {e["description"]: e["entry_id"] for e in ws.entries()}
    first, second, into = ids["TO SAVINGS"], ids["TO SAVINGS TOO"], ids["FROM CHECKING"]
    ws.ok("transfers", "pair", first, into)
    head = ws.head()
    ways_back = (f"cleared queue correct {first} --account N", "cleared queue undo")
    refused(ws("transfers", "pair", second, into), 3, f"{into} {PAIRED} {first}", *ways_back)
    assert ws.head() == head and [r["balance"] for r in ws.json("journal", "balance", "1090")] == ["0.00"]
    ws.ok("queue", "correct", first, "--account", "5060")
    ws.ok("transfers", "pair", second, into)
    refused(ws("transfers", "pair", first, into), 3, f"{into} {PAIRED} {second}")
    ws.ok("journal", "void", second, "--reason", "twice")
    ws.ok("transfers", "pair", first, into)
    assert [r["balance"] for r in ws.json("journal", "balance", "1090")] == ["0.00"]
    ws.in_order()


def test_of_two_equal_transfers_any_two_sides_are_paired(ws: Workspace) -> None:
    add_savings(ws)
    ws.drop("a.csv", chase(("01/20/2025", "OUT 1", "-50.00"), ("01/20/2025", "OUT 2", "-50.00")))
    ws.drop("savings/b.csv", chase(("01/20/2025", "IN 1", "50.00"), ("01/22/2025", "IN 2", "50.00")))
    ws.script(POST)
    ids = {e["description"]: e["entry_id"] for e in ws.entries()}
    ws.ok("queue", "correct", ids["IN 1"], ids["OUT 1"], ids["OUT 2"], "--account", "1090")
    ws.ok("transfers", "pair", ids["OUT 1"], ids["IN 2"])
    assert len(ws.json("transfers")["pairs"]) == 2
    ws.in_order()


def test_a_card_whose_side_is_of_another_transfer_is_settled(ws: Workspace) -> None:
    add_savings(ws)
    ws.drop("a.csv", chase(("01/20/2025", "RENT", "-50.00")))
    ws.drop("savings/b.csv", chase(("01/22/2025", "FROM CHECKING", "50.00")))
    ws.script(POST)
    (card,) = (c for c in ws.cards() if c["kind"] == "transfer")
    ws.drop("c.csv", chase(("01/23/2025", "TO SAVINGS", "-50.00")))
    ws.script(POST)
    ids = {e["description"]: e["entry_id"] for e in ws.entries()}
    ws.ok("transfers", "pair", ids["TO SAVINGS"], ids["FROM CHECKING"])
    assert not [c for c in ws.cards() if c["kind"] == "transfer"], "RENT waits, and is no transfer"
    why = f"{ids['FROM CHECKING']} is one side of a transfer with {ids['TO SAVINGS']}"
    assert ws.json("queue", "show", card["id"])["resolution"] == why
    ws.ok("queue", "undo")
    assert len([c for c in ws.cards() if c["kind"] == "transfer"]) == 1
    ws.in_order()


def test_a_transfer_of_which_a_side_is_taken_back_is_asked_no_more(ws: Workspace) -> None:
    add_savings(ws)
    text = chase(("01/12/2025", "FROM CHECKING", "500.00"))
    ws.drop("out.csv", chase(("01/10/2025", "TO SAVINGS", "-500.00")))
    ws.drop("savings/in.csv", text)
    ws.run("ingest")

    def asked() -> list[str]:
        return [card["id"] for card in ws.cards() if card["kind"] == "transfer"]

    assert len(asked()) == 1
    out = next(e["entry_id"] for e in ws.entries() if e["description"] == "TO SAVINGS")
    ws.ok("journal", "void", out, "--reason", "to see")
    assert asked() == []
    ws.ok("queue", "undo")
    assert len(asked()) == 1
    ws.ok("import", "undo", "savings/in.csv")
    assert asked() == []
    ws.drop("savings/in.csv", text)
    ws.run("ingest")
    (card,) = asked()
    ws.ok("queue", "answer", card, "pair")
    assert len(ws.json("transfers")["pairs"]) == 1
    ws.in_order()


def test_a_transfer_that_took_long_is_paired_by_who_says_so(ws: Workspace) -> None:
    """B24: twelve days lie between both sides, and the list knows what a person has paired."""
    add_savings(ws)
    ws.drop("a.csv", chase(("01/05/2025", "WIRE", "-300.00")))
    ws.drop("savings/b.csv", chase(("01/17/2025", "ARRIVED", "300.00")))
    ws.script(POST)
    ids = {e["description"]: e["entry_id"] for e in ws.entries()}
    assert not ws.json("transfers")["proposed"]
    ws.ok("transfers", "pair", ids["WIRE"], ids["ARRIVED"])
    found = ws.json("transfers")
    assert [pair["days"] for pair in found["pairs"]] == [12] and not found["unpaired"]
    ws.in_order()


def test_a_transfer_is_not_paired_with_who_got_the_number_of_a_side(posted: Workspace) -> None:
    """Git took one side back, and what is like it in amount got its number."""
    ws = posted
    add_savings(ws)
    ws.drop("a.csv", chase(("01/20/2025", "TO SAVINGS", "-500.00")))
    ws.script(POST)
    ws.drop("savings/b.csv", chase(("01/22/2025", "FROM CHECKING", "500.00")))
    ws.run("probe")
    made = ws.head()
    (card,) = (c["id"] for c in ws.cards() if c["kind"] == "transfer")
    ws.ok("queue", "skip", card)
    ws.git("revert", "--no-edit", made)
    before = ws.entries()
    done = ws.json("queue", "answer", card, "pair")
    assert "is gone" in done["said"][0] and ws.entries() == before
    ws.ok("queue", "undo")
    (again,) = (c["id"] for c in ws.cards() if c["kind"] == "transfer")
    ws.drop("savings/c.csv", chase(("01/23/2025", "OTHER CHECK", "500.00")))
    ws.run("probe")
    assert again not in (c["id"] for c in ws.cards())
    for reverted in ws.git("log", "--format=%H", "--grep=This reverts commit").split():
        ws.ok("accept", reverted, "--reason", "meant so")
    ws.in_order()
