"""A service keeps its repository open from run to run: what happens to that meanwhile is seen all the same."""

from __future__ import annotations

from harness import Workspace
from world import World

from cleared.changes.trace import TraceStore

BEAT = 'ctx_emit("beat", {"due": ctx_event()["payload"]["due"]})'


def _world(ws: Workspace) -> World:
    for name in ("ingest", "monthly_summary", "review_reminder"):
        ws.git("rm", "-q", f"agents/{name}.py")
    ws.git("commit", "-q", "-m", "only what the test is about")
    text = f'"""\nname: beat\ntrigger: schedule\nschedule: 0 * * * *\n"""\n{BEAT}\n'
    ws.put("agents/beat.py", text)
    ws.commit("agents/beat.py", *ws.approve("agents/beat.py"))
    return World(ws)


def test_runs_go_on_over_packed_refs_and_objects(ws: Workspace) -> None:
    with _world(ws) as world:
        for _ in range(3):
            world.forward(hours=1)
            ws.git("gc", "-q", "--prune=now")
        assert len(world.commits("Run")) == len(world.ran()) == 3
    ws.in_order()


def test_a_run_commits_to_the_branch_that_is_checked_out_by_then(ws: Workspace) -> None:
    with _world(ws) as world:
        world.forward(hours=1)
        before = ws.head()
        ws.git("switch", "-q", "-c", "other")
        world.forward(hours=1)
        assert ws.git("rev-parse", "main").strip() == before
        assert ws.git("rev-parse", "other~1").strip() == before
        assert len(world.ran()) == 2


def test_no_run_while_no_commit_could_be_made_and_one_when_it_could(ws: Workspace) -> None:
    with _world(ws) as world:
        world.forward(hours=1)
        ws.git("switch", "-q", "--detach")
        world.forward(hours=1)
        assert len(world.ran()) == 1
        assert world.service is not None and "HEAD is detached" in str(world.service.problem)
        ws.git("switch", "-q", "main")
        world.forward(hours=1)
        assert world.service.problem is None and len(world.ran()) > 1


def test_a_changed_approval_of_another_agent_stops_no_run(ws: Workspace) -> None:
    """Of ten thousand agents a run looks at its own; what is said of the others is in the commit anyway."""
    with _world(ws) as world:
        ws.agent("idle", "1")
        (record,) = (ws.root / "agents/approvals/agents/idle").glob("*.json")
        record.write_text("{}")
        world.forward(hours=1)
        assert len(world.ran()) == 1
        (own,) = (ws.root / "agents/approvals/agents/beat").glob("*.json")
        own.write_text("{}")
        world.forward(hours=1)
        assert len(world.ran()) == 1
        assert world.service is not None and "approvals/agents/beat" in str(world.service.problem)


def test_traces_that_are_deleted_or_set_aside_are_begun_anew(ws: Workspace) -> None:
    with _world(ws) as world:
        world.forward(hours=1)
        assert len(TraceStore(world.state_dir).list_runs(10)) == 1
        (world.state_dir / "runs.db").unlink()
        world.forward(hours=1)
        assert len(TraceStore(world.state_dir).list_runs(10)) == 1
        for suffix in ("", "-wal", "-shm"):
            (world.state_dir / f"runs.db{suffix}").replace(world.state_dir / f"aside{suffix}")
        world.forward(hours=1)
        assert len(TraceStore(world.state_dir).list_runs(10)) == 1
        assert len(world.ran()) == 3
