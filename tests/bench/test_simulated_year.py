"""The simulated year of ``python -m bench --improve``, its first months: what is taught is not asked again."""

from __future__ import annotations

import pytest

from bench.improving import simulate_year

pytestmark = pytest.mark.slow


def test_what_an_owner_decides_is_learned_and_nothing_else() -> None:
    year = simulate_year(months=3, payees=3, lines=12, rounds=1)
    first, _, third = year.cards
    assert first >= 12 and third <= 3 and year.proposed >= 3, year
    assert year.wrong_unmade == 0, "nothing is booked by itself as the owner never decided"
