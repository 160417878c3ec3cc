"""Row B19: statements of several accounts, with numbers, ids and balances, as a user hands them in."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness import Workspace, chase
from statement_files import LINES, MONTH, Line, Told, write_camt, write_mt940, write_ofx

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
    ws.put_config(before + text + rest[rest.index("\nimport:") :])


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
    records = ws.read("books/bank/imports-2025-02.csv").splitlines()[1:]
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


def test_a_correction_by_the_bank_is_held_with_the_line_it_takes_the_place_of(ws: Workspace) -> None:
    use_accounts(ws, TWO.partition("  - id: card")[0])
    ws.drop("a.ofx", write_ofx(MONTH))
    ws.run("ingest")
    fixed = Line("2025-02-03", "-54.10", "AWS EMEA", "F9")
    extra = {"F9": "<CORRECTFITID>F3\n<CORRECTACTION>REPLACE\n"}
    ws.drop("b.ofx", write_ofx(replace(MONTH, lines=(fixed,), extra=extra, opening=MONTH.closing)))
    assert ws.run("ingest")["result"]["imported"] == 0
    (card,) = (c for c in ws.cards() if c["kind"] == "line")
    assert "the bank corrects" in card["title"] and "-45.10" in card["title"]
    reference = next(e for e in ws.entries() if e["amount"] == "45.10")["reference"]
    assert f",{reference}," in ws.read("books/bank/checking/2025-02.csv")


def test_balances_that_the_rows_do_not_make_are_a_card(ws: Workspace) -> None:
    """Within a statement, and from one file to the next."""
    use_accounts(ws, TWO.partition("  - id: card")[0])
    ws.drop("a.sta", write_mt940(MONTH).replace("USD2411,90", "USD2400,00"))
    ws.run("ingest")
    (gap,) = (c for c in ws.cards() if c["kind"] == "balance_gap")
    assert "-11.90" in gap["title"]
    later = Told(MONTH.account, lines=(Line("2025-02-03", "-1.00", "X", "G1"),), opening="2399.00")
    ws.drop("b.sta", write_mt940(later))
    ws.run("ingest")
    assert [c["title"] for c in ws.cards() if c["kind"] == "balance_gap" and "-1.00" in c["title"]]


def test_an_empty_statement_and_one_of_pending_rows_are_done(ws: Workspace) -> None:
    use_accounts(ws, TWO.partition("  - id: card")[0])
    ws.drop("a.sta", write_mt940(replace(MONTH, lines=())))
    ws.drop("b.xml", write_camt(replace(MONTH, lines=LINES[:1])).replace(">BOOK<", ">PDNG<"))
    ws.run("ingest")
    assert ws.entries() == [] and not list((ws.root / "import").glob("*.[sx]*"))
    assert ",pending," in ws.read("books/bank/checking/2025-01.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (write_ofx(replace(MONTH, currency="EUR")), "the statement is in EUR, the books are in USD"),
        (write_ofx(MONTH)[:-30], "truncated"),
        (write_camt(MONTH)[:-30], "truncated"),
        (write_mt940(MONTH)[:-30], "closing balance"),
    ],
)
def test_a_bad_statement_is_a_card_and_nothing_of_it_is_taken(ws: Workspace, text: str, message: str) -> None:
    use_accounts(ws, TWO.partition("  - id: card")[0])
    ws.drop("a.dat", text)
    ws.run("ingest")
    (card,) = ws.cards()
    assert card["kind"] == "bad_file" and message in card["title"]
    assert ws.entries() == [] and (ws.root / "import/a.dat").exists()
    assert not list(ws.root.glob("books/bank/imports*"))


def test_two_bank_accounts_of_one_number_are_told_apart_by_the_bank_or_refused(ws: Workspace) -> None:
    two = (
        TWO.replace('last4: "1234"', 'account: "1234567890"').replace("credit_card", "savings").replace("2010", "1020")
    )
    use_accounts(ws, two)
    ws.drop("a.ofx", write_ofx(MONTH))
    ws.run("ingest")
    assert "both fit" in ws.cards()[0]["title"]
    use_accounts(ws, two.replace('"1234567890"', '"121000248/1234567890"', 1).replace('"1234567890"', '"9/1234567890"'))
    ws.run("ingest")
    assert {r.split(",")[2] for r in ws.read("books/bank/imports-2025-02.csv").splitlines()[1:]} == {"checking"}


def test_a_month_of_a_file_without_balances_leaves_no_gap(ws: Workspace) -> None:
    """Its lines explain what lies between the balances of its neighbours."""
    ws.drop("january.csv", chase(("01/03/2025", "GITHUB *PRO", "-4.00", "996.00")))
    ws.run("ingest")
    ws.drop("february.csv", chase(("02/03/2025", "GITHUB *PRO", "-4.00"), ("02/09/2025", "AWS EMEA", "-45.10")))
    ws.drop("march.csv", chase(("03/03/2025", "GITHUB *PRO", "-4.00", "942.90")))
    ws.run("ingest")
    assert [card["title"] for card in ws.cards() if card["kind"] == "balance_gap"] == []
    ws.drop("april.csv", chase(("04/05/2025", "GITHUB *PRO", "-4.00", "900.00")))
    ws.run("ingest")
    (gap,) = (card for card in ws.cards() if card["kind"] == "balance_gap")
    assert "jumps by -38.90" in gap["title"]
