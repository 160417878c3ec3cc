"""A loop in the background, with and without tmux; being told to end, to wait, to go on; looking at it meanwhile."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Done, refused
from looping import Loop, changed, eventually, gone
from patience import PATIENCE

pytestmark = pytest.mark.slow

SCRIPT = "./scripts/single_agent_tmux.sh"  # as every new workspace has it
needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


# -- start, stop ------------------------------------------------------------------------------------------------------


def test_e25_start_status_tail_stop(loop: Loop) -> None:
    """E25"""
    done = loop("start", "--auto-rotate", "--sleep", "60")
    assert done.code == 0 and "the loop is up: process" in done.err, done
    status = loop.status()
    assert status["up"] and f"process {status['pid']}" in done.err
    assert os.getsid(status["pid"]) != os.getsid(0), "it outlives the terminal"
    eventually(lambda: loop.jobs() == ["continuity_scan"])
    refused(loop("start"), 5, f"process {status['pid']}")
    refused(loop.here("run", "--once"), 5)
    assert "the loop is up" in loop.here("tail", "-n", "1000").out
    done = loop("stop")
    assert done.code == 0 and f"the loop has ended (process {status['pid']})" in done.err
    assert gone(status["pid"]) and not loop.status()["up"] and loop.status()["status"] == "stopped"
    again = loop("stop")
    assert (again.code, again.err) == (0, "no loop was running\n")
    loop.valid()


LINGERS = """
import signal, sys, time
from pathlib import Path
from cleared.workspace.lock import writer_lock
folder, told, go = map(Path, sys.argv[1:4])
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
with writer_lock(folder, 0.0, sys.argv[4], name=sys.argv[5]):
    print("up", flush=True)
    signal.sigwait({signal.SIGTERM})
told.touch()
while not go.exists():
    time.sleep(0.01)
"""
"""A process that lets go of its lock when it is told to end, and is there still until a file is."""


@pytest.mark.parametrize("what", ["loop", "service"])
def test_e25_stop_waits_for_the_process_not_only_for_its_lock(loop: Loop, tmp_path: Path, what: str) -> None:
    """Fault 26, E25"""
    loop.here("init")
    told, go = tmp_path / "told", tmp_path / "go"
    held = [loop.folder, told, go, "loop run", "loop.lock"]
    stop = ["loop", "stop", "--runtime-dir", loop.folder]
    if what == "service":
        held, stop = [loop.ws.root / ".cleared", told, go, "up", "service.lock"], ["down"]
    argv = [sys.executable, "-c", LINGERS, *map(str, held)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "up\n"
            refused(loop.ws(*map(str, stop), "--wait", "0.5"), 5, "has not ended within 0.5 seconds")
            assert told.exists() and process.poll() is None, "its lock is free, and it is there"
        finally:
            go.touch()
    assert process.returncode == 0


def test_e25_no_process_of_a_loop_is_left_when_it_has_ended(probed: Loop) -> None:
    """Fault 26, E25: the one that watches over its jobs too."""
    process = probed.start()
    job = probed.enqueue("nothing")
    eventually(lambda: (probed.folder / f"jobs/{job}.result.json").exists() and not probed.state()["running"])
    watching = probed.json("show", job)["manifest"]["pid"]
    assert watching != process.pid and not gone(watching)
    assert probed("stop").code == 0
    assert gone(process.pid) and gone(watching)


def test_e25_stop_where_there_never_was_one(loop: Loop) -> None:
    """E25"""
    assert loop("stop").err == "no loop was running\n" and not loop.folder.exists()
    for argv in (["status"], ["jobs"], ["tree"], ["monitor"]):
        refused(loop.here(*argv), 2, "there is no loop in")
    assert loop.here("tail").code == 0


def test_e25_a_bounded_start_that_has_ended_at_once(loop: Loop) -> None:
    """E25"""
    done = loop("start", "--max-cycles", "1", "--sleep", "0")
    assert done.code == 0 and ("has done its cycles" in done.err or "the loop is up" in done.err), done
    eventually(lambda: not loop.status()["up"])
    assert loop.state()["cycles"] == 1


def test_e25_a_start_that_fails_says_why(loop: Loop) -> None:
    """E25"""
    loop.ws.config("loop.rotation=[no_such_kind]")
    done = loop("start", "--auto-rotate", "--sleep", "0")
    if done.code == 0:  # it was up for a moment
        eventually(lambda: not loop.status()["up"])
        assert "no_such_kind" in (loop.folder / "logs/control_room.out").read_text()
    else:
        assert done.code == 4 and "no_such_kind" in done.err, done
    loop.folder.joinpath("loop.bell").unlink(missing_ok=True)
    loop.folder.joinpath("loop.bell").mkdir()
    refused(loop("start"), 4, "did not come up", "loop.bell")


def test_e25_a_loop_that_was_killed_is_not_up(loop: Loop) -> None:
    """E25"""
    process = loop.start()
    process.kill()
    process.wait()
    assert loop.status()["up"] is False and loop.here("stop").err == "no loop was running\n"
    assert loop("start", "--sleep", "60").code == 0
    assert loop.status()["up"]


def test_a_loop_whose_folder_was_removed_ends_and_brings_nothing_back(loop: Loop) -> None:
    process = loop.start("--sleep", "1")
    eventually(lambda: loop.state()["status"] == "sleeping")
    loop.folder.rename(loop.folder.with_name("gone"))
    process.communicate(timeout=PATIENCE)
    assert not loop.folder.exists()


def test_e25_stop_waits_for_the_job_and_now_does_not(probed: Loop) -> None:
    """E25"""
    job = probed.enqueue("slow")
    process = probed.start()
    eventually(probed.running)
    refused(probed("stop", "--wait", "0.3"), 5, "what is on goes on", "--now")
    assert process.poll() is None
    done = probed("stop", "--now")
    assert done.code == 0, done
    assert process.wait(PATIENCE) == 130
    result = probed.result(job)
    assert result["status"] == "failed" and "stopped by a person" in result["summary"]


def test_e25_now_also_ends_a_job_whose_loop_is_gone(probed: Loop) -> None:
    """E25, E26"""
    job = probed.enqueue("slow")
    process = probed.start()
    found = eventually(probed.running)
    process.kill()
    process.wait()
    assert probed("stop").code == 0 and not gone(found["pid"])
    assert probed("stop", "--now").code == 0
    assert gone(found["pid"]) and probed.result(job)["status"] == "failed"
    assert probed.state()["running"] is None and probed.tree()["summary"]["failed"] == 1


# -- signals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_told_once_it_ends_after_its_job(probed: Loop, number: int) -> None:
    job, later = probed.enqueue("waits"), probed.enqueue("counts")
    process = probed.start()
    eventually(probed.running)
    process.send_signal(number)
    assert not (probed.ws.root / "made/ran").exists()
    (probed.ws.root / "go").touch()
    code, said = probed.end(process, None)
    assert code == 0 and "told to end" in said
    assert probed.result(job)["status"] == "succeeded"
    assert [item["job_id"] for item in probed.state()["queue"]] == [later]
    assert probed.tree()["summary"]["status"] == "stopped"


def test_told_twice_it_ends_the_job_too(probed: Loop) -> None:
    job = probed.enqueue("slow")
    process = probed.start()
    found = eventually(probed.running)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    code, _ = probed.end(process, None)
    assert code == 130
    result = probed.result(job)
    assert result["status"] == "failed" and "stopped by a person" in result["summary"] and gone(found["pid"])
    assert probed.state()["running"] is None


def test_told_while_it_sleeps_it_ends_at_once(loop: Loop) -> None:
    process = loop.start("--sleep", "3600")
    eventually(loop.asleep)
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 0


def test_a_key_of_the_terminal_reaches_no_job(probed: Loop) -> None:
    """Ctrl-C goes to the foreground group; a job has its own, and ends in its own time."""
    job = probed.enqueue("waits")
    process = probed.start()
    found = eventually(probed.running)
    assert os.getpgid(found["pid"]) != os.getpgid(process.pid)
    assert os.getsid(found["pid"]) != os.getsid(process.pid)
    (probed.ws.root / "go").touch()
    eventually(lambda: (probed.folder / f"jobs/{job}.result.json").exists())
    probed.end(process)


# -- pause, resume ----------------------------------------------------------------------------------------------------


def test_paused_it_starts_nothing_until_it_is_resumed(probed: Loop) -> None:
    process = probed.start("--auto-rotate", "--sleep", "60")
    eventually(probed.jobs)
    assert probed("pause").code == 0
    eventually(lambda: probed.status()["paused"])
    before = len(probed.jobs())
    job = probed.enqueue("counts")
    (probed.folder / "single_agent_wakeup.flag").write_text("")
    time.sleep(1)
    assert len(probed.jobs()) == before and not (probed.ws.root / "made/ran").exists()
    assert probed.status()["status"] == "paused" and process.poll() is None
    assert probed("resume").code == 0
    eventually(lambda: (probed.folder / f"jobs/{job}.result.json").exists())
    probed.end(process)


def test_a_pause_lasts_beyond_the_loops_end(probed: Loop) -> None:
    probed.enqueue("counts")
    assert probed.here("pause").code == 0
    probed.run("--max-cycles", "2")
    assert probed.jobs() == [] and probed.tree()["summary"]["paused"]
    assert probed.here("resume").code == 0
    probed.run("--once")
    assert probed.jobs() == ["counts"]


# -- looking ----------------------------------------------------------------------------------------------------------


def test_what_is_shown_to_people_and_to_programs(probed: Loop) -> None:
    probed.ws.put("docs/note.md", "a note")
    result = probed.once("says", "docs/note.md")
    waiting = probed.enqueue("nothing")
    job = result["job_id"]
    for argv in (["status"], ["jobs"], ["tree"], ["show", job], ["monitor"]):
        done = probed(*argv)
        assert done.code == 0 and job in done.out and "Traceback" not in done.err, argv
    assert [row["job_id"] for row in probed.json("jobs")] == [waiting, job]
    assert [row["job_id"] for row in probed.json("jobs", "--limit", "1")] == [waiting]
    shown = probed.json("show", job)
    assert shown["result"] == result and shown["output"] == "a note" and shown["manifest"]["kind"] == "says"
    assert probed.json("show", waiting)["result"]["status"] == "queued"
    status = probed.status()
    assert [item["job_id"] for item in status["queued"]] == [waiting] and status["last_job"]["job_id"] == job
    for bad in ("job_20200101T000000Z_nothing", "../../etc/passwd", "x"):
        refused(probed.here("show", bad), 2)
    kinds = probed.ws.json("loop", "job-types")
    assert {"git_status_summary", "says", "agent_run"} <= {kind["name"] for kind in kinds}
    assert [kind["name"] for kind in kinds if kind["in_rotation"]]
    assert "says" in probed.ws.ok("loop", "job-types").out


def test_tail_follows_what_is_added(loop: Loop) -> None:
    loop.run("--once")
    command = [sys.executable, "-m", "cleared", "loop", "tail", "-f", "-n", "1", "-C", str(loop.ws.root)]
    tail = subprocess.Popen(
        command,
        env=changed({}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        assert tail.stdout is not None
        assert "the loop has ended" in tail.stdout.readline()
        loop.once("git_status_summary")
        assert "the loop is up" in tail.stdout.readline()
        assert "git_status_summary succeeded" in tail.stdout.readline()
        tail.send_signal(signal.SIGINT)
        _, said = tail.communicate(timeout=PATIENCE)
        assert "Traceback" not in said and tail.returncode in (0, 130)
    finally:
        tail.kill()
        tail.communicate()


# -- tmux -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def tmux(loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A tmux server of this test's own, and ``cleared`` as a command."""
    folder = tmp_path_factory.mktemp("t")
    (folder / "cleared").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cleared "$@"\n')
    (folder / "cleared").chmod(0o755)
    yield folder
    loop.here("stop", "--now")
    subprocess.run(["tmux", "kill-server"], env=inside(folder), capture_output=True, check=False)


def inside(folder: Path, **more: str) -> dict[str, str]:
    return changed({"TMUX": None, "TMUX_TMPDIR": str(folder), "PATH": f"{folder}:{os.environ['PATH']}", **more})


def script(loop: Loop, folder: Path, *argv: str, **environment: str) -> Done:
    done = subprocess.run(
        [SCRIPT, *argv],
        cwd=loop.ws.root,
        env=inside(folder, **environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def sessions(folder: Path) -> list[str]:
    done = subprocess.run(
        ["tmux", "list-sessions", "-F", "#S"], env=inside(folder), capture_output=True, text=True, check=False
    )
    return done.stdout.split()


@needs_tmux
def test_e25_the_documented_wrapper(loop: Loop, tmux: Path) -> None:
    """E25: start, status, tail, stop, in a session of the documented name."""
    done = script(loop, tmux, "start", SINGLE_AGENT_SLEEP_SECONDS="60")
    assert done.code == 0 and "in the tmux session top1_single_agent" in done.err, done
    assert sessions(tmux) == ["top1_single_agent"] and loop.status()["up"]
    eventually(lambda: loop.jobs() == ["continuity_scan"])
    status = script(loop, tmux, "status")
    assert status.code == 0 and f"process {loop.status()['pid']}" in status.out
    assert "continuity_scan succeeded" in script(loop, tmux, "tail").out
    again = script(loop, tmux, "start")
    assert again.code == 5 and "the loop of" in again.err, again
    assert script(loop, tmux, "stop").code == 0
    assert not loop.status()["up"]
    eventually(lambda: sessions(tmux) == [])
    assert script(loop, tmux, "stop").code == 0
    for argv in ([], ["restart"], ["start; true"]):
        assert script(loop, tmux, *argv).code == 2


@needs_tmux
def test_e25_the_bounded_tmux_smoke_run(loop: Loop, tmux: Path, tmp_path: Path) -> None:
    """E25: the document's command; all that is set reaches the loop though the server was there before."""
    subprocess.run(["tmux", "new-session", "-d", "-s", "mine", "sleep 60"], env=inside(tmux), check=True)
    there = tmp_path / "it's $HOME `here`"
    done = script(
        loop,
        tmux,
        "start",
        SINGLE_AGENT_TMUX_SESSION="top1_single_agent_smoke",
        SINGLE_AGENT_RUNTIME_DIR=str(there),
        SINGLE_AGENT_MAX_CYCLES="2",
        SINGLE_AGENT_SLEEP_SECONDS="0",
        SINGLE_AGENT_INIT_ON_START="1",
    )
    assert done.code == 0, done
    found = Loop(loop.ws, there)
    eventually(lambda: (there / "single_agent_state.json").exists() and found.state()["cycles"] == 2)
    eventually(lambda: not found.status()["up"])
    assert found.jobs() == ["continuity_scan", "akela_meta_summary"] and not loop.folder.exists()
    eventually(lambda: sessions(tmux) == ["mine"])
    found.valid()


@needs_tmux
def test_e25_a_session_of_that_name_that_is_somebody_elses(loop: Loop, tmux: Path) -> None:
    """E25"""
    subprocess.run(["tmux", "new-session", "-d", "-s", "mine", "sleep 60"], env=inside(tmux), check=True)
    environment = {"TMUX": None, "TMUX_TMPDIR": str(tmux)}
    refused(loop("start", "--session", "mine", **environment), 5, "there is a tmux session mine already")
    loop.ws.config("sandbox.confine=best")
    (loop.ws.root / "config.yaml").write_text("loop: {sleep_seconds: -1}\n")
    done = loop("start", "--session", "other", **environment)
    assert done.code != 0 and "loop.sleep_seconds" in done.err, done
    assert sessions(tmux) == ["mine"]


@needs_tmux
def test_e25_stop_leaves_a_session_alone_that_is_not_the_loops(loop: Loop, tmux: Path) -> None:
    """E25: somebody's session has the name by chance."""
    subprocess.run(["tmux", "new-session", "-d", "-s", "mine", "sleep 60"], env=inside(tmux), check=True)
    done = loop("stop", "--session", "mine", TMUX=None, TMUX_TMPDIR=str(tmux))
    assert done.code == 0 and sessions(tmux) == ["mine"], done


def test_e25_without_tmux_it_says_so(loop: Loop, tmp_path: Path) -> None:
    """E25"""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "git").symlink_to(str(shutil.which("git")))
    refused(loop("start", "--session", "mine", PATH=str(tools)), 2, "tmux is not installed")
    assert loop.status_pid() is None
