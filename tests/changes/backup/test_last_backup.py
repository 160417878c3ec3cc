"""What ``status`` and ``doctor`` say of backups and remotes: a line, and loudly only what lay nowhere else for long."""

from __future__ import annotations

from typing import Any

import pytest
from backups import back_up
from harness import Workspace

pytestmark = pytest.mark.slow

LATER = "2025-03-01T06:00:00Z"


def doctor(ws: Workspace) -> dict[str, Any]:
    (row,) = [each for each in ws.json("doctor")["checks"] if each["name"] == "backup"]
    return dict(row)


def trouble(ws: Workspace) -> list[str]:
    return [line for line in ws.json("status")["trouble"] if "backup" in line]


def test_new_books_are_no_reason_to_be_loud(ws: Workspace) -> None:
    assert doctor(ws) == {"name": "backup", "status": "ok", "detail": "none yet (cleared backup FILE)", "remedy": ""}
    assert ws.json("status")["backup"]["last"] is None and trouble(ws) == []
    assert "not pushed" not in ws.ok("status").out


def test_how_old_the_last_backup_is(posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    file = back_up(posted)
    assert doctor(posted)["detail"] == f"less than an hour old ({file})"
    monkeypatch.setenv("CLEARED_CLOCK", LATER)
    row = doctor(posted)
    assert (row["status"], row["detail"]) == ("ok", f"19 days old ({file})"), "it has all that was committed"
    monkeypatch.setenv("CLEARED_CLOCK", "2025-02-12T06:00:00Z")
    posted.ok("queue", "approve", "2025-01-002")
    assert doctor(posted)["detail"] == f"2 days old ({file}), 1 commit since" and trouble(posted) == []
    monkeypatch.setenv("CLEARED_CLOCK", LATER)
    row = doctor(posted)
    assert row["status"] == "warn" and "only this disk has what was committed since 2025-02-12" in row["detail"]
    assert trouble(posted) and posted("status", "--check").code == 1
    back_up(posted, "second.cleared")
    assert doctor(posted)["status"] == "ok" and trouble(posted) == []


def test_books_that_lie_nowhere_else_are_named_after_a_week(posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARED_CLOCK", LATER)
    row = doctor(posted)
    assert row["status"] == "warn" and "cleared backup FILE" in row["remedy"]
    assert trouble(posted) == [], "who makes no backups is not told of them every time"


def test_which_commits_no_remote_has(posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    posted.git("init", "-q", "--bare", str(posted.root.parent / "remote.git"))
    posted.git("remote", "add", "origin", str(posted.root.parent / "remote.git"))
    posted.git("push", "-q", "-u", "origin", "main")
    monkeypatch.setenv("CLEARED_CLOCK", LATER)
    assert doctor(posted)["status"] == "ok" and "not pushed" not in posted.ok("status").out
    posted.ok("queue", "approve", "2025-01-002")
    posted.git("branch", "side")
    assert "no remote has 1 commit, from 2025-03-01 on" in doctor(posted)["detail"]
    shown = posted.ok("status").out
    assert "not pushed" in shown and "1 commit, from 2025-03-01 on" in shown
    assert posted.json("status")["backup"]["unpushed"] == 1
    monkeypatch.setenv("CLEARED_CLOCK", "2025-03-20T06:00:00Z")
    assert doctor(posted)["status"] == "warn"
