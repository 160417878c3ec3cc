"""Two at once with one of them killed; what a killed host leaves behind."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from crash_books import AFTER, alive, check_booked, check_goes_on, check_sound, copy, git, ingest, read, workers_of
from crash_kill import Child, stopped_at
from harness import Workspace
from running import eventually

BUSY = '''"""
name: Busy
trigger: [on_demand]
description: Computes for ever
timeout: 600
"""
ctx_log("begun")
n = 0
while True:
    n = n + 1
'''


@pytest.mark.parametrize("step", ["begun", "ran", "verified", "ref", "worktree"])
def test_the_second_run_takes_over_from_a_killed_one(template: Path, tmp_path: Path, step: str) -> None:
    """It waits for the lock, has it as soon as the first dies, and books what the first did not."""
    root = copy(template, tmp_path / "w")
    with Child() as first, Child() as second:
        first.start(root, ["run", "ingest"], step, hold=True)
        first.held()
        second.start(root, ["run", "ingest"])
        assert second.process.stdout is not None
        assert second.process.stdout.readline().startswith("say waiting for agent run ingest (process ")
        first.kill()
        said = second.wait()
        assert said.endswith("done\n")
        assert said.count("interrupted commit") == (step in ("verified", "ref", "worktree")), said
    entries, told = read(root)
    assert told == []
    check_booked(root, entries, AFTER)
    check_sound(root)
    check_goes_on(root)
    assert len(git(root, "log", "--format=%s").splitlines()) == 4


def test_two_runs_at_once_book_once(template: Path, tmp_path: Path) -> None:
    root = copy(template, tmp_path / "w")
    with Child() as first, Child() as second:
        first.start(root, ["run", "ingest"])
        second.start(root, ["run", "ingest"])
        assert first.wait().endswith("done\n")
        assert second.wait().endswith("done\n")
    entries, _ = read(root)
    check_booked(root, entries, AFTER)
    check_sound(root)


def test_two_inits_at_once_make_one_workspace(tmp_path: Path) -> None:
    """Whoever comes second is refused, and takes nothing of the first one's away."""
    for n in range(3):
        root = tmp_path / f"w{n}"
        with Child() as first, Child() as second:
            first.start(root, ["init"])
            second.start(root, ["init"])
            ended = [child.wait().endswith("done\n") for child in (first, second)]
        assert any(ended)
        assert ingest(root) == []
        check_sound(root)
        assert git(root, "log", "--format=%s").splitlines() == ["init: Acme"]


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc; elsewhere the sandbox's own time limit ends it")
def test_a_computing_worker_dies_with_its_host(template: Path, tmp_path: Path) -> None:
    root = copy(template, tmp_path / "w")
    (root / "agents/busy.py").write_text(BUSY)
    Workspace(root).commit("agents/busy.py", *Workspace(root).approve("agents/busy.py"), message="busy")
    with Child() as host:
        host.start(root, ["run", "busy"])
        assert host.process.stdout is not None
        assert host.process.stdout.readline() == "say busy: begun\n"
        workers = workers_of(host.process.pid)
        assert workers
        host.kill()
        eventually(lambda: not any(map(alive, workers)))
    _entries, said = read(root)
    assert said == []
    assert ingest(root) == []
    check_sound(root)
    assert stopped_at(root, ["run", "ingest"], "begun")
