"""Lines below the rows of a CSV that are no rows: passed over where they are surely totals, else refused (B10)."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from import_samples import checking, profile, read, refusal

SPLIT = {"date": "Date", "description": "Text", "debit": "Out", "credit": "In"}
WITH_BALANCE = {"date": "Date", "description": "Text", "amount": "Amount", "balance": "Balance"}
ROWS = "Date,Text,Amount\n2025-01-31,x,-4.00\n2025-01-30,y,1500.00\n2025-01-29,z,-45.10\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Total,,1450.90", "(their sum)"),
        (",Summe:,1450.90", "(their sum)"),
        (',TOTAL,"-1450.90"', "(their sum)"),
        ("Total debits,,49.10", "(what goes out)"),
        ("Total credits,,1500.00", "(what comes in)"),
        ("Total,3", "(their number)"),
        ("Grand total of 3 transactions,,1450.90", "(their sum)"),
        ("Gesamtsumme", "it names no amount"),
        ("Saldo per 31.01.2025,,7777.00", "state no balance to compare it with"),
        (",,1450.90", "has no date and is their sum"),
        (",Ergebnis,1450.90", "has no date and is their sum"),
        ("Total debits,,-49.10\nTotal credits,,1500.00\n\nTotal,,1450.90", "(their sum)"),
    ],
)
def test_totals_below_the_rows_are_passed_over_and_said(line: str, said: str) -> None:
    parsed = read(ROWS + line + "\n", profile())
    assert len(parsed.rows) == 3 and parsed.rows == read(ROWS, profile()).rows
    assert len(parsed.notes) == len([each for each in line.split("\n") if each])
    assert parsed.notes[-1].startswith(f"line {ROWS.count(chr(10)) + line.count(chr(10)) + 1}: ")
    assert said in parsed.notes[-1]


@pytest.mark.parametrize(
    "line",
    [
        "Total,,1450.91",  # rows are missing
        "Total,,4.00,1500.00",
        "TOTAL ACCESS 1234,,4.00,",  # a filling station
        "2025-01-28,Total,abc",
        "Total,,1450.90\n2025-01-28,late,-1.00",  # not at the end
        ",REWE,-4.00",
        ",,",
        "Totally other,,",
        "2025-01-28,cut",
    ],
)
def test_B10_what_is_not_surely_a_total_is_refused_by_line(line: str) -> None:
    error = refusal(ROWS + line + "\n", profile())
    assert error.place is not None and error.place.line == 5


def test_a_balance_is_compared_with_the_running_one() -> None:
    rows = "Date,Text,Amount,Balance\n2025-01-31,x,-4.00,96.00\n2025-01-30,y,10.00,100.00\n"
    assert "(their first balance)" in read(f"{rows}Endsaldo,,,96.00\n", profile(columns=WITH_BALANCE)).notes[0]
    assert "may be missing" in refusal(f"{rows}Endsaldo,,,97.00\n", profile(columns=WITH_BALANCE)).message
    alone = "Date,Text,Amount\n2025-01-31,x,-4.00\n,,-4.00\n"
    assert "there is no date" in refusal(alone, profile()).message, "one row is no sum"
    assert read(checking("DEBIT,01/31/2025,X,-1.00,T,9.00,") + "Total,,,-1.00,,,\n").notes


@given(st.lists(st.decimals(-999, 999, places=2), min_size=1, max_size=8), st.sampled_from(["Total", "Summe", "Saldo"]))
def test_a_total_line_changes_no_row(amounts: list[Decimal], word: str) -> None:
    """The same rows with and without it, written in one column or in two."""
    rows = "".join(f"2025-01-{n:02},x,{amount}\n" for n, amount in enumerate(amounts, 1))
    plain = read(f"Date,Text,Amount\n{rows}", profile())
    assert read(f"Date,Text,Amount\n{rows}{word},,{sum(amounts)}\n", profile()).rows == plain.rows
    out, into = (sum(abs(a) for a in amounts if (a < 0) == is_out) for is_out in (True, False))
    split = "".join(f"2025-01-{n:02},x,{-a if a < 0 else ''},{a if a >= 0 else ''}\n" for n, a in enumerate(amounts, 1))
    parsed = read(f"Date,Text,Out,In\n{split}{word},,{out},{into}\n", profile(columns=SPLIT))
    assert [row.amount for row in parsed.rows] == [row.amount for row in plain.rows] and len(parsed.notes) == 1


def test_pending_rows_without_a_day_come_again() -> None:
    own = profile(columns={"date": "Date", "description": "Text", "amount": "Amount", "state": "Status"})
    text = "Date,Text,Amount,Status\n,x,-1.00,Pending\n2025-01-30,y,-2.00,Posted\n,z,-3.00,Vorgemerkt\n"
    parsed = read(text, own)
    assert [row.description for row in parsed.rows] == ["y"] and "line 2, 4" in parsed.notes[0]
    assert "there is no date" in refusal(text.replace("Pending", "Posted"), own).message
