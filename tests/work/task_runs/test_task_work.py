"""Claims, deltas, verification, and what becomes of a task."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import Workspace, refused, take_ok
from patience import PATIENCE
from tasking import LEDGER, Tasks, task

from cleared.processes.confinement import landlock_abi
from cleared.trust.keys import cleared_home

confined = pytest.mark.skipif(not landlock_abi(), reason="the kernel has no Landlock")


@pytest.fixture
def tasks(ws: Workspace) -> Tasks:
    return Tasks(ws)


def test_next_tells_ready_done_and_blocked(tasks: Tasks) -> None:
    """G19"""
    assert tasks("next").code == 6
    tasks.planned(task(1), task(2, requires=["T-001"]))
    assert (tasks("next").code, tasks("next").out) == (0, "T-001\n")
    assert tasks("claim", "T-002").code == 3
    tasks.ok("claim", "T-001")
    done = tasks("next")
    assert (
        done.code == 7 and "T-001 is being worked on" in done.err and "T-002 waits for T-001 (in-progress)" in done.err
    )
    tasks.ws.put("docs/T-001.txt", "x")
    tasks.ok("done", "T-001")
    assert tasks.ok("next").out == "T-002\n"
    tasks.finish("T-002")
    assert tasks("next").code == 6


CLAIM = """
import sys
from cleared.cli import main
sys.argv[1:] = ['task', 'claim', 'T-001', '--as', sys.argv[2], '-C', sys.argv[1]]
main()
"""


def test_of_two_claimants_one_wins(tasks: Tasks) -> None:
    """G22: with who and when."""
    tasks.planned(task(1))
    running = [
        subprocess.Popen([sys.executable, "-c", CLAIM, str(tasks.ws.root), f"worker{n}"], stderr=subprocess.PIPE)
        for n in range(4)
    ]
    errors = [process.communicate(timeout=PATIENCE)[1].decode() for process in running]
    assert sorted(process.returncode for process in running) == [0, 3, 3, 3], errors
    (line,) = [line for line in tasks.lines() if line["status"] == "in-progress"]
    winner = next(n for n, process in enumerate(running) if process.returncode == 0)
    assert f"worker{winner}" in line["summary"] and line["updated_at"]
    assert sum(f"worker{winner}" in text and "since" in text for text in errors) == 3


def test_a_dead_workers_claim_is_given_back_with_a_line(tasks: Tasks) -> None:
    """G21"""
    tasks.planned(task(1))
    with subprocess.Popen(["sleep", "60"]) as process:
        tasks.ok("claim", "T-001", "--pid", str(process.pid))
        assert tasks("next").code == 7
        process.kill()
    assert tasks.ok("next").out == "T-001\n"
    assert tasks.lines()[-1]["status"] == "pending" and "Recovered" in tasks.lines()[-1]["summary"]
    tasks.ok("claim", "T-001")


def test_nothing_is_completed_without_a_claim(tasks: Tasks) -> None:
    """G14"""
    tasks.planned(task(1))
    tasks.ws.put("docs/T-001.txt", "x")
    done = tasks("done", "T-001")
    assert done.code == 3 and "cleared task claim T-001" in done.err
    assert tasks("fail", "T-001").code == 3
    assert tasks.states() == {"T-001": "pending"}


def test_nothing_is_completed_without_a_delta(tasks: Tasks) -> None:
    """G17"""
    tasks.ws.put("docs/T-001.txt", "there before\n")
    tasks.planned(task(1))
    tasks.ok("claim", "T-001")
    done = tasks("done", "T-001")
    assert done.code == 3 and "changed nothing" in done.err
    assert tasks.states() == {"T-001": "in-progress"}
    tasks.ws.put("docs/T-001.txt", "changed\n")
    assert tasks.ws.json("task", "done", "T-001")["delta"] == {"files_added": ["docs/T-001.txt"]}


def test_the_delta_is_what_changed_since_the_claim(tasks: Tasks) -> None:
    """G17: added, modified, deleted; without ledger, tasks, ignored files and what was dirty before."""
    tasks.ws.put("docs/old.txt", "1\n")
    tasks.ws.put("docs/gone.txt", "1\n")
    tasks.ws.commit("docs/old.txt", "docs/gone.txt")
    tasks.ws.put("docs/dirty.txt", "before\n")
    tasks.planned(task(1, files=["docs/T-001.txt", "docs/old.txt", "docs/gone.txt"]), task(2))
    tasks.ok("claim", "T-001")
    tasks.ws.put("docs/old.txt", "2\n")
    tasks.ws.put("docs/more.txt", "new\n")
    (tasks.ws.root / "docs/gone.txt").unlink()
    tasks.ws.put("docs/T-001.txt", "new\n")
    tasks.ws.put(".env", "SECRET=1\n")
    outcome = tasks.ws.json("task", "done", "T-001")
    assert outcome["delta"] == {
        "files_added": ["docs/T-001.txt", "docs/more.txt"],
        "files_modified": ["docs/old.txt"],
        "files_deleted": ["docs/gone.txt"],
    }
    assert "docs/more.txt" in outcome["warnings"][0] and "docs/T-001.txt" not in outcome["warnings"][0]
    assert tasks.ws.git("status", "--porcelain") == "?? docs/dirty.txt\n"


def test_a_fourth_existing_file_fails_the_task(tasks: Tasks) -> None:
    """G5"""
    names = [f"docs/f{n}.txt" for n in range(4)]
    for name in names:
        tasks.ws.put(name, "1\n")
    tasks.ws.commit(*names)
    tasks.planned(task(1))
    tasks.ok("claim", "T-001")
    for name in (*names, "docs/T-001.txt"):
        tasks.ws.put(name, "2\n")
    done = tasks("done", "T-001")
    assert done.code == 1 and "4 files that exist" in done.err
    assert tasks.states() == {"T-001": "failed"} and "docs/f0.txt" in tasks.ws.git("status", "--porcelain")


def test_what_you_change_besides_is_yours(tasks: Tasks) -> None:
    """G26: an existing file that the task does not name is no part of it; committed or put back, it is done."""
    tasks.ws.put("docs/old.txt", "1\n")
    tasks.ws.commit("docs/old.txt")
    tasks.planned(task(1))
    tasks.ok("claim", "T-001")
    tasks.ws.put("docs/T-001.txt", "x")
    tasks.ws.put("docs/old.txt", "2\n")
    refused(tasks("done", "T-001"), 3, "docs/old.txt", "context.files")
    assert tasks.states() == {"T-001": "in-progress"}
    tasks.ws.commit("docs/old.txt")
    assert tasks.ws.json("task", "done", "T-001")["delta"] == {"files_added": ["docs/T-001.txt"]}


def test_completed_is_what_the_host_has_verified(tasks: Tasks) -> None:
    """G15: whatever the worker says."""
    tasks.planned(task(1, verification_command="echo it is wrong; exit 1"))
    tasks.ok("claim", "T-001")
    tasks.ws.put("docs/T-001.txt", "x")
    done = tasks("done", "T-001", "--summary", "All is well")
    assert done.code == 1 and "exit code 1" in done.err and "it is wrong" in done.err
    assert tasks.states() == {"T-001": "failed"}
    assert "it is wrong" in tasks.ws.read(".cleared/task-output/T-001.txt")
    assert tasks.ws.git("status", "--porcelain") == "?? docs/T-001.txt\n"


def test_verification_sees_what_would_be_committed(tasks: Tasks) -> None:
    """G15: not what git passes over, and not what lies about."""
    tasks.ws.put("docs/dirty.txt", "x")
    tasks.planned(task(1, verification_command="test -s docs/T-001.txt && ! test -e docs/dirty.txt && ! test -e .env"))
    tasks.ok("claim", "T-001")
    tasks.ws.put(".env", "x")
    tasks.ws.put("docs/T-001.txt", "x")
    assert tasks.ok("verify", "T-001")
    tasks.ok("done", "T-001")


@confined
def test_a_verification_is_fenced(tasks: Tasks, tmp_path: Path) -> None:
    """G15, G16: no network, no key, nothing written elsewhere; its own tree and temporary files are."""
    home = cleared_home()
    tasks.planned(
        task(
            1,
            verification_command=f"""
        touch here && touch "$TMPDIR/t" || exit 1
        touch {tasks.ws.root}/evil && exit 2
        cat {home}/task-key && exit 3
        cat {tasks.ws.root}/config.yaml && exit 4
        touch {tmp_path}/evil && exit 6
        test -n "$CLEARED_JOB" || exit 7
        git log -1 --format=%s || exit 8
        git remote | grep . && exit 9
        command -v python3 > /dev/null && python3 -c 'import socket; socket.socket()' && exit 5
        exit 0""",
        )
    )
    tasks.ok("claim", "T-001")
    tasks.ws.put("docs/T-001.txt", "x")
    done = tasks("verify", "T-001", "--json")
    assert done.code == 0, done
    assert done.json["confined"] is True
    assert not (tmp_path / "evil").exists() and not (tasks.ws.root / "evil").exists()


def test_a_hanging_verification_is_killed_with_all_it_started(tasks: Tasks) -> None:
    """G16: grandchildren that ignore TERM and leave the session, too; the output stays."""
    mark = f"987{os.getpid()}"
    tasks.ws.ok("config", "set", "tasks.verify_seconds", "1")
    tasks.planned(
        task(1, verification_command=f"echo begun; (trap '' TERM; setsid sleep {mark}) & trap '' TERM; sleep {mark}")
    )
    tasks.ok("claim", "T-001")
    tasks.ws.put("docs/T-001.txt", "x")
    done = tasks("verify", "T-001", "--json")
    assert done.code == 1 and "stopped at its limit of 1 s" in done.json["reason"] and "begun" in done.json["output"]
    left = subprocess.run(["pgrep", "-f", f"sleep {mark}"], capture_output=True, text=True, check=False).stdout
    assert left == ""


def test_output_is_bounded(tasks: Tasks) -> None:
    """G16: the beginning and the end are kept."""
    tasks.planned(task(1, verification_command="echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last"))
    tasks.ok("claim", "T-001")
    tasks.ws.put("docs/T-001.txt", "x")
    found = tasks.ws.json("task", "verify", "T-001")
    assert found["output"].startswith("first\n") and found["output"].endswith("last\n")
    assert found["output_bytes"] > 3_000_000 and len(found["output"]) < (256 << 10) + 100


def test_a_dependency_that_failed_again_blocks(tasks: Tasks) -> None:
    """G18, G20"""
    tasks.planned(task(1), task(2, requires=["T-001"]))
    tasks.finish("T-001")
    assert tasks.ok("next").out == "T-002\n"
    tasks.ok("fail", "T-001", "--summary", "It no longer holds")
    done = tasks("next")
    assert done.code == 7 and "T-002 waits for T-001 (failed)" in done.err
    tasks.ok("retry", "T-001")
    tasks.finish("T-001", "again\n")
    assert tasks.ok("next").out == "T-002\n"


def test_retry_skip_and_a_fix_task(tasks: Tasks) -> None:
    """G14, G20"""
    tasks.planned(task(1), task(2, requires=["T-001"]), task(3))
    assert tasks("skip", "T-001").code == 2
    tasks.ok("skip", "T-001", "--summary", "Not now")
    assert tasks.lines()[-1]["status"] == "blocked" and "Not now" in tasks.lines()[-1]["summary"]
    assert tasks("claim", "T-001").code == 3
    assert tasks.ok("next").out == "T-003\n"
    tasks.ok("skip", "T-003", "--summary", "Neither")
    assert tasks("next").code == 7
    tasks.ok("add", tasks.file(task(4, title="Fix T-001")))
    assert tasks.ok("next").out == "T-004\n"
    tasks.ok("retry", "T-001")
    assert tasks.ok("next").out == "T-001\n"
    tasks.finish("T-001")
    assert tasks("retry", "T-001").code == 3 and tasks("skip", "T-001", "--summary", "x").code == 3


def test_a_persons_script_becomes_a_proposal(tasks: Tasks) -> None:
    tasks.planned(task(1, files=["agents/greet.py"], verification_command="test -s agents/greet.py"))
    tasks.ok("claim", "T-001")
    tasks.ws.put("agents/greet.py", '"""\nname: greet\ntrigger: on_demand\n"""\nctx_log("hello")\n')
    outcome = tasks.ws.json("task", "done", "T-001")
    assert outcome["status"] == "awaiting-approval" and outcome["proposal"] == "P1"
    assert tasks.ws("agent", "run", "greet").code != 0
    take_ok(tasks.ws, "agent", "approve", "P1")
    assert tasks.ws.run("greet")["status"] == "succeeded"


def test_what_somebody_changed_meanwhile_stays(tasks: Tasks) -> None:
    """A file that is another by the time of the commit is not overwritten, and nothing is recorded."""
    tasks.planned(task(1, verification_command=f"sleep 0; test -s docs/T-001.txt; echo later > {Path('/dev/null')}"))
    tasks.ok("claim", "T-001")
    tasks.ws.put("docs/T-001.txt", "x")
    tasks.ws.git("checkout", "-q", "--detach")
    done = tasks("done", "T-001")
    assert done.code == 4 and tasks.states() == {"T-001": "in-progress"}
    tasks.ws.git("checkout", "-q", "main")
    tasks.ok("done", "T-001")


def test_a_secret_is_not_committed(tasks: Tasks) -> None:
    tasks.planned(task(1))
    tasks.ok("claim", "T-001")
    tasks.ws.put(
        "docs/T-001.txt", "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\nsk-ant-api03-" + "a1B2" * 20
    )
    done = tasks("done", "T-001")
    assert done.code == 1 and "secret" in done.err
    assert tasks.ws.git("status", "--porcelain") == "?? docs/T-001.txt\n"


def test_the_briefing_has_only_what_the_task_names(tasks: Tasks) -> None:
    """G23"""
    tasks.ws.put("docs/used.md", "the used text\n")
    tasks.ws.put("docs/other.md", "the other text\n")
    tasks.ws.commit("docs/used.md", "docs/other.md")
    tasks.planned(
        task(1, files=["docs/used.md", "docs/new.md"], skills=["task-indexer"]), task(2, title="A secret plan")
    )
    text = tasks.ok("show", "T-001", "--briefing").out
    for part in (
        "Task 1",
        "What it is for.",
        "It is there.",
        "test -s",
        "the used text",
        "docs/new.md",
        "task-indexer",
    ):
        assert part in text
    assert "the other text" not in text and "A secret plan" not in text
    shown = tasks.ws.json("task", "show", "T-001")
    assert shown["briefing_lines"] == text.count("\n") and shown["briefing_bytes"] == len(text.encode())


def test_the_next_briefing_has_the_last_failure(tasks: Tasks) -> None:
    """G28: the reason, the end of what was printed last, and what a person wishes; until it is done."""
    tasks.planned(task(1, verification_command="seq 9000; echo it was the comma; grep -q right docs/T-001.txt"))
    tasks("run", "--command", "echo what the worker said; echo wrong > docs/T-001.txt")
    tasks.ok("retry", "T-001", "--summary", "Mind the comma")
    text = tasks.ok("show", "T-001", "--briefing").out.partition("## What came of the last try")[2]
    for said in ("Mind the comma", "Verification failed (exit code 1)", "9000\nit was the comma\n"):
        assert said in text, text
    assert "\n100\n" not in text and "the worker said" not in text
    tasks("run", "--command", "echo what the worker said; exit 3")
    tasks.ok("retry", "T-001")
    text = tasks.ok("show", "T-001", "--briefing").out.partition("## What came of the last try")[2]
    assert "exit code 3" in text and "what the worker said\n" in text and "the comma" not in text
    tasks("run", "--command", "echo right > docs/T-001.txt")
    assert "What came of" not in tasks.ok("show", "T-001", "--briefing").out


def test_a_large_briefing_is_warned_of(tasks: Tasks) -> None:
    """G23"""
    tasks.ws.put("docs/long.md", "line\n" * 1200)
    tasks.ws.commit("docs/long.md")
    tasks.planned(task(1, docs=["docs/long.md"]))
    done = tasks("run", "--command", "echo x > docs/T-001.txt")
    assert done.code == 6 and "lines" in done.err and "more than 1,000" in done.err


def test_beyond_ten_completed_tasks_are_archived(tasks: Tasks) -> None:
    """G24: ten: nothing; eleven: moved, and dependencies still resolve."""
    tasks.planned(*(task(n) for n in range(1, 12)), task(12, requires=["T-001"]))
    tasks.complete(*(f"T-{n:03d}" for n in range(1, 11)))
    assert tasks.ok("archive").out == "nothing was to be archived\n"
    tasks.finish("T-011")
    assert tasks.ws.json("task", "archive")["archived"] == [f"T-{n:03d}" for n in range(1, 12)]
    files = sorted(path.name for path in (tasks.ws.root / "docs/tasks").iterdir())
    assert files == [".gitattributes", "ARCHIVE.jsonl", "T-012.json"]
    assert len(tasks.ws.read("docs/tasks/ARCHIVE.jsonl").splitlines()) == 11
    assert tasks.ok("next").out == "T-012\n" and len(tasks.states()) == 12
    assert tasks("add", tasks.file(task(3))).code == 2
    tasks.ok("fail", "T-003", "--summary", "broken")
    tasks.ok("retry", "T-003")
    tasks.finish("T-003", "again\n")
    assert tasks.ws.git("status", "--porcelain") == ""


def test_a_second_orchestrator_is_refused(tasks: Tasks, tmp_path: Path) -> None:
    """G8"""
    tasks.planned(task(1))
    process = tasks.ws.start("task", "run", "--command", "sleep 600")
    try:
        end = time.monotonic() + PATIENCE
        while tasks.states() != {"T-001": "in-progress"} and time.monotonic() < end:
            time.sleep(0.05)
        done = tasks("run", "--command", "true")
        assert done.code == 5 and "a run of tasks runs already" in done.err
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)
    assert tasks.states() == {"T-001": "pending"} and "stopped" in tasks.lines()[-1]["summary"]
    assert LEDGER in tasks.ws.git("status", "--porcelain")


def test_a_killed_orchestrator_takes_its_worker_along(tasks: Tasks) -> None:
    """G21: nothing of it runs on, and the next one does the task."""
    mark = f"986{os.getpid()}"
    tasks.planned(task(1))
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "cleared",
            "task",
            "run",
            "--command",
            f"setsid sleep {mark} & sleep {mark}",
            "-C",
            str(tasks.ws.root),
        ],
        stderr=subprocess.DEVNULL,
    )

    def sleepers() -> str:
        return subprocess.run(["pgrep", "-xf", f"sleep {mark}"], capture_output=True, text=True, check=False).stdout

    def wait_until(condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.05)

    wait_until(lambda: len(sleepers().split()) == 2)
    process.kill()
    process.wait()
    wait_until(lambda: not sleepers())
    assert tasks.ok("next").out == "T-001\n"
    assert tasks("run", "--command", "echo x > docs/T-001.txt").code == 6
