"""Days and exact numbers, which scripts have no types of their own for."""

from __future__ import annotations

import pytest
from harness import Workspace, fails


def test_days_are_counted_across_months_and_leap_years(ws: Workspace) -> None:
    found = ws.script(
        '[days_between("2024-02-28", "2024-03-01"), days_between("2025-03-01", "2025-02-28"),\n'
        ' days_between("2025-01-01", "2025-01-01"), add_days("2024-02-28", 2), add_days("2025-01-01", -1),\n'
        " add_days(ctx_today(), 0) == ctx_today()]"
    )
    assert found["result"] == [2, -1, 0, "2024-03-01", "2024-12-31", True]


def test_a_text_becomes_an_exact_number(ws: Workspace) -> None:
    found = ws.script('[str(decimal(text)) for text in ["12.50", " -3 ", "+1,234.50", "0.10", "007"]]')
    assert found["result"] == ["12.50", "-3", "1234.50", "0.10", "7"]
    assert ws.script('str(decimal("0.10") + decimal("0.20"))')["result"] == "0.30"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ('decimal("12,50")', "'12,50' is not a number"),
        ('decimal("$5")', "'$5' is not a number"),
        ('decimal("")', "'' is not a number"),
        ('decimal("1e5")', "'1e5' is not a number"),
        ('decimal("NaN")', "'NaN' is not a number"),
        ('decimal("٣")', "is not a number"),
        ('decimal("9" * 60)', "more than 40 digits"),
        ('add_days("2025-01-01", 10000000)', "no day of the years 1 to 9999"),
        ('days_between("2025-02-30", "2025-03-01")', "there is no day 2025-02-30"),
    ],
)
def test_what_is_no_number_and_no_day_ends_the_run(ws: Workspace, call: str, said: str) -> None:
    fails(ws, call, said)


def test_a_header_that_does_not_grant_them_keeps_them_away(ws: Workspace) -> None:
    """``grants:`` names what a script may call; the two new groups are none of the exceptions."""
    ws.agent("probe", 'days_between("2025-01-01", "2025-01-02")', "grants: [money.read]\n")
    assert "ctx.read" in ws("agent", "check", "probe").out
    ws.agent("probe", 'decimal("1")', "grants: [ctx.read]\n")
    assert "money.read" in ws("agent", "check", "probe").out
    ws.agent("probe", 'str(decimal("1")) + add_days("2025-01-01", 1)', "grants: [ctx.read, money.read]\n")
    ws.ok("agent", "check", "probe")
