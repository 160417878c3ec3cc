"""Reopening a period leaves closed what lies before it, also where both were closed at once."""

from __future__ import annotations

from harness import Workspace, refused


def test_what_lies_before_the_reopened_day_stays_closed(posted: Workspace) -> None:
    posted.ok("journal", "add", "2025-02-03", "Rent", "5010=100.00", "2100=-100.00")
    posted.ok("period", "close", "2025-02-05", "--with-pending")
    posted.ok("period", "reopen", "2025-02", "--reason", "a late bill")
    refused(posted("journal", "add", "2025-01-31", "Late", "5010=1.00", "2100=-1.00"), 1, "closed through 2025-01-31")
    posted.ok("journal", "add", "2025-02-01", "Late", "5010=1.00", "2100=-1.00")
    posted.in_order()
    posted.ok("period", "reopen", "2025-01", "--reason", "another one")
    posted.ok("journal", "add", "2024-12-31", "Early", "5010=1.00", "2100=-1.00")
    posted.in_order()
