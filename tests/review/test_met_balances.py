"""A closing balance is on record as met just where ``check`` finds that it holds, beside what waits."""

from __future__ import annotations

import itertools
import re

import pytest
from harness import Workspace, chase, refused
from statement_files import Line, Told, write_ofx

OPENING = ("journal", "add", "2024-12-31", "Opening", "1010=1000.00", "3900=-1000.00")
NOON = chase(("01/10/2025", "GITHUB *PRO", "-4.00", "996.00"))


def list_met(ws: Workspace) -> list[str]:
    """Day, balance, and file of each row, in the order of the files."""
    files = sorted(ws.root.glob("books/bank/reconciliations-*.csv"))
    rows = [row.split(",") for file in files for row in file.read_text().splitlines()[1:]]
    return [f"{day} {balance} {by}" for _, day, balance, state, by, *_ in rows if state == "met"]


def list_broken(ws: Workspace) -> list[str]:
    """What ``check`` says of balances."""
    return [v["message"] for v in ws("check", "--json").json["violations"] if v["check"] == "reconciled"]


def revision_of(ws: Workspace) -> str:
    """The card that asks which of two amounts counts."""
    (card,) = [each["id"] for each in ws.cards() if each["kind"] == "revision"]
    return str(card)


def ofx(rows: list[tuple[str, str, str, str]], *, says_balance: bool = True) -> str:
    """An OFX file of (day, amount, text, id), with the balance at its end; before its first row it was 1000.00."""
    file = write_ofx(Told(lines=[Line(*row) for row in rows]))
    return file if says_balance else re.sub(r"<LEDGERBAL>.*</LEDGERBAL>", "", file, flags=re.DOTALL)


def entry_of(ws: Workspace, text: str) -> str:
    found = [e["entry_id"] for e in ws.entries() if e["description"] == text and e["status"] != "voided"]
    return str(found[0])


def test_what_a_file_said_at_noon_is_not_met_again_when_the_afternoon_is_voided(ws: Workspace) -> None:
    """A later file without balances has the rest of the day; with that voided, the books hold noon's figure again,
    and it is not the day's."""
    ws.ok(*OPENING)
    ws.drop("noon.csv", NOON)
    ws.run("ingest")
    ws.drop("evening.csv", chase(("01/10/2025", "GITHUB *PRO", "-4.00"), ("01/10/2025", "AWS EMEA", "-10.00")))
    ws.run("ingest")
    assert list_met(ws) == ["2025-01-10 996.00 noon.csv", "2025-01-10 986.00 noon.csv"]
    ws.ok("journal", "void", entry_of(ws, "AWS EMEA"), "--reason", "a test")
    ws.in_order()
    assert list_met(ws)[2:] == []
    ws.ok("queue", "undo")
    ws.in_order()


def test_a_balance_is_met_beside_a_line_that_waits(ws: Workspace) -> None:
    """The bank's balance has the line, the books do not: it is met, and stays so once the line is booked."""
    ws.ok(*OPENING)
    ws.drop("first.csv", chase(("01/06/2025", "GITHUB *PRO", "-4.00"), ("01/08/2025", "AWS EMEA", "-10.00")))
    ws.run("ingest")
    ws.ok("journal", "void", entry_of(ws, "AWS EMEA"), "--reason", "a test")
    ws.drop("second.csv", chase(("01/20/2025", "COFFEE", "-5.00", "981.00")))
    ws.run("ingest")
    assert list_met(ws) == ["2025-01-20 981.00 second.csv"]
    ws.in_order()
    (card,) = [each["id"] for each in ws.cards() if each["kind"] == "line"]
    ws.ok("queue", "correct", card, "--account", "5020")
    ws.in_order()
    ws.ok("journal", "add", "2025-01-20", "Cash", "5030=1.00", "1010=-1.00")
    assert ws("check").code == 1


def test_of_two_accounts_and_one_day_the_balance_of_the_newer_import_is_looked_at(ws: Workspace) -> None:
    """A dozen may be met late in one commit."""
    accounts = "".join(
        f"  - {{id: {name}, ledger_account: {number}, format: chase_checking, match: {{folder: {name}}}}}\n"
        for name, number in (("a", 1010), ("b", 1020))
    )
    ws.put_config(f"business: {{name: Acme}}\nbank_accounts:\n{accounts}")
    days = [("a", day) for day in range(1, 8)] + [("b", day) for day in range(1, 7)]
    for name, day in days:
        ws.drop(f"{name}/{day}.csv", chase((f"01/{day:02d}/2025", "COFFEE", "-1.00", f"{1000 - day}.00")))
    ws.run("ingest")
    assert list_met(ws) == []
    ws.ok("journal", "add", "2024-12-31", "Opening", "1010=1000.00", "1020=1000.00", "3900=-2000.00")
    met = [row.rpartition(" ")[2] for row in list_met(ws)]
    assert len(met) == 12 and "b/1.csv" in met and "a/1.csv" not in met
    ws.in_order()


def test_a_balance_that_the_books_make_up_for_by_hand_is_not_met(ws: Workspace) -> None:
    """A line is void, and an entry by hand moves the same: the sum is the bank's, what is behind it is not."""
    ws.ok(*OPENING)
    ws.drop("first.csv", chase(("01/06/2025", "GITHUB *PRO", "-4.00"), ("01/08/2025", "AWS EMEA", "-10.00")))
    ws.run("ingest")
    ws.ok("journal", "void", entry_of(ws, "AWS EMEA"), "--reason", "a test")
    ws.ok("journal", "add", "2025-01-08", "AWS by hand", "5020=10.00", "1010=-10.00")
    ws.drop("second.csv", chase(("01/20/2025", "COFFEE", "-5.00", "981.00")))
    ws.run("ingest")
    assert list_met(ws) == []
    ws.in_order()


def test_a_line_that_waits_since_long_is_seen(ws: Workspace) -> None:
    """However long before the balance the line is."""
    ws.ok("journal", "add", "2023-12-31", "Opening", "1010=1000.00", "3900=-1000.00")
    ws.drop("first.csv", chase(("01/08/2024", "GITHUB *PRO", "-4.00"), ("01/08/2024", "AWS EMEA", "-10.00")))
    ws.run("ingest")
    ws.ok("journal", "void", entry_of(ws, "AWS EMEA"), "--reason", "a test")
    ws.ok("journal", "add", "2024-01-08", "AWS by hand", "5020=10.00", "1010=-10.00")
    ws.drop("second.csv", chase(("01/20/2025", "COFFEE", "-5.00", "981.00")))
    ws.run("ingest")
    assert list_met(ws) == []
    ws.in_order()


def test_a_row_that_the_bank_wrote_twice_is_put_right_by_voiding_it(ws: Workspace) -> None:
    """A later file has an old row in other words, and both are booked: the balance says so. Voided, it holds again,
    whether or not the row is ignored then; and later balances are met without it."""
    ws.ok(*OPENING)
    ws.drop("first.csv", chase(("01/08/2025", "AWS EMEA", "-10.00"), ("01/31/2025", "COFFEE", "-5.00", "985.00")))
    ws.run("ingest")
    ws.drop("again.csv", chase(("01/09/2025", "AWS EMEA SARL", "-10.00")))
    ws.run("ingest")
    assert ws("check").code == 1
    ws.ok("journal", "void", entry_of(ws, "AWS EMEA SARL"), "--reason", "twice")
    ws.in_order()
    (card,) = [each["id"] for each in ws.cards() if each["kind"] == "line"]
    ws.ok("queue", "answer", card, "ignore")
    ws.in_order()
    ws.ok("journal", "void", entry_of(ws, "AWS EMEA"), "--reason", "a test")
    ws.in_order()
    ws.ok("queue", "undo")
    ws.drop("february.csv", chase(("02/08/2025", "GITHUB *PRO", "-4.00", "981.00")))
    ws.run("ingest")
    assert list_met(ws)[-1] == "2025-02-08 981.00 february.csv"
    ws.in_order()
    ws.ok("journal", "add", "2025-02-08", "Cash", "5030=1.00", "1010=-1.00")
    assert ws("check").code == 1


def test_a_line_that_came_late_into_a_closed_month_breaks_nothing_while_it_is_held(ws: Workspace) -> None:
    """Its row is held with a card: the books are as they were when they met the bank's balance."""
    ws.ok(*OPENING)
    ws.drop("first.csv", chase(("01/08/2025", "AWS EMEA", "-10.00"), ("01/31/2025", "COFFEE", "-5.00", "985.00")))
    ws.run("ingest")
    ws.ok("period", "close", "2025-01", "--with-pending")
    ws.drop("late.csv", chase(("01/09/2025", "GITHUB *PRO", "-4.00")))
    ws.run("ingest")
    assert "GITHUB *PRO" not in [each["description"] for each in ws.entries()]
    ws.in_order()


def test_rows_from_before_a_file_do_not_move_its_balance(ws: Workspace) -> None:
    """An older file comes after the newer one: the newer one's balance had its rows all along."""
    ws.drop("new.csv", chase(("01/29/2025", "STAPLES", "-40.00", "560.00"), ("01/31/2025", "RENT", "-60.00", "500.00")))
    ws.run("ingest")
    ws.ok("journal", "open")
    ws.drop(
        "older.csv", chase(("01/27/2025", "COFFEE", "-20.00", "630.00"), ("01/28/2025", "LUNCH", "-30.00", "600.00"))
    )
    ws.run("ingest")
    assert list_met(ws) == ["2025-01-31 500.00 new.csv"]
    assert list_broken(ws) == ["1010 agreed on 2025-01-31 with new.csv (500.00); the books have 450.00 now"]
    refused(ws("period", "close", "2025-01", "--with-pending"), 1, "the books have 450.00 now")
    said = ws("status").out
    opening = entry_of(ws, "Opening balance of Business checking")
    assert "not complete" in said and f"cleared journal void {opening}" in said
    ws.ok("journal", "void", opening, "--reason", "older rows came")
    ws.ok("journal", "open")
    ws.in_order()
    assert "agrees" in ws.ok("reconcile", "1010", "--date", "2025-01-31", "--balance", "500.00").out


def test_rows_that_are_there_already_do_not_move_a_balance(ws: Workspace) -> None:
    """The same rows under other ids, in a file that says no balance."""
    ws.ok(*OPENING)
    rows = [("2025-01-29", "-40.00", "STAPLES"), ("2025-01-31", "-60.00", "RENT")]
    ws.ok("config", "set", "bank_accounts.checking.match.account", "1234567890")
    ws.drop("jan.ofx", ofx([(*row, f"A{n}") for n, row in enumerate(rows)]))
    ws.run("ingest")
    assert list_met(ws) == ["2025-01-31 900.00 jan.ofx"]
    ws.drop("again.ofx", ofx([(*row, f"X{n}") for n, row in enumerate(rows)], says_balance=False))
    ws.run("ingest")
    assert list_met(ws) == ["2025-01-31 900.00 jan.ofx"]
    assert list_broken(ws) == ["1010 agreed on 2025-01-31 with jan.ofx (900.00); the books have 800.00 now"]
    (card,) = [each for each in ws.cards() if each["kind"] == "near_match"]
    assert card["title"] == "again.ofx: 2 new rows look like earlier ones under another text or id; both were kept"


def test_a_corrected_row_moves_the_balances_that_had_it(ws: Workspace) -> None:
    """The bank reports a row with another amount: what earlier files said had the old one. It can be taken back."""
    ws.ok(*OPENING)
    ws.ok("config", "set", "bank_accounts.checking.match.account", "1234567890")
    first, rent = ("2025-01-10", "-40.00", "STAPLES", "A1"), ("2025-01-20", "-60.00", "RENT", "A2")
    ws.drop("r1.ofx", ofx([first, rent]))
    ws.run("ingest")
    ws.drop("r2.ofx", ofx([("2025-01-10", "-45.00", *first[2:]), rent, ("2025-01-25", "-10.00", "LUNCH", "A3")]))
    ws.run("ingest")
    for _ in range(2):
        ws.ok("queue", "answer", revision_of(ws), "replace")
        ws.in_order()
        assert list_met(ws)[-2:] == ["2025-01-20 895.00 r1.ofx", "2025-01-25 885.00 r2.ofx"]
        assert "agrees" in ws.ok("reconcile", "1010", "--date", "2025-01-20", "--balance", "895.00", "--dry-run").out
        ws.ok("queue", "undo")
        assert (
            ws.read("books/bank/reconciliations-2025-01.csv").splitlines()[-2].startswith("1010,2025-01-20,900.00,met")
        )
        assert (
            ws.read("books/bank/reconciliations-2025-01.csv")
            .splitlines()[-1]
            .startswith("1010,2025-01-25,885.00,lapsed")
        )
    ws.ok("queue", "answer", revision_of(ws), "keep")
    assert list_met(ws)[-1] == "2025-01-20 900.00 r1.ofx"


def test_a_check_names_the_card_while_both_amounts_are_booked(ws: Workspace) -> None:
    """Withdrawing the balance would be the wrong remedy: the answer mends it."""
    ws.ok(*OPENING)
    ws.ok("config", "set", "bank_accounts.checking.match.account", "1234567890")
    for name, amount in (("r1.ofx", "-40.00"), ("r2.ofx", "-45.00")):
        ws.drop(name, ofx([("2025-01-10", amount, "STAPLES", "A1")]))
        ws.run("ingest")
    card = revision_of(ws)
    [found] = [v for v in ws("check", "--json").json["violations"] if v["check"] == "reconciled"]
    why = f"Both amounts of a row are booked until its card is answered: cleared queue show {card}. Else find what"
    assert found["remedy"].startswith(why)
    said = f"on 2025-01-10 40.00 is missing, while a card asks about rows of the bank (cleared queue show {card})"
    assert said in ws.ok("status").out
    ws.ok("queue", "answer", card, "replace")
    ws.in_order()
    assert "is missing" not in ws.ok("status").out
    ws.ok("journal", "add", "2025-01-09", "Cash", "5030=1.00", "1010=-1.00")
    assert "queue show" not in ws("check").out


def test_corrections_are_taken_back_one_after_the_other(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows of a file, as time goes on, and with a row of the day that comes in between."""
    clock = itertools.count(7)

    def later(*argv: str) -> None:
        monkeypatch.setenv("CLEARED_CLOCK", f"2025-02-10T{next(clock):02d}:00:00Z")
        ws.ok(*argv)

    ws.ok(*OPENING)
    ws.ok("config", "set", "bank_accounts.checking.match.account", "1234567890")
    rows = [("2025-01-10", "-40.00", "STAPLES", "A1"), ("2025-01-20", "-60.00", "RENT", "A2")]
    ws.drop("r1.ofx", ofx(rows))
    ws.run("ingest")
    others = [("2025-01-10", "-45.00", "STAPLES", "A1"), ("2025-01-20", "-61.00", "RENT", "A2")]
    ws.drop("r2.ofx", ofx([*others, ("2025-01-25", "-1.00", "TEA", "A3")]))
    ws.run("ingest")
    cards = [each["id"] for each in ws.cards() if each["kind"] == "revision"]
    for card in cards:
        later("queue", "answer", card, "replace")
    assert list_met(ws)[-2:] == ["2025-01-20 894.00 r1.ofx", "2025-01-25 893.00 r2.ofx"]
    for _ in cards:
        later("queue", "undo")
    for card in [each["id"] for each in ws.cards() if each["kind"] == "revision"]:
        later("queue", "answer", card, "keep")
    assert list_met(ws)[-1] == "2025-01-20 900.00 r1.ofx"
    assert not list_broken(ws)


def test_a_row_of_a_file_that_is_not_marked_processed_may_move_a_balance(ws: Workspace) -> None:
    ws.ok(*OPENING)
    ws.drop("noon.csv", NOON)
    ws.run("ingest")
    ws.drop("evening.csv", chase(("01/10/2025", "AWS EMEA", "-10.00")))
    ws.script(
        'row = importer_parse("evening.csv")[0]\n'
        'journal_add_double(row["date"], row["description"], 5020, 1010, 10.00, reference=row["reference"])\n'
        'git_commit("half")'
    )
    assert list_met(ws)[-1] == "2025-01-10 986.00 noon.csv"
    ws.in_order()
