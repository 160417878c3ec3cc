"""``cleared bank add``: an account by one of its files; what is unknown is guessed, shown, and corrected (B19)."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from harness import Workspace, refused, unchanged
from statement_files import LINES, MONTH, Line, Told, write_camt, write_chase, write_mt940, write_ofx

from cleared.books.bank_files.csv_guess import guess_profile
from cleared.workspace.settings.loading import load_config

TWO_SIDES = "Debit,Credit,Fee\n2025-01-03,A,10.00,,\n2025-01-04,B,20.00,,1.50\n2025-01-05,C,,1.00,"
GERMAN = """Umsätze Girokonto;DE89 3704 0044 0532 0130 00

Buchungstag;Valuta;Verwendungszweck;Betrag;Saldo
31.01.2025;31.01.2025;GITHUB PRO;-4,00;2.496,00
15.01.2025;15.01.2025;Rechnung 12 Müller KG;1.250,00;2.500,00
"""
PLAIN = "Date,Description,Amount\n2025-01-31,GITHUB PRO,-4.00\n2025-01-30,INVOICE,1500.00\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "statement.dat"


def test_the_first_file_makes_the_starters_account_the_banks(ws: Workspace, file: Path) -> None:
    """An OFX file gives its number; the account's own CSV goes on fitting. The file is imported."""
    file.write_text(write_ofx(MONTH))
    before = ws.read("config.yaml")
    done = ws.ok("bank", "add", str(file))
    assert "GITHUB *PRO" in done.err and len(ws.entries()) == 6
    (account,) = load_config(ws.read("config.yaml")).bank_accounts
    assert (account.match.account, account.format) == ("1234567890", "chase_checking")
    assert len(ws.read("config.yaml").splitlines()) == len(before.splitlines()) + 2, "all else stays"
    assert "config: bank account checking (ofx)" in ws.git("log", "--format=%s")
    ws.in_order()


def test_a_file_of_another_format_may_be_of_the_account_that_is_there(ws: Workspace, file: Path) -> None:
    """A QIF file says no number; the remedy leads to the account before it leads to a new one."""
    file.write_text("!Type:Bank\nD01/17/2025\nT-4.00\nPGITHUB\n^\n")
    with unchanged(ws):
        refused(ws("import", str(file)), 1, "its format is chase_checking", "cleared bank add FILE --account checking")
    ws.ok("bank", "add", str(file), "--account", "checking")
    assert [account.id for account in load_config(ws.read("config.yaml")).bank_accounts] == ["checking"]


@pytest.mark.parametrize("head", ["Amount (EUR)", "Betrag EUR", "Amount in €"])
def test_a_currency_that_only_a_head_names_is_the_files(ws: Workspace, file: Path, head: str) -> None:
    """Refused as one with a column of currencies is; a head that names the books' own, or no currency, is let pass."""
    text = "Date,Description,{}\n2025-01-31,GITHUB PRO,-4.00\n2025-01-30,INVOICE,1500.00\n"
    file.write_text(text.format(head))
    with unchanged(ws):
        refused(ws("bank", "add", str(file), "--id", "giro"), 2, "the account is in EUR, the books are in USD")
    for own in ("Amount USD", "Amount NET"):
        assert guess_profile(text.format(own).encode(), {}, is_card=False).values.get("currency") in (None, "USD")
    file.write_text(text.format("Amount (USD)"))
    ws.ok("bank", "add", str(file), "--id", "giro")
    assert load_config(ws.read("config.yaml")).import_.profiles["giro"].currency == "USD"


def test_an_account_is_in_the_currency_of_most_rows_and_others_are_shown_as_they_are(ws: Workspace, file: Path) -> None:
    """It was in that of the first row, so that the file was refused."""
    file.write_text(
        "Date,Text,Amount,Currency\n2025-01-03,SHOP,-18.50,EUR\n2025-01-04,HOSTING,-10.00,USD\n2025-01-05,CAFE,-4.00,USD\n"
    )
    done = ws.ok("bank", "add", str(file), "--id", "wallet")
    assert re.search(r"-18\.50 +EUR +SHOP", done.err) and re.search(r"-4\.00 +USD +CAFE", done.err)
    assert [each["description"] for each in ws.entries()] == ["HOSTING", "CAFE"]
    assert [each["kind"] for each in ws.cards() if "SHOP" in str(each["title"])] == ["line"]
    ws.in_order()


@pytest.mark.parametrize(("fee", "booked"), [("1.00", "21.00"), ("-1.00", "21.00"), ("", "20.00")])
def test_a_fee_beside_the_amount_is_booked_where_the_balance_shows_it(
    ws: Workspace, file: Path, fee: str, booked: str
) -> None:
    text = (
        "Date,Text,Amount,Fee,Balance\n2025-01-03,A,-10.00,,90.00\n2025-01-04,B,-20.00,{},{}\n2025-01-05,C,1.00,,{}\n"
    )
    left = 90 - float(booked)
    file.write_text(text.format(fee, f"{left:.2f}", f"{left + 1:.2f}"))
    ws.ok("bank", "add", str(file), "--account", "checking")
    assert {each["description"]: each["amount"] for each in ws.entries()} == {"A": "10.00", "B": booked, "C": "1.00"}
    assert not [card for card in ws.cards() if card["kind"] == "balance_gap"]
    profiles = load_config(ws.read("config.yaml")).import_.profiles.values()
    assert [each.fee for each in profiles] == ["on_top" if fee else "within"]


@pytest.mark.parametrize(("said", "booked"), [("within", "20.00"), ("on_top", "21.50")])
@pytest.mark.parametrize("columns", ["Amount,Fee\n2025-01-03,A,-10.00,0.00\n2025-01-04,B,-20.00,1.50", TWO_SIDES])
def test_a_fee_that_no_balance_shows_is_asked_about(
    ws: Workspace, file: Path, columns: str, said: str, booked: str
) -> None:
    """It was passed over, so that the books lacked it."""
    file.write_text(f"Date,Text,{columns}\n")
    with unchanged(ws):
        refused(ws("bank", "add", str(file), "--account", "checking"), 2, "'Fee'", "--fee within", "--fee on_top")
    ws.ok("bank", "add", str(file), "--account", "checking", "--fee", said)
    assert [each["amount"] for each in ws.entries()][:2] == ["10.00", booked]
    ws.in_order()


def test_a_column_that_is_taken_for_the_amount_is_no_fee_beside_it() -> None:
    guess = guess_profile(b"Date,Text,Fee\n2025-01-03,A,-1.00\n2025-01-04,B,-2.00\n", {})
    assert guess.values["columns"]["amount"] == "Fee" and guess.questions == {}


@pytest.mark.parametrize("said", [{"debit": "Spent"}, {"debit": "Spent", "fee": "Fee"}])
def test_a_fee_beside_one_side_alone_leaves_the_question_of_the_other(said: dict[str, str]) -> None:
    """It was a traceback."""
    data = b"Date,Text,Spent,Fee\n2025-01-03,A,3.00,1.00\n2025-01-04,B,4.00,2.00\n"
    assert list(guess_profile(data, {"columns": said}).questions) == ["--column"]


def test_a_fee_is_read_with_the_decimal_mark_that_was_said() -> None:
    data = b"Date;Text;Amount;Fee;Balance\n2025-01-03;A;-1,000;0,000;9,000\n2025-01-04;B;-2,000;1,000;6,000\n"
    assert guess_profile(data, {"decimal": ","}).values["fee"] == "on_top"


@pytest.mark.parametrize("meaning", ["amount", "balance", "fee", "date", "description"])
def test_a_column_that_the_file_has_not_is_named(ws: Workspace, file: Path, meaning: str) -> None:
    file.write_text(PLAIN)
    with unchanged(ws):
        refused(ws("bank", "add", str(file), "--column", f"{meaning}=Nope"), 1, "no column 'Nope'", "Amount")


def test_two_heads_that_name_two_currencies_say_none() -> None:
    data = b"Date,Text,Debit EUR,Credit USD\n2025-01-31,GITHUB PRO,4.00,\n2025-01-30,INVOICE,,1500.00\n"
    assert "currency" not in guess_profile(data, {}, is_card=False).values


def test_further_accounts_get_entries_and_accounts_in_the_books(ws: Workspace, file: Path) -> None:
    card = Told("4111XXXXXXXX1234", card=True, lines=(Line("2025-01-07", "-19.99", "AWS", "F1"),))
    file.write_text(write_ofx(MONTH, card, replace(MONTH, account="55", lines=())))
    with unchanged(ws):
        refused(ws("import", str(file)), 1, "no bank account fits", "cleared bank add FILE")
    assert "new bank account: id card, name Credit card 1234, type credit_card" in ws.ok("bank", "add", str(file)).err
    accounts = load_config(ws.read("config.yaml")).bank_accounts
    assert [(a.id, a.type, a.ledger_account, a.match.account) for a in accounts] == [
        ("checking", "checking", 1010, "1234567890"),
        ("card", "credit_card", 2010, "4111XXXXXXXX1234"),
        ("checking_55", "checking", 1011, "55"),
    ]
    assert len(ws.entries()) == 7
    with unchanged(ws):
        refused(ws("bank", "add", str(file), "--account", "nobody"), 2, "no bank account", "card")
        refused(ws("bank", "add", str(file), "--id", "card"), 2, "already")


def test_a_further_format_of_an_account_takes_none_of_the_others_away(ws: Workspace, file: Path) -> None:
    ws.drop("january.csv", write_chase(MONTH))
    ws.run("ingest")
    file.write_text("!Type:Bank\nD2025-02-03\nT-9.00\nPPARKING\n^\n")
    refused(ws("import", str(file)), 1, "its format is chase_checking", "--account checking")
    (card := file.with_name("card.csv")).write_text("Day,Shop,Amount\n2025-02-01,BAKERY,-9.00\n")
    ws.ok("bank", "add", str(card), "--id", "card", "--type", "credit_card")
    assert "bank_accounts.checking.other_formats: qif" in ws.ok("bank", "add", str(file), "--account", "checking").err
    (account, _) = load_config(ws.read("config.yaml")).bank_accounts
    assert account.formats == ("chase_checking", "qif")
    file.write_text("!Type:CCard\nD2025-02-04\nT-8.00\nPDINER\n^\n")
    refused(ws("import", str(file)), 1, "it is of type checking, the file says credit_card", "--account card")
    ws.ok("bank", "add", str(file), "--account", "card")
    march = file.with_name("march.csv")
    march.write_text(write_chase(Told(lines=(Line("2025-03-03", "-4.00", "GITHUB *PRO", ""),))))
    ws.ok("import", str(march))
    assert len(ws.entries()) == len(LINES) + 4
    ws.in_order()


def test_a_file_without_a_number_comes_to_an_account_that_has_one(ws: Workspace, file: Path) -> None:
    file.write_text(write_ofx(MONTH))
    ws.ok("bank", "add", str(file), "--account", "checking")
    file.write_text("!Type:Bank\nD2025-02-03\nT-9.00\nPPARKING\n^\n")
    ws.ok("bank", "add", str(file), "--account", "checking")
    ws.ok("bank", "add", str(file), "--account", "checking")
    assert len(ws.entries()) == len(LINES) + 1
    ws.in_order()


def test_a_german_account_is_known_by_its_iban_in_mt940_too(ws: Workspace, file: Path) -> None:
    iban, line = "DE89370400440532013000", replace(MONTH, lines=LINES[:1])
    file.write_text(write_camt(replace(MONTH, account=iban, lines=LINES[1:2])))
    ws.ok("bank", "add", str(file))
    file.write_text(write_mt940(replace(line, account="37040044/0532013000EUR")))
    ws.ok("bank", "add", str(file), "--account", "checking")
    assert len(ws.entries()) == 2
    file.write_text(write_mt940(replace(line, account="37040044/0532013001EUR")))
    with unchanged(ws):
        refused(ws("import", str(file)), 1, "no bank account fits")
        refused(ws("bank", "add", str(file), "--account", "checking"), 2, "is known by the number", "match.account")


def test_b25_an_unknown_csv_is_described_in_the_configuration(ws: Workspace, file: Path) -> None:
    """Columns, dates, decimal mark, preamble and encoding are told from the file."""
    file.write_bytes(GERMAN.encode("cp1252"))
    ws.ok("bank", "add", str(file), "--id", "sparkasse", "--ledger-account", "1030", "--name", "Giro", "--no-run")
    config = load_config(ws.read("config.yaml"))
    profile = config.import_.profiles["sparkasse"]
    assert (profile.decimal, profile.thousands, profile.delimiter, profile.encoding) == (",", ".", ";", "cp1252")
    assert profile.date_format == "%d.%m.%Y" and profile.skip_lines == 2
    assert dict(profile.columns) == {
        "date": "Buchungstag",
        "transaction_date": "Valuta",
        "balance": "Saldo",
        "amount": "Betrag",
        "description": "Verwendungszweck",
    }
    assert config.bank_accounts[1].format == "sparkasse"
    assert "Giro" in ws.ok("accounts", "list").out
    assert ws.json("import", str(file))["runs"][0]["result"]["imported"] == 2
    assert [b["id"] for b in ws.json("bank", "list")] == ["checking", "sparkasse"]


@pytest.mark.parametrize(
    ("text", "options", "question"),
    [
        ("Date,Description,Amount\n01/02/2025,X,-1.00\n", ("--date-format", "%d/%m/%Y"), "--date-format %m/%d/%Y or"),
        ("Date,Description,Amount\n2025-01-31,X,1.00\n", ("--sign", "inverted"), "No amount is negative"),
        ("Date;Description;Amount\n2025-01-31;X;-1,234\n", ("--decimal", "."), "decimal mark"),
        ("Date,A,B\n2025-01-31,7,-1.00\n", ("--column", "description=A"), "Which column is the description"),
    ],
)
def test_what_the_file_does_not_say_is_asked(
    ws: Workspace, file: Path, text: str, options: tuple[str, str], question: str
) -> None:
    """Without a terminal that is a refusal which names the options; nothing is written."""
    file.write_text(text)
    with unchanged(ws):
        refused(ws("bank", "add", str(file)), 2, question)
    ws.ok("bank", "add", str(file), *options)
    (entry,) = ws.entries()
    assert entry["amount"] in ("1.00", "1234.00")
    assert ("2025-02-01" if "%d/%m" in options[1] else "2025-01-31") == entry["date"]


def test_columns_that_are_described_already_are_not_described_for_a_second_account(ws: Workspace, file: Path) -> None:
    """Two descriptions of the same columns would leave every later file with neither."""
    file.write_text("When;What;How much\n03.01.2025;Coffee;-4,50\n15.01.2025;Client;1.200,00\n")
    ws.ok("bank", "add", str(file))
    anew = ("--column", "description=What", "--date-format", "%d.%m.%Y")
    with unchanged(ws):
        refused(ws("bank", "add", str(file), *anew), 2, "nothing was written", "both match", "--account ID (checking)")
    ws.ok("bank", "add", str(file), *anew, "--account", "checking")
    file.write_text("When;What;How much\n03.02.2025;Tea;-3,50\n")
    assert ws.json("import", str(file))["runs"][0]["result"]["imported"] == 1
    assert len(ws.entries()) == 3


def test_signs_are_told_by_a_column_or_by_the_running_balance() -> None:
    directed = b"Date,Text,Kind,Amount\n2025-01-31,X,debit,1.00\n2025-01-30,Y,credit,2.00\n"
    guess = guess_profile(directed, {"columns": {"direction": "Kind", "description": "Text"}})
    assert not guess.questions and guess.values["columns"]["direction"] == "Kind"
    card = b"Date,Description,Amount,Balance\n2025-01-30,X,10.00,-10.00\n2025-01-31,Y,-4.00,-6.00\n"
    assert guess_profile(card, {}).values["sign"] == "inverted"
    split = b"Date,Description,Withdrawal,Deposit\n2025-01-30,X,1.00,\n2025-01-31,Y,,2.00\n"
    assert {"debit", "credit"} <= set(guess_profile(split, {}).values["columns"])
    headless = b'"01/31/2025","-4.00","x","GITHUB"\n"01/30/2025","9.00","x","ACME"\n'
    assert guess_profile(headless, {}).values["headers"]


def test_what_is_no_table_is_refused(ws: Workspace, file: Path) -> None:
    with unchanged(ws):
        for data in (b"hello\n", b"\x89PNG....", b"a,b\n1,2\n", b"%PDF-1.7"):
            file.write_bytes(data)
            assert ws("bank", "add", str(file)).code == 1
        file.write_text(write_ofx(replace(MONTH, lines=LINES))[:-9])
        refused(ws("bank", "add", str(file)), 1, "truncated")


def test_column_heads_are_found_below_lines_that_are_padded_to_as_many_fields(ws: Workspace, tmp_path: Path) -> None:
    """As spreadsheet programs write what stands above a table."""
    file = tmp_path / "harbor.csv"
    file.write_text(
        "Harbor National Bank;Acct ****2201;;;;\nExported;2026-04-01;;;;\n"
        "Posted On;Narrative;Paid Out;Paid In;Running Bal;Chk\n"
        "2025-01-03;RENT;1200.00;;3800.00;\n2025-01-09;BLUEBIRD;;450.00;4250.00;\n"
    )
    ws.ok("bank", "add", str(file), "--id", "harbor", "--yes", "--no-run")
    shown = ws.json("import", "--preview", str(file))
    assert [(r["amount"], r["description"]) for r in shown["statements"][0]["rows"]] == [
        ("-1200.00", "RENT"),
        ("450.00", "BLUEBIRD"),
    ]


@pytest.mark.parametrize(("head", "type_"), [("Charge (USD)", "checking"), ("Amount", "credit_card")])
def test_the_sign_of_a_card_with_mostly_positive_amounts_is_asked(
    ws: Workspace, tmp_path: Path, head: str, type_: str
) -> None:
    file = tmp_path / "card.csv"
    lines = "2025-01-04,ADOBE,29.99\n2025-01-05,CAFE,5.10\n2025-01-20,PAYMENT,-842.17\n"
    file.write_text(f"Txn Dt,Merchant,{head}\n{lines}")
    with unchanged(ws):
        refused(ws("bank", "add", str(file), "--type", type_, "--yes"), 2, "Are they purchases (--sign inverted)")
    ws.ok("bank", "add", str(file), "--type", type_, "--sign", "inverted", "--yes", "--no-run")
    rows = ws.json("import", "--preview", str(file))["statements"][0]["rows"]
    assert [row["amount"] for row in rows] == ["-29.99", "-5.10", "842.17"]


def test_an_account_of_a_known_bank_has_its_name_and_an_account_of_its_own(ws: Workspace, tmp_path: Path) -> None:
    """The savings of the chart stay what they are called."""
    ws.drop("january.csv")
    ws.run("ingest")
    columns = "TransferWise ID,Date,Amount,Currency,Description,Payment Reference,Running Balance,Total fees"
    file = tmp_path / "july.csv"
    file.write_text(f"{columns}\nCARD-1,01-02-2025,-10.99,USD,Card transaction,,89.01,0.00\n")
    ws.ok("bank", "add", str(file), "--yes")
    row = ws.json("bank", "list")[-1]
    assert (row["id"], row["name"], row["type"], row["ledger_account"]) == ("wise", "Wise", "checking", 1011)
    names = {a["account_id"]: a["account_name"] for a in ws.json("accounts", "list")}
    assert (names[1011], names[1020]) == ("Wise", "Business savings")


@pytest.mark.parametrize(
    ("number", "said"),
    [
        ("5070", "Meals (expense) cannot be a bank account’s"),
        ("3900", "Opening balances (equity) cannot be a bank account’s"),
        ("1090", "Transfers in transit (between your own accounts) cannot be a bank account’s"),
        ("1010", "is the bank account’s Business checking"),
    ],
)
def test_a_bank_account_has_no_account_of_the_books_that_is_something_else(
    ws: Workspace, tmp_path: Path, number: str, said: str
) -> None:
    file = tmp_path / "card.csv"
    file.write_text("Day,What,Sum\n2025-01-31,RENT,-4.00\n")
    with unchanged(ws):
        refused(ws("bank", "add", str(file), "--id", "more", "--ledger-account", number, "--yes"), 2, said)


def test_no_setting_makes_an_expense_a_bank_account(ws: Workspace) -> None:
    """By command or by hand; what was approved before anybody looked is named by doctor."""
    key, said = "bank_accounts.checking.ledger_account", "Meals (expense) cannot be a bank account’s"
    with unchanged(ws):
        refused(ws("config", "set", key, "5070"), 3, said)
    before = ws.read("config.yaml")
    ws.put("config.yaml", before.replace("ledger_account: 1010", "ledger_account: 5070", 1))
    assert ws.read("config.yaml") != before
    refused(ws("config", "approve"), 3, said)
    proposed = ws("agent", "propose", "config.yaml")
    assert proposed.code == 1 and "[policy-records]" in proposed.err and said in proposed.err
    ws.put("config.yaml", before)
    ws.ok("config", "set", key, "1020")
    assert "they agree with the records" in ws("doctor").out
    chart = "accounts/chart-of-accounts.csv"
    ws.put(chart, re.sub(r"(?m)^(1020,[^,]*,)asset", r"\1expense", ws.read(chart)))
    ws.commit(chart)
    assert "cannot be a bank account’s" in ws("doctor").out


def test_cards_that_state_one_day_and_a_mostly_empty_memo() -> None:
    """Brex lets its users choose the columns of a file, so none of its files is a preset."""
    data = (
        b"Transaction date,Amount,Original amount,Original currency,Merchant,Memo,Expense status\n"
        b"2025-01-10,12.50,12.50,USD,Uber,,Approved\n2025-01-12,40.00,40.00,USD,Figma,seats,Approved\n"
        b"2025-01-13,-4.00,-4.00,USD,Uber,,Approved\n"
    )
    guess = guess_profile(data, {"sign": "inverted"}, is_card=True)
    assert guess.questions == {} and guess.values["columns"]["date"] == "Transaction date"
    assert (guess.values["columns"]["amount"], guess.values["columns"]["description"]) == ("Amount", "Merchant")


STATES = (
    "Date,Payee,Details,Amount,{}\n2025-01-30,Sushi Bar,Bewirtung CARD 8812,-48.50,{}\n"
    "2025-01-29,ACME,INVOICE 12,1500.00,{}\n2025-01-28,GITHUB,PRO,-4.00,{}\n"
)


@pytest.mark.parametrize(
    ("head", "waits", "stands"),
    [
        ("Status", "Pending", "Posted"),
        ("Buchungsstatus", "Vorgemerkt", "Gebucht"),
        ("State", "PENDING", ""),
        ("Estado", "Pendiente", "Contabilizado"),
        ("Statut", "En attente", "Comptabilisée"),
    ],
)
def test_pending_rows_are_shown_recorded_and_never_posted(
    ws: Workspace, file: Path, head: str, waits: str, stands: str
) -> None:
    """And booked once, when the bank has posted them under other words."""
    file.write_text(STATES.format(head, waits, stands, stands))
    shown = ws.ok("bank", "add", str(file), "--account", "checking").err
    assert f"the column {head} says whether a row counts" in shown and "1 row is pending, of 3: recorded" in shown
    assert sorted(e["amount"] for e in ws.entries()) == ["1500.00", "4.00"]
    preview = ws.json("import", "--preview", str(file))
    assert [row["state"] for row in preview["statements"][0]["rows"]] == ["pending", "posted", "posted"]
    assert (
        "1 row is pending" in preview["notes"][0] and "1 row is pending" in ws.ok("import", "--preview", str(file)).err
    )
    file.write_text(STATES.format(head, *[stands] * 3).replace("Bewirtung CARD 8812", "SUSHI BAR MUC"))
    ws.ok("import", str(file))
    assert sorted(e["amount"] for e in ws.entries()) == ["1500.00", "4.00", "48.50"]
    file.write_text(STATES.format(head, "On a whim", stands or "Posted", stands or "Posted"))
    if stands:
        refused(ws("import", str(file)), 1, "'On a whim' is no word of pending or posted of its profile")
    ws.in_order()


def test_words_of_a_column_of_states_that_nobody_knows_are_asked(ws: Workspace, file: Path) -> None:
    file.write_text(STATES.format("Status", "Tentative", "Posted", "Posted"))
    with unchanged(ws):
        refused(ws("bank", "add", str(file)), 2, "the column Status mean", "It has Tentative", "--pending none")
        missing = ("--column", "state=Nope", "--pending", "Tentative")
        assert ws("bank", "add", str(file), *missing).code != 0
    ws.ok("bank", "add", str(file), "--account", "checking", "--pending", "tentative", "--no-run")
    preview = ws.json("import", "--preview", str(file))
    assert [row["state"] for row in preview["statements"][0]["rows"]] == ["pending", "posted", "posted"]
    ws.ok("bank", "add", str(file), "--account", "checking", "--pending", "none")
    assert len(ws.entries()) == 3


def test_a_column_of_states_that_an_older_description_does_not_read_is_noticed(ws: Workspace, file: Path) -> None:
    """Its file says nothing of it until a row is pending."""
    file.write_text(STATES.format("Status", "", "", ""))
    ws.ok("bank", "add", str(file), "--account", "checking", "--no-run")
    file.write_text(STATES.format("Status", "Posted", "Pending", ""))
    for command in (("import", "--preview"), ("import",)):
        with unchanged(ws):
            refused(ws(*command, str(file)), 1, "'Pending' stands in the column 'Status'", "--column state=Status")
    ws.ok("bank", "add", str(file), "--account", "checking", "--column", "state=Status")
    assert sorted(e["amount"] for e in ws.entries()) == ["4.00", "48.50"]


def test_the_name_and_the_details_are_both_kept(ws: Workspace, file: Path) -> None:
    file.write_text(STATES.format("Chk", 1, 2, 3))
    ws.ok("bank", "add", str(file), "--account", "checking")
    assert {e["description"] for e in ws.entries()} == {
        "Sushi Bar Bewirtung CARD 8812",
        "ACME INVOICE 12",
        "GITHUB PRO",
    }
    dkb = (
        "Buchungsdatum;Status;Zahlungspflichtige*r;Zahlungsempfänger*in;Verwendungszweck;Betrag (€)\n"
        "30.01.25;Gebucht;Ana Mora;REWE SAGT DANKE;VISA 8812;-12,40\n29.01.25;Gebucht;ACME;Ana Mora;RE 12;150,00\n"
    )
    values = guess_profile(dkb.encode(), {}).values
    assert (values["columns"]["description"], values["more_description"]) == (
        "Zahlungspflichtige*r",
        ("Zahlungsempfänger*in", "Verwendungszweck"),
    )
    said = guess_profile(dkb.encode(), {"columns": {"description": "Verwendungszweck"}}).values
    assert "more_description" not in said and said["columns"]["description"] == "Verwendungszweck"


def test_a_total_below_the_rows_is_said_and_passed_over(ws: Workspace, file: Path) -> None:
    file.write_text("Datum;Text;Betrag\n31.01.2025;A;-4,00\n30.01.2025;B;-45,10\nSumme;;-49,10\n")
    shown = ws.ok("bank", "add", str(file), "--account", "checking").err
    assert "line 4: 'Summe -49,10' is passed over; the rows agree with it (their sum)" in shown
    assert len(ws.entries()) == 2
    file.write_text("Datum;Text;Betrag\n01.02.2025;A;-4,00\nSumme;;-49,10\n")
    with unchanged(ws):
        refused(ws("import", str(file)), 1, "line 3", "'Summe -49,10' looks like a total", "their sum 4.00", "missing")
    file.write_text("Datum;Text;Betrag\n01.02.2025;A;-4,00\nSumme;;-4,00\n")
    assert "line 3: 'Summe -4,00' is passed over" in ws.ok("import", str(file)).err
    ws.in_order()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--delimiter", "xx"), "is not one character between fields"),
        (("--date-format", "%Q"), "How are dates written?"),
        (("--encoding", "nonsense"), "is not known"),
    ],
)
def test_an_answer_that_cannot_be_is_refused_in_words(
    ws: Workspace, file: Path, options: tuple[str, str], said: str
) -> None:
    file.write_text("When,What,Note,Sum\n01/02/2025,GITHUB PRO,one,4.00\n")
    with unchanged(ws):
        done = ws("bank", "add", str(file), *options)
        refused(done, done.code, said)
