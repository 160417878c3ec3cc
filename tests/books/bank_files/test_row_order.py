"""Rows in the order in which they happened, however a spreadsheet has sorted them."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from operator import attrgetter

from harness import Workspace, chase
from hypothesis import given
from hypothesis import strategies as st

from cleared.books.importing.bank_file import find_balance_gaps, order_in_time
from cleared.books.ledger.bank_row import BankRow, order_rows

DAY = date(2025, 1, 1)
AMOUNTS = st.lists(st.tuples(st.integers(-500, 500).filter(bool), st.integers(0, 2)), min_size=1, max_size=30)


def rows_of(moves: list[tuple[int, int]]) -> list[BankRow]:
    """Rows that happened so: (cents, days after the one before)."""
    balance, day, rows = Decimal(100), DAY, []
    for number, (cents, days) in enumerate(moves):
        day += timedelta(days=days)
        balance += Decimal(cents) / 100
        rows.append(BankRow(number + 2, day, f"row {number}", Decimal(cents) / 100, balance=balance))
    return rows


def count_jumps(rows: list[BankRow]) -> int:
    return sum(before.balance != row.balance - row.amount for before, row in pairwise(rows) if row.balance is not None)


@given(moves=AMOUNTS, seed=st.integers(0, 99))
def test_a_shuffled_file_says_what_it_did(moves: list[tuple[int, int]], seed: int) -> None:
    """As far as balances tell: where a day returns to what it began with, its beginning cannot be told, and a single
    jump is taken for a row that is missing."""
    rows = rows_of(moves)
    shuffled = random.Random(seed).sample(rows, len(rows))
    found = order_rows(shuffled, attrgetter("balance"))
    assert sorted(row.row for row in found) == [row.row for row in rows]
    began = [row.balance - row.amount for row in (rows[0], found[0]) if row.balance is not None]
    is_missing_one = 1 in (count_jumps(shuffled), count_jumps(shuffled[::-1]))
    if sum(cents for cents, _ in moves) and len({row.posted_date for row in rows}) == 1 and not is_missing_one:
        assert began[0] == began[1] and found[-1].balance == rows[-1].balance
        assert not find_balance_gaps(order_in_time(shuffled))


@given(moves=AMOUNTS)
def test_a_file_in_either_direction_stays_as_it_is(moves: list[tuple[int, int]]) -> None:
    rows = rows_of(moves)
    assert order_rows(rows, attrgetter("balance")) == rows
    if rows[0].posted_date != rows[-1].posted_date:
        assert order_rows(rows[::-1], attrgetter("balance")) == rows


def test_a_row_that_is_missing_is_not_hidden() -> None:
    """A day with a charge and its refund could be turned round so that the jump is gone."""
    rows = rows_of([(-500, 0), (2000, 0), (500, 0), (1000, 0), (-1000, 1), (1000, 0)])
    cut = [row for row in rows if row.row != 5]
    assert order_rows(cut, attrgetter("balance")) == cut
    assert len(find_balance_gaps(order_in_time(cut))) == 1


def test_a_file_that_a_spreadsheet_sorted_is_taken_as_it_was(ws: Workspace) -> None:
    """By text within the day: no gap is seen where none is, and the opening balance is the true one."""
    rows = [
        ("01/03/2025", "GAMMA", "-30.00", "900.00"),
        ("01/03/2025", "ZETA", "-10.00", "930.00"),
        ("01/03/2025", "ALPHA", "-10.00", "940.00"),
        ("01/03/2025", "DELTA", "-20.00", "950.00"),
        ("01/02/2025", "BETA", "-20.00", "970.00"),
        ("01/02/2025", "EPS", "-10.00", "990.00"),
    ]
    ws.drop("sorted.csv", chase(*sorted(rows, key=lambda row: row[1])))
    ws.run("ingest")
    assert not [card for card in ws.cards() if card["kind"] == "balance_gap"]
    ws.ok("journal", "open")
    assert ws.json("journal", "balance", "1010")[0]["balance"] == "900.00"
    ws.drop("original.csv", chase(*rows))
    ws.run("ingest")
    assert len(ws.entries()) == 7
    [account] = ws.json("status")["accounts"]
    assert (account["through"], account["differs_on"]) == ("2025-01-03", None)
    ws.in_order()
