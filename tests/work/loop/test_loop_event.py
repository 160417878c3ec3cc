"""A job that has ended is an event: told once, to those who listen."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from harness import Workspace, take_ok
from patience import PATIENCE
from running import Up, eventually
from scripting import begun, end, own
from world import World

from cleared.base.clock import format_iso

pytestmark = pytest.mark.slow

HEARS = "trigger: event\nevent: loop.job_finished\n"
TELL = 'p = ctx_event()["payload"]\nctx_emit("seen", p["job_id"] + " " + p["status"])\ngit_commit(p["summary"])'
JOB = "job_20250210T0{}0000Z_git_status_summary"


@pytest.fixture
def world(ws: Workspace) -> Iterator[World]:
    """A service that listens since before the first job."""
    found = World(ws)
    begun(ws)
    agent(ws, "hears")
    with found:
        found.settle()
        yield found


def agent(ws: Workspace, name: str, header: str = HEARS, body: str = TELL) -> None:
    path = f"agents/{name}.py"
    ws.put(path, f'"""\nname: {name}\n{header}"""\n{body}\n')
    ws.commit(path, *ws.approve(path), message=f"agent: {name}")


def ended(world: World, hour: int, **more: Any) -> str:
    """A job ends, and the watcher tells."""
    job = JOB.format(hour)
    end(world.ws, job, **more)
    hint(world)
    return job


def hint(world: World) -> None:
    assert world.service is not None
    world.service.events.jobs.hinted = True
    world.service.events.jobs._not_before = 0.0
    world.settle()


# -- delivered --------------------------------------------------------------------------------------------------------


def test_it_is_delivered_once_whatever_is_looked_at_again(world: World) -> None:
    first = ended(world, 5, summary="two files differ")
    (key,) = world.keys("hears")
    assert key.rpartition("/")[2] == first and len(key.partition("/")[0]) == 16
    assert world.ws.git("log", "-1", "--format=%s").strip() == "two files differ"
    end(world.ws, first, summary="two files differ", wakeup_written=False)  # the loop writes it once more
    hint(world)
    world.forward(hours=1)
    world.stop()
    world.start()
    hint(world)
    assert world.keys("hears") == [key]
    second = ended(world, 6, status="failed")
    assert [k.rpartition("/")[2] for k in world.keys("hears")] == [first, second]
    assert f"{second} failed" in world.ws.read_events()


def test_what_ends_while_the_service_is_down_is_told_when_it_is_up(world: World) -> None:
    world.stop()
    end(world.ws, JOB.format(6), at="2025-02-10T06:00:09Z")
    end(world.ws, JOB.format(5), at="2025-02-10T06:00:10Z")
    world.start()
    world.settle()
    assert [k.rpartition("/")[2] for k in world.keys("hears")] == [JOB.format(6), JOB.format(5)], "as they ended"


def test_without_the_watcher_it_is_seen_by_the_next_look(world: World) -> None:
    end(world.ws, JOB.format(5))
    world.forward(seconds=61)
    assert len(world.keys("hears")) == 1


def test_the_payload_is_the_result_without_its_paths(world: World) -> None:
    agent(world.ws, "hears", body='ctx_emit("whole", ctx_event()["payload"])')
    ended(world, 5)
    told = json.loads(world.ws.read_events().splitlines()[-1])["payload"]
    assert told == {
        "job_id": JOB.format(5),
        "kind": "git_status_summary",
        "target": "git status",
        "status": "succeeded",
        "started_at": "2025-02-10T05:00:00Z",
        "ended_at": "2025-02-10T05:00:00Z",
        "duration_sec": 0.25,
        "exit_code": 0,
        "summary": "clean",
    }


def test_after_the_loss_of_the_inbox_what_was_delivered_is_not_again(world: World) -> None:
    now = world.time.at
    world.ws.put(".cleared/loop/single_agent_state.json", created(world.ws, format_iso(now - timedelta(days=30))))
    ended(world, 3)
    ended(world, 4)
    assert len(world.keys("hears")) == 2
    world.stop()
    for name in ("inbox.db", "consumed.db"):
        (world.ws.root / ".cleared" / name).unlink()
    end(world.ws, JOB.format(5))
    world.start()
    world.settle()
    assert [k.rpartition("/")[2] for k in world.keys("hears")] == [JOB.format(n) for n in (3, 4, 5)]


def created(ws: Workspace, at: str) -> str:
    """The state of a loop that was begun then."""
    found = json.loads(own(ws).state_path.read_text()) | {"created_at": at}
    return json.dumps(found)


def test_an_agent_that_begins_to_listen_is_not_told_of_what_was_before(ws: Workspace) -> None:
    """Nor of what ended between two times that somebody listened."""
    end(ws, JOB.format(4))
    with World(ws) as world:
        world.settle()
        agent(ws, "hears")
        world.settle()
        ended(world, 5)
        assert [k.rpartition("/")[2] for k in world.keys("hears")] == [JOB.format(5)]
        agent(ws, "hears", "trigger: on_demand\n")
        world.settle()
        ended(world, 6)
        agent(ws, "hears")
        world.settle()
        ended(world, 7)
        assert [k.rpartition("/")[2] for k in world.keys("hears")] == [JOB.format(5), JOB.format(7)]


def test_a_damaged_result_is_said_and_holds_up_nothing(world: World) -> None:
    own(world.ws).result_path(JOB.format(4)).write_text("{")
    ended(world, 5)
    assert len(world.keys("hears")) == 1
    (said,) = world.log("jobs.problem")
    assert JOB.format(4) in said["text"]


def test_where_nobody_listens_the_folder_is_neither_watched_nor_looked_at(ws: Workspace) -> None:
    begun(ws)
    with World(ws) as world:
        world.settle()
        service = world.service
        assert (
            service is not None
            and service.events.jobs.watched_folders == []
            and service.events.jobs.next_scan_at(service.host) is None
        )


# -- chains -----------------------------------------------------------------------------------------------------------


def test_a_chain_over_jobs_ends_at_max_depth(world: World) -> None:
    """A run asks for a job, whose end starts a run, which asks for a job …"""
    ws = world.ws
    ws.config("triggers.max_depth=3")
    header = f"{HEARS}grants: [ctx.read, loop_enqueue:git_status_summary]\n"
    agent(ws, "hears", header, 'loop_enqueue("git_status_summary")')
    world.settle()
    ended(world, 1, by="person")
    for hour in range(2, 9):
        run = world.ran("hears")[-1]["run"]
        ended(world, hour, by=f"run:{run}")
    assert len(world.ran("hears")) == 3
    (card,) = [card for card in ws.cards() if card["kind"] == "event_cycle"]
    assert "loop.job_finished → hears" in card["details"]["chain"][0] and card["details"]["event_key"].endswith(
        JOB.format(4)
    )


# -- the gate, and the real service -----------------------------------------------------------------------------------


def test_an_agent_that_listens_is_rehearsed_with_an_end_of_a_job(ws: Workspace) -> None:
    body = 'p = ctx_event()["payload"]\nr = loop_result(p["job_id"])\nctx_emit("seen", r["kind"] + p["summary"])'
    ws.put("agents/hears.py", f'"""\nname: hears\n{HEARS}"""\n{body}\n')
    made = ws("agent", "propose", "hears", "--json")
    assert made.code == 0, made
    take_ok(ws, "agent", "approve", made.json["id"])


def test_the_end_of_a_real_job_starts_an_agent_once(up: Up) -> None:
    """``cleared loop`` and ``cleared up``, side by side."""
    up.agent("hears", HEARS, TELL)
    up.start()
    time.sleep(1.1)  # a commit's time has no fractions: what ends in its second may have ended before it
    for times in (1, 2):
        done = up.ws.process("loop", "run", "--once", "--enqueue", "git_status_summary", env=unclocked())
        assert done.code == 0, done
        eventually(lambda n=times: len(up.log("run.succeeded")) == n)  # type: ignore[misc]
    time.sleep(0.5)
    assert len(up.log("run.succeeded")) == 2
    first, second = up.ws.read_events().splitlines()
    assert "_git_status_summary succeeded" in first and first != second
    assert up.stop()[0] == 0


def test_a_script_has_a_sleeping_loop_run_a_job_whose_end_starts_an_agent(up: Up) -> None:
    """From a person's run over the loop to another agent, each once; the loop is woken, and names the run."""
    ws = up.ws
    grants = "trigger: on_demand\ngrants: [loop_enqueue:git_status_summary]\n"
    up.agent("asks", grants, 'loop_enqueue("git_status_summary")')
    up.agent("hears", HEARS, TELL)
    up.start()
    loop = ws.start("loop", "run", "--sleep", "3600", env=unclocked())
    try:
        eventually(lambda: (ws.root / ".cleared/loop/ui_data/single_agent_tree.json").exists())
        time.sleep(1.1)
        done = ws.process("agent", "run", "asks", "--json", env=unclocked())
        assert done.code == 0, done
        eventually(lambda: up.log("run.succeeded"))
        (job,) = ws.json("loop", "jobs")
        assert job["by"] == f"run:{done.json['run_id']}" and job["status"] == "succeeded"
        assert job["job_id"] in up.log("run.succeeded")[0]["key"]
        time.sleep(1.0)
        assert len(ws.json("loop", "jobs")) == 1 == len(up.log("run.succeeded"))
        assert "\nDepth: 1\n" in ws.git("log", "-1", "--format=%B")
    finally:
        loop.terminate()
        loop.communicate(timeout=PATIENCE)


def unclocked() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "CLEARED_CLOCK"}


def test_listening_costs_next_to_nothing_while_nothing_ends(up: Up) -> None:
    begun(up.ws)
    up.agent("hears", HEARS, TELL)
    process = up.start()

    def is_calm() -> bool:
        before = _cpu(process.pid)
        time.sleep(5.0)
        return _cpu(process.pid) - before < 0.05  # seconds of processor time

    eventually(is_calm)  # a busy machine lets it begin late


def _cpu(pid: int) -> float:
    """Seconds of the processor's time."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
