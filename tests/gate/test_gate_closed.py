"""A closed month stops no change of an agent that posts (fault 11): what is made up is dated into open days, what is
replayed is replayed on the books of its time."""

from __future__ import annotations

import pytest
from harness import Workspace, take_ok, take_shown
from proposing import FEBRUARY, edit, history, live, propose, threshold


@pytest.mark.parametrize("through", ["2025-01", "2025-02-09"])
def test_d1_an_agent_that_posts_is_proposed_and_approved_after_a_close(ws: Workspace, through: str) -> None:
    """D1, B23: last month is closed, or all up to yesterday; the made-up month lies after that, and is posted."""
    ws.ok("period", "close", through, "--with-pending")
    threshold(ws)
    found = propose(ws, "ingest")
    made_up = next(s for s in found["checks"]["stages"]["agents/ingest.py"] if s["stage"] == "rehearsal")
    month = made_up["details"]["rehearsals"][1]
    assert month["error"] is None and month["entries"] == 9, month
    take_ok(ws, "agent", "approve", found["id"])


def test_d14_past_runs_are_compared_across_a_close(ws: Workspace) -> None:
    """D14: each run on the books as they stood before it, when its month was open."""
    history(ws)
    ws.ok("period", "close", "2025-02-08", "--with-pending")
    threshold(ws)
    found = propose(ws, "ingest")["behaviour"]["history"]
    assert (found["runs"], found["changed"], found["failed"]) == (2, 2, [])
    take_ok(ws, "agent", "approve", "P1")


def test_d9_a_case_recorded_before_the_close_is_replayed_after_it(ws: Workspace) -> None:
    """D9: and made of a run of the closed month, too."""
    ws.drop("january.csv")
    before = ws.run("ingest")["run_id"]
    ws.ok("test", "add", before, "-m", "as it was")
    ws.drop("february.csv", FEBRUARY)
    later = ws.run("ingest")["run_id"]
    ws.ok("period", "close", "2025-02-08", "--with-pending")
    ws.ok("test", "add", later, "-m", "made after the close")
    edit(ws, "agents/ingest.py", "description: ", "description: my ")
    found = propose(ws, "ingest")
    stage = next(s for s in found["checks"]["stages"]["agents/ingest.py"] if s["stage"] == "regression")
    assert len(stage["details"]["cases"]) == 2 and not stage["findings"] and not stage["warnings"]
    take_ok(ws, "agent", "approve", found["id"])


def test_d15_a_close_between_proposal_and_approval(ws: Workspace) -> None:
    """D15: the month is made up anew after it; where the effects are others by now, another takes its place."""
    threshold(ws)
    propose(ws, "ingest")
    ws.ok("period", "close", "2025-01-31", "--with-pending")
    done = take_shown(ws, "agent", "approve", "P1")
    if done.code:
        assert "P2 has taken its place" in done.err, done
        take_ok(ws, "agent", "approve", "P2")
    assert "0.97" in ws.git("show", "HEAD:agents/ingest.py")


def test_d1_an_agent_that_books_the_month_before_is_changed_after_that_was_closed(ws: Workspace) -> None:
    """D1: what a rehearsal without files does is dated by its clock, which lies after the close, too."""
    body = """year, month = int(ctx_today()[:4]), int(ctx_today()[5:7]) - 1
if month == 0:
    year, month = year - 1, 12
journal_add_double(f"{year}-{month:02}-01", "rent", 5010, 1010, 100)"""
    live(ws, body)
    ws.ok("period", "close", "2025-01", "--with-pending")
    live(ws, body.replace("100)", "200)"))


def test_b23_a_run_itself_posts_nothing_into_what_is_closed(ws: Workspace) -> None:
    """B23: only what is made up is dated elsewhere."""
    ws.ok("period", "close", "2025-01", "--with-pending")
    ws.drop("january.csv")
    assert ws.run("ingest")["result"]["imported"] == 0 and ws.entries() == []
    assert all("closed (through 2025-01-31)" in card["title"] for card in ws.cards()) and len(ws.cards()) == 4
    body = 'journal_add_double("2025-01-31", "rent", 5010, 1010, 100)'
    assert "closed through 2025-01-31" in ws.script(body, code=1)["error"]["message"]
