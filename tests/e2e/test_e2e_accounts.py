"""Fault 16: the starter ``ingest`` books files of any account: transfers, refunds, a vendor table. Rows B24, B27."""

from __future__ import annotations

import pytest
from harness import CARD_HEADER, Workspace, chase, take_ok

CARD = "  - {id: card, type: credit_card, ledger_account: 2010, format: chase_card}\n"
STATEMENT = CARD_HEADER + (
    "02/01/2025,02/02/2025,Payment Thank You - Mobile,,Payment,250.00,\n"
    "01/20/2025,01/21/2025,AWS EMEA,Shopping,Return,12.50,\n"
    "01/18/2025,01/19/2025,NOBODY KNOWS,Shopping,Return,7.00,\n"
    "01/05/2025,01/06/2025,LAWSON STORES,Shopping,Sale,-9.00,\n"
    "01/04/2025,01/05/2025,AWS*1234,Shopping,Sale,-40.00,\n"
)
CHECKING = chase(
    ("01/31/2025", "Payment to Chase card ending in 7733 01/31", "-250.00"),
    ("01/22/2025", "GITHUB *PRO refund", "4.00"),
    ("01/03/2025", "Acme Corp", "1500.00"),
    ("01/02/2025", "GITHUB *PRO", "-4.00"),
)


@pytest.fixture
def two(ws: Workspace) -> Workspace:
    """A workspace with a checking account and a card."""
    ws.put_config(ws.read("config.yaml").replace("bank_accounts:\n", "bank_accounts:\n" + CARD))
    return ws


def booked(ws: Workspace) -> set[tuple[str, str, tuple[int, ...], str]]:
    """Description, amount, accounts (debit first), status."""
    return {
        (e["description"], e["amount"], tuple(x["account_id"] for x in e["lines"]), e["status"]) for e in ws.entries()
    }


@pytest.mark.parametrize("first", ["card.csv", "checking.csv"])
def test_b24_two_accounts_in_either_order(two: Workspace, first: str) -> None:
    """B24: each file is booked on its own account, the payment through 1090, refunds on the expense they came from."""
    files = {"card.csv": STATEMENT, "checking.csv": CHECKING}
    for name in (first, next(n for n in files if n != first)):
        two.drop(name, files[name])
        two.run("ingest")
    sure, asked = "auto-confirmed", "pending-review"
    assert booked(two) == {
        ("Payment Thank You - Mobile", "250.00", (2010, 1090), sure),
        ("AWS EMEA", "12.50", (2010, 5020), sure),
        ("NOBODY KNOWS", "7.00", (2010, 5030), asked),
        ("LAWSON STORES", "9.00", (5030, 2010), asked),
        ("AWS*1234", "40.00", (5020, 2010), sure),
        ("Payment to Chase card ending in 7733 01/31", "250.00", (1090, 1010), sure),
        ("GITHUB *PRO refund", "4.00", (1010, 5020), sure),
        ("Acme Corp", "1500.00", (1010, 4010), asked),
        ("GITHUB *PRO", "4.00", (5020, 1010), sure),
    }
    assert {r["account_id"]: r["balance"] for r in two.json("journal", "balance")} == {
        1010: "1250.00",
        1090: "0.00",
        2010: "220.50",
        4010: "-1500.00",
        5020: "27.50",
        5030: "2.00",
    }
    two.in_order()


def test_a_transfer_of_the_only_account_is_asked_about(ws: Workspace) -> None:
    """With one account the other side never comes: 1090 must not fill up without a word."""
    ws.drop("checking.csv", CHECKING)
    ws.run("ingest")
    [transfer] = ws.entries("--text", "Chase card")
    assert transfer["status"] == "pending-review" and "one bank account only" in transfer["evidence"]
    assert [c["kind"] for c in ws.cards() if c["entry_id"] == transfer["entry_id"]] == ["entry"]


def test_a_vendor_is_one_line_of_the_table(two: Workspace) -> None:
    """Row B27: the table is the way to teach it: one line, and the gate says what that changes."""
    known = '    ("AWS", "Amazon Web Services", 5020, 0.96),\n'
    text = two.read("agents/ingest.py")
    two.drop("card.csv", STATEMENT)
    two.run("ingest")
    two.put("agents/ingest.py", text.replace(known, known + '    ("LAWSON", "Lawson", 5070, 0.97),\n'))
    proposal = two.json("agent", "propose", "ingest")
    assert any("LAWSON STORES" in line and "5070" in line for line in proposal["card"])
    take_ok(two, "agent", "approve", proposal["id"])
    two.drop("more.csv", CARD_HEADER + "02/05/2025,02/06/2025,LAWSON STORES,Shopping,Sale,-9.50,\n")
    two.run("ingest")
    assert ("LAWSON STORES", "9.50", (5070, 2010), "auto-confirmed") in booked(two)
