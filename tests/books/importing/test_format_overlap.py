"""One statement in several formats posts nothing twice; what is uncertain waits for a person (B8, B19, B20)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from harness import Workspace
from statement_files import LINES, MONTH, Line, Told, write_camt, write_chase, write_mt940, write_ofx, write_qif

WRITERS: dict[str, Callable[[Told], str]] = {
    "chase.csv": write_chase,
    "bank.ofx": write_ofx,
    "camt.xml": write_camt,
    "mt940.sta": write_mt940,
    "quicken.qif": write_qif,
}
BOOKS = {1010: "1411.90", 4010: "-1500.00", 5020: "49.10", 5030: "39.00"}


@pytest.fixture
def numbered(ws: Workspace) -> Workspace:
    """Its checking account has the number that the statements have, and takes Chase's CSV, too."""
    ws.ok("config", "set", "bank_accounts.checking.match.account", "1234567890")
    return ws


def trial_balance(ws: Workspace) -> dict[int, str]:
    return {row["account_id"]: row["balance"] for row in ws.json("journal", "balance") if row["balance"] != "0.00"}


def facts(ws: Workspace) -> list[tuple[str, str]]:
    return sorted((e["date"], e["amount"]) for e in ws.entries())


@pytest.mark.parametrize("first", WRITERS)
def test_a_statement_gives_the_same_books_in_every_format_and_the_others_add_nothing(
    numbered: Workspace, first: str
) -> None:
    """Whichever comes first; every row of the others is recorded with the line it repeats."""
    ws = numbered
    ws.drop(first, WRITERS[first](MONTH))
    assert ws.run("ingest")["result"]["imported"] == 6
    assert trial_balance(ws) == BOOKS
    for name in WRITERS:
        if name != first:
            ws.drop(name, WRITERS[name](MONTH))
    assert ws.run("ingest")["result"]["imported"] == 0
    assert trial_balance(ws) == BOOKS
    assert len(ws.read("books/bank/duplicates-2025-02.csv").splitlines()) == 1 + 4 * 6
    assert {c["kind"] for c in ws.cards()} == {"entry", "duplicate_file"}
    assert ws.ok("check")


def test_all_formats_at_once_and_overlapping_ones_give_the_same_books(numbered: Workspace) -> None:
    ws = numbered
    for name, part in (("chase.csv", LINES[:4]), ("bank.ofx", LINES[2:]), ("camt.xml", LINES[1:5])):
        opening = replace(MONTH, lines=LINES[: LINES.index(part[0])]).closing
        ws.drop(name, WRITERS[name](replace(MONTH, lines=part, opening=opening)))
    ws.run("ingest")
    assert trial_balance(ws) == BOOKS
    ws.drop("quicken.qif", write_qif(MONTH))
    ws.run("ingest")
    assert trial_balance(ws) == BOOKS and len(ws.entries()) == 6


def test_a_row_more_than_the_other_format_had_is_new(numbered: Workspace) -> None:
    """A file downloaded in the middle of a day: the second coffee came later."""
    ws = numbered
    ws.drop("chase.csv", write_chase(replace(MONTH, lines=LINES[:4])))
    ws.run("ingest")
    ws.drop("bank.ofx", write_ofx(MONTH))
    assert ws.run("ingest")["result"]["imported"] == 2
    assert trial_balance(ws) == BOOKS


@pytest.mark.parametrize("day", ["2025-01-10", "2025-01-08"])
def test_what_may_have_come_before_is_held_until_a_person_decides(numbered: Workspace, day: str) -> None:
    """Another text beside other rows, or a day or two apart: neither posted nor lost."""
    ws = numbered
    ws.drop("chase.csv", write_chase(MONTH))
    ws.run("ingest")
    odd = Line(day, "-45.10", "WIRE 77", "X1")
    moved = odd if day == "2025-01-08" else replace(odd, day="2025-01-09")
    others = [line for line in LINES if line.id != "F3"] + [Line(moved.day, "-0.01", "FEE", "X2")]
    ws.drop("bank.ofx", write_ofx(replace(MONTH, lines=sorted([*others, moved], key=lambda line: line.day))))
    assert ws.run("ingest")["result"]["imported"] == 1, "the fee"
    (card,) = (c for c in ws.cards() if c["kind"] == "line")
    assert "WIRE 77" in card["title"] and "AWS EMEA" in card["title"] and len(ws.entries()) == 7
    if day == "2025-01-08":
        ws.ok("queue", "answer", card["id"], "ignore")
        assert len(ws.entries()) == 7
    else:
        ws.ok("queue", "correct", card["id"], "--account", "5020")
        assert len(ws.entries()) == 8
    assert ws.ok("check")
    ws.drop("again.ofx", ws.read("import/processed/bank.ofx"))
    assert ws.run("ingest")["result"]["imported"] == 0


def test_books_of_an_earlier_version_go_on_without_the_column_of_formats(numbered: Workspace) -> None:
    """There one file has all imports, and the ids tell formats apart."""
    ws = numbered
    ws.drop("chase.csv", write_chase(MONTH))
    ws.run("ingest")
    (now,) = ws.root.glob("books/bank/imports-*.csv")
    rows = [line.rpartition(",")[0] for line in now.read_text().splitlines()]
    ws.put("books/bank/imports.csv", "\n".join(rows) + "\n")
    now.unlink()
    ws.commit("books/bank")
    ws.drop("bank.ofx", write_ofx(MONTH))
    assert ws.run("ingest")["result"]["imported"] == 0
    assert ws.read("books/bank/imports.csv").splitlines() == rows
    assert [line.split(",")[1] for line in now.read_text().splitlines()] == ["name", "bank.ofx"]
