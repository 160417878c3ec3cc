"""Rows that no script can post wait with a card each; their files, and those of the other banks, are booked."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import CARD_HEADER, Workspace, chase, refused, unchanged
from statement_files import Line, Told, write_ofx

from cleared.books.bank_files.csv_guess import guess_profile

CARD = """
  - id: card
    type: credit_card
    ledger_account: 2010
    format: chase_card
    date_basis: transaction
"""
PAYPAL = """
  - id: paypal
    type: processor
    ledger_account: 1050
    format: paypal
"""
COLUMNS = "Date,Time,TimeZone,Name,Type,Status,Currency,Gross,Fee,Net,Transaction ID,Balance\n"
JANUARY = f"{CARD_HEADER}01/20/2025,01/21/2025,GITHUB *PRO,A,Sale,-4.00,\n"
FEBRUARY = (
    f"{CARD_HEADER}02/03/2025,02/04/2025,GITHUB *PRO,A,Sale,-4.00,\n01/31/2025,02/01/2025,NOTION,A,Sale,-61.20,\n"
)


def add_account(ws: Workspace, account: str) -> None:
    text = ws.read("config.yaml")
    ws.put_config(text.replace("\n  # A second account", f"{account}\n  # A second account", 1))


def held(ws: Workspace) -> list[dict[str, object]]:
    return [card for card in ws.cards() if card["kind"] == "line"]


def balances(ws: Workspace, *options: str) -> dict[int, str]:
    rows = ws.json("journal", "balance", *options)
    return {row["account_id"]: row["balance"] for row in rows if row["balance"] != "0.00"}


@pytest.fixture
def closed(ws: Workspace) -> Workspace:
    """January of a card is in, and closed."""
    add_account(ws, CARD)
    ws.drop("card.csv", JANUARY)
    ws.run("ingest")
    ws.ok("period", "close", "2025-01")
    return ws


def test_b23_a_late_row_waits_and_stops_no_other(closed: Workspace) -> None:
    """B23: posted by whoever answers its card, on the first open day; January stays as it was closed."""
    ws, january = closed, balances(closed, "--as-of", "2025-01-31")
    ws.drop("card.csv", FEBRUARY)
    ws.drop("checking.csv", chase(("02/02/2025", "GITHUB *PRO", "-4.00")))
    assert ws.run("ingest")["result"]["imported"] == 2
    (card,) = held(ws)
    assert card["title"] == (
        "2025-02-01 -61.20 NOTION: its day, 2025-01-31, was closed (through 2025-01-31) before it came. cleared queue "
        "correct posts it on 2025-02-01, or on its day once that is open again"
    )
    assert "1 new, 0 known, 1 held" in ws.read("logs/agent-log-2025-02.csv")
    refused(ws("period", "close", "2025-02-05"), 3, "held: card", "NOTION")
    reconciled = ws("reconcile", "2010", "--date", "2025-02-04", "--balance", "-69.20")
    assert reconciled.code == 1 and "the bank has it, the books do not" in reconciled.out
    ws.in_order()
    ws.ok("queue", "correct", str(card["id"]), "--account", "5060")
    (entry,) = (e for e in ws.entries() if e["description"] == "NOTION")
    assert (entry["date"], entry["tags"]) == ("2025-02-01", ["@orig_date=2025-01-31"])
    assert balances(ws, "--as-of", "2025-01-31") == january
    ws.ok("reconcile", "2010", "--date", "2025-02-04", "--balance", "-69.20")
    ws.drop("again.csv", FEBRUARY)
    assert ws.run("ingest")["result"]["imported"] == 0 and held(ws) == []
    ws.in_order()


def test_b28_an_import_with_a_late_row_that_waits_is_taken_back(closed: Workspace) -> None:
    """B28: nothing of a closed day is in the books, so nothing of one is changed."""
    ws = closed
    ws.drop("card.csv", FEBRUARY)
    ws.run("ingest")
    ws.ok("import", "undo", ws.trailers()["Run"])
    assert held(ws) == []
    ws.drop("card.csv", FEBRUARY)
    assert ws.run("ingest")["result"]["imported"] == 1 and len(held(ws)) == 1
    ws.in_order()


def test_b23_a_row_that_was_taken_back_before_its_day_was_closed_is_late(ws: Workspace) -> None:
    """Its entry and what took that back are of the closed days, and cancel there."""
    add_account(ws, CARD)
    ws.drop("card.csv", JANUARY)
    ws.run("ingest")
    ws.ok("import", "undo", "card.csv")
    ws.ok("period", "close", "2025-01")
    ws.drop("card.csv", JANUARY)
    ws.run("ingest")
    (card,) = held(ws)
    assert "was closed (through 2025-01-31) before it came" in str(card["title"]) and balances(ws) == {}
    ws.ok("queue", "correct", str(card["id"]), "--account", "5060")
    assert [e["date"] for e in ws.entries() if e["status"] != "voided"] == ["2025-02-01"]
    ws.in_order()


def test_b23_a_late_row_is_posted_on_its_day_where_that_is_open_again(closed: Workspace) -> None:
    ws = closed
    ws.drop("card.csv", FEBRUARY)
    ws.run("ingest")
    (card,) = held(ws)
    ws.ok("period", "reopen", "2025-01", "--reason", "one came late")
    ws.ok("queue", "correct", str(card["id"]), "--account", "5060")
    assert [e["date"] for e in ws.entries() if e["description"] == "NOTION"] == ["2025-01-31"]
    ws.in_order()


def test_b23_a_file_of_a_closed_period_is_refused_whole_and_stops_no_other(closed: Workspace) -> None:
    """More rows than one would decide about: the close was wrong, and is to be taken back."""
    ws = closed
    lines = [Line(f"2025-01-{day:02}", f"-{day}.00", f"SHOP {day}", "") for day in range(1, 23)]
    rows = [(f"01/{line.day[8:]}/2025", line.text, line.amount) for line in lines]
    ws.drop("january.csv", chase(*rows))
    ws.drop("card.csv", FEBRUARY)
    assert ws.run("ingest")["result"]["imported"] == 1
    (bad,) = (card for card in ws.cards() if card["kind"] == "bad_file")
    assert "22 rows of it came after their days were closed (through 2025-01-31)" in bad["title"]
    ws.ok("period", "reopen", "2025-01", "--reason", "January of checking was missing")
    assert ws.run("ingest")["result"]["imported"] == 22
    ws.ok("period", "close", "2025-01", "--with-pending", "--despite", "NOTION waits")
    ws.in_order()
    number = "bank_accounts.checking.match.account"
    ws.ok("config", "set", number, "1234567890")
    ws.drop("again.ofx", write_ofx(Told(lines=lines)))
    assert ws.run("ingest")["result"]["imported"] == 0
    assert not [card for card in ws.cards() if "again.ofx was not" in card["title"]], "every row of it is known"
    ws.in_order()


def test_the_file_of_an_account_that_takes_no_entries_stops_no_other(ws: Workspace) -> None:
    ws.ok("accounts", "close", "2010", "--on", "2025-01-31")
    add_account(ws, CARD)
    ws.drop("card.csv", f"{JANUARY}02/03/2025,02/04/2025,LATER,A,Sale,-4.00,\n")
    ws.drop("checking.csv", chase(("02/02/2025", "GITHUB *PRO", "-4.00")))
    assert ws.run("ingest")["result"]["imported"] == 1
    (bad,) = (card for card in ws.cards() if card["kind"] == "bad_file")
    assert "its bank account card goes to 2010" in bad["title"] and "accounts reopen 2010" in bad["title"]
    ws.ok("accounts", "reopen", "2010")
    assert ws.run("ingest")["result"]["imported"] == 2
    ws.in_order()


def paypal(*rows: tuple[str, str, str, str, str]) -> str:
    """(day, name, currency, net, balance)"""
    return COLUMNS + "".join(
        f'{day},10:00:00,PST,{name},Payment,Completed,{code},"{net}",0.00,"{net}",T{n:03}{day[:2]},"{balance}"\n'
        for n, (day, name, code, net, balance) in enumerate(rows)
    )


PURCHASE = paypal(
    ("01/15/2025", "ACME", "USD", "100.00", "100.00"),
    ("01/16/2025", "Hetzner", "EUR", "-10.00", "-10.00"),
    ("01/16/2025", "Conversion", "EUR", "10.00", "0.00"),
    ("01/16/2025", "Conversion", "USD", "-10.87", "89.13"),
    ("01/17/2025", "Tokyo", "JPY", "-1,500", "-1,500"),
    ("01/17/2025", "Manama", "BHD", "-1.234", "-1.234"),
    ("01/20/2025", "FIGMA", "USD", "-9.13", "80.00"),
)


def test_a_row_in_another_currency_waits_and_the_rest_is_booked(ws: Workspace, tmp_path: Path) -> None:
    add_account(ws, PAYPAL)
    file = tmp_path / "paypal.csv"
    file.write_text(PURCHASE)
    shown = ws.ok("import", "--preview", str(file)).out
    assert shown.count("foreign") == 4 and shown.count("posted") == 3
    ws.ok("import", str(file))
    assert sorted(e["amount"] for e in ws.entries()) == ["10.87", "100.00", "9.13"]
    waiting = held(ws)
    assert [str(card["title"])[:48] for card in waiting] == [
        "2025-01-16 -10.00 EUR Hetzner Payment: in EUR, a",
        "2025-01-16 10.00 EUR Conversion Payment: in EUR,",
        "2025-01-17 -1500 JPY Tokyo Payment: in JPY, and ",
        "2025-01-17 -1.234 BHD Manama Payment: in BHD, an",
    ]
    assert not [card for card in ws.cards() if card["kind"] == "balance_gap"], "each currency has a balance of its own"
    assert balances(ws)[1050] == "80.00"
    ws.ok("reconcile", "1050", "--date", "2025-01-20", "--balance", "80.00")
    ws.in_order()
    first = str(waiting[0]["id"])
    with unchanged(ws):
        refused(ws("queue", "correct", first, "--account", "5060"), 3, "is in EUR", "cleared journal add", "ignore")
        refused(ws("period", "close", "2025-01", "--with-pending"), 3, "held: paypal", "Hetzner")
    for card in waiting:
        ws.ok("queue", "answer", str(card["id"]), "ignore")
    ws.ok("import", "undo", "paypal.csv", "--despite", "once more")
    ws.ok("import", str(file))
    assert len(held(ws)) == 4 and balances(ws)[1050] == "80.00", "an import that was undone asks anew"
    for card in held(ws):
        ws.ok("queue", "answer", str(card["id"]), "ignore")
    ws.ok("period", "close", "2025-01", "--with-pending")
    file.write_text(PURCHASE + "\n")
    assert "0 transactions" in ws.ok("import", str(file)).err and held(ws) == []
    ws.in_order()


def test_a_file_with_nothing_in_the_accounts_currency_is_refused(ws: Workspace, tmp_path: Path) -> None:
    add_account(ws, PAYPAL)
    file = tmp_path / "paypal.csv"
    file.write_text(paypal(("01/16/2025", "Hetzner", "EUR", "-10.00", "-10.00")))
    with unchanged(ws):
        refused(ws("import", str(file)), 1, "the row is in EUR, the books are in USD")


def test_a_script_posts_no_line_in_another_currency(ws: Workspace) -> None:
    add_account(ws, PAYPAL)
    ws.drop("paypal.csv", PURCHASE)
    ws.run("ingest")
    line = held(ws)[0]["details"]["line"]  # type: ignore[index]
    body = f'journal_add_double("2025-01-16", "x", 5060, 1050, 10, reference="{line}")'
    assert "is in EUR" in str(ws.script(body, code=1)["error"])


@pytest.mark.parametrize("foreign", ["-18.50 EUR", "€-18.50", "-£18.50"])
def test_an_amount_that_names_another_currency_waits(ws: Workspace, tmp_path: Path, foreign: str) -> None:
    """It was booked as if it were of the books' own."""
    file = tmp_path / "bank.csv"
    file.write_text(f"Date,Text,Amount\n2025-01-03,HOSTING,-$10.00\n2025-01-04,SHOP,{foreign}\n")
    ws.ok("bank", "add", str(file), "--account", "checking")
    assert [each["description"] for each in ws.entries()] == ["HOSTING"]
    assert ["it cannot be posted" in str(card["title"]) for card in held(ws)] == [True]
    ws.in_order()


def test_dollars_are_not_of_books_in_another_currency() -> None:
    data = b"Date,Text,Amount,Original\n2025-01-31,GITHUB PRO,-4.00,-4.10\n2025-01-30,INVOICE,15.00,$16.00\n"
    for known, base in ((data, "EUR"), (data.replace(b"-4.00", b"-$4.00"), "CAD")):
        assert "currency" not in guess_profile(known, {}, base=base).values
    assert guess_profile(data.replace(b"-4.00", b"-$4.00"), {}, base="EUR").values["currency"] == "USD"


def test_a_column_of_currencies_counts_where_some_of_it_is_none() -> None:
    data = b"Date,Text,Amount,Currency\n2025-01-31,A,-4.00,usd\n2025-01-30,B,1.00,\n2025-01-29,C,1.00,Euro\n"
    assert guess_profile(data, {}).values["columns"]["currency"] == "Currency"


def test_what_an_account_held_before_is_not_known_while_a_foreign_row_waits(ws: Workspace, tmp_path: Path) -> None:
    """The bank's balances have in them what it cost, which the bank alone knows; it was taken for the beginning."""
    file = tmp_path / "bank.csv"
    file.write_text(
        "Date,Text,Amount,Currency,Balance\n2025-01-03,SHOP,-18.50,EUR,80.00\n2025-01-03,HOSTING,-10.00,USD,70.00\n"
        "2025-01-06,STAMPS,-5.00,USD,65.00\n"
    )
    ws.ok("bank", "add", str(file), "--account", "checking")
    refused(ws("journal", "open"), 3, "checking", "2025-01-03 -18.50 EUR SHOP", "ignore")
    said = ws("reconcile", "1010", "--date", "2025-01-06", "--balance", "65.00").out
    assert "journal open" not in said and "2025-01-03 -18.50 EUR SHOP" in said
    ws.ok("journal", "add", "2025-01-03", "SHOP", "5030=20.00", "1010=-20.00")
    ws.ok("queue", "answer", str(held(ws)[0]["id"]), "ignore")
    ws.ok("journal", "open")
    assert balances(ws)[1010] == "65.00" and balances(ws, "--as-of", "2025-01-02")[1010] == "100.00"
    ws.in_order()


def test_a_row_under_an_id_of_another_one_waits(ws: Workspace) -> None:
    """A bank that counts its ids anew in each file: same id and amount, another day and text. Nothing is lost, and
    nothing is booked that may be the same row."""
    ws.ok("config", "set", "bank_accounts.checking.match.account", "1234567890")
    ws.drop("w1.ofx", write_ofx(Told(lines=[Line("2025-01-10", "-40.00", "RENT", "1")])))
    ws.run("ingest")
    second = write_ofx(Told(opening="960.00", lines=[Line("2025-01-14", "-40.00", "COFFEE MACHINE", "1")]))
    for name in ("w2.ofx", "w2-again.ofx"):
        ws.drop(name, second.replace("<OFX>", f"<OFX>{' ' * len(name)}"))
        ws.run("ingest")
        (card,) = [each for each in ws.cards() if each["kind"] == "line"]
        assert "COFFEE MACHINE" in card["title"] and "used its id 1 before, for 2025-01-10" in card["title"]
    assert len(ws.entries()) == 1
    ws.ok("queue", "correct", card["id"], "--account", "5060")
    assert [e["description"] for e in ws.entries()] == ["RENT", "COFFEE MACHINE"]
    ws.in_order()


@pytest.mark.parametrize(("day", "text"), [("2025-01-10", "RENT MAIN ST"), ("2025-01-12", "RENT")])
def test_a_row_that_the_bank_reworded_or_dated_anew_is_the_same(ws: Workspace, day: str, text: str) -> None:
    ws.ok("config", "set", "bank_accounts.checking.match.account", "1234567890")
    for name, line in (("w1.ofx", ("2025-01-10", "RENT")), ("w2.ofx", (day, text))):
        ws.drop(name, write_ofx(Told(lines=[Line(line[0], "-40.00", line[1], "1")])))
        ws.run("ingest")
    assert len(ws.entries()) == 1
    assert not [each for each in ws.cards() if each["kind"] == "line"]
