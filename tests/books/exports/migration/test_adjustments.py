"""``cleared journal adjust``: an accountant's entries wait as cards, and are posted when a person approves them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import Workspace, refused, unchanged
from reviewers import People

CSV = """Date,Description,Account,Debit,Credit
2025-01-31,Depreciation,5220,120.00,
,,1590,,120.00
2025-01-31,Accrued fees,5130 Legal,"1,000.00",
2025-01-31,Accrued fees,2100,,"1,000.00"
"""


def adjust(ws: Workspace, text: str, *options: str) -> list[str]:
    path = ws.root.parent / "adjustments.csv"
    path.write_text(text)
    return ["journal", "adjust", str(path), *options]


def test_each_entry_waits_as_a_card_and_is_posted_when_it_is_approved(ws: Workspace) -> None:
    made = ws.json(*adjust(ws, CSV))
    first, second = made["cards"]
    assert ws.entries() == [] and ws.json("check")["ok"]
    shown = ws.ok("queue", "show", first).out
    assert "Depreciation" in shown and "5220" in shown and "adjustments.csv, line 2" in shown
    assert {c["kind"] for c in ws.cards()} == {"adjustment"}

    ws.ok("queue", "approve", first)
    (entry,) = ws.entries()
    assert [(x["account_id"], x["debit"], x["credit"]) for x in entry["lines"]] == [
        (5220, "120.00", "0.00"),
        (1590, "0.00", "120.00"),
    ]
    assert (entry["date"], entry["status"], entry["tags"]) == ("2025-01-31", "user-confirmed", ["@kind=adjusting"])
    ws.ok("queue", "reject", second, "--reason", "accrued twice")
    assert ws.cards() == [] and len(ws.entries()) == 1
    ws.in_order()

    again = ws.json(*adjust(ws, CSV))
    assert again == {"cards": [], "known": [first, second], "commit": None}
    ws.ok("queue", "undo")
    assert ["Accrued" in c["title"] for c in ws.cards()] == [True]
    ws.in_order()


@pytest.mark.parametrize("day", ["01/31/2025", "31.01.2025", "31/01/2025", "1/31/25"])
def test_days_are_read_as_spreadsheets_write_them(ws: Workspace, day: str) -> None:
    (first, _) = ws.json(*adjust(ws, CSV.replace("2025-01-31", day)))["cards"]
    ws.ok("queue", "approve", first)
    assert [entry["date"] for entry in ws.entries()] == ["2025-01-31"]


def test_a_day_that_can_be_read_in_two_ways_is_refused(ws: Workspace) -> None:
    with unchanged(ws):
        refused(ws(*adjust(ws, CSV.replace("2025-01-31", "02/03/2025"))), 1, "which of day and month", "2025-12-31")


def test_a_posted_adjustment_is_taken_back(ws: Workspace) -> None:
    (card, _) = ws.json(*adjust(ws, CSV))["cards"]
    ws.ok("queue", "approve", card)
    ws.ok("queue", "undo")
    assert len(ws.cards()) == 2
    assert {row["balance"] for row in ws.json("journal", "balance")} == {"0.00"}
    ws.in_order()


def test_a_closed_period_is_told_when_it_is_posted(ws: Workspace) -> None:
    ws.ok("period", "close", "2025-01", "--reason", "done")
    (card, _) = ws.json(*adjust(ws, CSV))["cards"]
    with unchanged(ws):
        refused(ws("queue", "approve", card), 1, "closed", "cleared period reopen")


def test_an_amount_that_takes_two_takes_two(ws: Workspace, tmp_path: Path) -> None:
    """The amount that counts is that of the card's own lines; small ones and rejections take one."""
    people = People(ws, tmp_path, two="500")
    small, large = people.json("ana", *adjust(ws, CSV))["cards"]
    people.ok("ana", "queue", "approve", small)
    assert "It takes two" in people.ok("ana", "queue", "approve", large).err
    assert len(ws.entries()) == 1
    people.ok("ben", "queue", "approve", large)
    assert [e["amount"] for e in ws.entries()] == ["120.00", "1000.00"]
    ws.in_order()


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        (CSV.replace(",120.00\n", ",120.01\n"), 1, "'Depreciation' does not balance: -0.01 is left"),
        (CSV.replace("5220", "5999"), 3, "cleared accounts add 5999"),
        (CSV.replace("5220", "5000"), 3, "5000"),
        (CSV.replace("2025-01-31,Dep", "31.01.2025,Dep"), 1, "is not a day"),
        (CSV.replace("120.00,\n", "120.00,5.00\n", 1), 1, "one of debit and credit"),
        (CSV.replace("120.00,\n", "-120.00,\n", 1), 1, "which is positive"),
        (CSV.replace("Debit", "Soll"), 1, "no column is called debit"),
        (CSV.replace("2025-01-31", "1925-01-31"), 1, "lies outside"),
        ("date,text,account,debit,credit,currency\n2025-01-31,A,5220,5.00,,EUR\n", 1, "in EUR, the books are in USD"),
        ("", 1, "no column"),
    ],
)
def test_a_file_that_is_not_right_makes_no_card(ws: Workspace, text: str, code: int, says: str) -> None:
    with unchanged(ws):
        refused(ws(*adjust(ws, text)), code, says)


def test_rows_are_put_together_by_their_entry(ws: Workspace) -> None:
    text = (
        "date,description,account,debit,credit,entry\n2025-01-31,A,5220,5.00,,AJE1\n2025-01-31,B,5060,7.00,,AJE2\n"
        "2025-01-31,B,2100,,7.00,AJE2\n"
    )
    refused(ws(*adjust(ws, text)), 1, "'A' does not balance: 5.00 is left")
    text += "2025-01-31,C,5060,1.00,,AJE3\n2025-01-31,D,2100,,1.00,AJE3\n"
    assert (
        len(
            ws.json(*adjust(ws, text.replace("5220,5.00,,AJE1", "5220,5.00,,AJE2").replace(",,7.00", ",,12.00")))[
                "cards"
            ]
        )
        == 2
    )
    same = "date,description,account,debit,credit\n" + "2025-01-31,S,5060,1.00,\n2025-01-31,S,2100,,1.00\n" * 2
    assert len(set(ws.json(*adjust(ws, same))["cards"])) == 2


def test_a_card_that_was_edited_by_hand_posts_nothing(ws: Workspace) -> None:
    (card, _) = ws.json(*adjust(ws, CSV))["cards"]
    (path,) = (p for p in (ws.root / "queue").glob("*.jsonl") if card in p.read_text())
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        if row.get("id") == card:
            row["details"]["lines"][0]["debit"] = "1e9"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ws.commit("queue")
    refused(ws("queue", "approve", card), 3, "is held", "cleared accept")
    ws.ok("accept", "HEAD", "--reason", "as far as I can see")
    refused(ws("queue", "approve", card), 3, "cannot be read", f"queue reject {card}")
    assert ws.entries() == []
    ws.ok("queue", "reject", card, "--reason", "damaged")


def test_what_cannot_be_done_about_a_card_names_what_can(ws: Workspace) -> None:
    card, _ = ws.json(*adjust(ws, CSV))["cards"]
    ways = f"Say cleared queue approve {card} or cleared queue reject {card} --reason …."
    with unchanged(ws):
        refused(ws("queue", "correct", card, "--account", "5160"), 2, ways)
        for word in ("seen", "correct"):
            refused(ws("queue", "answer", card, word), 2, ways)
    ws.ok("queue", "reject", card, "--reason", "as the refusal says")
