"""Fault 19: another git command holds the index of the books."""

from __future__ import annotations

from harness import Workspace, refused, unchanged


def test_a_lock_of_another_git(ws: Workspace) -> None:
    """Busy (5) with its age and what to do, before anything is run; said by status; never taken away."""
    ws.config("lock.wait_seconds=0")
    ws.drop("january.csv")
    lock = ws.put(".git/index.lock", "")
    with unchanged(ws):
        refused(ws("agent", "run", "ingest"), 5, "index.lock (for 0 seconds)", "its editor is open", "remove")
        refused(ws("period", "close", "2024-12-31"), 5, "index.lock")
        assert ws("agent", "run", "ingest", "--dry-run").code == 0
        assert any("deliveries wait" in line for line in ws("status", "--json").json["trouble"])
    assert lock.read_bytes() == b""
    lock.unlink()
    ws.run("ingest")
    ws.in_order()


def test_a_lock_of_a_killed_command_of_ours(ws: Workspace) -> None:
    """It is known by its mark, and taken away by the next command."""
    lock = ws.put(".git/index.lock", "held by cleared\n")
    assert "lock of git's index" in ws.ok("journal", "list").err
    assert not lock.exists()
    ws.in_order()
