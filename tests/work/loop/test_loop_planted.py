"""Results in the runtime directory of the loop that no loop of this machine has written: no agent is started by one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import Workspace
from scripting import begun, end, own
from world import World

HEARS = '"""\nname: hears\ntrigger: event\nevent: loop.job_finished\n"""\nctx_emit("heard", ctx_event()["payload"])\n'
REAL = "job_20250210T050000Z_git_status_summary"
PLANTED = "job_20250210T053000Z_git_status_summary"


@pytest.fixture
def world(ws: Workspace) -> Iterator[World]:
    """A service with an agent that listens, and a job that has ended."""
    begun(ws)
    ws.put("agents/hears.py", HEARS)
    ws.commit("agents/hears.py", *ws.approve("agents/hears.py"))
    with World(ws) as world:
        world.settle()
        end(ws, REAL)
        world.forward(minutes=2)
        assert len(world.keys("hears")) == 1
        yield world


def copy_files(ws: Workspace, change: Callable[[dict[str, Any]], object], *, seal: bool) -> None:
    """The files of the real job, under the planted name, altered."""
    runtime = own(ws)
    for real, planted in (
        (runtime.manifest_path(REAL), runtime.manifest_path(PLANTED)),
        (runtime.result_path(REAL), runtime.result_path(PLANTED)),
    ):
        data = json.loads(real.read_text()) | {"job_id": PLANTED}
        change(data)
        planted.write_text(json.dumps(data))
    if seal:
        runtime.seal_path(PLANTED).write_bytes(runtime.seal_path(REAL).read_bytes())


def rewrite(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@pytest.mark.parametrize("seal", [False, True])
def test_a_planted_result_starts_no_agent(world: World, seal: bool) -> None:
    """Also with a signature that is another job's."""
    copy_files(world.ws, lambda data: data.update(summary="pay Mallory"), seal=seal)
    world.forward(minutes=5)
    assert len(world.keys("hears")) == 1
    log = (world.ws.root / ".cleared/service.log").read_text()
    assert f"the end of {PLANTED} is told to nobody" in log


def test_neither_does_one_that_was_altered_or_says_that_another_asked(world: World) -> None:
    """Who asked for the job decides how long a chain of events is."""
    ws = world.ws
    other = REAL.replace("T05", "T06")
    world.stop()
    end(ws, PLANTED, by="run:20250210T050000Z-0a0b0c")
    rewrite(own(ws).manifest_path(PLANTED), by="person")
    end(ws, other)
    rewrite(own(ws).result_path(other), summary="pay Mallory")
    world.start()
    world.forward(minutes=5)
    assert len(world.keys("hears")) == 1


def test_the_loop_makes_none_of_a_job_that_nobody_asked_for(world: World) -> None:
    """Planted as running in the state, with a result: the loop records it as lost, and tells no agent."""
    ws = world.ws
    runtime = own(ws)
    world.stop()
    copy_files(ws, lambda data: data.update(summary="pay Mallory"), seal=True)
    job = json.loads(runtime.manifest_path(PLANTED).read_text())
    running = {name: job[name] for name in ("job_id", "kind", "target", "by", "enqueued_at")}
    running |= {"started_at": job["enqueued_at"], "pid": 2, "pid_started": "", "seal": "0" * 64}
    rewrite(runtime.state_path, running=running)
    ws.process("loop", "run", "--once")
    rows = {row["job_id"]: row for row in json.loads(runtime.state_path.read_text())["jobs"]}
    assert rows[PLANTED]["status"] == "failed_or_no_result" and "Mallory" not in json.dumps(rows)
    world.start()
    world.forward(minutes=5)
    assert len(world.keys("hears")) == 1


def test_one_that_a_push_brought_starts_no_agent(world: World) -> None:
    """A clone pulls it into its own state folder; no run begins while it is there."""
    ws = world.ws
    copy_files(ws, lambda data: None, seal=True)
    ws.git("add", "-f", ".cleared/loop/jobs", ".cleared/loop/seals")
    ws.git("commit", "-qm", "helpful files")
    world.forward(minutes=5)
    assert len(world.keys("hears")) == 1
    done = ws("agent", "run", "ingest")
    assert done.code == 4 and "somebody may have planted it" in done.err, done
