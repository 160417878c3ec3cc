"""What a commit adds to lies in a file of a month; one file of all months, as earlier versions wrote it, is read, too,
and never written."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Workspace, chase
from statement_files import MONTH, write_chase, write_ofx
from synced import follow, part

ROWS = [("01/09/2025", "AWS EMEA", "-45.10"), ("01/10/2025", "COFFEE", "-4.50"), ("01/11/2025", "TEA", "-3.00")]


def import_rows(ws: Workspace, name: str, *rows: tuple[str, str, str]) -> None:
    ws.drop(name, chase(*rows))
    ws.run("ingest")


def write_as_before(ws: Workspace, name: str, *, columns: int) -> str:
    """What is in the file of this month stands in one of all months, as an earlier version wrote it; its text."""
    (now,) = ws.root.glob(f"books/bank/{name}-*.csv")
    text = "".join(",".join(line.split(",")[:columns]) + "\n" for line in now.read_text().splitlines())
    now.unlink()
    ws.put(f"books/bank/{name}.csv", text)
    ws.commit("books/bank")
    return text


def read_lines(ws: Workspace, path: str) -> list[str]:
    return ws.read(path).splitlines()[1:]


def test_rows_that_were_known_are_listed_by_the_month_of_their_import(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_rows(ws, "a.csv", *ROWS[:2])
    import_rows(ws, "b.csv", *ROWS)
    february = ws.read("books/bank/duplicates-2025-02.csv")
    monkeypatch.setenv("CLEARED_CLOCK", "2025-03-10T06:00:00Z")
    import_rows(ws, "c.csv", *ROWS, ("03/03/2025", "CAKE", "-2.00"))
    assert len(february.splitlines()) == 3 and ws.read("books/bank/duplicates-2025-02.csv") == february
    assert len(read_lines(ws, "books/bank/duplicates-2025-03.csv")) == 3
    assert not (ws.root / "books/bank/duplicates.csv").exists()
    ws.in_order()


def test_what_an_earlier_version_listed_as_known_stays_so(ws: Workspace) -> None:
    """By it a line stays while a file that said it again is not taken back."""
    import_rows(ws, "a.csv", *ROWS[:2])
    import_rows(ws, "b.csv", *ROWS)
    text = write_as_before(ws, "duplicates", columns=4)
    import_rows(ws, "c.csv", ROWS[2])
    done = ws.json("import", "undo", "a.csv")
    assert (len(done["lines"]), len(done["kept"])) == (0, 2)
    done = ws.json("import", "undo", "b.csv")
    assert (len(done["lines"]), len(done["kept"])) == (2, 1), "a file of this version has said the third again"
    assert ws.read("books/bank/duplicates.csv") == text
    assert len(read_lines(ws, "books/bank/duplicates-2025-02.csv")) == 1


def test_an_id_of_the_bank_that_came_later_is_known_from_either_file(ws: Workspace) -> None:
    ws.ok("config", "set", "bank_accounts.checking.match.account", "1234567890")
    for name, text in (("chase.csv", write_chase(MONTH)), ("bank.ofx", write_ofx(MONTH))):
        ws.drop(name, text)
        ws.run("ingest")
    text = write_as_before(ws, "duplicates", columns=5)
    ws.drop("revised.ofx", write_ofx(MONTH).replace("-45.10", "-45.90"))
    ws.run("ingest")
    assert "revision" in {card["kind"] for card in ws.cards()}
    assert ws.read("books/bank/duplicates.csv") == text


def test_rows_that_were_known_here_are_listed_beside_those_of_others(ws: Workspace, tmp_path: Path) -> None:
    import_rows(ws, "a.csv", *ROWS[:2])
    two = follow(ws, tmp_path)
    import_rows(two[1], "theirs.csv", *ROWS)
    _, other = part(two)
    import_rows(ws, "mine.csv", *ROWS, ("02/05/2025", "CAKE", "-2.00"))
    ws.ok("sync")
    assert len(read_lines(other, "books/bank/duplicates-2025-02.csv")) == 2
    assert len(read_lines(ws, "books/bank/duplicates-2025-02.csv")) == 5
    ws.in_order()
