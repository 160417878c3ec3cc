"""Row B19: statements of several accounts, with numbers, ids and balances, as a user hands them in."""

from __future__ import annotations

from dataclasses import replace

from harness import Workspace
from statement_files import MONTH, Line, Told, write_ofx

CARD = Told("4111XXXXXXXX1234", card=True, lines=(Line("2025-01-07", "-19.99", "AWS", "F1"),), opening="0.00")
TWO = """bank_accounts:
  - id: checking
    ledger_account: 1010
    match: { account: "1234567890" }
  - id: card
    type: credit_card
    ledger_account: 2010
    match: { last4: "1234" }
"""


def use_accounts(ws: Workspace, text: str) -> None:
    whole = ws.read("config.yaml")
    before, _, rest = whole.partition("bank_accounts:")
    ws.put("config.yaml", before + text + rest[rest.index("\nimport:") :])
    ws.commit("config.yaml")


def trial_balance(ws: Workspace) -> dict[int, str]:
    return {row["account_id"]: row["balance"] for row in ws.json("journal", "balance")}


def test_b19_one_ofx_file_of_two_accounts_is_two_sources(ws: Workspace) -> None:
    """Each has a name that scripts use; the file moves when both are done, in one commit."""
    use_accounts(ws, TWO)
    ws.drop("all.ofx", write_ofx(MONTH, CARD))
    found = ws.script("importer_scan()", "--dry-run")["result"]
    assert [(f["name"], f["path"], f["account"], f["format"]) for f in found] == [
        ("all.ofx/checking", "import/all.ofx", "checking", "ofx"),
        ("all.ofx/card", "import/all.ofx", "card", "ofx"),
    ]
    assert ws.run("ingest")["result"]["imported"] == 7
    assert trial_balance(ws)[1010] == "1411.90" and trial_balance(ws)[2010] == "-19.99"
    assert (ws.root / "import/processed/all.ofx").exists() and not (ws.root / "import/all.ofx").exists()
    records = ws.read("books/bank/imports.csv").splitlines()[1:]
    assert [r.split(",")[2] for r in records] == ["checking", "card"]
    assert {card["kind"] for card in ws.cards()} == {"entry"}


def test_one_unknown_account_refuses_the_whole_file(ws: Workspace) -> None:
    use_accounts(ws, TWO)
    ws.drop("all.ofx", write_ofx(MONTH, replace(CARD, account="4111XXXXXXXX9999")))
    ws.run("ingest")
    (card,) = ws.cards()
    assert "4111XXXXXXXX9999" in card["title"] and "no bank account fits" in card["title"]
    assert ws.entries() == [] and (ws.root / "import/all.ofx").exists()


def test_two_numbers_never_go_to_one_account(ws: Workspace) -> None:
    """Nor do two banks' accounts of one number."""
    use_accounts(ws, "bank_accounts:\n  - id: checking\n    ledger_account: 1010\n")
    for other in (replace(MONTH, account="77"), replace(MONTH, bank="9")):
        ws.drop("all.ofx", write_ofx(MONTH, other))
        ws.run("ingest")
        assert "fits them both" in ws.cards()[-1]["title"]
    assert ws.entries() == []
