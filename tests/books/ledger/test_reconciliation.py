"""What explains a difference between books and bank: gaps first, then the smallest set of rows; bounded, and honest."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from cleared.books.ledger.account_facts import AccountFacts, find_completeness
from cleared.books.ledger.day_balances import DayBalances
from cleared.books.ledger.entry import Entry
from cleared.books.ledger.reconciliation import reconcile_account
from cleared.books.ledger.stated_balances import StatedBalance

DAY = date(2025, 3, 1)
END = date(2025, 3, 31)


def facts(*amounts: str, lines: bool = True) -> AccountFacts:
    """Legs of these amounts, one a day; all posted from bank lines, or none."""
    made = AccountFacts(1010, DayBalances(), has_lines=True)
    for n, amount in enumerate(amounts):
        add_leg(made, n + 1, DAY + timedelta(days=n), amount, f"f1:{n}" if lines else "")
    return made


def add_leg(made: AccountFacts, number: int, day: date, amount: str, line_id: str) -> None:
    made.balances.add_movement(1010, day, Decimal(amount))
    entry = Entry(f"2025-03-{number:03d}", day, f"row {number - 1}", (), "user-confirmed")
    made.legs.append((Decimal(amount), entry, line_id))


def explain(books: AccountFacts, stated: str) -> list[tuple[str, list[str]]]:
    found = reconcile_account(books, END, Decimal(stated))
    return [(e.reason, [row.id for row in e.rows]) for e in found.explanations]


def test_nothing_to_explain() -> None:
    assert explain(facts("10.00", "-4.00"), "6.00") == []


def test_a_doubled_row_comes_before_one_that_only_fits() -> None:
    books = facts("100.00", "-7.00")
    add_leg(books, 3, DAY + timedelta(days=1), "-7.00", "f1:2")
    add_leg(books, 4, DAY + timedelta(days=3), "-3.00", "f1:3")
    assert explain(books, "90.00") == [("the books have two of it", ["2025-03-003"])]


def test_two_rows_the_wrong_side_and_swapped_digits() -> None:
    assert ("two that belong to it", ["2025-03-001", "2025-03-003"]) in explain(
        facts("10.00", "-4.00", "-2.50", lines=False), "-4.00"
    )
    assert explain(facts("100.00", "30.00", "-1.00"), "69.00") == [("booked on the wrong side", ["2025-03-002"])]
    assert explain(facts("100.00", "54.00", "-1.00"), "144.00") == [
        ("two digits swapped: the bank has 45.00", ["2025-03-002"])
    ]


def test_it_says_when_it_gave_up() -> None:
    many = facts(*(f"{n}.{n % 100:02d}" for n in range(100, 190)))
    found = reconcile_account(many, END + timedelta(days=100), Decimal("-0.01"))
    assert found.explanations == [] and "90 rows are too many to look for three" in found.gave_up


def test_complete_through_the_last_day_that_agrees() -> None:
    books = facts("10.00", "-4.00", "-1.00")
    books.stated = [StatedBalance(DAY + timedelta(days=n), Decimal(a)) for n, a in enumerate(("10.00", "6.00", "4.50"))]
    found = find_completeness(books)
    assert (found.through, found.differs, found.difference) == (
        DAY + timedelta(days=1),
        books.stated[2],
        Decimal("-0.50"),
    )


AMOUNTS = st.lists(st.integers(-99_999, 99_999).filter(bool), min_size=3, max_size=12)


@settings(max_examples=40)
@given(AMOUNTS, st.data())
def test_a_row_taken_out_is_among_the_answers(cents: list[int], data: st.DataObject) -> None:
    """Whatever is answered makes up the difference; a single missing row is always found."""
    extra = data.draw(st.integers(0, len(cents) - 1))
    books = facts(*(str(Decimal(c) / 100) for c in cents), lines=False)
    whole = books.balance_on(END)
    found = reconcile_account(books, END, whole - books.legs[extra][0])
    assert any(row.id == books.legs[extra][1].entry_id for e in found.explanations for row in e.rows)
    for each in found.explanations:
        assert sum(row.effect for row in each.rows) == found.difference
