"""What a loop does one turn after the other: jobs, rotation, sleep, wakeup, failures, the dead and the slow."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from looping import Loop, eventually, gone
from patience import PATIENCE

pytestmark = pytest.mark.slow

TURN = ["continuity_scan", "akela_meta_summary", "git_status_summary"]


def report(loop: Loop) -> None:
    loop.ws.put("reports/akela_meta.json", '{"summary": "all is well", "rows": 3}')


def flag(loop: Loop) -> Path:
    return loop.folder / "single_agent_wakeup.flag"


# -- one job at a time ------------------------------------------------------------------------------------------------


def test_e4_one_cycle_is_one_job(probed: Loop) -> None:
    """E4"""
    first, second = probed.enqueue("counts"), probed.enqueue("counts")
    probed.run("--once")
    assert (probed.ws.root / "made/ran").read_text() == "x\n"
    assert probed.result(first)["status"] == "succeeded"
    assert [item["job_id"] for item in probed.state()["queue"]] == [second]
    assert not (probed.folder / f"jobs/{second}.result.json").exists()
    assert probed.state()["cycles"] == 1


def test_e5_the_second_waits_while_the_first_runs(probed: Loop) -> None:
    """E5, E27"""
    first, second = probed.enqueue("waits"), probed.enqueue("counts")
    process = probed.start()
    eventually(probed.running)
    third = probed.enqueue("nothing")
    eventually(lambda: len(probed.state()["queue"]) == 2)
    assert not (probed.ws.root / "made/ran").exists()
    (probed.ws.root / "go").touch()
    eventually(lambda: probed.status()["counts"]["succeeded"] == 3)
    probed.end(process)
    assert [row["job_id"] for row in probed.state()["jobs"]] == [first, second, third]
    ended = [(r["started_at"], r["ended_at"]) for r in probed.results()]
    assert all(a[1] <= b[0] for a, b in pairwise(ended))


def test_e27_what_is_enqueued_while_a_job_runs_survives_a_kill_too(probed: Loop) -> None:
    """E27"""
    probed.enqueue("waits")
    process = probed.start()
    eventually(probed.running)
    jobs = [probed.enqueue("counts") for _ in range(5)]
    process.kill()
    process.wait()
    jobs += [probed.enqueue("counts")]
    (probed.ws.root / "go").touch()
    probed.run("--max-cycles", "12", "--sleep", "0.2")
    assert [probed.result(job)["status"] for job in jobs] == ["succeeded"] * 6
    assert (probed.ws.root / "made/ran").read_text() == "x\n" * 6


# -- rotation ---------------------------------------------------------------------------------------------------------


def test_e8_each_kind_has_its_turn_in_the_documented_order(loop: Loop) -> None:
    """E8"""
    report(loop)
    loop.run("--auto-rotate", "--max-cycles", "6")
    assert loop.jobs() == TURN * 2
    assert [row["by"] for row in loop.state()["jobs"]] == ["rotation"] * 6
    assert [row["status"] for row in loop.state()["jobs"]] == ["succeeded"] * 6


def test_e8_the_turn_goes_on_where_it_was_in_the_next_loop(loop: Loop) -> None:
    """E8"""
    report(loop)
    for _ in range(2):
        loop.run("--auto-rotate", "--max-cycles", "2")
    assert loop.jobs() == [*TURN, TURN[0]]
    loop.run("--once")
    assert len(loop.jobs()) == 4, "nothing rotates unless it is told to"


def test_e10_what_was_asked_for_comes_before_the_rotation(loop: Loop) -> None:
    """E10"""
    report(loop)
    loop.run("--auto-rotate", "--once")
    loop.enqueue("git_status_summary")
    loop.run("--auto-rotate", "--max-cycles", "2")
    assert [(row["kind"], row["by"]) for row in loop.state()["jobs"]] == [
        (TURN[0], "rotation"),
        (TURN[2], "person"),
        (TURN[1], "rotation"),
    ]


def test_e9_it_sleeps_between_two_turns(loop: Loop) -> None:
    """E9"""
    process = loop.start("--auto-rotate", "--max-cycles", "3", "--sleep", "3600")
    for turn in (1, 2):
        eventually(lambda turn=turn: len(loop.jobs()) == turn and loop.asleep())
        flag(loop).touch()
    assert process.wait(PATIENCE) == 0 and len(loop.jobs()) == 3


def test_e9_without_an_end_it_is_never_busy_for_nothing(loop: Loop) -> None:
    """E9: though its sleep is none."""
    process = loop.start("--auto-rotate", "--sleep", "0")
    time.sleep(1.5)
    loop.end(process)
    assert 1 <= len(loop.jobs()) <= 4


@pytest.mark.parametrize("sleep", ["nan", "inf", "-1", "soon"])
def test_e9_a_sleep_that_is_none_is_refused(loop: Loop, sleep: str) -> None:
    """E9, E24"""
    assert loop("run", "--once", "--sleep", sleep).code == 2
    done = loop("run", "--once", SINGLE_AGENT_SLEEP_SECONDS=sleep)
    assert done.code == 2 and "SINGLE_AGENT_SLEEP_SECONDS" in done.err


def test_e31_a_missing_report_is_named_and_the_rotation_goes_on(loop: Loop) -> None:
    """E31: however often; there is nothing for it to work on, and that stops nothing."""
    loop.run("--auto-rotate", "--max-cycles", "12")
    rows = loop.state()["jobs"]
    assert [row["kind"] for row in rows] == TURN * 4 and loop.state()["stop"] is None
    failed = [row for row in rows if row["kind"] == "akela_meta_summary"]
    assert {row["status"] for row in failed} == {"failed"}
    assert all("the report reports/akela_meta.json is not there" in row["summary"] for row in failed)
    assert {row["status"] for row in rows if row not in failed} == {"succeeded"}


# -- wakeup -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["nothing", "fails"])
def test_e11_a_job_that_has_ended_raises_the_flag(probed: Loop, kind: str) -> None:
    """E11"""
    result = probed.once(kind)
    found = json.loads(flag(probed).read_bytes())
    assert found["job_id"] == result["job_id"] and result["wakeup_written"] is True
    assert found["reason"] == f"job {result['status']}: {result['summary']}"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["time"]) and found["time"] >= result["started_at"]
    assert probed.ws.read(found["artifact"]) == (probed.folder / f"jobs/{result['job_id']}.result.json").read_text()


@pytest.mark.parametrize("how", ["touch", "write", "schema", "link", "own"])
def test_e12_the_flag_wakes_a_sleeping_loop_once(loop: Loop, how: str) -> None:
    """E12"""
    report(loop)
    process = loop.start("--auto-rotate", "--sleep", "3600")
    eventually(lambda: loop.asleep())
    assert flag(loop).exists(), "its own is there, for others, and wakes nobody"
    before = loop.state()["cycles"]
    time.sleep(0.7)
    assert loop.state()["cycles"] == before == 1
    if how == "touch":
        flag(loop).unlink()
        flag(loop).touch()
    elif how == "write":
        flag(loop).write_text("wake up")
    elif how == "schema":
        staged = loop.folder / "flag"
        staged.write_text('{"schema_version": "single_agent_wakeup_v1", "reason": "x", "time": "2025-01-01T00:00:00Z"}')
        staged.replace(flag(loop))
    elif how == "link":
        flag(loop).unlink()
        flag(loop).symlink_to("/nowhere")
    else:
        os.utime(flag(loop))
    eventually(lambda: len(loop.jobs()) == 2)
    eventually(lambda: loop.asleep())
    time.sleep(1.2)
    assert loop.state()["cycles"] == before + 1, "it was taken down"
    assert json.loads(flag(loop).read_bytes())["job_id"] == loop.state()["jobs"][-1]["job_id"]
    loop.end(process)


def test_e12_an_idle_loop_takes_the_flag_down(loop: Loop) -> None:
    """E12: with no job to raise it again."""
    process = loop.start("--sleep", "3600")
    eventually(lambda: loop.asleep())
    before = loop.state()["cycles"]
    flag(loop).touch()
    eventually(lambda: loop.state()["cycles"] == before + 1)
    assert not flag(loop).exists()
    loop.end(process)


def test_e12_the_flag_of_the_loop_before_does_not_wake(loop: Loop) -> None:
    """E12"""
    loop.once("git_status_summary")
    process = loop.start("--sleep", "60")
    eventually(lambda: loop.asleep())
    before = loop.state()["cycles"]
    time.sleep(0.8)
    assert loop.state()["cycles"] == before and flag(loop).exists()
    loop.end(process)


def test_e12_a_flag_raised_while_a_job_runs_spares_the_sleep_after_it(probed: Loop) -> None:
    """E12: the job's own flag takes its place, and it is not forgotten."""
    process = probed.start("--sleep", "3600")
    eventually(lambda: probed.asleep())
    before = probed.state()["cycles"]
    probed.enqueue("waits")
    eventually(lambda: probed.running() is not None)
    flag(probed).write_text("wake up")
    (probed.ws.root / "go").touch()
    eventually(lambda: probed.state()["cycles"] == before + 2)
    assert probed.jobs() == ["waits"]
    probed.end(process)


def test_an_enqueued_job_wakes_it_at_once(probed: Loop) -> None:
    process = probed.start("--sleep", "3600")
    eventually(lambda: probed.asleep())
    probed.enqueue("nothing")
    eventually(lambda: probed.jobs() == ["nothing"])
    probed.end(process)


def test_e13_a_flag_that_cannot_be_written_is_not_said_to_be(loop: Loop) -> None:
    """E13"""
    loop.here("init")
    flag(loop).mkdir()
    result = loop.once("git_status_summary")
    assert result["status"] == "succeeded" and result["wakeup_written"] is False
    assert flag(loop).is_dir()
    (flag(loop)).rmdir()
    assert loop.once("git_status_summary")["wakeup_written"] is True


# -- failures ---------------------------------------------------------------------------------------------------------


def test_e22_a_kind_that_keeps_failing_stops_the_loop(probed: Loop) -> None:
    """E22: with its reason in the tree; the next loop begins afresh."""
    for kind in ["fails", "nothing", "fails", "fails", "counts"]:
        probed.enqueue(kind)
    done = probed("run", "--loop", "--sleep", "0")
    assert done.code == 1, done
    assert probed.jobs() == ["fails", "nothing", "fails", "fails"]
    reason = "fails failed 3 times in a row; last: it went wrong"
    assert probed.tree()["summary"]["status"] == "stopped" and probed.tree()["summary"]["stop_reason"] == reason
    assert probed.status()["stop"]["code"] == "repeated_failure" and reason in done.err
    assert reason in probed.here("status").out
    probed.run()
    assert probed.jobs()[-1] == "counts" and probed.state()["stop"] is None


def test_e22_a_bounded_run_ends_well_though_it_stopped(probed: Loop) -> None:
    """E22, E23"""
    probed.ws.config("loop.max_failures=2")
    for kind in ["fails", "fails", "nothing"]:
        probed.enqueue(kind)
    probed.run("--max-cycles", "5")
    assert probed.jobs() == ["fails", "fails"] and probed.tree()["summary"]["status"] == "stopped"


def test_e22_a_success_between_begins_the_count_again(probed: Loop) -> None:
    """E22: of its own kind."""
    probed.ws.put("docs/note.md", "x")
    for target in ["gone.md", "gone.md", "docs/note.md", "gone.md", "gone.md"]:
        probed.enqueue("says", target)
    probed.run("--max-cycles", "12")
    assert len(probed.jobs()) == 5 and probed.state()["stop"] is None and probed.state()["failures"] == {"says": 2}


# -- the dead and the slow --------------------------------------------------------------------------------------------


def killed(loop: Loop, process: subprocess.Popen[bytes], *, watcher: bool) -> Any:
    """The loop is killed while a job is on, and what watches over the job too; what the state says of the job."""
    found = eventually(loop.running)
    process.kill()
    process.wait()
    if watcher:
        os.kill(found["pid"], signal.SIGKILL)
        eventually(lambda: gone(found["pid"]))
    return found


def children(probed: Loop, job: str) -> list[int]:
    """Processes of this job of this loop: another test's job of the same second has the same id."""
    given = {f"CLEARED_JOB={job}".encode(), b"CLEARED_JOB_FOLDER=%b" % os.fsencode(probed.folder / "tmp" / job)}
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and not gone(int(path.name)):
            try:
                if given <= set((path / "environ").read_bytes().split(b"\0")):
                    found.append(int(path.name))
            except OSError:
                continue
    return found


def test_e6_a_result_that_a_killed_loop_left_is_taken_up(probed: Loop) -> None:
    """E6"""
    job = probed.enqueue("waits")
    found = killed(probed, probed.start(), watcher=False)
    (probed.ws.root / "go").touch()
    eventually(lambda: gone(found["pid"]))
    assert probed.result(job)["status"] == "succeeded" and probed.result(job)["wakeup_written"] is False
    assert probed.state()["running"]["job_id"] == job
    probed.run("--once")
    assert probed.state()["running"] is None and probed.jobs() == ["waits"]
    assert probed.result(job)["wakeup_written"] is True
    assert json.loads(flag(probed).read_bytes())["job_id"] == job


def test_e26_a_dead_job_is_told_from_a_slow_one(probed: Loop) -> None:
    """E26: its processes are ended, the tree says how it was."""
    job = probed.enqueue("slow")
    killed(probed, probed.start(), watcher=True)
    left = children(probed, job)
    probed.run("--once")
    result = probed.result(job)
    assert (result["status"], result["exit_code"]) == ("failed_or_no_result", None)
    assert result["summary"] == "its process is gone, and left no result"
    summary = probed.tree()["summary"]
    assert (summary["running"], summary["failed_or_no_result"]) == (None, 1)
    for pid in left:
        eventually(lambda pid=pid: gone(pid))


def test_e26_a_slow_job_is_left_alone_and_waited_for(probed: Loop) -> None:
    """E26: by another loop than the one that began it, which is woken by its end."""
    job, later = probed.enqueue("waits"), probed.enqueue("counts")
    found = killed(probed, probed.start(), watcher=False)
    probed.run("--once")
    assert probed.state()["running"]["job_id"] == job and not gone(found["pid"])
    assert probed.tree()["summary"]["status"] == "running"
    assert [item["job_id"] for item in probed.state()["queue"]] == [later]
    process = probed.start("--sleep", "60")
    time.sleep(0.3)
    assert not (probed.ws.root / "made/ran").exists()
    (probed.ws.root / "go").touch()
    eventually(lambda: probed.status()["counts"]["succeeded"] == 2)
    probed.end(process)
    assert probed.jobs() == ["waits", "counts"]


def test_e26_a_number_that_is_somebody_elses_by_now_is_left_alone(probed: Loop) -> None:
    """E26: the job's process is dead, its number is a stranger's session with children of its own."""
    from cleared.jobs.signing import JobSigner

    job = probed.enqueue("slow")
    killed(probed, probed.start(), watcher=True)
    for pid in children(probed, job):
        with suppress(ProcessLookupError):  # the keeper ends them, too
            os.kill(pid, signal.SIGKILL)
    stranger = subprocess.Popen(["sh", "-c", "sleep 60 & wait"], start_new_session=True)
    try:
        member = eventually(lambda: Path(f"/proc/{stranger.pid}/task/{stranger.pid}/children").read_text().split())

        def renumber(data: Any) -> None:
            data["running"]["pid"] = stranger.pid
            data["running"]["seal"] = JobSigner(probed.folder).sign(data["running"])

        probed.edit(probed.folder / "single_agent_state.json", renumber)
        probed.run("--once")
        assert probed.result(job)["status"] == "failed_or_no_result"
        assert stranger.poll() is None and not gone(int(member[0]))
    finally:
        os.killpg(stranger.pid, signal.SIGKILL)
        stranger.wait()


@pytest.mark.parametrize("change", [{"pid": 1}, {"pid": 0}, {"job_id": "job_20200101T000000Z_x"}, {"kind": "counts"}])
def test_e3_what_the_state_says_of_a_running_job_is_sealed_too(probed: Loop, change: dict[str, Any]) -> None:
    """E3, E26: altered, it ends nobody's process and runs nothing."""
    probed.enqueue("slow")
    found = killed(probed, probed.start(), watcher=False)
    eventually(lambda: children(probed, found["job_id"]))
    probed.edit(probed.folder / "single_agent_state.json", lambda data: data["running"].update(change))
    done = probed("stop", "--now", "--wait", "1")
    assert "Traceback" not in done.err
    done = probed("run", "--once", "--sleep", "0")
    assert "Traceback" not in done.err, done
    assert not (probed.ws.root / "made/ran").exists()
    for pid in [found["pid"], *children(probed, found["job_id"])]:
        with suppress(ProcessLookupError):  # it may end by itself meanwhile
            os.kill(pid, signal.SIGKILL)
