"""What the bank said and the books met has to hold: by the ledger's own balances, everywhere, from then on."""

from __future__ import annotations

from decimal import Decimal

import pytest
from harness import CARD_HEADER, Workspace, chase, refused, take_ok
from plain_accounting import check_beancount, run_hledger

OPENING = ("journal", "add", "2025-01-01", "Opening", "1010=1000.00", "3900=-1000.00")
JANUARY = ("reconcile", "1010", "--date", "2025-01-31", "--balance", "2446.40")


@pytest.fixture
def closed(ws: Workspace) -> Workspace:
    """January is imported, met by the books, and closed."""
    ws.ok(*OPENING)
    ws.drop("january.csv")
    ws.run("ingest")
    ws.ok("period", "close", "2025-01", "--with-pending")
    return ws


def write_entry(ws: Workspace, month: str, rows: str, matches: str) -> None:
    """Books as only a fault or a hand makes them: nothing checks what is written."""
    journal, matched = f"books/{month.replace('-', '/')}/journal.csv", f"books/bank/matches-{month}.csv"
    ws.put(journal, ws.read(journal) + rows)
    ws.put(matched, ws.read(matched) + matches)
    ws.commit(journal, matched)


def list_broken(ws: Workspace) -> list[str]:
    found = ws("check", "--json").json["violations"]
    return [v["message"] for v in found if v["check"] == "reconciled"]


def post_twice(ws: Workspace) -> str:
    """Void an entry of the closed January, open it, and post its bank line there again: January has it twice. The
    books of February are right, and so are all matches."""
    entry = next(e for e in ws.entries() if e["description"] == "AWS EMEA")
    ws.ok("journal", "void", entry["entry_id"], "--reason", "a test")
    ws.ok("period", "reopen", "2025-01", "--reason", "a test")
    (bank,) = [leg for leg in entry["lines"] if leg["account_id"] == 1010]
    (other,) = [leg for leg in entry["lines"] if leg["account_id"] != 1010]
    last = max(e["entry_id"] for e in ws.entries() if e["entry_id"].startswith("2025-01"))
    again = f"2025-01-{int(last[8:]) + 1:03d}"
    amount, line = bank["credit"], entry["reference"]
    rows = (
        f"{again}a,{entry['date']},{other['account_id']},AWS EMEA,{amount},,,{line},1.00,user-confirmed,,,,\n"
        f"{again}b,{entry['date']},1010,AWS EMEA,,{amount},,{line},1.00,user-confirmed,,,,\n"
    )
    write_entry(ws, "2025-01", rows, f"{line},{again}b,-{amount}\n")
    return again


def test_a_line_posted_twice_is_seen_by_every_reader(closed: Workspace) -> None:
    """The ledger has it twice in January, and once in all: check, comparison, status, closing and exports say so."""
    again = post_twice(closed)
    (broken,) = list_broken(closed)
    assert broken.startswith("1010 agreed on 2025-01-10 with january.csv (2446.40)")
    booked = Decimal(broken.rpartition("the books have ")[2].partition(" now")[0])
    missing = Decimal("2446.40") - booked
    assert missing > 0
    done = closed(*JANUARY)
    assert done.code == 1 and f"The difference is {missing}." in done.out and again in done.out
    (account,) = closed.json("status")["accounts"]
    assert account["through"] != "2025-01-10" and account["difference"] == str(missing)
    refused(closed("period", "close", "2025-01", "--with-pending"), 1, "[reconciled] ", "2446.40", str(booked))
    folder = closed.root / "exports"
    for format in ("beancount", "hledger"):
        closed.ok("export", format, str(folder))
    assert "Balance failed" in check_beancount(folder / "books.beancount")
    with pytest.raises(AssertionError, match="balance assertion"):
        run_hledger(folder / "books.journal", "check")


def test_a_void_of_february_leaves_january_as_it_was(closed: Workspace) -> None:
    """The reversal is dated in February: January's statement still agrees, February lacks the line."""
    closed.ok("journal", "void", "2025-01-003", "--reason", "a test")
    assert closed(*JANUARY).code == 0
    closed.in_order()
    (account,) = closed.json("status")["accounts"]
    assert (account["through"], account["differs_on"]) == ("2025-01-31", None)
    data = closed("reconcile", "1010", "--date", "2025-02-05", "--balance", "2446.40", "--json").json
    assert Decimal(data["difference"]) == Decimal(data["explanations"][0]["rows"][0]["amount"]) != 0
    folder = closed.root / "exports"
    closed.ok("export", "beancount", str(folder))
    assert check_beancount(folder / "books.beancount") == ""


def test_what_a_file_said_has_to_hold_until_it_is_withdrawn(ws: Workspace) -> None:
    """An entry of a day that the bank has told all about breaks what the books met; the refusal names both figures."""
    ws.ok(*OPENING)
    ws.drop("january.csv")
    ws.run("ingest")
    ws.ok("journal", "add", "2025-01-08", "Cash", "5030=5.00", "1010=-5.00")
    assert list_broken(ws) == ["1010 agreed on 2025-01-10 with january.csv (2446.40); the books have 2441.40 now"]
    shown = ws("period", "close", "2025-01", "--with-pending")
    refused(shown, 1, "cleared reconcile 1010 --date 2025-01-10 --withdraw REASON")
    ws.ok("reconcile", "1010", "--date", "2025-01-10", "--withdraw", "cash is booked by hand")
    ws.in_order()
    ws.ok("journal", "add", "2025-01-09", "Cash", "5030=1.00", "1010=-1.00")
    ws.in_order()


def test_balances_are_met_once_the_opening_is_booked(posted: Workspace) -> None:
    """Nothing is asserted that the books never met."""
    posted.ok("journal", "add", "2025-01-08", "Cash", "5030=5.00", "1010=-5.00")
    posted.in_order()
    posted.ok("journal", "void", posted.entries()[-1]["entry_id"], "--reason", "no")
    posted.ok(*OPENING)
    posted.ok("journal", "add", "2025-01-08", "Cash", "5030=5.00", "1010=-5.00")
    assert len(list_broken(posted)) == 1


def test_a_line_that_waits_is_no_break_of_what_a_file_said(ws: Workspace) -> None:
    """Its entry is voided, the line is in the queue again: the books say so themselves."""
    ws.ok(*OPENING)
    ws.drop("january.csv")
    ws.run("ingest")
    ws.ok("journal", "void", "2025-01-003", "--reason", "a test")
    ws.in_order()
    assert ws(*JANUARY, "--dry-run").code == 1


def test_a_day_that_a_later_file_completes(ws: Workspace) -> None:
    """A file taken at noon has not all of the bank's day; the rest of it moves the balance that has to hold."""
    ws.ok(*OPENING)
    ws.drop("noon.csv", chase(("01/10/2025", "GITHUB *PRO", "-4.00", "996.00")))
    ws.run("ingest")
    ws.drop(
        "later.csv", chase(("01/10/2025", "AWS EMEA", "-10.00", "986.00"), ("01/20/2025", "UBER", "-6.00", "980.00"))
    )
    ws.run("ingest")
    ws.in_order()
    ws.ok("journal", "add", "2025-01-10", "Cash", "5030=5.00", "1010=-5.00")
    assert list_broken(ws) == ["1010 agreed on 2025-01-10 with noon.csv (986.00); the books have 981.00 now"]


def test_status_knows_that_a_later_file_moved_what_an_earlier_one_said(ws: Workspace) -> None:
    """Also where the later file says no balance: ``status`` and ``check`` say the same."""
    ws.ok(*OPENING)
    ws.drop("noon.csv", chase(("01/10/2025", "GITHUB *PRO", "-4.00", "996.00")))
    ws.run("ingest")
    ws.drop("later.csv", chase(("01/10/2025", "AWS EMEA", "-10.00")))
    ws.run("ingest")
    ws.in_order()
    [account] = ws.json("status")["accounts"]
    assert (account["through"], account["differs_on"]) == ("2025-01-10", None)


def test_an_undone_import_may_be_met_again(ws: Workspace) -> None:
    ws.ok(*OPENING)
    ws.drop("january.csv")
    ws.run("ingest")
    ws.ok("import", "undo", "january.csv", "--reason", "again")
    ws.in_order()
    ws.drop("january.csv")
    ws.run("ingest")
    assert ws.read("books/bank/reconciliations-2025-01.csv").count(",met,january.csv,") == 2
    ws.ok("journal", "add", "2025-01-10", "Cash", "5030=5.00", "1010=-5.00")
    assert len(list_broken(ws)) == 1


CARD = """
  - id: card
    name: Business credit card
    type: credit_card
    ledger_account: 2010
    format: chase_card
    date_basis: transaction
"""


def test_purchases_dated_by_their_own_day_are_in_transit(ws: Workspace) -> None:
    """The books have them before the bank: both are right, what is in transit is shown, exports assert the books."""
    ws.put("config.yaml", ws.read("config.yaml").replace("\n  # A second account", f"{CARD}\n  # A second account", 1))
    take_ok(ws, "config", "approve")
    ws.drop(
        "card.csv",
        f"{CARD_HEADER}01/10/2025,01/12/2025,GITHUB,Shopping,Sale,-4.00,\n01/30/2025,02/02/2025,AWS,Shopping,Sale,-10.00,\n",
    )
    ws.run("ingest")
    done = ws.ok("reconcile", "2010", "--date", "2025-01-31", "--balance", "-4.00")
    assert "agrees with the bank on 2025-01-31: -4.00" in done.out
    assert "The books have -14.00: 10.00 of it is in transit, in 1 line that is booked on another day" in done.out
    ws.in_order()
    folder = ws.root / "exports"
    for format in ("beancount", "hledger"):
        ws.ok("export", format, str(folder))
    text = (folder / "books.beancount").read_text()
    assert "2025-02-01 balance Liabilities:2010-" in text and '-14.00 USD\n  stated: "-4.00"' in text
    assert check_beancount(folder / "books.beancount") == ""
    run_hledger(folder / "books.journal", "check")
    ws.ok("journal", "add", "2025-01-20", "Cash", "5030=5.00", "2010=-5.00")
    (broken,) = list_broken(ws)
    told = "(-4.00; 10.00 of it waits or is booked on other days: -14.00 without that); the books have -19.00 now"
    assert told in broken
