"""Loops side by side, and a loop where things are not as they should be: other places, other environments."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from harness import CLOCK, refused
from looping import Loop, changed, eventually
from patience import PATIENCE

from cleared.trust.keys import cleared_home

pytestmark = pytest.mark.slow


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_e32_two_runtime_directories_share_nothing(loop: Loop, tmp_path: Path) -> None:
    """E32"""
    other = Loop(loop.ws, tmp_path / "other")
    loop.once("git_status_summary")
    before = contents(loop.folder)
    other.run("--auto-rotate", "--max-cycles", "4", "--init")
    other.enqueue("continuity_scan")
    other.here("pause")
    refused(other.here("enqueue", "no_such"), 3)
    assert contents(loop.folder) == before
    assert other.state()["instance"] != loop.state()["instance"]
    assert other.status()["paused"] and not loop.status()["paused"]
    assert loop.tree()["summary"]["succeeded"] == 1 and len(other.state()["jobs"]) == 4


def test_e32_both_run_at_once_and_jobs_of_the_same_name_leave_each_other_alone(probed: Loop, tmp_path: Path) -> None:
    """E32: the end of one is not the end of the other's processes."""
    other = Loop(probed.ws, tmp_path / "other")
    fixed = {"CLEARED_CLOCK": "2025-02-10T06:00:00Z"}
    names = set()
    for each in (probed, other):
        done = each("enqueue", "strays", **fixed)
        assert done.code == 0, done
        names.add(done.out.strip())
    (name,) = names
    holds = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"],
        env=changed({"CLEARED_JOB": name, "CLEARED_JOB_FOLDER": str(other.folder / "tmp" / name)}),
    )
    try:
        probed.run("--once", **fixed)
        assert probed.state()["counts"]["succeeded"] == 1
        assert holds.poll() is None, "a process of the other loop's job was ended"
    finally:
        holds.kill()
        holds.wait()
    other.run("--once", **fixed)
    assert other.state()["counts"]["succeeded"] == 1


def test_e32_both_can_be_up_and_each_is_stopped_by_its_own_name(loop: Loop, tmp_path: Path) -> None:
    """E32"""
    other = Loop(loop.ws, tmp_path / "other")
    first, second = loop.start(), other.start()
    try:
        assert (loop.status()["pid"], other.status()["pid"]) == (first.pid, second.pid)
        assert loop.here("stop").code == 0
        assert first.wait(PATIENCE) == 0 and second.poll() is None and other.status()["up"]
        job = other.enqueue("git_status_summary")
        eventually(lambda: (other.folder / f"jobs/{job}.result.json").exists())
        assert loop.status()["queued"] == []
    finally:
        other.clean_up()


def test_a_second_loop_in_the_same_place_is_told_who_is_there(loop: Loop) -> None:
    process = loop.start()
    done = loop("run", "--once")
    refused(done, 5, f"process {process.pid}")
    assert loop.here("init").code == 5
    link = loop.folder.parent / "linked"
    link.symlink_to("loop")
    refused(Loop(loop.ws, link)("run", "--once"), 5, f"process {process.pid}")


# -- places -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place",
    [
        ".",
        "..",
        "books",
        "books/loop",
        ".git",
        ".git/loop",
        "agents/loop",
        "queue",
        "/",
        "logs/x",
        "import",
        "made/../.git/x",
    ],
)
def test_the_workspaces_own_folders_are_no_place_for_it(loop: Loop, place: str) -> None:
    before = contents(loop.ws.root)
    for argv in (["run", "--once"], ["enqueue", "git_status_summary"], ["init"], ["start"]):
        done = loop.ws("loop", *argv, "--runtime-dir", str(loop.ws.root / place))
        refused(done, 3, "no place for the loop's files")
    refused(loop.ws.process("loop", "status", env=changed({"SINGLE_AGENT_RUNTIME_DIR": place})), 3)
    assert contents(loop.ws.root) == before


def test_nor_by_a_link_to_them(loop: Loop) -> None:
    link = loop.ws.root.parent / "link"
    link.symlink_to(loop.ws.root / ".git")
    refused(Loop(loop.ws, link / "loop")("run", "--once"), 3, "no place for the loop's files")


def test_its_log_goes_to_no_folder_of_the_workspace_either(loop: Loop) -> None:
    for place in (".git/hooks", "agents", "queue"):
        refused(loop.here("run", "--once", "--log-dir", str(loop.ws.root / place)), 3, "no place for the loop's")


def test_a_runtime_directory_that_is_a_file(loop: Loop, tmp_path: Path) -> None:
    path = tmp_path / "a-file"
    path.write_text("mine")
    for place in (path, path / "below"):
        for argv in (["run", "--once"], ["enqueue", "git_status_summary"]):
            refused(Loop(loop.ws, place)(*argv), 4)
    assert path.read_text() == "mine"


def test_a_runtime_directory_that_cannot_be_made(loop: Loop) -> None:
    for argv in (["run", "--once"], ["enqueue", "git_status_summary"], ["start"]):
        refused(Loop(loop.ws, Path("/proc/loop"))(*argv), 4, "loop: the directory cannot be made")


@pytest.mark.skipif(os.geteuid() == 0 and sys.platform != "linux", reason="root may write everywhere")
def test_a_runtime_directory_that_cannot_be_written(loop: Loop) -> None:
    """A disk that has become read-only: what is there can still be looked at."""
    loop.once("git_status_summary")
    there = loop.folder
    script = f'mount --bind {there} {there} && mount -o remount,bind,ro {there} && exec "$@"'

    def frozen(*argv: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "cleared", "loop", *argv, "-C", str(loop.ws.root)]
        return subprocess.run(
            ["unshare", "-m", "sh", "-c", script, "sh", *command],
            capture_output=True,
            text=True,
            env=changed({}),
            check=False,
        )

    probe = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("no mount can be made here")
    before = contents(loop.folder)
    for argv in (["run", "--once"], ["enqueue", "git_status_summary"], ["init"], ["pause"]):
        done = frozen(*argv)
        assert done.returncode == 4 and "Traceback" not in done.stderr and "read-only" in done.stderr, done
    for argv in (["status"], ["jobs"], ["tree"], ["tail"], ["stop"]):
        assert frozen(*argv).returncode == 0, argv
    assert contents(loop.folder) == before


# -- environments -----------------------------------------------------------------------------------------------------


def test_without_a_home(loop: Loop, tmp_path: Path) -> None:
    done = loop(
        "run",
        "--once",
        "--enqueue",
        "git_status_summary",
        HOME=None,
        XDG_CONFIG_HOME=None,
        USER=None,
        PATH="/usr/bin",
        CLEARED_HOME=str(cleared_home()),
    )
    assert done.code == 0 and loop.results()[-1]["status"] == "succeeded", done


def test_with_its_standard_streams_closed(loop: Loop) -> None:
    """What is opened next gets their numbers."""
    loop.enqueue("git_status_summary")
    command = [sys.executable, "-m", "cleared", "loop", "run", "--once", "-C", str(loop.ws.root)]
    subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command], env=changed({}), timeout=PATIENCE, check=False
    )
    assert loop.jobs() == ["git_status_summary"] and loop.results()[0]["status"] == "succeeded"


def test_with_a_name_that_is_no_text(loop: Loop) -> None:
    loop.ws.put("docs/plain.md", "x")
    Path(os.fsdecode(os.fsencode(loop.ws.root / "docs") + b"/\xff\xfe.md")).write_text("x")
    (loop.ws.root / "docs" / "new\nline\x1b.md").write_text("x")
    for kind in ("continuity_scan", "git_status_summary"):
        result = loop.once(kind)
        assert result["status"] == "succeeded", (result, loop.output(result["job_id"]))
    json.loads(loop.here("tree", "--json").out)


def test_times_are_utc_whatever_the_zone(loop: Loop) -> None:
    """I3"""
    result = loop.once("git_status_summary", None, TZ="Asia/Tokyo")
    now = subprocess.run(["date", "-u", "+%Y-%m-%dT%H:%M"], capture_output=True, text=True, check=True).stdout.strip()
    assert result["started_at"][:13] == now[:13] and result["started_at"].endswith("Z")
    assert result["job_id"].split("_")[1].endswith("Z")
    times = [line.split()[0] for line in (loop.folder / "logs/control_room.log").read_text().splitlines()]
    assert times and all(time.endswith("Z") and time[:13] == now[:13] for time in times)


# -- at once ----------------------------------------------------------------------------------------------------------


def test_e7_a_hundred_in_one_second_are_a_hundred(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """E7: the clock stands still."""
    monkeypatch.setenv("CLEARED_CLOCK", CLOCK)
    ids = [loop.enqueue("git_status_summary") for _ in range(100)]
    assert len(set(ids)) == 100 and {i.split("_")[1] for i in ids} == {"20250210T060000Z"}
    assert [item["job_id"] for item in loop.state()["queue"]] == ids
    loop.valid()


def test_e7_also_those_of_several_processes_at_once(probed: Loop) -> None:
    """E7: beside a loop that runs them."""
    process = probed.start()
    with ThreadPoolExecutor(4) as pool:
        ids = [d.out.strip() for d in pool.map(lambda _: probed("enqueue", "counts"), range(12))]
    assert len(set(ids)) == 12
    eventually(lambda: probed.status()["counts"]["succeeded"] == 12)
    assert probed.end(process)[0] == 0
    assert (probed.ws.root / "made/ran").read_text() == "x\n" * 12


def test_e7_enqueued_at_once_where_no_loop_is(loop: Loop) -> None:
    """E7, E27: nobody's is lost, nobody is told that somebody else is busy."""
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: loop("enqueue", "git_status_summary"), range(8)))
    assert [d.code for d in done] == [0] * 8, done
    waiting = {item["job_id"] for item in loop.status()["queued"]}
    assert waiting == {d.out.strip() for d in done}
    loop.run("--max-cycles", "10")
    assert loop.state()["counts"]["succeeded"] == 8


def test_a_loop_that_has_ended_leaves_signals_as_they_were(loop: Loop) -> None:
    """What a program starts afterwards would else never hear SIGTERM."""
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    loop.here("run", "--once")
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
