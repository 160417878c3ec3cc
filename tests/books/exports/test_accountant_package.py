"""The workbook and the package for an accountant."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import zipfile
from pathlib import Path

from harness import Workspace, chase, refused
from openpyxl import load_workbook
from receipt_files import make_pdf

from cleared.books.reports.catalogue import REPORTS


def confirm_all(ws: Workspace) -> None:
    ws.ok("queue", "approve", *[c["id"] for c in ws.cards() if c["kind"] == "entry"])


def read_table(archive: zipfile.ZipFile, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(archive.read(name).decode(), newline="")))


def test_a_package_has_the_year_and_the_digest_of_each_file(posted: Workspace) -> None:
    """B20: statements, journal, bank lines, the books' own files; the same commit gives the same bytes."""
    confirm_all(posted)
    posted.put("receipts/inbox/new.pdf", b"%PDF")
    (posted.root.parent / "paid.pdf").write_bytes(make_pdf("paid"))
    receipt = posted.json("receipt", "add", str(posted.root.parent / "paid.pdf"), "--entry", "2025-01-001")["receipts"][
        0
    ]
    made = posted.json("export", "package", "2025")
    path = Path(made["file"])
    assert path == posted.root / "exports/package-2025.zip"
    again = posted.root.parent / "again.zip"
    posted.ok("export", "package", "2025", "--output", str(again))
    assert again.read_bytes() == path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None and archive.namelist() == made["files"]
        manifest = json.loads(archive.read("manifest.json"))
        assert [f["path"] for f in manifest["files"]] == made["files"][:-1]
        for file in manifest["files"]:
            data = archive.read(file["path"])
            assert (len(data), hashlib.sha256(data).hexdigest()) == (file["bytes"], file["sha256"])
        assert (manifest["draft"], manifest["commit"]) == (False, posted.head())
        journal = archive.read("source/books/2025/01/journal.csv")
        assert journal == (posted.root / "books/2025/01/journal.csv").read_bytes()
        assert archive.read(receipt["file"]) == make_pdf("paid") and "inbox" not in "".join(made["files"])
        assert [(r["entry_id"], r["name"]) for r in read_table(archive, "receipts.csv")] == [
            ("2025-01-001", "paid.pdf")
        ]
        assert {f"reports/{name}.{form}" for name in REPORTS for form in ("csv", "html")} <= set(made["files"])
        assert b"GITHUB *PRO" in archive.read("reports/ledger.csv")
        legs = read_table(archive, "journal.csv")
        assert sum(float(r["debit"] or 0) for r in legs) == sum(float(r["credit"] or 0) for r in legs) == 1553.6
        lines = read_table(archive, "bank-lines.csv")
        assert [(r["amount"], r["entries"]) for r in lines] == [
            ("-4.00", "2025-01-001"),
            ("1500.00", "2025-01-002"),
            ("-45.10", "2025-01-003"),
            ("-4.50", "2025-01-004"),
        ]
        book = load_workbook(io.BytesIO(archive.read("books.xlsx")))
        assert {"Profit and loss", "Balance sheet", "Trial balance", "Journal", "Bank lines"} <= set(book.sheetnames)
    posted.in_order()
    refused(posted("export", "package", "2025"), 3, "there is a file already")


def test_a_package_with_pending_entries_needs_the_word(posted: Workspace) -> None:
    refused(posted("export", "package", "2025"), 3, "2 entries", "wait for review", "--draft")
    assert not (posted.root / "exports").exists()
    path = posted.json("export", "package", "2025", "--draft")["file"]
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read("manifest.json"))["draft"] is True
        assert b"Not final: 2 entries" in archive.read("README.txt")
    posted.ok("export", "package", "2024")


def test_no_text_of_a_bank_is_a_formula_in_a_table(ws: Workspace) -> None:
    evil = "=HYPERLINK(1)", "+1+1", "-2", "@SUM(A1)"
    ws.drop("a.csv", chase(*[("01/03/2025", text, "-1.00") for text in evil]))
    ws.run("ingest")
    path = ws.json("export", "package", "2025", "--draft")["file"]
    with zipfile.ZipFile(path) as archive:
        assert {r["description"] for r in read_table(archive, "bank-lines.csv")} == {f"'{text}" for text in evil}
        sheet = load_workbook(io.BytesIO(archive.read("books.xlsx")))["Bank lines"]
        assert {(c.value, c.data_type) for c in sheet["C"][1:]} == {(text, "s") for text in evil}


def test_a_workbook_of_a_period(posted: Workspace) -> None:
    posted.drop("b.csv", chase(("02/03/2025", "B", "-1.00")))
    posted.run("ingest")
    folder = posted.root / "exports"
    assert posted.json("export", "xlsx", str(folder), "--period", "2025-01")["period"] == "2025-01"
    book = load_workbook(folder / "books.xlsx")
    assert len(list(book["Journal"].rows)) == 1 + 8
    assert any(c.data_type == "f" for row in book["Profit and loss"] for c in row)
    refused(posted("export", "xlsx", str(folder)), 3, "there is a file already")
    posted.ok("export", "xlsx", str(folder), "--force")
    assert len(list(load_workbook(folder / "books.xlsx")["Journal"].rows)) == 1 + 10
    refused(posted("export", "xlsx", str(folder / "x"), "--period", "soon"), 2, "is not a period")
    assert not (folder / "x").exists()
