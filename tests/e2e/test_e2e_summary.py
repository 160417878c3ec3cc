"""Fault 17: the monthly summary says what stands, not what was corrected away."""

from __future__ import annotations

from typing import Any

from harness import Workspace, chase


def summary(ws: Workspace) -> dict[str, Any]:
    found: dict[str, Any] = ws.run("monthly_summary")["result"]
    return found


def test_what_was_corrected_away_is_not_listed(ws: Workspace) -> None:
    """A voided entry, one that was posted again, one that was reclassified: each counts once, as it stands now."""
    ws.drop(
        "january.csv",
        chase(
            ("01/20/2025", "CHAIRS", "-300.00"),
            ("01/15/2025", "DESK", "-200.00"),
            ("01/10/2025", "LAMP", "-100.00"),
            ("01/05/2025", "PAPER", "-10.00"),
        ),
    )
    ws.run("ingest")
    paper, lamp, desk, chairs = (ws.entries("--text", t)[0]["entry_id"] for t in ("PAPER", "LAMP", "DESK", "CHAIRS"))
    ws.ok("journal", "void", chairs, "--reason", "not ours")
    ws.ok("queue", "correct", desk, "--account", "5060", "--date", "2025-01-16")
    ws.ok("queue", "correct", lamp, "--account", "5060")
    found = summary(ws)
    again = next(e["entry_id"] for e in ws.entries("--text", "DESK") if e["status"] != "voided")
    assert again != desk
    assert [(each["entry_id"], each["amount"]) for each in found["largest"]] == [
        (again, "200.00"),
        (lamp, "100.00"),
        (paper, "10.00"),
    ]
    assert found["expenses"] == {"5030 Uncategorised expense": "10.00", "5060 Office supplies": "300.00"}
    assert found["expenses_total"] == "310.00"


def test_a_correction_of_a_closed_month_leaves_that_months_summary(ws: Workspace) -> None:
    ws.drop("january.csv", chase(("01/20/2025", "CHAIRS", "-300.00")))
    ws.run("ingest")
    ws.ok("period", "close", "2025-01-31", "--with-pending")
    before = summary(ws)
    ws.ok("queue", "correct", ws.entries()[0]["entry_id"], "--account", "5060")
    assert {**summary(ws), "waiting_for_review": 1} == before
