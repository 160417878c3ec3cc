"""What scripts ask of the loop, as the loop takes it: once, whatever became of the history; and never for ever."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from harness import CLOCK, Workspace, command, take_shown
from looping import Loop, changed

from cleared.jobs import inbox

pytestmark = pytest.mark.slow

GIT = "grants: [loop_enqueue:git_status_summary]\n"
ASK = 'loop_enqueue("git_status_summary")\n'


def asked(ws: Workspace) -> None:
    """A run that asks for one job."""
    ws.agent("asker", ASK, GIT)
    ws.run("asker")


def test_a_scripts_job_is_run_once(loop: Loop) -> None:
    asked(loop.ws)
    loop.run("--max-cycles", "3", CLEARED_CLOCK=CLOCK)
    loop.run("--max-cycles", "3", CLEARED_CLOCK=CLOCK)
    assert loop.jobs() == ["git_status_summary"]
    assert loop.state()["jobs"][0]["by"].startswith("run:")


def test_history_that_is_rewritten_repeats_no_job(loop: Loop) -> None:
    """The commit that the cursor names is in it no more."""
    asked(loop.ws)
    loop.run("--once", CLEARED_CLOCK=CLOCK)
    loop.ws.git("commit", "--amend", "--no-edit", "--date", "2025-02-11T00:00:00Z")
    loop.run("--max-cycles", "2", CLEARED_CLOCK=CLOCK)
    assert loop.jobs() == ["git_status_summary"]


def test_a_state_that_is_lost_repeats_no_job(loop: Loop) -> None:
    asked(loop.ws)
    loop.run("--once", CLEARED_CLOCK=CLOCK)
    for name in ("single_agent_state.json", "single_agent_state.json.bak"):
        (loop.folder / name).unlink()
    loop.run("--max-cycles", "2", CLEARED_CLOCK=CLOCK)
    assert loop.jobs() == []


def test_a_fresh_state_repeats_no_job(loop: Loop) -> None:
    """Row E30."""
    asked(loop.ws)
    loop.run("--once", CLEARED_CLOCK=CLOCK)
    loop.run("--once", "--init", CLEARED_CLOCK=CLOCK)
    assert loop.jobs() == []


def test_a_loop_in_another_directory_takes_no_scripts_jobs(loop: Loop, tmp_path: Path) -> None:
    """Row E32: they are for the workspace's own."""
    asked(loop.ws)
    other = Loop(loop.ws, tmp_path / "other")
    other.run("--max-cycles", "2", CLEARED_CLOCK=CLOCK)
    assert other.jobs() == []
    loop.run("--once", CLEARED_CLOCK=CLOCK)
    assert loop.jobs() == ["git_status_summary"]


def test_agents_that_ask_for_each_other_come_to_an_end(loop: Loop) -> None:
    loop.ws.agent("again", 'loop_enqueue("agent:again")\n', "grants: [loop_enqueue:agent:again]\n")
    loop.ws.config("triggers.max_depth=2")
    loop.ws.run("again")
    loop.run("--max-cycles", "6", CLEARED_CLOCK=CLOCK)
    assert loop.jobs() == ["agent_run"] * 2
    assert "the chain that leads to it is too long" in loop.state()["notices"][-1]["text"]
    assert loop.state()["stop"] is None


def test_a_job_runs_an_agent_that_was_approved_here_and_cannot_approve(loop: Loop) -> None:
    """What was approved with this user's key has standing in a job, which cannot read that key."""
    loop.ws.put("agents/plain.py", '"""\nname: Plain\ntrigger: on_demand\n"""\nctx_log("ran")\n')
    proposal = loop.ws.ok("agent", "propose", "plain")
    assert take_shown(loop.ws, "agent", "approve", proposal.err.split("Proposed as ")[1].split(".")[0]).code == 0
    result = loop.once("agent:plain")
    assert (result["status"], result["target"]) == ("succeeded", "plain"), result


def test_a_linked_working_tree_has_jobs_too(loop: Loop, tmp_path: Path) -> None:
    """Its history is elsewhere."""
    loop.ws.agent("hello", 'journal_add_double("2025-01-03", "GITHUB", 5020, 1010, "4.00")\n')
    side = tmp_path / "side"
    loop.ws.git("worktree", "add", "-q", "-b", "side", str(side))
    for kind in ("git_status_summary", "books_check", "agent:hello"):
        assert command("loop", "enqueue", kind, cwd=side, env=changed({})).code == 0
    done = command("loop", "run", "--max-cycles", "3", "--sleep", "0", cwd=side, env=changed({}))
    assert done.code == 0, done
    state = json.loads((side / ".cleared/loop/single_agent_state.json").read_bytes())
    assert [row["status"] for row in state["jobs"]] == ["succeeded"] * 3, state["jobs"]
    shutil.rmtree(side)


def test_more_than_may_wait_is_taken_in_when_there_is_room(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nobody can make the state grow without end."""
    monkeypatch.setattr(inbox, "MAX_WAITING", 3)
    loop.ws.agent("asker", ASK * 5, GIT)
    loop.ws.run("asker")
    loop.run("--max-cycles", "2", CLEARED_CLOCK=CLOCK)
    for kind in ("books_check", "books_check"):
        done = loop.here("enqueue", kind)
        if done.code:
            break
    assert done.code == 5 and "that is the most" in done.err
    assert len(loop.state()["queue"]) == 3
    loop.run("--max-cycles", "9", CLEARED_CLOCK=CLOCK)
    assert loop.jobs().count("git_status_summary") == 5
