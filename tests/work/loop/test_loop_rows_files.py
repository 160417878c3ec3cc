"""The files of a loop: what is in them, how many there are, and what becomes of damaged ones."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from harness import no_traceback, unchanged
from looping import SCHEMAS, Loop, changed, eventually
from patience import PATIENCE

from cleared.jobs.file_schemas import SCHEMA_FOLDER

RESULT = {
    "schema_version",
    "job_id",
    "kind",
    "target",
    "status",
    "started_at",
    "ended_at",
    "duration_sec",
    "exit_code",
    "manifest_path",
    "output_path",
    "summary",
    "wakeup_written",
}


def age(loop: Loop, job: str, seconds: float) -> None:
    """Have a job's files be so old."""
    then = time.time() - seconds
    for path in (loop.folder / "jobs").glob(f"{job}.*"):
        os.utime(path, (then, then))


def made_up(loop: Loop, job: str, seconds: float, template: Any) -> None:
    """The files of a job that ended so long ago."""
    at = datetime.fromtimestamp(time.time() - seconds).astimezone().strftime("%Y-%m-%dT%H:%M:%SZ")
    data = template | {"job_id": job, "started_at": at, "ended_at": at}
    (loop.folder / f"jobs/{job}.result.json").write_text(json.dumps(data))
    (loop.folder / f"jobs/{job}.out.txt").write_text("x\n")
    age(loop, job, seconds)


# -- what is in them --------------------------------------------------------------------------------------------------


def test_e1_a_fresh_state_is_whole(loop: Loop) -> None:
    """E1: also to a validator that is not ours; every field is there."""
    done = loop("init")
    assert done.code == 0 and done.out.strip() == str(loop.folder / "single_agent_state.json")
    state = loop.state()
    assert set(state) == set(SCHEMAS["state"]["required"]) == set(SCHEMAS["state"]["properties"])
    assert (state["status"], state["queue"], state["running"], state["jobs"], state["stop"]) == (
        "idle",
        [],
        None,
        [],
        None,
    )
    loop.valid()


def test_the_schemas_themselves_are_right_and_strict() -> None:
    for name, schema in SCHEMAS.items():
        jsonschema.Draft7Validator.check_schema(schema)
        assert schema["additionalProperties"] is False and schema["required"], name
    assert {path.stem for path in SCHEMA_FOLDER.iterdir() if path.suffix == ".json"} == set(SCHEMAS)


def test_e2_a_job_leaves_three_files_with_every_field(loop: Loop) -> None:
    """E2"""
    loop.ws.put("new.txt", "x")
    job = loop.enqueue("git_status_summary")
    loop.run("--once")
    assert {p.name.removeprefix(f"{job}.") for p in (loop.folder / "jobs").iterdir()} == {
        "manifest.json",
        "result.json",
        "out.txt",
    }
    result = loop.result(job)
    assert set(result) == RESULT and result["schema_version"] == "single_agent_job_result_v1"
    assert (result["job_id"], result["kind"], result["target"]) == (job, "git_status_summary", "git status")
    assert (result["status"], result["exit_code"], result["wakeup_written"]) == ("succeeded", 0, True)
    assert result["summary"] == "0 changed, 1 untracked" and 0 <= result["duration_sec"] < 60
    assert loop.ws.read(result["output_path"]) == "?? new.txt\n\n0 changed, 1 untracked\n"
    manifest = json.loads(loop.ws.read(result["manifest_path"]))
    assert manifest["command"] == [] and manifest["function"] == "cleared.work.loop.report_jobs:git_status_summary"
    assert manifest["status"] == "started" and manifest["pid"] > 1
    started, ended = (datetime.fromisoformat(result[k]) for k in ("started_at", "ended_at"))
    assert started <= ended


def test_paths_are_absolute_where_the_runtime_directory_is_elsewhere(loop: Loop, tmp_path: Path) -> None:
    result = Loop(loop.ws, tmp_path / "other").once("git_status_summary")
    assert result["output_path"] == str(tmp_path / f"other/jobs/{result['job_id']}.out.txt")


def test_e14_the_tree_says_what_the_state_says(probed: Loop) -> None:
    """E14"""
    for kind in ["nothing", "fails"] * 14:
        probed.enqueue(kind)
    probed.ws.config("loop.max_failures=100")
    probed.run("--max-cycles", "27")
    tree, state = probed.tree(), probed.state()
    assert tree["schema_version"] == "single_agent_tree_v1" and tree["state"] == state
    summary = tree["summary"]
    assert (summary["succeeded"], summary["failed"], summary["queued"]) == (14, 13, 1)
    assert summary["cycles"] == 27 and summary["last_job"] == state["jobs"][-1]["job_id"]
    assert len(tree["jobs"]) == 25 and len(tree["knowledge"]) <= 25
    assert [k["kind"] for k in tree["knowledge"]] == ["nothing"], "said again, it is no news"
    assert probed.json("tree") == tree


def test_e14_the_tree_is_new_after_each_step(probed: Loop) -> None:
    """E14: enqueued, running, ended, paused."""
    job = probed.enqueue("waits")
    assert probed.tree()["summary"]["queued"] == 1
    process = probed.start()
    eventually(lambda: probed.tree()["summary"]["running"] == job)
    assert probed.tree()["summary"]["status"] == "running"
    assert probed.here("pause").code == 0
    eventually(lambda: probed.tree()["summary"]["paused"])
    assert probed.tree()["state"]["running"]["job_id"] == job
    assert probed.here("resume").code == 0
    eventually(lambda: not probed.tree()["summary"]["paused"])
    assert probed.tree()["summary"]["status"] == "running", "it is still on"
    (probed.ws.root / "go").touch()
    eventually(lambda: probed.tree()["summary"]["succeeded"] == 1)
    probed.end(process)
    assert probed.tree()["summary"]["status"] == "stopped"


def test_e15_a_reader_never_sees_half_a_file(loop: Loop) -> None:
    """E15: nor anything that is not as its schema says."""
    loop.here("init")
    stop, seen, wrong = threading.Event(), set[bytes](), list[str]()
    tree = jsonschema.Draft7Validator(SCHEMAS["tree"])
    state = jsonschema.Draft7Validator(SCHEMAS["state"])

    def read() -> None:
        while not stop.wait(0.0005):
            for path, validator in (
                (loop.folder / "ui_data/single_agent_tree.json", tree),
                (loop.folder / "single_agent_state.json", state),
            ):
                try:
                    if (data := path.read_bytes()) not in seen:
                        validator.validate(json.loads(data))
                        seen.add(data)
                except (ValueError, OSError, jsonschema.ValidationError) as error:
                    wrong.append(f"{path.name}: {error!r}"[:300])

    reader = threading.Thread(target=read)
    reader.start()
    try:
        loop.run("--auto-rotate", "--max-cycles", "6")
    finally:
        stop.set()
        reader.join()
    assert wrong == [] and len(seen) > 20


def test_i3_every_time_is_utc(loop: Loop) -> None:
    """I3"""
    loop.once("git_status_summary")
    text = "\n".join(p.read_text() for p in loop.folder.rglob("*.json"))
    times = [word for word in text.split('"') if word[:2] == "20" and ":" in word]
    assert len(times) > 15 and all(datetime.fromisoformat(t).utcoffset() is not None and t[-1] == "Z" for t in times)


# -- how many there are -----------------------------------------------------------------------------------------------


def test_e28_the_newest_by_time_are_kept_not_by_name(loop: Loop) -> None:
    """E28"""
    template = loop.once("git_status_summary")
    loop.ws.config("loop.keep_jobs=25")
    for number in range(300):
        # The later by name, the longer ago it was.
        made_up(loop, f"job_{2000 + number:04d}0101T000000Z_git_status_summary", 4000 + 10 * number, template)
    loop.run("--once")
    kept = {p.name.split(".")[0] for p in (loop.folder / "jobs").iterdir()}
    assert template["job_id"] in kept and len(kept) == 25
    assert {int(k[4:8]) for k in kept - {template["job_id"]}} == set(range(2000, 2024))
    shown = loop.json("jobs", "--limit", "1000")
    assert len(shown) == 25
    ended = [row["ended_at"] for row in shown]
    assert ended == sorted(ended, reverse=True)


def test_e28_jobs_that_wait_keep_their_files_however_old(loop: Loop) -> None:
    """E28"""
    loop.ws.config("loop.keep_jobs=25")
    waiting = loop.enqueue("git_status_summary")
    age(loop, waiting, 1e6)
    other = loop.enqueue("continuity_scan")
    loop.here("pause")
    loop.run("--once")
    assert all((loop.folder / f"jobs/{job}.manifest.json").exists() for job in (waiting, other))
    loop.here("resume")
    loop.run("--max-cycles", "2")
    assert loop.state()["counts"]["succeeded"] == 2


def test_e28_the_state_is_bounded_by_many_jobs(probed: Loop) -> None:
    """E28: the summary counts what is no longer listed."""
    probed.ws.config("loop.keep_jobs=30", "loop.rotation=[nothing, counts]")
    process = probed("run", "--auto-rotate", "--max-cycles", "70", "--sleep", "0")
    assert process.code == 0, process
    probed.valid()
    state = probed.state()
    assert state["counts"]["succeeded"] == 70 and state["cycles"] == 70
    assert len(state["jobs"]) <= 50 and len(state["knowledge"]) <= 50 and len(json.dumps(state)) < 60_000
    assert (probed.ws.root / "made/ran").read_text() == "x\n" * 35
    probed.run("--once")
    assert len({p.name.split(".")[0] for p in (probed.folder / "jobs").iterdir()}) <= 31


def test_e28_what_was_left_half_written_long_ago_is_removed(loop: Loop) -> None:
    """E28: what is young may be somebody's."""
    loop.here("init")
    old, young = loop.folder / "jobs/.x.json.0123456789ab.tmp", loop.folder / "inbox/.y.json.0123456789ab.tmp"
    for path in (old, young):
        path.touch()
    os.utime(old, (1, 1))
    loop("run", "--once")
    assert not old.exists() and young.exists()


def test_e28_the_log_is_bounded_too(loop: Loop) -> None:
    """E28"""
    loop.here("init")
    log = loop.folder / "logs/control_room.log"
    log.write_text("2025-01-01T00:00:00Z old\n" * 100_000)
    loop.run("--once")
    assert log.stat().st_size < 10_000 and (log.parent / "control_room.log.1").stat().st_size > 1 << 20


# -- damaged and old ones ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [b"", b"{", b"{}", b"\xff\xfe", b"[" * 200_000])
def test_e29_a_damaged_state_is_set_aside_and_its_backup_used(loop: Loop, damage: bytes) -> None:
    """E29"""
    loop.run("--auto-rotate", "--max-cycles", "3")
    state = loop.folder / "single_agent_state.json"
    state.write_bytes(damage)
    job = loop.enqueue("continuity_scan")
    aside = list((loop.folder / "archive").glob("*.corrupt.json"))
    assert [path.read_bytes() for path in aside] == [damage]
    done = loop.run("--once")
    found = loop.state()
    assert sum(found["counts"].values()) == 4 and loop.result(job)["status"] == "succeeded", found["counts"]
    said = [notice["text"] for notice in found["notices"]]
    assert len(said) == 1 and "its backup is used" in said[0] and aside[0].name in said[0]
    assert said[0] in loop.here("status").out and loop.tree()["state"]["notices"]
    assert said[0][:60] in done.err or said[0][:60] in loop.here("tail").out


def test_e29_without_a_backup_a_fresh_one_is_begun_and_said_so(loop: Loop) -> None:
    """E29"""
    loop.once("git_status_summary")
    for name in ("single_agent_state.json", "single_agent_state.json.bak"):
        (loop.folder / name).write_text("{")
    done = loop.run("--once")
    assert "nor its backup; a fresh one is begun" in done.err
    assert loop.state()["counts"]["succeeded"] == 0
    assert len(loop.json("jobs")) == 1, "its files are there still"


def test_e29_the_state_is_gone_but_for_its_backup(loop: Loop) -> None:
    """E29"""
    loop.once("git_status_summary")
    loop.once("git_status_summary")
    (loop.folder / "single_agent_state.json").unlink()
    assert loop.status()["up"] is False
    done = loop.run("--once")
    assert "it was gone" in done.err and loop.state()["counts"]["succeeded"] == 2


def test_e29_all_of_it_is_gone_while_the_loop_runs(loop: Loop) -> None:
    """E29: the state is the loop's own."""
    process = loop.start()
    for path in loop.folder.glob("single_agent_state*"):
        path.unlink()
    job = loop.enqueue("git_status_summary")
    eventually(lambda: (loop.folder / f"jobs/{job}.result.json").exists())
    assert loop.end(process)[0] == 0
    assert loop.state()["counts"]["succeeded"] == 1


@pytest.mark.parametrize("what", ["folder", "link", "pipe"])
def test_a_state_that_is_no_file_is_refused_and_left(loop: Loop, what: str) -> None:
    loop.once("git_status_summary")
    state = loop.folder / "single_agent_state.json"
    state.unlink()
    if what == "folder":
        state.mkdir()
    elif what == "link":
        state.symlink_to("/etc/passwd")
    else:
        os.mkfifo(state)
    done = loop("run", "--once")
    no_traceback(done)
    assert done.code == 4 and "single_agent_state.json" in done.err, done
    for argv in (["status"], ["jobs"]):
        no_traceback(loop.here(*argv))


@pytest.mark.parametrize("damage", ["{", "{}", "[]", "pipe", "folder"])
def test_a_damaged_result_among_the_files_breaks_no_list(loop: Loop, damage: str) -> None:
    good = loop.once("git_status_summary")
    path = loop.folder / "jobs/job_20200101T000000Z_git_status_summary.result.json"
    if damage == "pipe":
        os.mkfifo(path)
    elif damage == "folder":
        path.mkdir()
    else:
        path.write_text(damage)
    shown = loop.ws.process("loop", "jobs", "--json", env=changed({}))
    assert shown.code == 0 and [row["job_id"] for row in shown.json] == [good["job_id"]], shown
    done = loop("show", path.name.split(".")[0])
    no_traceback(done)
    assert done.code != 0
    loop.enqueue("git_status_summary")
    assert loop("run", "--once").code == 0


def test_e30_init_on_nothing_archives_nothing(loop: Loop) -> None:
    """Fault 26, E30, E1"""
    done = loop.here("init")
    assert done.code == 0 and "archived" not in done.err, done
    assert not (loop.folder / "archive").exists() and loop.state()["queue"] == []
    loop.valid()
    loop.here("init")
    assert len(list((loop.folder / "archive").iterdir())) == 1, "now there was something"


def test_e30_init_archives_what_was_there(loop: Loop) -> None:
    """E30"""
    loop.once("git_status_summary")
    loop.here("pause")
    loop.enqueue("continuity_scan")
    before = loop.state()
    done = loop("init")
    assert done.code == 0 and "1 queued" in done.err
    (archived,) = (loop.folder / "archive").iterdir()
    old = json.loads(archived.read_bytes())
    assert old["jobs"] == before["jobs"] and len(old["queue"]) == 1
    fresh = loop.state()
    assert fresh["jobs"] == fresh["queue"] == [] and fresh["counts"]["succeeded"] == 0 and not fresh["paused"]
    loop.run("--once")
    assert loop.jobs() == []
    loop.valid()


def test_e30_a_hundred_times(loop: Loop) -> None:
    """E30: archives are bounded."""
    for _ in range(30):
        assert loop.here("init").code == 0
    assert 5 < len(list((loop.folder / "archive").iterdir())) <= 20


def test_e30_init_is_refused_while_a_job_is_on(probed: Loop) -> None:
    """E30"""
    probed.enqueue("slow")
    process = probed.start()
    eventually(probed.running)
    process.kill()
    process.wait()
    done = probed("init")
    assert done.code == 3 and "is running still" in done.err, done
    assert probed.here("stop", "--now").code == 0
    assert probed.here("init").code == 0


# -- a full disk ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [0, 300, 1_000, 1_600])
def test_i2_a_full_disk_leaves_what_was_there(loop: Loop, room: int) -> None:
    """I2: files can grow to so many bytes."""
    loop.once("git_status_summary")
    job = loop.enqueue("git_status_summary")
    before = loop.state()

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    for argv in (["run", "--once"], ["enqueue", "continuity_scan"], ["init"]):
        done = subprocess.run(
            [sys.executable, "-B", "-m", "cleared", "loop", *argv, "-C", str(loop.ws.root)],
            env=changed({}),
            preexec_fn=limit,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert "Traceback" not in done.stderr and (done.returncode in (1, 4) or room > 500), (argv, done)
        loop.valid()
    state = loop.state()
    assert state["jobs"][:1] == before["jobs"] or state["jobs"] == [], "nothing of the past is other than it was"
    with unchanged(loop.ws):
        loop.run("--max-cycles", "4")
    if room < 500:
        assert loop.result(job)["status"] == "succeeded"
