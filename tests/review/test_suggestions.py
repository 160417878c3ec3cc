"""A suggestion on a card, taken with one key; the same for scripts, recorded like every read."""

from __future__ import annotations

from harness import Workspace, chase

FEBRUARY = chase(("02/03/2025", "COFFEE 0231", "-4.80"), ("02/04/2025", "COFFEE 0977", "-5.10"))


def test_a_card_suggests_and_y_takes_it(posted: Workspace) -> None:
    posted.ok("queue", "correct", "2025-01-004", "--account", "5070")
    posted.drop("february.csv", FEBRUARY)
    posted.run("ingest")
    done = posted.process("review", stdin=b"s\ny\nq\n")
    assert done.code == 0, done
    for part in ("Suggested:", "5070 Meals", "1 of 1 COFFEE went to 5070, last 2025-01-10", "y Take 5070 Meals"):
        assert part in done.out, done.out
    assert "Corrected: COFFEE 0231" in done.out
    assert posted.json("journal", "balance", "5070")[0]["balance"] == "9.30"
    posted.in_order()


def test_a_script_asks_for_it(posted: Workspace) -> None:
    posted.ok("queue", "correct", "2025-01-004", "--account", "5070")
    ran = posted.script('suggest_account("COFFEE 12", -4)')
    assert ran["result"]["account_id"] == 5070 and ran["result"]["evidence"].startswith("1 of 1 COFFEE")
    assert posted.script('suggest_account("NOBODY KNOWS", -4)', name="other")["result"] is None
