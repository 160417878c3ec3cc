"""Taking tasks in: all or none, checked, sealed, committed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from harness import Workspace, copy_books, take_ok
from tasking import LEDGER, Tasks, task

from cleared.work.task_runs import task_planning


@pytest.fixture
def tasks(ws: Workspace) -> Tasks:
    return Tasks(ws)


def test_init_makes_an_empty_ledger_and_never_truncates_one(ws: Workspace) -> None:
    """G6"""
    assert ws.json("task", "init")["new"] is True
    assert ws.read(LEDGER) == "" and ws.git("status", "--porcelain") == ""
    assert "tac docs/current/task-status.jsonl" in ws.read("docs/skills/task-indexer.md")
    ws.put(LEDGER, '{"id": "T-001", "status": "pending"}\n')
    ws.put("docs/skills/task-indexer.md", "mine\n")
    assert ws.json("task", "init")["new"] is False
    assert ws.read(LEDGER) == '{"id": "T-001", "status": "pending"}\n'
    assert ws.read("docs/skills/task-indexer.md") == "mine\n"


def test_init_keeps_a_ledger_that_was_never_committed(ws: Workspace) -> None:
    """G6"""
    ws.put(LEDGER, '{"id": "T-001", "status": "pending"}\n')
    assert ws.json("task", "init")["new"] is False
    assert ws.git("show", f"HEAD:{LEDGER}") == '{"id": "T-001", "status": "pending"}\n'


@pytest.mark.parametrize(
    "words", [("next",), ("list",), ("claim", "T-001"), ("plan",), ("check",), ("run", "--command", "true")]
)
def test_without_a_ledger_every_command_fails_at_once(ws: Workspace, words: tuple[str, ...]) -> None:
    """G7"""
    ws.put("docs/tasks/T-001.json", json.dumps(task(1)))
    done = ws("task", *words)
    assert done.code == 4 and done.out == "" and "cleared task init" in done.err


def test_a_plan_that_could_not_be_read_again_is_not_taken(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command would refuse it, the next plan too."""
    tasks.planned(task(1))
    monkeypatch.setattr(task_planning, "MAX_TASKS", 3)
    refusal = tasks.plan(*(task(number) for number in range(2, 5)))
    assert refusal.code == 1 and "more than 3 tasks" in refusal.err, refusal.err[:300]
    assert tasks("next").out == "T-001\n"


def test_a_plan_is_taken_whole_or_not_at_all(tasks: Tasks) -> None:
    """G1, G2: every fault is named, and nothing is written."""
    before = tasks.ws.head()
    done = tasks.plan(task(1), task(2, title=3), task(1), task(3, requires=["T-009"]))
    assert done.code == 1 and "T-002 (title)" in done.err and "T-001 is there twice" in done.err
    done = tasks.plan(task(1), task(3, requires=["T-009"]), task(4, docs=["no.md"], skills=["no-skill"]))
    assert done.code == 1
    for text in ("requires T-009", "docs/tasks/T-004.json (context.docs[0])", "docs/skills/no-skill.md"):
        assert text in done.err
    assert tasks.ws.head() == before and tasks.lines() == [] and not (tasks.ws.root / "docs/tasks/T-001.json").exists()
    tasks.planned(task(1), task(2, requires=["T-001"], docs=["docs/tasks/T-001.json"][:0], skills=["task-indexer"]))
    assert [line["status"] for line in tasks.lines()] == ["pending", "pending"]
    assert tasks.ws.git("status", "--porcelain") == ""


def test_a_circle_is_refused_with_its_path(tasks: Tasks) -> None:
    """G3"""
    done = tasks.plan(task(1, requires=["T-002"]), task(2, requires=["T-001"]))
    assert done.code == 1 and "T-001 → T-002 → T-001" in done.err


def test_an_id_is_there_once(tasks: Tasks) -> None:
    """G2"""
    tasks.ok("add", tasks.file(task(1)))
    done = tasks("add", tasks.file(task(1, title="Another")))
    assert done.code == 2 and "T-002" in done.err
    tasks.ws.put("docs/tasks/T-007.json", json.dumps(task(8)))
    done = tasks("plan")
    assert done.code == 1 and "its file is named T-007" in done.err and "docs/tasks/T-007.json" in done.err


def test_at_most_three_existing_files(tasks: Tasks) -> None:
    """G4: four are refused with how to split; three and two new ones pass."""
    for n in range(4):
        tasks.ws.put(f"docs/old{n}.txt", "x\n")
    four = [f"docs/old{n}.txt" for n in range(4)]
    done = tasks.plan(task(1, files=four))
    assert done.code == 1 and "4 files that exist" in done.err and "one for docs/old3.txt" in done.err
    tasks.planned(task(1, files=[*four[:3], "docs/new1.txt", "docs/new2.txt"]))


def test_an_altered_task_is_refused_until_it_is_planned_again(tasks: Tasks) -> None:
    """G15: the command comes from a file that everybody can write."""
    tasks.planned(task(1))
    altered = task(1, verification_command="touch /tmp/evil")
    tasks.ws.put("docs/tasks/T-001.json", json.dumps(altered))
    for words in (("claim", "T-001"), ("verify", "T-001"), ("run", "--command", "true")):
        done = tasks(*words)
        assert done.code == 3 and "altered" in done.err and "cleared task plan" in done.err, words
    assert "altered" in tasks("check").out
    tasks.ok("plan")
    tasks.ok("claim", "T-001")


def test_an_alteration_after_the_claim_is_refused_too(tasks: Tasks) -> None:
    """G15"""
    tasks.planned(task(1))
    tasks.ok("claim", "T-001")
    tasks.ws.put("docs/T-001.txt", "x")
    tasks.ws.put("docs/tasks/T-001.json", json.dumps(task(1, verification_command="true")))
    assert tasks("done", "T-001").code == 3
    assert tasks.states() == {"T-001": "in-progress"}


def test_how_a_file_is_spaced_plays_no_part(tasks: Tasks) -> None:
    tasks.planned(task(1))
    tasks.ws.put("docs/tasks/T-001.json", json.dumps(task(1), indent=7))
    tasks.ok("claim", "T-001")


def test_a_clone_takes_the_tasks_itself(tasks: Tasks, tmp_path: Path) -> None:
    """G15: what another machine sealed counts for nothing in another place."""
    tasks.planned(task(1))
    other = Workspace(copy_books(tasks.ws.root, tmp_path / "other"))
    done = other("task", "claim", "T-001")
    assert done.code == 3 and "seal is not this machine's" in done.err
    take_ok(other, "task", "plan")
    other.ok("task", "claim", "T-001")


def test_a_definition_may_be_replaced_before_it_is_worked_on(tasks: Tasks) -> None:
    tasks.planned(task(1))
    assert tasks.ws.json("task", "plan", tasks.file([task(1, title="Better")]))["changed"] == ["T-001"]
    tasks.ok("claim", "T-001")
    done = tasks.plan(task(1, title="Other"))
    assert done.code == 2 and "cannot be replaced" in done.err


def test_task_files_of_strange_kinds_are_reported(tasks: Tasks) -> None:
    """G2: links, folders, large files, other names."""
    tasks.planned(task(9))
    folder = tasks.ws.root / "docs/tasks"
    (folder / "T-001.json").symlink_to("/etc/passwd")
    (folder / "T-002.json").mkdir()
    os.mkfifo(folder / "T-003.json")
    (folder / "T-004.json").write_bytes(b"x" * (10 << 20))
    (folder / "T-5.json").write_text("{}")
    done = tasks("check")
    assert done.code == 1
    for name in ("T-001", "T-002", "T-003", "T-004", "T-5"):
        assert f"docs/tasks/{name}.json" in done.out
    assert tasks("plan").code == 1


def test_a_link_for_the_folder_leads_nowhere(tasks: Tasks, tmp_path: Path) -> None:
    tasks.planned(task(1))
    (tmp_path / "outside").mkdir()
    (tasks.ws.root / "docs/current").rename(tmp_path / "outside/current")
    (tasks.ws.root / "docs/current").symlink_to(tmp_path / "outside/current")
    assert tasks("list").code == 3


def test_inside_a_job_nothing_is_taken(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    """G8"""
    tasks.planned(task(1))
    monkeypatch.setenv("CLEARED_JOB", "worker")
    skip = ("skip", "T-001", "--summary", "x")
    commands = [(name, "T-001") for name in ("claim", "done", "retry", "fail", "verify")]
    for words in (("add", tasks.file(task(2))), ("plan",), skip, ("run", "--command", "true"), *commands):
        assert tasks(*words).code == 3, words


def test_check_names_what_is_wrong_with_the_ledger(tasks: Tasks) -> None:
    """G14"""
    tasks.planned(task(1))
    with tasks.ledger.open("a") as file:
        file.write('{"id": "T-001", "status": "completed", "updated_at": "today", "summary": ""}\n')
        file.write('nonsense\n{"id": "T-009", "status": "pending", "updated_at": "2026-01-01T00:00:00Z", ')
        file.write('"summary": ""}\n{"id"')
    found = tasks("check", "--json")
    texts = [row["message"] for row in found.json]
    assert found.code == 1
    for part in (
        "went from pending to completed",
        "no record: not JSON",
        "T-009 is in the ledger",
        "torn",
        "updated_at",
    ):
        assert any(part in f"{row['message']} {row['field']}" for row in found.json), (part, texts)


def test_a_clone_merges_the_ledger(tasks: Tasks, tmp_path: Path) -> None:
    """G10, G25: two clones append, git merges, no line is lost and none is torn."""
    tasks.planned(task(1), task(2))
    other = Workspace(copy_books(tasks.ws.root, tmp_path / "other"))
    take_ok(other, "task", "plan")
    for here, name in ((tasks.ws, "T-001"), (other, "T-002")):
        here.ok("task", "claim", name)
        here.put(f"docs/{name}.txt", "x\n")
        here.ok("task", "done", name)
    tasks.ws.git("pull", "-q", "--no-rebase", "--no-edit", str(other.root), "main")
    assert tasks.states() == {"T-001": "completed", "T-002": "completed"}
    assert len(tasks.lines()) == 6
    assert tasks("next").code == 6


def test_a_plan_that_cannot_be_committed_leaves_the_seals(tasks: Tasks) -> None:
    """What was taken before goes on counting, and what was not is not."""
    tasks.planned(task(1))
    (log,) = tasks.ws.root.glob("logs/agent-log-*.csv")
    before = log.read_bytes()
    log.write_bytes(before + b"edited\n")
    refusal = tasks.plan(task(1, verification_command="true"), task(2))
    assert refusal.code != 0 and log.name in refusal.err, refusal
    log.write_bytes(before)
    tasks.ws.put("docs/tasks/T-002.json", json.dumps(task(2)))
    assert tasks.ws.json("task", "show", "T-001")["sealed"] == "yes"
    assert "nobody has taken it" in tasks.ws.json("task", "show", "T-002")["sealed"]
