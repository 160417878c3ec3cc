"""hledger and beancount files: what the programs themselves make of them, and where they are written."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from harness import Workspace, chase, refused, unchanged
from hostile_books import HOSTILE, post_texts
from plain_accounting import check_beancount, read_hledger_balances, run_hledger

from cleared.books.exports.written_text import unescape_text


def balances(ws: Workspace) -> dict[int, Decimal]:
    return {row["account_id"]: Decimal(row["balance"]) for row in ws.json("journal", "balance")}


def by_number(named: dict[str, Decimal]) -> dict[int, Decimal]:
    """The same balances by the number that begins the last part of each name."""
    return {int(name.split(":")[1].split("-")[0]): amount for name, amount in named.items()}


def test_both_programs_accept_the_books_with_the_same_balances(posted: Workspace) -> None:
    """B18, B20: hledger's and beancount's totals are ours, voided entries included."""
    posted.ok("journal", "void", "2025-01-003", "--reason", "twice")
    folder = posted.root / "exports"
    assert posted.json("export", "hledger", str(folder))["entries"] == 5
    posted.ok("export", "beancount", str(folder))
    text = (folder / "books.journal").read_text()
    assert "; rev: 2025-01-003" in text and "; status: voided" in text
    assert '  rev: "2025-01-003"' in (folder / "books.beancount").read_text()
    run_hledger(folder / "books.journal", "check", "--strict")
    assert by_number(read_hledger_balances(folder / "books.journal")) == {
        k: v for k, v in balances(posted).items() if v
    }
    assert check_beancount(folder / "books.beancount") == ""


@pytest.mark.parametrize(("currency", "amount"), [("USD", "10.01"), ("JPY", "10"), ("BHD", "10.001")])
def test_hostile_texts_stay_texts(ws: Workspace, currency: str, amount: str) -> None:
    """B20: no description, name, tag or note becomes a tag, a date, an account or an entry."""
    ws.config(f"business.currency={currency}")
    post_texts(ws, HOSTILE, amount)
    folder = ws.root / "exports"
    for format in ("hledger", "beancount"):
        ws.ok("export", format, str(folder))
    journal = folder / "books.journal"
    run_hledger(journal, "check", "--strict")
    rows = list(csv.DictReader(io.StringIO(run_hledger(journal, "print", "-O", "csv"))))
    assert Counter(
        (row["date"], row["date2"], row["code"], unescape_text(row["description"]), row["amount"], row["status"])
        for row in rows
    ) == Counter(
        (entry["date"], "", entry["entry_id"], entry["description"], f"{sign}{entry['amount']}", "*")
        for entry in ws.entries()
        for sign in ("", "-")
    )
    names = {"type", "name", "counterparty", "rev", "tags", "notes"}
    assert set(run_hledger(journal, "tags").split()) == names
    assert by_number(read_hledger_balances(journal)) == balances(ws)
    assert check_beancount(folder / "books.beancount") == ""


def test_statements_are_those_of_hledger(posted: Workspace) -> None:
    """B18: profit and loss and balance sheet, line by line, as hledger makes them of the exported journal."""
    from cleared.books.queries import open_report_books
    from cleared.books.reports.statements import make_balance_sheet, make_income_statement
    from cleared.changes.workspace_opening import open_workspace

    posted.ok("journal", "void", "2025-01-003", "--reason", "twice")
    posted.ok("journal", "add", "2025-02-01", "Owner", "1010=500.00", "3100=-500.00")
    posted.ok("journal", "add", "2025-02-02", "Loan", "1010=100.00", "2500=-100.00")
    journal = Path(posted.json("export", "hledger", str(posted.root / "exports"))["file"])
    with open_report_books(open_workspace(posted.root)) as books:
        span = books.parse_period("2025")
        income, sheet = make_income_statement(books, span, None), make_balance_sheet(books, span, None)
    for report, command in ((income, "incomestatement"), (sheet, "balancesheet")):
        shown = list(csv.reader(io.StringIO(run_hledger(journal, command, "-E", "-O", "csv"))))
        named = {row[0]: Decimal(row[1].split(" ")[0]) for row in shown if row[1].endswith(" USD") or row[1] == "0"}
        theirs = by_number({name: amount for name, amount in named.items() if ":" in name and name[-1] != ":"})
        ours = {row.account_id: row.cells[0] for row in report.rows if row.account_id and row.account_id // 1000 != 3}
        assert {number: amount for number, amount in theirs.items() if amount} == ours
        totals = {row.key: row.cells[0] for row in report.rows if row.cells}
        net = totals["net-income"] if report is income else totals["both"] - totals["liability"]  # type: ignore[operator]
        assert named["Net:"] == net


def test_beancount_proves_totals_to_the_smallest_unit(posted: Workspace) -> None:
    """A cent elsewhere is refused by bean-check: no tolerance hides it."""
    folder = posted.root / "exports"
    posted.ok("export", "beancount", str(folder))
    path = folder / "books.beancount"
    text = path.read_text()
    path.write_text(text.replace("1010-Business-checking  1446.40", "1010-Business-checking  1446.41"))
    assert "Balance failed" in check_beancount(path)
    path.write_text(text.replace("subscriptions  45.10 USD", "subscriptions  45.104 USD"))
    assert "does not balance" in check_beancount(path)


def test_balances_of_statements_are_assertions_where_the_books_meet_them(ws: Workspace) -> None:
    config = ws.read("config.yaml").replace(
        "# opening: { date: 2024-12-31, balance: 1250.00 }", "opening: { date: 2024-12-31, balance: 1000.00 }"
    )
    ws.put_config(config)
    ws.ok("journal", "open")
    ws.drop("a.csv")
    ws.drop("b.csv", chase(("02/03/2025", "B", "-1.00", "2445.40")))
    ws.run("ingest")
    folder = ws.root / "exports"
    for format in ("hledger", "beancount"):
        assert ws.json("export", format, str(folder))["warnings"] == []
    text = (folder / "books.journal").read_text()
    assert (
        "2025-01-10 * balance of the bank's statement\n    Assets:1010-Business-checking  0.00 USD = 2446.40 USD"
        in text
    )
    assert "\n2025-01-11 balance Assets:1010-Business-checking  2446.40 USD" in (folder / "books.beancount").read_text()
    assert "; kind: opening" in text
    run_hledger(folder / "books.journal", "check", "--strict")
    assert check_beancount(folder / "books.beancount") == ""

    ws.ok("journal", "add", "2025-01-08", "Cash", "5030=5.00", "1010=-5.00")
    for format in ("hledger", "beancount"):
        ws.ok("export", format, str(folder), "--force")
    assert "= 2446.40 USD" in (folder / "books.journal").read_text(), "an assertion that fails is not dropped"
    assert "Balance failed" in check_beancount(folder / "books.beancount")


def test_a_balance_that_does_not_hold_any_more_is_named(posted: Workspace) -> None:
    posted.ok("journal", "open")
    posted.ok("journal", "add", "2025-01-10", "Cash", "5030=5.00", "1010=-5.00")
    done = posted.ok("export", "hledger", str(posted.root / "exports"))
    assert "1010 agreed on 2025-01-10 with january.csv" in done.err, done
    assert "so hledger and beancount refuse the export. Find what changed (cleared reconcile 1010" in done.err


def test_missing_opening_balances_are_named(posted: Workspace) -> None:
    done = posted.ok("export", "hledger", str(posted.root / "exports"))
    assert "no opening balance of checking (1010)" in done.err
    assert "; WARNING: There is no opening balance" in posted.read("exports/books.journal")


def test_a_file_that_is_there_is_not_replaced_unless_told(posted: Workspace) -> None:
    folder = posted.root.parent / "out"
    posted.ok("export", "hledger", str(folder))
    before = (folder / "books.journal").read_bytes()
    refused(posted("export", "hledger", str(folder)), 3, "there is a file already", "--force")
    posted.ok("journal", "void", "2025-01-003", "--reason", "twice")
    posted.ok("export", "hledger", str(folder), "--force")
    assert (folder / "books.journal").read_bytes() != before
    assert os.listdir(folder) == ["books.journal"]


def test_an_export_does_not_land_among_the_books(posted: Workspace) -> None:
    with unchanged(posted):
        for inner in ("", "books", "accounts", "exports/../queue", ".git"):
            refused(posted("export", "hledger", str(posted.root / inner)), 3, "taken for a part of the books")
    posted.ok("export", "hledger", str(posted.root / "exports/2025"))
    posted.in_order()


def test_a_link_in_the_workspace_leads_nowhere_else(posted: Workspace) -> None:
    """Whoever pushes can make exports/ a link."""
    outside = posted.root.parent / "outside"
    outside.mkdir()
    for target in (outside, posted.root / "books"):
        (posted.root / "exports").symlink_to(target)
        for argv in (["hledger", str(posted.root / "exports")], ["package", "2025", "--draft"]):
            refused(posted("export", *argv), 3, "taken for a part of the books")
        (posted.root / "exports").unlink()
    assert os.listdir(outside) == []


def test_nothing_is_left_of_an_export_that_fails(posted: Workspace) -> None:
    """An unbalanced entry, or an account that is not in the chart: no file, no part of one."""
    journal = posted.read("books/2025/01/journal.csv")
    folder = posted.root.parent / "out"
    for damaged, text in (
        (journal.replace(",45.10,", ",45.11,", 1), "does not balance"),
        (journal.replace(",5020,", ",5999,"), "not in the chart"),
    ):
        posted.put("books/2025/01/journal.csv", damaged)
        posted.commit("books")
        refused(posted("export", "beancount", str(folder)), 4, text, "check")
        assert not folder.exists() or os.listdir(folder) == []


def test_empty_books_are_exported(ws: Workspace) -> None:
    folder = ws.root / "exports"
    for format in ("hledger", "beancount"):
        assert ws.json("export", format, str(folder)) == {
            "file": str(folder / f"books.{'journal' if format == 'hledger' else 'beancount'}"),
            "entries": 0,
            "warnings": [],
        }
    run_hledger(folder / "books.journal", "check", "--strict")
    assert check_beancount(folder / "books.beancount") == ""
