"""What of a change's effect on past runs a person reads first. (D3)"""

from __future__ import annotations

import pytest

from cleared.gate.impact import Impact


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [(0, 5, False), (1, 1, False), (2, 3, False), (2, 4, True), (3, 5, False), (3, 6, True)],
)
def test_d3_a_queue_is_doubled_from_twice_as_many_cards(before: int, after: int, told: bool) -> None:
    impact = Impact()
    impact.before["cards"], impact.after["cards"] = before, after
    assert [f"{after} now" in text for text in impact.find_warnings()] == [True] * told


def test_d3_everything_is_confirmed_where_something_waited_before() -> None:
    impact = Impact()
    impact.after["auto-confirmed"] = 6
    assert impact.find_warnings() == []
    impact.before["pending-review"] = 1
    assert "6 entries, none left for review" in impact.find_warnings()[0]
    impact.after["pending-review"] = 1
    assert impact.find_warnings() == []
