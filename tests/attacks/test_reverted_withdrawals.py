"""What was withdrawn stays so where a clone gets the withdrawal and its reversal by git in one pull."""

from __future__ import annotations

import pytest
from harness import Workspace, copy_books, refused, take_ok


def revert(ws: Workspace) -> None:
    ws.git("revert", "--no-edit", "HEAD")


@pytest.mark.parametrize("is_known", [True, False])
def test_a_disabled_agent_stays_disabled(ws: Workspace, monkeypatch: pytest.MonkeyPatch, is_known: bool) -> None:
    """In a clone that had run it before, and in one that had not."""
    another = str(ws.root.parent / "another")
    ws.ok("agent", "disable", "ingest")
    ws.ok("agent", "enable", "ingest")
    monkeypatch.setenv("CLEARED_HOME", another)
    other = Workspace(copy_books(ws.root, ws.root.parent / "clone"))
    take_ok(other, "trust", "--yes")
    if is_known:
        other.run("ingest")
    monkeypatch.delenv("CLEARED_HOME")
    monkeypatch.setenv("CLEARED_CLOCK", "2025-02-10T08:00:00Z")
    ws.ok("agent", "disable", "ingest", "--reason", "it books the rent wrongly")
    revert(ws)
    monkeypatch.setenv("CLEARED_HOME", another)
    other.git("pull", "-q", "--no-rebase", "--no-edit", str(ws.root), "HEAD")
    for _ in range(2):
        refused(other("agent", "run", "ingest"), 3, "it was disabled on 2025-02-10")
    monkeypatch.setenv("CLEARED_CLOCK", "2025-02-10T09:00:00Z")
    other.ok("agent", "enable", "ingest")
    other.ok("agent", "run", "ingest")
    other.ok("agent", "run", "ingest")
