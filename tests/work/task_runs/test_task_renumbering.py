"""Two clones that have made tasks of the same ids: this one's get new ones before the merge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from clones import copied
from forked import Forks
from harness import Workspace, refused, take_ok, unchanged
from tasking import LEDGER, Tasks, task

pytestmark = pytest.mark.slow


@pytest.fixture
def office(ws: Workspace) -> Tasks:
    """A ledger with one task, that both clones know."""
    tasks = Tasks(ws)
    tasks.planned(task(1))
    return tasks


@pytest.fixture
def laptop(office: Tasks, tmp_path: Path) -> Tasks:
    """A clone that has parted from it, and fetches from it."""
    other = copied(office.ws, tmp_path / "laptop")
    other.git("remote", "add", "origin", f"file://{office.ws.root}")
    take_ok(other, "trust")
    take_ok(other, "task", "plan")
    tasks = object.__new__(Tasks)
    tasks.ws = other
    return tasks


def merge(laptop: Tasks) -> str:
    laptop.ws.git("fetch", "-q", "origin")
    return laptop.ws.git("merge", "-q", "--no-edit", "origin/main")


def test_the_clone_that_merges_gives_its_own_new_ids(office: Tasks, laptop: Tasks) -> None:
    """WORK 2: with a line that says so; what was done stays done, and each is verified as it was sealed."""
    office.planned(task(2, title="The office's"), task(3, title="Also the office's"))
    laptop.planned(
        task(2, title="The laptop's"), task(3, title="More", requires=["T-001", "T-002"]), task(5, requires=["T-003"])
    )
    laptop.finish("T-002")
    laptop.ws.git("fetch", "-q", "origin")
    assert laptop("renumber", "origin/main", "--json").json["renumbered"] == {"T-002": "T-006", "T-003": "T-007"}
    assert laptop("check").code == 0 and laptop.ws.git("status", "--porcelain") == ""
    merge(laptop)
    waiting = dict.fromkeys(("T-001", "T-002", "T-003", "T-005", "T-007"), "pending")
    assert laptop.states() == {**waiting, "T-006": "completed"}
    of_six = [(line["status"], line["summary"]) for line in laptop.lines() if line["id"] == "T-006"]
    assert [status for status, _ in of_six] == ["pending", "in-progress", "completed", "completed"]
    assert of_six[-1][1] == "Renumbered: it was T-002, which another clone has made, too"
    assert laptop.ws.json("task", "show", "T-007")["requires"] == ["T-001", "T-006"]
    assert laptop.ws.json("task", "show", "T-005")["requires"] == ["T-007"]
    assert laptop.ws.json("task", "show", "T-002")["title"] == "The office's"
    assert "nobody has taken it" in laptop.ws.json("task", "show", "T-002")["sealed"]
    assert laptop.ws.json("task", "show", "T-007")["sealed"] == "yes"
    take_ok(laptop.ws, "task", "plan")
    assert laptop("check").code == 0 and laptop.ws("check").code == 0
    laptop.finish("T-001")
    laptop.ok("claim", "T-007")


def test_a_merge_that_collides_says_what_to_do(office: Tasks, laptop: Tasks) -> None:
    office.planned(task(2, title="The office's"))
    laptop.planned(task(2, title="The laptop's"))
    with pytest.raises(AssertionError):
        merge(laptop)
    assert "cleared task renumber" in laptop("check").out
    refused(laptop("renumber", "origin/main"), 4)
    laptop.ws.git("merge", "--abort")
    assert laptop.ok("renumber", "origin/main").out == "T-002 is T-003 now: another clone has made T-002, too\n"
    merge(laptop)
    assert sorted(laptop.states()) == ["T-001", "T-002", "T-003"]


def test_who_uses_the_last_id_leaves_those_between(office: Tasks, laptop: Tasks) -> None:
    """Whoever can push may have given it: an id with a digit more would be none, and no task could be read again."""
    office.planned(task(2, title="The office's"), task(999_999))
    laptop.planned(task(2, title="The laptop's"), task(4))
    laptop.ws.git("fetch", "-q", "origin")
    assert laptop.ok("renumber", "origin/main").out == "T-002 is T-003 now: another clone has made T-002, too\n"
    merge(laptop)
    take_ok(laptop.ws, "task", "plan")
    assert laptop("check").code == 0 and sorted(laptop.states()) == ["T-001", "T-002", "T-003", "T-004", "T-999999"]


def test_what_both_have_alike_keeps_its_id(office: Tasks, laptop: Tasks) -> None:
    for tasks in (office, laptop):
        tasks.planned(task(2))
    laptop.ws.git("fetch", "-q", "origin")
    with unchanged(laptop.ws):
        assert "No id was given twice" in laptop.ok("renumber", "origin/main").err
    with unchanged(laptop.ws):
        refused(laptop("renumber", "nowhere"), 2, "there is no commit 'nowhere'")


def test_a_task_that_is_worked_on_is_finished_first(office: Tasks, laptop: Tasks) -> None:
    office.planned(task(2, title="The office's"), task(3, title="The office's"))
    laptop.planned(task(2, title="The laptop's"), task(3, title="The laptop's"), task(4))
    laptop.ok("claim", "T-003")
    laptop.ws.git("fetch", "-q", "origin")
    with unchanged(laptop.ws):
        refused(laptop("renumber", "origin/main"), 3, "T-003: somebody works on it", "cleared task retry T-003")
    laptop.ok("retry", "T-003")
    laptop.ok("claim", "T-004")
    laptop.ok("renumber", "origin/main")
    assert laptop.states()["T-004"] == "in-progress" and laptop("check").code == 0


def test_those_in_the_archive_too(office: Tasks, laptop: Tasks) -> None:
    office.planned(task(2, title="The office's"))
    laptop.planned(*(task(n, title="The laptop's") for n in range(2, 14)))
    laptop.complete(*(f"T-{n:03d}" for n in range(2, 13)))
    laptop.ok("archive")
    laptop.ws.git("fetch", "-q", "origin")
    laptop.ok("renumber", "origin/main")
    archived = [json.loads(line)["id"] for line in laptop.ws.read("docs/tasks/ARCHIVE.jsonl").splitlines()]
    assert archived == ["T-014", *(f"T-{n:03d}" for n in range(3, 13))]
    merge(laptop)
    assert laptop.states()["T-014"] == "completed" and laptop.states()["T-002"] == "pending"


def test_a_kill_leaves_the_old_ids_or_the_new_ones(office: Tasks, laptop: Tasks) -> None:
    """Said again, it ends in what was asked for."""
    office.planned(task(2, title="The office's"))
    laptop.planned(task(2, title="The laptop's"), task(3, requires=["T-002"]))
    laptop.ws.git("fetch", "-q", "origin")
    with Forks() as forks:
        for step in ("objects", "index", "ref", "file"):
            assert forks.killed_at(laptop.ws.root, ["task-renumber", "origin/main"], step), step
            is_done = step in ("ref", "file")
            assert sorted(laptop.states()) == (["T-001", "T-003", "T-004"] if is_done else ["T-001", "T-002", "T-003"])
            if is_done:
                break
    assert laptop.ws.git("status", "--porcelain") == "" and laptop.ws.git("show", f"HEAD:{LEDGER}") == (
        laptop.ledger.read_text()
    )
    laptop.ok("renumber", "origin/main")
    take_ok(laptop.ws, "task", "plan")
    assert laptop("check").code == 0
