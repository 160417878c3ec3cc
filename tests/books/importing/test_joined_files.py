"""Equal rows of files that join end to end, and of banks that use their ids again: each is a row of its own."""

from __future__ import annotations

import itertools
import random
from decimal import Decimal

import pytest
from harness import Workspace, chase
from statement_files import Line, Told, write_ofx

BUS_47, BUS_45, BUS_44, SHOP = (
    ("05/02/2025", "BUS", "-3.00", "47.00"),
    ("05/02/2025", "BUS", "-3.00", "45.00"),
    ("05/02/2025", "BUS", "-3.00", "44.00"),
    ("05/03/2025", "SHOP", "-4.00", "40.00"),
)


def _balances(ws: Workspace) -> list[str]:
    """What the bank says the account held after each line."""
    months = (ws.root / "books/bank/checking").glob("*.csv")
    return sorted(line.split(",")[7] for path in months for line in path.read_text().splitlines()[1:])


@pytest.mark.parametrize("in_one_run", [True, False])
@pytest.mark.parametrize("order", list(itertools.permutations("abc")))
def test_a_row_that_the_balances_prove_to_be_another_is_kept(
    ws: Workspace, order: tuple[str, ...], in_one_run: bool
) -> None:
    """One file ends after the first of two equal rows, the next one begins with the second; the last has all."""
    files = {"a": chase(BUS_47), "b": chase(BUS_44), "c": chase(SHOP, BUS_44, BUS_47)}
    for number, name in enumerate(order):
        ws.drop(f"{number}.csv", files[name])
        if not in_one_run:
            ws.run("ingest")
    ws.run("ingest")
    assert _balances(ws) == ["40.00", "44.00", "47.00"]
    assert not [card for card in ws.cards() if "may be missing" in card["title"]]
    ws.in_order()


@pytest.mark.parametrize("in_one_run", [True, False])
def test_a_file_between_the_two_joins_them(ws: Workspace, in_one_run: bool) -> None:
    parts = [
        (("01/10/2025", "CLIENT", "100.00", "100.00"), ("01/14/2025", "COFFEE", "-6.75", "93.25")),
        (("01/14/2025", "TEA", "-1.00", "92.25"),),
        (("01/14/2025", "COFFEE", "-6.75", "85.50"), ("01/15/2025", "TEA", "-1.00", "84.50")),
    ]
    for number, rows in enumerate(parts):
        ws.drop(f"{number}.csv", chase(*rows))
        if not in_one_run:
            ws.run("ingest")
    ws.run("ingest")
    assert _balances(ws) == ["100.00", "84.50", "85.50", "92.25", "93.25"]
    ws.in_order()


@pytest.mark.parametrize("in_one_run", [True, False])
def test_rows_whose_balances_have_moved_are_the_same_still(ws: Workspace, in_one_run: bool) -> None:
    """The bank has put a row between them since: those after it say another balance, and that is told."""
    ws.drop("a.csv", chase(("05/01/2025", "RENT", "-10.00", "50.00"), BUS_47))
    if not in_one_run:
        ws.run("ingest")
    ws.drop("b.csv", chase(("05/01/2025", "RENT", "-10.00", "50.00"), ("05/01/2025", "FEE", "-2.00", "48.00"), BUS_45))
    ws.run("ingest")
    assert len(_balances(ws)) == 3
    (card,) = [card for card in ws.cards() if card["kind"] == "duplicate_file"]
    assert "1 of them carry another balance and may be missing" in card["title"]
    ws.in_order()


@pytest.mark.parametrize("order", [(1, 2, 12), (2, 1, 12), (12, 1, 2)])
def test_a_bank_that_numbers_each_statement_anew_loses_no_row(ws: Workspace, order: tuple[int, ...]) -> None:
    """The same id and amount at another time of the year is another row; a day or two later it is the same."""
    ws.put_config(ws.read("config.yaml").replace("    format: chase_checking\n", ""))
    for month in order:
        line = Line(f"2025-{month:02d}-15", "-9.99", "NETFLIX", "1")
        ws.drop(f"{month}.ofx", write_ofx(Told(lines=(line,))))
        ws.run("ingest")
        ws.drop(f"{month}-again.ofx", write_ofx(Told(lines=(Line(f"2025-{month:02d}-16", "-9.99", "NETFLIX", "1"),))))
        ws.run("ingest")
    assert sorted(entry["date"] for entry in ws.entries()) == [f"2025-{month:02d}-15" for month in sorted(order)]
    ws.in_order()


@pytest.mark.parametrize("seed", range(6))
def test_a_history_that_is_cut_anywhere_is_imported_whole(ws: Workspace, seed: int) -> None:
    """Each file begins with what the one before ended with, or overlaps it; in the bank's order or the other one."""
    rand, balance, rows = random.Random(seed), Decimal(100), []
    for day in sorted(rand.choices((12, 13, 14), k=10)):
        amount = rand.choice((Decimal("-3.00"), Decimal("-3.00"), Decimal("-1.00"), Decimal("-6.75")))
        balance += amount
        rows.append((f"01/{day}/2025", "KIOSK", str(amount), str(balance)))
    cuts = [0, *sorted(rand.sample(range(1, len(rows)), 3)), len(rows)]
    for number, (begin, end) in enumerate(itertools.pairwise(cuts)):
        part = rows[max(0, begin - rand.choice((0, 0, 1))) : end]
        ws.drop(f"{number}.csv", chase(*part[:: rand.choice((1, -1))]))
        if rand.random() < 0.6:
            ws.run("ingest")
    ws.run("ingest")
    assert _balances(ws) == sorted(row[3] for row in rows)
    ws.in_order()
