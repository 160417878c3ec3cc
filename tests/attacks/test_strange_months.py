"""Pushed files of months that no calendar has, and texts that are no days: every command answers, and none stumbles."""

from __future__ import annotations

import pytest
from harness import Workspace, chase

ZERO = {
    "books/0000/01/journal.csv": "entry_id,date,account_id,description,debit,credit,counterparty,reference,confidence,"
    "status,evidence,receipt_hash,tags,notes\n",
    "books/bank/checking/0000-01.csv": "line_id,posted_date,transaction_date,amount,currency,description,bank_id,"
    "balance_after,state,file_sha256,row,occurrence,supersedes,type\n",
    "books/bank/reconciliations-9999-12.csv": "account_id,date,balance,state,by,at,reason\n"
    "1010,9999-12-31,1.00,lapsed,x,y,\n",
}


@pytest.fixture
def quarter(ws: Workspace) -> Workspace:
    """Three months whose balances are met."""
    ws.ok("journal", "add", "2024-12-31", "Opening", "1010=1000.00", "3900=-1000.00")
    for month in (1, 2, 3):
        ws.drop(f"{month}.csv", chase((f"0{month}/09/2025", "AWS EMEA", "-45.10", f"{1000 - 45.1 * month:.2f}")))
        ws.run("ingest")
    return ws


def push(ws: Workspace, path: str, text: str) -> None:
    ws.put(path, text)
    ws.commit(path)
    ws("accept", "HEAD", "--reason", "a test")


def import_april(ws: Workspace) -> None:
    """Also where nothing is kept."""
    for file in ws.root.glob(".cleared/books/*"):
        file.unlink()
    ws.drop("4.csv", chase(("04/09/2025", "AWS EMEA", "-45.10", "819.60")))
    ws.run("ingest")


@pytest.mark.parametrize("path", ZERO)
def test_a_month_that_no_calendar_has_stops_nothing(quarter: Workspace, path: str) -> None:
    push(quarter, path, ZERO[path])
    import_april(quarter)
    assert quarter.json("status")["accounts"][0]["through"] == "2025-04-09"
    quarter.in_order()


def test_rows_of_the_first_day_that_there_is_are_read(ws: Workspace) -> None:
    """Where the limits let them: before them no day holds an opening balance."""
    ws.ok("config", "set", "limits.min_date", "0001-01-01")
    ws.drop("first.csv", chase(("01/01/0001", "AWS EMEA", "-45.10", "954.90")))
    ws.run("ingest")
    for command in (("status",), ("check",), ("journal", "open"), ("reconcile", "1010", "--date", "2025-01-31")):
        done = ws(*command)
        assert done.code != 4 and "Traceback" not in done.out + done.err, done


def test_a_match_with_no_leg_is_for_check_to_tell(quarter: Workspace) -> None:
    path = "books/bank/matches-2025-01.csv"
    text = quarter.read(path)
    push(quarter, path, text.replace(",2025-01-001b,", ",x,"))
    import_april(quarter)
    assert quarter.json("status")["accounts"][0]["through"] == "2025-04-09"
    assert quarter("check").code == 1


@pytest.mark.parametrize("day", ["soon", "20250109", "2025-02-30"])
def test_a_record_of_an_import_with_no_day_is_named(quarter: Workspace, day: str) -> None:
    path = "books/bank/imports-2025-02.csv"
    push(quarter, path, quarter.read(path).replace(",2025-01-09,2025-01-09,", f",{day},2025-01-09,"))
    for command in (("check",), ("agent", "run", "ingest")):
        quarter.drop("4.csv", chase(("04/09/2025", "AWS EMEA", "-45.10", "819.60")))
        done = quarter(*command)
        assert done.code and f"{path}:2: an import record is not readable" in done.out + done.err
