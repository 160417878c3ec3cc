"""Row B24: both sides of a transfer are paired by amount and days, and never merged."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from cleared.books.ledger.entry import ZERO, Entry, Leg
from cleared.books.ledger.transfers import CLEARING_ACCOUNT, Transfers, find_sides, find_transfers

BANKS = (1010, 1020)
DAY = date(2025, 1, 20)


def entry(n: int, amount: int, bank: int, other: int = CLEARING_ACCOUNT, days: int = 0, **rest: str) -> Entry:
    """``amount``: as the bank's account moves."""
    legs = tuple(
        Leg(account, Decimal(v), ZERO) if v > 0 else Leg(account, ZERO, Decimal(-v))
        for account, v in ((bank, amount), (other, -amount))
    )
    status = rest.pop("status", "auto-confirmed")
    return Entry(f"2025-01-{n:03d}", DAY + timedelta(days=days), f"row {n}", legs, status, **rest)


def transfers(*entries: Entry) -> Transfers:
    return find_transfers(find_sides(entries, BANKS))


def test_the_nearest_of_the_opposite_amount_on_another_account() -> None:
    found = transfers(
        entry(1, -500, 1010),
        entry(2, 500, 1020, days=3),
        entry(3, 500, 1020, days=1),
        entry(4, 500, 1010, days=1),
        entry(5, -70, 1010),
        entry(6, 70, 1020, days=11),
    )
    assert [(p.out.entry_id[-1], p.into.entry_id[-1], p.days) for p in found.pairs] == [("1", "3", 1)]
    assert sorted(s.entry_id[-1] for s in found.unpaired) == ["2", "4", "5", "6"]


def test_what_looks_like_one_is_proposed_where_it_is_the_only_one() -> None:
    assert [p.days for p in transfers(entry(1, -500, 1010, 5030), entry(2, 500, 1020, 4900, days=2)).proposed] == [2]
    assert len(transfers(entry(1, -500, 1010), entry(2, 500, 1020, 4900, days=2)).proposed) == 1, (
        "one side is booked so"
    )
    assert transfers(entry(1, -500, 1010, 5030), entry(2, 500, 1020, 4900, days=6)).proposed == []
    assert transfers(entry(1, -500, 1010, 5030, status="user-confirmed"), entry(2, 500, 1020, 4900)).proposed == []
    three = transfers(entry(1, -500, 1010, 5030), entry(2, 500, 1020, 4900), entry(3, -500, 1010, 5040, days=4))
    assert three.proposed == [], "two could be meant"
    assert transfers(entry(1, -500, 1010, 5030), entry(2, 500, 1010, 5030, days=1)).proposed == [], "a refund"


def test_a_correction_counts_in() -> None:
    wrong = entry(1, -500, 1010, 5030, status="user-corrected")
    legs = (Leg(CLEARING_ACCOUNT, Decimal(500), ZERO), Leg(5030, ZERO, Decimal(500)))
    mended = Entry("2025-01-003", DAY, "x", legs, "user-corrected", tags="@corrects=2025-01-001")
    assert len(transfers(wrong, entry(2, 500, 1020), mended).pairs) == 1


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from([-5, 5, 7, -7]), st.sampled_from(BANKS), st.integers(0, 30)), max_size=25))
def test_each_side_is_in_one_place(rows: list[tuple[int, int, int]]) -> None:
    entries = [entry(n, amount, bank, days=days) for n, (amount, bank, days) in enumerate(rows, 1)]
    found = transfers(*entries)
    sides = [s.entry_id for p in found.pairs for s in (p.out, p.into)] + [s.entry_id for s in found.unpaired]
    assert sorted(sides) == sorted(e.entry_id for e in entries) and found.proposed == []
    assert all(p.out.amount == -p.into.amount and p.out.account != p.into.account for p in found.pairs)
