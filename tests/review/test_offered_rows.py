"""B32: after three equal decisions a card offers the row that makes them, with what it would have booked."""

from __future__ import annotations

from harness import Workspace, chase, refused

COFFEES = chase(*((f"02/0{n}/2025", f"COFFEE HOUSE {n}{n}", f"-{n}.80") for n in range(3, 8)))


def three_decisions(ws: Workspace) -> None:
    """Five coffees of which three are corrected: two still wait."""
    ws.drop("february.csv", COFFEES)
    ws.run("ingest")
    ws.ok("queue", "correct", *(f"2025-02-00{n}" for n in (1, 2, 3)), "--account", "5070")


def test_b32_a_card_offers_the_row_after_three_equal_decisions(ws: Workspace) -> None:
    three_decisions(ws)
    card = next(c for c in ws.cards() if c["entry_id"] == "2025-02-004")
    shown = ws.json("queue", "show", card["id"])["suggestions"]
    assert [(s["verb"], s["label"]) for s in shown] == [
        ("suggested", "Take 5070 Meals"),
        ("always", "Always 5070 Meals"),
    ]
    said = (
        "COFFEE HOUSE (money out, up to 20) → 5070 from now on, as you decided 3 of 3 times. "
        "It would have booked 5 past lines, 3 as you did and 2 still waiting for you."
    )
    assert shown[1]["evidence"] == said and "3 of 3 COFFEE HOUSE went to 5070" in shown[0]["evidence"]
    assert f"Always 5070 Meals: {said}" in ws.ok("queue", "show", card["id"]).out
    done = ws.process("review", stdin=b"v\n\nq\n")
    assert "v Always 5070 Meals" in done.out and "Always so?:" in done.out, done
    assert "Corrected: COFFEE HOUSE 66" in done.out and "is live now" in done.out, done
    assert '("COFFEE HOUSE", "Coffee House", 5070, 0.99, {"money": "out", "max": 20}),' in ws.read("agents/ingest.py")
    ws.drop("march.csv", chase(("02/08/2025", "COFFEE HOUSE 9", "-9.00"), ("02/09/2025", "COFFEE HOUSE 9", "-90.00")))
    ws.run("ingest")
    statuses = {e["amount"]: e["status"] for e in ws.entries("--month", "2025-02")}
    assert statuses["9.00"] == "auto-confirmed" and statuses["90.00"] == "pending-review"
    ws.in_order()


def test_b32_decisions_that_contradict_each_other_offer_no_row(ws: Workspace) -> None:
    three_decisions(ws)
    ws.ok("queue", "correct", "2025-02-004", "--account", "5060")
    shown = ws.json("queue", "show", "2025-02-005")["suggestions"]
    assert [s["verb"] for s in shown] == ["suggested"]
    assert shown[0]["evidence"] == "3 of 4 COFFEE HOUSE went to 5070, last 2025-02-05; others to 5060"


def test_what_somebody_wrote_into_the_journal_offers_no_row(ws: Workspace) -> None:
    """The same statuses as three decisions give, by plain git: no card says *as you decided* of them."""
    ws.drop("february.csv", COFFEES)
    ws.run("ingest")
    journal = "books/2025/02/journal.csv"
    rows = ws.read(journal).splitlines(keepends=True)
    forged = [row.replace("pending-review", "user-confirmed").replace(",5030,", ",5070,") for row in rows]
    ws.put(journal, "".join(new if row < "2025-02-004" else row for row, new in zip(rows, forged, strict=True)))
    ws.git("commit", "-qam", "bookkeeping")
    assert "always" not in [s["verb"] for s in ws.json("queue", "show", "2025-02-004")["suggestions"]]


def test_b32_words_that_banks_put_before_every_text_make_no_row(ws: Workspace) -> None:
    rows = [(f"02/0{n}/2025", f"POS PURCHASE {n}77 BAKERY", f"-{n}.80") for n in range(3, 7)]
    ws.drop("february.csv", chase(*rows, ("02/09/2025", "POS PURCHASE 177 HARBOR TOOLS", "-10.00")))
    ws.run("ingest")
    ws.ok("queue", "correct", *(f"2025-02-00{n}" for n in (1, 2, 3)), "--account", "5070")
    assert [s["verb"] for s in ws.json("queue", "show", "2025-02-004")["suggestions"]] == ["suggested"]


def test_a_settled_card_suggests_nothing(posted: Workspace) -> None:
    posted.ok("queue", "correct", "2025-01-004", "--account", "5070")
    settled = next(c for c in posted.cards("--status", "resolved") if c["entry_id"] == "2025-01-004")
    assert posted.json("queue", "show", settled["id"])["suggestions"] == []
    refused(posted("queue", "show", "nothing"), 2, "nothing")
