"""``status`` verifies thousands of signatures once; what it keeps of that is believed only where it wrote it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from harness import Workspace

from cleared.service import status_report

HOURLY = '"""\nname: {name}\ntrigger: schedule\nschedule: 15 * * * *\n"""\nctx_log("due")\n'
NAMES = ("beat", "pulse")


@pytest.fixture
def beating(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Two approved agents with a schedule, in books whose agents are worth a file."""
    monkeypatch.setattr(status_report, "FEWEST", 1)
    for name in NAMES:
        (ws.root / "agents" / f"{name}.py").write_text(HOURLY.format(name=name))
    ws.approve(*(f"agents/{name}.py" for name in NAMES))
    ws.git("add", "-A")
    ws.git("commit", "-qm", "agents")
    return ws


def agents(ws: Workspace) -> dict[str, Any]:
    return {agent["name"]: agent for agent in json.loads(ws("status", "--json").out)["agents"]}


def kept_files(ws: Workspace) -> list[Path]:
    return sorted((ws.root / ".cleared" / "books").glob("*.agents"))


def test_the_second_time_nothing_is_verified_and_the_answer_is_the_same(
    beating: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = agents(beating)
    assert [first[name]["state"] for name in NAMES] == ["approved", "approved"]
    assert len(kept_files(beating)) == 1
    with monkeypatch.context() as patch:
        patch.setattr("cleared.trust.approval_record.verify_signature", lambda *_: False)
        assert agents(beating) == first, "the signatures were not looked at again"
    kept_files(beating)[0].unlink()
    assert agents(beating) == first


def test_a_file_that_was_damaged_or_made_elsewhere_is_none(beating: Workspace) -> None:
    first = agents(beating)
    (file,) = kept_files(beating)
    whole = file.read_bytes()
    for data in (b"", whole[:50], whole.replace(b'"approved"', b'"starter"'), b"[" + whole):
        file.write_bytes(data)
        assert agents(beating) == first


def test_another_script_or_other_trust_is_seen_at_once(
    beating: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents(beating)
    with (beating.root / "agents" / "pulse.py").open("a") as file:
        file.write('ctx_log("more")\n')
    beating.git("commit", "-qam", "edit")
    states = agents(beating)
    assert (states["beat"]["state"], states["pulse"]["state"]) == ("approved", "unapproved")
    with monkeypatch.context() as patch:
        patch.setenv("CLEARED_HOME", str(tmp_path / "somebody else"))
        assert agents(beating)["beat"]["state"] == "untrusted"
    assert agents(beating)["beat"]["state"] == "approved"
    beating.ok("agent", "rollback", "beat", "--reason", "wrong")
    assert "beat" not in agents(beating)


def test_next_times_follow_the_clock(beating: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    for clock, due in (
        ("2026-01-31T10:14:59Z", "2026-01-31T10:15:00Z"),
        ("2026-01-31T10:15:00Z", "2026-01-31T11:15:00Z"),
        ("2026-01-31T09:00:00Z", "2026-01-31T09:15:00Z"),
        ("2026-03-01T00:00:00Z", "2026-03-01T00:15:00Z"),
    ):
        monkeypatch.setenv("CLEARED_CLOCK", clock)
        assert agents(beating)["beat"]["next_due"] == due


def test_what_a_pull_has_withdrawn_is_looked_through_once(beating: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing notes it before a command that writes; until then ``status`` is asked at other times."""
    beating.git("rm", "-q", "agents/review_reminder.py")
    beating.git("commit", "-qm", "a shipped agent is gone")
    monkeypatch.setenv("CLEARED_CLOCK", "2025-02-03T09:00:00Z")
    first = agents(beating)
    monkeypatch.setenv("CLEARED_CLOCK", "2025-02-03T09:00:07Z")
    with monkeypatch.context() as patch:
        patch.setattr("cleared.trust.approval_record.verify_signature", lambda *_: False)
        assert agents(beating) == first, "the signatures were not looked at again"
