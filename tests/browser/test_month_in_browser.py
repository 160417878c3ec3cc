"""A month of a consultant's books, kept by taps and typing alone, and true to the cent.

The whole year is ``python -m bench --only page_year``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench.consultant import CARD, COWORKING, ON_CARD, Consultant
from bench.page_year import open_year
from bench.year_oracle import booked_balances, find_faults
from cleared.web import work_pages

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_a_month_is_kept_by_taps_alone(chromium: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row I14: from the file to the closed month and the reports; nothing speaks of a terminal, all is booked once."""
    monkeypatch.setenv("CLEARED_HOME", "")  # which the year sets
    monkeypatch.setattr(work_pages, "QUICK_SECONDS", 0.0)  # as on a slow machine: what takes long has a page of its own
    consultant = Consultant(1, payees=[*ON_CARD[:1], *ON_CARD[12:14]], banks=[CARD])
    with open_year(consultant, chromium) as year:
        year.keep_month(consultant.months[0])
        year.end_year()
        assert year.person.problems == []
        assert find_faults(year.root, consultant) == []
        assert booked_balances(year.root, 1)[COWORKING, "2025-01"] == 58
        [effort] = year.effort
        assert 0 < effort.taps <= 80 and effort.typed <= 60, effort
        consultant.months[0].lines[0].parts = ((COWORKING, consultant.months[0].lines[0].amount * -2),)
        assert find_faults(year.root, consultant), "another truth is noticed"
