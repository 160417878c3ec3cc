"""Opening balances: posted once by a human's command, compared with the first file."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from harness import Workspace, chase, refused
from statement_files import Line, Told, write_camt, write_mt940, write_ofx


def _with_opening(ws: Workspace, balance: str) -> None:
    ws.put_config(
        ws.read("config.yaml").replace(
            "# opening: { date: 2024-12-31, balance: 1250.00 }", f"opening: {{ date: 2024-12-31, balance: {balance} }}"
        )
    )


def test_opening_balances_are_posted_once_against_3900(ws: Workspace) -> None:
    _with_opening(ws, "1000.00")
    made = ws.json("journal", "open")
    (entry,) = ws.json("journal", "list")
    assert made["entries"] == [entry["entry_id"]] == ["2024-12-001"]
    assert [(x["account_id"], x["debit"], x["credit"]) for x in entry["lines"]] == [
        (1010, "1000.00", "0.00"),
        (3900, "0.00", "1000.00"),
    ]
    assert entry["status"] == "bootstrap-confirmed" and entry["tags"] == ["@kind=opening"]
    assert ws.git("log", "-1", "--format=%s").strip() == "bootstrap: opening balances of 1 account"
    refused(ws("journal", "open"), 3, "posted already: 2024-12-001", "cleared journal void ID")
    assert ws.json("check")["ok"]


def test_an_opening_balance_that_was_voided_is_posted_again_corrected(ws: Workspace) -> None:
    refused(ws("journal", "open"), 3, "no opening balance to post", "cleared journal add DATE")
    _with_opening(ws, "1000.00")
    ws.ok("journal", "open")
    ws.ok("journal", "void", "2024-12-001", "--reason", "a wrong balance")
    ws.put_config(ws.read("config.yaml").replace("balance: 1000.00", "balance: 1010.00"))
    assert ws.json("journal", "open")["entries"] == ["2024-12-003"]
    assert ws.json("journal", "balance", "1010")[0]["balance"] == "1010.00"
    refused(ws("journal", "open"), 3, "posted already: 2024-12-003")
    assert ws.json("check")["ok"]


def test_an_opening_balance_that_disagrees_with_the_first_file_is_a_card(ws: Workspace) -> None:
    _with_opening(ws, "900.00")
    ws.drop("january.csv")  # opens with 1000.00
    ws.run("ingest")
    (gap,) = [c for c in ws.json("queue", "list") if c["kind"] == "balance_gap"]
    assert "jumps by 100.00 between 2024-12-31 and 2025-01-03" in gap["title"]


def test_an_overlapping_file_is_no_balance_gap(ws: Workspace) -> None:
    """B22: gaps of the running balance are named; files that reach over each other have none."""
    ws.drop("a.csv", chase(("01/03/2025", "A", "-1.00", "99.00"), ("01/10/2025", "B", "-1.00", "98.00")))
    ws.drop("b.csv", chase(("01/10/2025", "B", "-1.00", "98.00"), ("01/20/2025", "C", "-1.00", "97.00")))
    ws.drop("d.csv", chase(("02/03/2025", "D", "-1.00", "90.00"), ("02/10/2025", "E", "-1.00", "89.00")))
    ws.run("ingest")
    gaps = [c["title"] for c in ws.json("queue", "list") if c["kind"] == "balance_gap"]
    assert gaps == ["d.csv: the running balance jumps by -6.00 between 2025-01-20 and 2025-02-03"]


def test_an_older_file_brings_another_opening_balance_and_cash_flow_follows(ws: Workspace) -> None:
    """What was taken back is no money that came or went: it is at the beginning, with its opposite."""
    ws.drop("january.csv", chase(("01/10/2025", "GITHUB", "-4.00", "996.00")))
    ws.run("ingest")
    (first,) = ws.json("journal", "open")["entries"]
    ws.drop("december.csv", chase(("12/20/2024", "ACME INV", "300.00", "1000.00")))
    ws.run("ingest")
    told = f"its opening balance of 700.00 is not booked, {first} is posted after its first row (cleared journal void"
    assert told in ws.ok("status").out
    done = ws("reconcile", "1010", "--date", "2025-01-10", "--balance", "996.00")
    assert done.code == 1 and "on 2024-12-19, the account held 700.00" in done.out and "explained" not in done.out
    assert done.out.splitlines()[-2].startswith(f"  cleared journal void {first} --reason")
    refused(ws("journal", "open"), 3, f"posted already: {first}", "cleared journal void ID")
    ws.ok("journal", "void", first, "--reason", "an older file came")
    done = ws.ok("journal", "open").out
    assert "2024-12-19  700.00  Opening balance of Business checking (the first balance in the bank's files)" in done
    assert "complete to the cent through 2025-01-10" in ws.ok("status").out
    for period, rows in (("2024", ["700.00", "300.00", "1000.00"]), ("2025", ["1000.00", "-4.00", "996.00"])):
        cash = {
            row["label"]: row["1010"]
            for row in ws.json("report", "cash-flow", "--period", period)["rows"]
            if row["kind"] == "total"
        }
        assert [cash[f"Cash at the {end}"] for end in ("beginning", "end")] == [rows[0], rows[2]]
        assert cash["Change"] == rows[1] and "Total owners" not in cash
    ws.in_order()


OLDER = chase(
    ("12/20/2024", "OLD ONE", "-50.00", "1300.00"),
    ("12/31/2024", "OLD TWO", "-50.00", "1250.00"),
    ("01/03/2025", "NEW", "-10.00", "1240.00"),
)


def test_rows_that_the_opening_balance_has_already_are_held(ws: Workspace) -> None:
    """Booked on top of it they would count twice. They wait, each with a card; the rest of the file is booked."""
    _with_opening(ws, "1250.00")
    ws.ok("journal", "open")
    ws.drop("older.csv", OLDER)
    ws.run("ingest")
    assert [e["description"] for e in ws.entries()][1:] == ["NEW"]
    held = [c for c in ws.cards() if c["kind"] == "line"]
    assert sorted(c["details"]["text"] for c in held) == ["OLD ONE", "OLD TWO"]
    assert ws.json("journal", "balance", "1010")[0]["balance"] == "1240.00"
    assert "complete to the cent through 2025-01-03" in ws.ok("status").out
    for card in held:
        ws.ok("queue", "answer", card["id"], "ignore")
    ws.in_order()


def test_rows_before_an_opening_that_is_not_posted_yet_are_held_too(ws: Workspace) -> None:
    _with_opening(ws, "1250.00")
    ws.drop("older.csv", OLDER)
    ws.run("ingest")
    assert [e["description"] for e in ws.entries()] == ["NEW"]
    ws.ok("journal", "open")
    assert ws.ok("reconcile", "1010", "--date", "2025-01-03", "--balance", "1240.00")
    ws.in_order()


def test_a_file_of_rows_that_the_opening_balance_has_is_refused(ws: Workspace) -> None:
    """One decision about the account is asked for, not one about each row."""
    _with_opening(ws, "1250.00")
    ws.drop("older.csv", chase(*((f"12/{day:02}/2024", f"OLD {day}", "-1.00") for day in range(1, 26))))
    ws.run("ingest")
    assert "the opening balance of checking on 2024-12-31 has 25 rows of it already" in str(ws.cards())
    assert ws.entries() == []


def test_an_opening_balance_leaves_out_what_was_booked_before(ws: Workspace) -> None:
    """The rows came first, the opening balance of a day after them later: the account holds it at the end of its day,
    and on each day before what the bank says."""
    ws.drop("older.csv", OLDER)
    ws.run("ingest")
    _with_opening(ws, "1250.00")
    done = ws.ok("journal", "open").out
    assert "2024-12-19  1350.00  Opening balance of Business checking" in done
    for day, balance in (("2024-12-20", "1300.00"), ("2024-12-31", "1250.00"), ("2025-01-03", "1240.00")):
        ws.ok("reconcile", "1010", "--date", day, "--balance", balance)
    assert "complete to the cent through 2025-01-03" in ws.ok("status").out
    ws.in_order()


def test_what_an_account_began_with_here_is_known_without_a_setting(ws: Workspace) -> None:
    """Books that moved in have an opening balance, and no word of it in config.yaml."""
    old = ws.root.parent / "old.csv"
    old.write_text("Account,Debit,Credit\n1010,1250.00,\n3100,,1250.00\n")
    ws.ok("start-from", str(old), "--from", "2025-01-01")
    ws.drop("older.csv", OLDER)
    ws.run("ingest")
    assert ws.json("journal", "balance", "1010")[0]["balance"] == "1240.00"


def test_rows_missing_since_the_opening_balance_are_no_opening_balance(ws: Workspace) -> None:
    """The first file begins later than the books: what came between is missing, and the month is not closed."""
    old = ws.root.parent / "old.csv"
    old.write_text("Account,Debit,Credit\n1010,1250.00,\n3100,,1250.00\n")
    ws.ok("start-from", str(old), "--from", "2025-01-01")
    ws.drop("late.csv", chase(("01/20/2025", "GITHUB", "-10.00", "1200.00"), ("01/31/2025", "AWS", "-5.00", "1195.00")))
    ws.run("ingest")
    assert "not complete; on 2025-01-20 -40.00 is missing" in ws.ok("status").out
    done = ws("reconcile", "1010", "--date", "2025-01-31", "--balance", "1195.00")
    assert done.code == 1 and len(done.out.splitlines()) == 3
    assert "2024-12-31 and 2025-01-20 lines of -40.00 in all never came, or the opening balance 2024-12-001" in done.out
    refused(ws("period", "close", "2025-01"), 3, "missing: checking: on 2025-01-20 -40.00 is missing")
    ws.drop("early.csv", chase(("01/05/2025", "GITHUB", "-40.00", "1210.00")))
    ws.run("ingest")
    ws.ok("reconcile", "1010", "--date", "2025-01-31", "--balance", "1195.00")
    ws.ok("period", "close", "2025-01")


PART_OF_DAY = chase(("02/01/2025", "A", "-10.00", "90.00"))
REST_OF_DAY = chase(("02/02/2025", "C", "-5.00", "65.00"), ("02/01/2025", "B", "-20.00", "70.00"))
ALL = REST_OF_DAY + PART_OF_DAY.splitlines(keepends=True)[1]
BEGINNING = "100.00  Opening balance of Business checking (the first balance in the bank's files)"


def open_twice(ws: Workspace) -> None:
    """Whether it stands for the first time or was voided, it is what the account began with."""
    assert f"2025-01-31  {BEGINNING}" in ws.ok("journal", "open").out
    assert "complete to the cent through 2025-02-02\n" in ws.ok("status").out
    ws.ok("reconcile", "1010", "--date", "2025-02-01", "--balance", "70.00", "--dry-run")
    ws.ok("journal", "void", "2025-01-001", "--reason", "to see")
    assert f"2025-01-31  {BEGINNING}" in ws.ok("journal", "open").out
    assert "complete to the cent through 2025-02-02\n" in ws.ok("status").out
    ws.in_order()


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    "files", [(PART_OF_DAY, REST_OF_DAY), (PART_OF_DAY, ALL), (REST_OF_DAY, PART_OF_DAY), (ALL, PART_OF_DAY)]
)
def test_a_file_that_ends_before_its_first_day_is_over(ws: Workspace, files: tuple[str, str], at_once: bool) -> None:
    """The day ends with the balance from which no other row of it goes on, whichever file came first."""
    for number, text in enumerate(files):
        ws.drop(f"{number}.csv", text)
        if number or not at_once:
            ws.run("ingest")
    open_twice(ws)


@pytest.mark.parametrize("write", [write_mt940, write_ofx, write_camt])
def test_a_statement_without_a_running_balance_that_ends_before_its_first_day_is_over(
    ws: Workspace, write: Callable[[Told], str]
) -> None:
    ws.put_config(ws.read("config.yaml").replace("format: chase_checking", 'match: { account: "1234567890" }'))
    part = Told(lines=(Line("2025-02-01", "-10.00", "A", "F1"),), opening="100.00")
    rest = (Line("2025-02-01", "-20.00", "B", "F2"), Line("2025-02-02", "-5.00", "C", "F3"))
    ws.drop("a.dat", write(part))
    ws.run("ingest")
    ws.drop("b.dat", write(Told(lines=rest, opening=part.closing)))
    ws.run("ingest")
    open_twice(ws)


@pytest.mark.parametrize("write", [write_mt940, write_camt])
def test_rows_missing_in_the_first_statement_are_no_part_of_the_opening_balance(
    ws: Workspace, write: Callable[[Told], str]
) -> None:
    ws.put_config(ws.read("config.yaml").replace("format: chase_checking", 'match: { account: "1234567890" }'))
    rows = (Line("2025-02-01", "-10.00", "A", "F1"), Line("2025-02-02", "-5.00", "B", "F2"))
    whole = write(Told(lines=rows, opening="100.00"))
    ws.drop("a.dat", write(Told(lines=rows[:1], opening="100.00")).replace("90.00", "85.00").replace("90,00", "85,00"))
    ws.run("ingest")
    assert "its opening balance of 100.00 is not booked (cleared journal open)" in ws.ok("status").out
    assert f"2025-01-31  {BEGINNING}" in ws.ok("journal", "open").out
    assert "not complete; on 2025-02-" in ws.ok("status").out and "-5.00 is missing" in ws.ok("status").out
    ws.drop("b.dat", whole)
    ws.run("ingest")
    assert "complete to the cent through 2025-02-02\n" in ws.ok("status").out
    ws.in_order()


def test_an_opening_balance_that_only_a_part_of_the_day_meets_is_taken_back(ws: Workspace) -> None:
    """Too much was booked by hand, so that the books met the file that ends before its day: the messages lead out."""
    for name, text in (("a.csv", PART_OF_DAY), ("b.csv", REST_OF_DAY)):
        ws.drop(name, text)
        ws.run("ingest")
    ws.ok("journal", "add", "2025-01-31", "Opening balance", "1010=120.00", "3900=-120.00")
    ws.ok("journal", "void", "2025-01-001", "--reason", "it was 100.00")
    assert f"2025-01-31  {BEGINNING}" in ws.ok("journal", "open").out
    assert "complete to the cent through 2025-02-02\n" in ws.ok("status").out
    (broken,) = ws("check", "--json").json["violations"]
    assert "withdraw it: cleared reconcile 1010 --date 2025-02-01 --withdraw REASON" in broken["remedy"]
    ws.ok("reconcile", "1010", "--date", "2025-02-01", "--withdraw", "the day was not over")
    ws.in_order()


@pytest.mark.parametrize("write", [write_camt, write_mt940, write_ofx])
def test_what_is_booked_by_hand_beside_its_row_is_no_part_of_the_opening(
    ws: Workspace, write: Callable[[Told], str]
) -> None:
    """The rent is in the books twice: the opening balance does not hide it, and it is named."""
    ws.ok("config", "set", "bank_accounts.checking.match.account", "1234567890")
    lines = [Line("2025-01-10", "-40.00", "STAPLES", "c1"), Line("2025-01-20", "-41.00", "RENT", "c2")]
    ws.drop(
        "jan.xml" if write is write_camt else "jan.sta" if write is write_mt940 else "jan.ofx", write(Told(lines=lines))
    )
    ws.run("ingest")
    ws.ok("journal", "add", "2025-01-19", "Rent January", "5150=41.00", "1010=-41.00")
    for _ in range(2):
        ws.ok("journal", "open")
        (opening,) = [e for e in ws.entries() if "@kind=opening" in e["tags"] and e["status"] != "voided"]
        assert (opening["lines"][0]["account_id"], opening["lines"][0]["debit"]) == (1010, "1000.00")
        [account] = ws.json("status")["accounts"]
        assert account["differs_on"] == "2025-01-20"
        told = ws("reconcile", "1010", "--date", "2025-01-20", "--balance", "919.00", "--dry-run")
        assert told.code == 1 and "Rent January" in told.out and "never came" not in told.out, told.out
        ws.ok("journal", "void", opening["entry_id"], "--reason", "once more")


@pytest.mark.parametrize(
    "decision",
    [
        ["queue", "correct", "2025-01-001", "--account", "5060", "--date", "2025-01-12"],
        ["queue", "correct", "2025-01-001", "--account", "5060", "--date", "2025-02-12"],
        ["queue", "reject", "2025-01-001", "--outcome", "suspense", "--reason", "not known yet"],
        ["journal", "void", "2025-01-001", "--reason", "not known yet"],
    ],
)
def test_what_becomes_of_the_first_row_moves_no_beginning(ws: Workspace, decision: list[str]) -> None:
    """The bank has the row where it had it: what the account held before is told, and posted on the day before."""
    rows = (("01/03/2025", "A", "-1.00", "999.00"), ("01/10/2025", "B", "-2.00", "997.00"))
    ws.drop("january.csv", chase(*rows[:1]))
    ws.run("ingest")
    ws.drop("later.csv", chase(*rows))
    ws.run("ingest")
    ws.ok(*decision)
    (opening,) = ws.json("journal", "open")["entries"]
    (entry,) = [e for e in ws.json("journal", "list") if e["entry_id"] == opening]
    assert (entry["date"], entry["amount"]) == ("2025-01-02", "1000.00")
    moved = decision[1] == "correct"
    done = ws("reconcile", "1010", "--date", "2025-01-10", "--balance", "997.00")
    assert done.code == (0 if moved else 1) and "journal open" not in done.out
    assert ws.json("check")["ok"]
