"""``cleared start-from``: opening balances and whole histories, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Workspace, chase, copy_books, refused, unchanged
from hostile_books import HOSTILE, post_texts

TRIAL = """Account,Name,Debit,Credit
1010,Business checking,"1,250.00",
2010,Credit card,,300.00
3100,Contributions,,1000.00
5020,Software,50.00,
Total,,1300.00,1300.00
"""


def balances(ws: Workspace) -> dict[int, str]:
    return {row["account_id"]: row["balance"] for row in ws.json("journal", "balance") if float(row["balance"])}


def put(ws: Workspace, name: str, text: str) -> str:
    path = ws.root.parent / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_trial_balance_becomes_opening_balances_of_the_day_before(ws: Workspace) -> None:
    file = put(ws, "trial.csv", TRIAL)
    with unchanged(ws):
        plan = ws.json("start-from", file, "--from", "2025-01-01", "--preview")
        assert (plan["openings"], plan["entries"], plan["first"]) == (4, 0, "2024-12-31")
    made = ws.json("start-from", file, "--from", "2025-01-01")
    assert made["ids"] == ["2024-12-001", "2024-12-004"]
    assert balances(ws) == {1010: "1250.00", 2010: "-300.00", 3100: "-1000.00", 5020: "50.00"}
    entries = ws.entries()
    assert {e["date"] for e in entries} == {"2024-12-31"} and {e["status"] for e in entries} == {"bootstrap-confirmed"}
    assert all(e["tags"] == ["@kind=opening"] and e["lines"][1]["account_id"] == 3900 for e in entries)
    assert entries[0]["reference"] == "opening:checking" and entries[0]["evidence"] == "trial.csv, line 2"
    assert ws.git("log", "-1", "--format=%s").strip() == "bootstrap: 4 opening balances from trial.csv"
    ws.in_order()
    refused(ws("start-from", file, "--from", "2025-01-01"), 3, "the books have 4 entries up to 2024-12-31 already")
    preview = ws("start-from", file, "--from", "2025-01-01", "--preview")
    assert preview.code == 3 and "would be refused: the books have 4 entries" in preview.err
    assert ws.ok("queue", "undo").out.startswith("Taken back: the last decision, posted 2024-12-005")
    assert balances(ws) == {}
    ws.in_order()


@pytest.mark.parametrize("by_hand", [False, True])
def test_what_an_account_began_with_is_not_taken_over_twice(ws: Workspace, *, by_hand: bool) -> None:
    """The bank's first row is of the 20th, so that its opening balance is of a later day than those of the file."""
    ws.drop("january.csv", chase(("01/20/2025", "GITHUB", "-4.00", "996.00")))
    ws.run("ingest")
    line = ("2025-01-10", "Opening balance", "1010=1000.00", "3900=-1000.00")
    ws.ok(*(("journal", "add", *line) if by_hand else ("journal", "open")))
    (opening,) = (entry["entry_id"] for entry in ws.entries() if entry["amount"] == "1000.00")
    moved = ("start-from", put(ws, "old.csv", "Account,Debit,Credit\n1010,1000.00,\n3100,,1000.00\n"))
    refused(ws(*moved, "--from", "2025-01-01"), 3, f"{opening} of 2025-01-1", "account 1010 began with", "journal void")
    assert balances(ws)[1010] == "996.00"
    ws.ok("journal", "void", opening, "--reason", "the old books have it")
    ws.ok(*moved, "--from", "2025-01-01")
    assert balances(ws)[1010] == "996.00" and balances(ws)[3100] == "-1000.00"
    ws.in_order()


def test_books_that_begin_within_a_year_say_so_in_reports(ws: Workspace) -> None:
    """What was taken over of the year's income and expenses is one sum; the cash of before is not there."""
    ws.ok("start-from", put(ws, "trial.csv", TRIAL), "--from", "2025-07-01")

    def notes(name: str, period: str) -> list[str]:
        found: list[str] = ws.json("report", name, "--period", period)["notes"]
        return found

    taken = "Income and expenses of before were taken over as one sum on 2025-06-30."
    assert notes("pnl", "2025") == notes("monthly", "2025") == [taken]
    assert notes("cash-flow", "2025-Q2") == [
        "Cash of before is not in it: the books begin with what was taken over as one sum on 2025-06-30."
    ]
    assert notes("pnl", "2025-Q3") == notes("pnl", "2026") == notes("balance-sheet", "2025") == []


def test_unpaid_bills_make_the_basis_modified_cash(posted: Workspace) -> None:
    assert posted.json("report", "pnl", "--period", "2025")["basis"] == "cash"
    posted.ok("journal", "add", "2025-01-31", "Joe's bill", "5110=900", "2100=-900")
    report = posted.json("report", "pnl", "--period", "2025-01")
    note = "Bills and invoices count on the day they were entered, not when they were paid: 2100 Accounts payable."
    assert (report["basis"], report["notes"]) == ("modified cash", [note])
    assert "USD, modified cash basis" in posted.ok("report", "balance-sheet", "--period", "2025-02").out
    assert posted.json("report", "pnl", "--period", "2025-02")["basis"] == "cash"


def test_the_type_of_an_unknown_account_is_for_the_person_to_say(ws: Workspace) -> None:
    trial = TRIAL.replace("5020,Software", "Petty cash,Petty cash")
    done = ws("start-from", put(ws, "trial.csv", trial), "--from", "2025-01-01")
    refused(
        done,
        3,
        "cleared accounts add NUMBER 'Petty cash' --type TYPE",
        "TYPE is one of asset, liability, equity, revenue, expense; NUMBER one that is free",
    )


def test_of_many_entries_taken_back_only_some_are_listed(ws: Workspace) -> None:
    journal = "".join(f"2025-01-02 a{n}\n  Expenses:5020  {n}.00 USD\n  Assets:1010\n\n" for n in range(1, 40))
    ws.ok("start-from", put(ws, "books.journal", journal))
    assert "2025-01-058 … 2025-01-078 (39 in all)" in ws.ok("queue", "undo").out


def test_a_trial_balance_that_was_taken_back_can_come_again(ws: Workspace) -> None:
    ws.ok(
        "start-from",
        put(ws, "wrong.csv", TRIAL.replace("50.00,", "60.00,").replace("300.00", "310.00")),
        "--from",
        "2025-01-01",
    )
    ws.ok("queue", "undo")
    file = put(ws, "trial.csv", TRIAL)
    assert ws.json("start-from", file, "--from", "2025-01-01", "--preview")["refusal"] is None
    ws.ok("start-from", file, "--from", "2025-01-01")
    assert balances(ws) == {1010: "1250.00", 2010: "-300.00", 3100: "-1000.00", 5020: "50.00"}
    ws.in_order()
    ws.ok("queue", "undo")
    assert balances(ws) == {}
    ws.in_order()


def test_a_trial_balance_with_one_column_and_other_marks(ws: Workspace) -> None:
    file = put(ws, "trial.csv", "Number;Account name;Balance\n1010;Bank;1.250,00\n3010;Equity;-1.250,00\n")
    ws.ok("start-from", file, "--from", "2025-01-01")
    assert balances(ws) == {1010: "1250.00", 3010: "-1250.00"}
    whole = put(ws, "whole.csv", 'Account,Balance\n1010,"1,000"\n3010,"-1,000"\n')
    refused(ws("start-from", whole, "--from", "2026-01-01"), 1, "a thousand times as much")


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        (TRIAL.replace("300.00\n", "300.01\n", 1), 1, "it does not balance: debits are 1300.00, credits 1300.01"),
        (TRIAL.replace("50.00,", "fifty,"), 1, "'fifty'"),
        (TRIAL.replace("50.00,", "50.0010,"), 1, "finer than the currency"),
        (TRIAL.replace("50.00,", "EUR 50.00,"), 1, "the books are in USD"),
        (TRIAL.replace("5020,", "5999,"), 3, "cleared accounts add 5999 'Software' --type"),
        ("a,b\n1,2\n", 1, "its first line does not name the columns"),
        ("", 1, "its first line does not name the columns"),
        ("Account,Debit,Credit\n", 1, "it has no balances"),
        ('Account,Debit,Credit\n"1010,5', 1, "truncated"),
        ("Account,Debit,Credit\n1010,\0,5", 1, "NUL"),
    ],
)
def test_a_trial_balance_that_is_not_right_is_refused_whole(ws: Workspace, text: str, code: int, says: str) -> None:
    with unchanged(ws):
        refused(ws("start-from", put(ws, "trial.csv", text), "--from", "2025-01-01"), code, says, "trial.csv")


def test_accounts_are_placed_by_a_map_by_number_or_by_name(ws: Workspace) -> None:
    journal = """2025-01-02 * Shop | pens
    expenses:office supplies    $10.00  ; blue
    assets:bank:checking
"""
    file = put(ws, "books.journal", journal)
    done = ws("start-from", file, "--preview", "--json")
    assert done.code == 1
    (unknown,) = done.json["unknown"]
    assert unknown["account"] == "assets:bank:checking" and unknown["line"] == 1
    assert unknown["command"].endswith("'checking' --type asset")
    refused(ws("start-from", file), 3, "1 account of the file cannot be placed", "--map FILE")
    mapping = put(ws, "map.csv", "account,number\nassets:bank:checking,1010\n")
    made = ws.json("start-from", file, "--map", mapping)
    assert any("import files of the bank only from 2025-01-03 on" in note for note in made["notes"])
    (entry,) = ws.entries()
    assert (entry["date"], entry["description"], entry["counterparty"]) == ("2025-01-02", "Shop | pens", "Shop")
    assert entry["notes"] == "blue" and balances(ws) == {1010: "-10.00", 5060: "10.00"}
    refused(ws("start-from", file, "--map", put(ws, "map.csv", "x,y\n")), 1, "map.csv:1", "an account and a number")


def test_history_before_a_day_becomes_opening_balances(ws: Workspace) -> None:
    journal = (
        "2023-05-01 a\n  Assets:1010  100.00 USD\n  Income:4010\n\n"
        "2024-12-31 b\n  Expenses:5020  30.00 USD\n  Assets:1010\n\n"
        "2025-01-01 c\n  Expenses:5020  1.00 USD\n  Assets:1010\n"
    )
    made = ws.json("start-from", put(ws, "books.journal", journal), "--from", "2025-01-01")
    assert (made["openings"], made["entries"]) == (3, 1)
    assert balances(ws) == {1010: "69.00", 4010: "-100.00", 5020: "31.00"}
    assert [e["date"] for e in ws.entries()] == ["2024-12-31"] * 3 + ["2025-01-01"]
    ws.in_order()


MOVED = (
    "2025-01-03 STAPLES\n  Expenses:5060  38.97 USD\n  Assets:1010\n\n"
    "2025-01-20 BRIGHT LABS\n  Assets:1010  2500.00 USD\n  Income:4010\n"
)


def test_rows_of_the_bank_that_were_moved_in_wait_and_count_once(ws: Workspace) -> None:
    ws.ok("start-from", put(ws, "books.journal", MOVED))
    moved = balances(ws)
    ws.drop(
        "january.csv",
        chase(
            ("01/03/2025", "STAPLES 00112233", "-38.97", "961.03"),
            ("01/20/2025", "BRIGHT LABS CONSULTING", "2500.00", "3461.03"),
            ("01/21/2025", "COFFEE", "-4.50", "3456.53"),
        ),
    )
    ws.run("ingest")
    waiting = [card["title"] for card in ws.cards() if card["kind"] == "line"]
    assert len(waiting) == 2 and all("were moved in have this account through 2025-01-20" in each for each in waiting)
    assert balances(ws) == moved | {1010: "2456.53", 5030: "4.50"}, "the row of the day after is booked"
    for card in [card["id"] for card in ws.cards() if card["kind"] == "line"]:
        ws.ok("queue", "answer", card, "ignore")
    ws.ok("journal", "open")
    ws.ok("reconcile", "1010", "--date", "2025-01-21", "--balance", "3456.53")
    ws.in_order()


def test_a_file_of_which_most_was_moved_in_is_refused(ws: Workspace) -> None:
    ws.ok("start-from", put(ws, "books.journal", MOVED))
    rows = [("01/04/2025", f"SHOP {n}", "-1.00", f"{100 - n}.00") for n in range(21)]
    ws.drop("january.csv", chase(*rows))
    ws.run("ingest")
    assert "have checking through 2025-01-20, and with it 21 rows of the file" in str(ws.cards())
    ws.in_order()


@pytest.mark.parametrize("format", ["hledger", "beancount"])
def test_an_export_moves_in_with_the_same_balances(
    posted: Workspace, tmp_path: Path, starting_point: Path, format: str
) -> None:
    """B20: export, then start-from in new books: the same trial balance, ids, dates, texts and names."""
    posted.ok("journal", "void", "2025-01-003", "--reason", "twice")
    posted.ok(
        "journal",
        "add",
        "2025-02-01",
        "x ; y, z",
        "5020=5.00",
        "5060=7.00",
        "1010=-12.00",
        "--note",
        "a, b; c",
        "--tag",
        "q,r",
    )
    name = posted.json("export", format, str(tmp_path))["file"]
    other = Workspace(copy_books(starting_point, tmp_path / "new"))
    plan = other.json("start-from", name)
    assert plan["entries"] == 6
    assert balances(other) == balances(posted)
    keys = ("entry_id", "date", "description", "counterparty", "amount", "notes")
    assert [[e[k] for k in keys] for e in other.entries()] == [[e[k] for k in keys] for e in posted.entries()]
    assert other.entries()[-1]["tags"] == ["q,r"]
    other.in_order()
    again = other.json("export", format, str(tmp_path / "again"))["file"]
    assert Path(again).read_text().count("1010") == Path(name).read_text().count("1010")


@pytest.mark.parametrize("format", ["hledger", "beancount"])
def test_hostile_texts_move_in_as_they_were(ws: Workspace, tmp_path: Path, starting_point: Path, format: str) -> None:
    texts = tuple(text for text in HOSTILE if "\0" not in text)
    post_texts(ws, texts)
    name = ws.json("export", format, str(tmp_path))["file"]
    other = Workspace(copy_books(starting_point, tmp_path / "new"))
    other.ok("start-from", name)
    assert balances(other) == balances(ws)
    for key in ("description", "counterparty", "notes"):
        came = [e[key] for e in other.entries()]
        assert came == [e[key] for e in ws.entries()] or (format == "beancount" and len(came) == len(texts))
    other.in_order()


def test_a_closed_period_and_a_secret_are_respected(ws: Workspace) -> None:
    ws.ok("period", "close", "2025-01", "--reason", "done")
    file = put(ws, "books.journal", "2025-01-02 a\n  Assets:1010  1.00 USD\n  Income:4010\n")
    with unchanged(ws):
        refused(ws("start-from", file), 1, "closed", "books.journal:1")
