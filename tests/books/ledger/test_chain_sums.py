"""A chain that counts is one of its entries, as posted or with one correction: nothing between two corrections."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from cleared.books.ledger.chains import ChainEntry, find_double_count
from cleared.books.ledger.corrections import make_leg
from cleared.books.ledger.entry import Leg


def legs(**amounts: str) -> tuple[Leg, ...]:
    return tuple(make_leg(int(name[1:]), Decimal(amount)) for name, amount in amounts.items())


def member(name: str, day: str, moved: tuple[Leg, ...], tags: str = "") -> ChainEntry:
    return ChainEntry(name, date.fromisoformat(day), moved, tags, "")


E = member("2025-01-001", "2025-01-10", legs(a5030="4.50", a1010="-4.50"))
FIRST = member("2025-02-001", "2025-02-01", legs(a5010="4.50", a5030="-4.50"), "@corrects=2025-01-001")


def test_two_corrections_at_a_time_are_found() -> None:
    """Here the second starts from the first, and is dated before it."""
    second = member("2025-01-002", "2025-01-10", legs(a5060="4.50", a5010="-4.50"), "@corrects=2025-01-001")
    found = find_double_count([E, FIRST, second])
    assert found is not None and found.entries == ("2025-01-001", "2025-01-002", "2025-02-001")
    assert "together they are none of them" in found.reason and "4.50 of 5060" in found.reason


@pytest.mark.parametrize("day", ["2025-01-10", "2025-02-01", "2025-03-01"])
def test_a_correction_that_takes_the_place_of_the_first_is_right(day: str) -> None:
    on = max(day, "2025-02-01")
    back = member("2025-02-002", on, legs(a5010="-4.50", a5030="4.50"), "@rev=2025-02-001")
    moved, tags = legs(a5060="4.50", a5030="-4.50"), "@corrects=2025-01-001;@replaces=2025-02-001"
    second = member("2025-03-001", on if on > "2025-02-01" else day, moved, tags)
    assert find_double_count([E, FIRST, back, second]) is None


def test_a_correction_before_what_it_corrects_is_found() -> None:
    early = member("2025-01-002", "2025-01-09", legs(a5060="4.50", a5030="-4.50"), "@corrects=2025-01-001")
    assert find_double_count([E, early]) is not None
