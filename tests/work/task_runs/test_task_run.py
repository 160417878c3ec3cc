"""Workers in private clones, one task at a time, behind the host's verification and the gate."""

from __future__ import annotations

import json

import pytest
from harness import Workspace, take_ok
from tasking import LEDGER, Tasks, task

from cleared.processes.confinement import landlock_abi
from cleared.trust.keys import cleared_home

pytestmark = pytest.mark.slow

AGENT = '"""\nname: greet\ntrigger: on_demand\n"""\nctx_log("hello")\n'


@pytest.fixture
def tasks(ws: Workspace) -> Tasks:
    return Tasks(ws)


def run_one(tasks: Tasks, command: str) -> dict[str, object]:
    """One task with this worker: what became of it."""
    done = tasks("run", "--command", command, "--max", "1", "--json")
    assert done.code in (0, 6, 7), done
    (outcome,) = done.json["tasks"]
    assert isinstance(outcome, dict)
    return outcome


def test_three_tasks_one_failing_and_retried_its_script_approved_and_live(tasks: Tasks) -> None:
    """G15, G20: the story of the documentation."""
    tasks.planned(
        task(1),
        task(2, requires=["T-001"], verification_command="grep -q right docs/T-002.txt"),
        task(3, requires=["T-002"], files=["agents/greet.py"], verification_command="grep -q hello agents/greet.py"),
    )
    tasks.ws.put(
        "worker.sh",
        f"""
        case $CLEARED_TASK in
        T-001) echo one > docs/T-001.txt ;;
        T-002) if test -e docs/hint.txt; then echo right; else echo wrong; fi > docs/T-002.txt ;;
        T-003) cat > agents/greet.py <<'END'
{AGENT}END
        esac
        echo "did $CLEARED_TASK" """,
    )
    tasks.ws.commit("worker.sh")
    first = tasks("run", "--command", "sh worker.sh", "--json")
    assert first.code == 7 and [t["status"] for t in first.json["tasks"]] == ["completed", "failed"]
    assert "T-003 waits for T-002 (failed)" in first.json["reasons"]
    tasks.ws.put("docs/hint.txt", "look at T-001\n")
    tasks.ws.commit("docs/hint.txt")
    tasks.ok("retry", "T-002", "--summary", "With a hint")
    second = tasks("run", "--command", "sh worker.sh", "--json")
    assert [t["status"] for t in second.json["tasks"]] == ["completed", "awaiting-approval"]
    assert second.code == 7 and second.json["reasons"] == ["T-003 awaits your approval: cleared task show T-003"]
    proposal = second.json["tasks"][1]["proposal"]
    assert tasks.ws("agent", "run", "greet").code != 0 and not (tasks.ws.root / "agents/greet.py").exists()
    (card,) = tasks.ws.json("queue", "list")
    assert card["kind"] == "proposal" and "command sh" in json.dumps(card["details"])
    take_ok(tasks.ws, "agent", "approve", proposal)
    assert tasks.ws.run("greet")["status"] == "succeeded"
    assert tasks("next").code == 6 and tasks.states()["T-003"] == "completed"
    assert tasks.ws.git("status", "--porcelain") == "" and tasks.ws("check").code == 0


@pytest.mark.parametrize(
    ("command", "path"),
    [
        (f"echo '{{}}' >> {LEDGER}", LEDGER),
        ("echo x > docs/tasks/T-009.json", "docs/tasks/T-009.json"),
        ("echo x >> accounts/chart-of-accounts.csv", "accounts/chart-of-accounts.csv"),
        ("mkdir -p books/2025/01; echo x > books/2025/01/journal.csv", "books/2025/01/journal.csv"),
        ("echo x > queue/2025-01.jsonl", "queue/2025-01.jsonl"),
        ("echo x > logs/x.jsonl", "logs/x.jsonl"),
        ("mkdir -p agents/approvals/agents; echo x > agents/approvals/agents/x.json", "agents/approvals/agents/x.json"),
        ("mkdir -p .CLEARED; echo x > .CLEARED/state", ".CLEARED/state"),
        ("echo x > .auto-loop-state", ".auto-loop-state"),
        ("echo x > docs/tasks/t-009.JSON", "docs/tasks/t-009.JSON"),
        ("ln -s /etc/passwd docs/link", "docs/link"),
        ("git init -q docs/inner; echo x > docs/inner/y", "docs/inner"),
    ],
)
def test_what_is_the_hosts_is_refused_and_named(tasks: Tasks, command: str, path: str) -> None:
    """G8: a worker's append to the ledger, and everything else that no task may change."""
    tasks.planned(task(1))
    before = tasks.ws.git("ls-tree", "-r", "HEAD", "--", "accounts", "books", "docs/tasks", "agents")
    outcome = run_one(tasks, f"echo x > docs/T-001.txt; {command}")
    assert (
        outcome["status"] == "failed"
        and path in str(outcome["summary"])
        and "no task may change" in str(outcome["summary"])
    )
    assert tasks.ws.git("ls-tree", "-r", "HEAD", "--", "accounts", "books", "docs/tasks", "agents") == before
    assert not (tasks.ws.root / "docs/T-001.txt").exists() and tasks.ws.git("status", "--porcelain") == ""


def test_a_worker_that_claims_success_is_verified(tasks: Tasks) -> None:
    """G15"""
    tasks.planned(task(1, verification_command="exit 1"))
    outcome = run_one(tasks, 'echo x > docs/T-001.txt; echo \'{"id":"T-001","status":"completed"}\'; exit 0')
    assert outcome["status"] == "failed" and tasks.states() == {"T-001": "failed"}


def test_the_check_is_the_plans(tasks: Tasks) -> None:
    """G26: a worker neither rewrites what verifies it nor puts something beside it, but where the plan says so."""
    tasks.ws.put("docs/check.sh", "test ! -e docs/skip || exit 0\ngrep -q right docs/T-001.txt\n")
    tasks.ws.commit("docs/check.sh")
    command = "sh docs/check.sh"
    tasks.planned(
        task(1, verification_command=command),
        task(2, verification_command=command, files=["docs/T-001.txt", "docs/check.sh"]),
    )
    wrong = "echo wrong > docs/T-001.txt"
    outcome = run_one(tasks, f"{wrong}; echo exit 0 > docs/check.sh")
    assert outcome["status"] == "failed" and "context.files does not name: docs/check.sh" in str(outcome["summary"])
    tasks.ok("retry", "T-001")
    outcome = run_one(tasks, f"{wrong}; touch docs/skip")
    assert outcome["status"] == "failed" and "exit code 1" in str(outcome["summary"])
    assert run_one(tasks, f"{wrong}; echo exit 0 > docs/check.sh")["status"] == "awaiting-approval"


def test_a_worker_that_changes_nothing_or_fails_fails(tasks: Tasks) -> None:
    """G17"""
    tasks.planned(task(1), task(2))
    assert "changed nothing" in str(run_one(tasks, "true")["summary"])
    assert "exit code 3" in str(run_one(tasks, "echo x > docs/T-002.txt; exit 3")["summary"])


def test_a_worker_touching_four_existing_files_fails(tasks: Tasks) -> None:
    """G5"""
    for n in range(4):
        tasks.ws.put(f"docs/f{n}.txt", "1\n")
    tasks.ws.commit(*(f"docs/f{n}.txt" for n in range(4)))
    tasks.planned(task(1, files=["docs/f0.txt", "docs/f1.txt", "docs/f2.txt"]))
    outcome = run_one(tasks, "for n in 0 1 2 3; do echo 2 > docs/f$n.txt; done")
    assert outcome["status"] == "failed" and "4 files" in str(outcome["summary"])
    tasks.ok("retry", "T-001")
    three = task(1, verification_command="test -s docs/f0.txt", files=[f"docs/f{n}.txt" for n in range(3)])
    tasks.ws.put("docs/tasks/T-001.json", json.dumps(three))
    tasks.ok("plan")
    outcome = run_one(tasks, "for n in 0 1 2 n; do echo 2 > docs/f$n.txt; done")
    assert outcome["status"] == "completed" and "docs/fn.txt" in str(outcome["warnings"])


def test_a_worker_sees_its_clone_and_nothing_else(tasks: Tasks) -> None:
    """G23: the briefing is its input; the workspace and keys are out of reach, whatever it does to its git."""
    tasks.ws.put(".env", "SECRET=1")
    tasks.planned(task(1, files=["docs/T-001.txt", ".gitignore"]))
    root, home = tasks.ws.root, cleared_home()
    outcome = run_one(
        tasks,
        f"""cat > docs/T-001.txt
        for place in {root}/config.yaml {root}/.env {home}/task-key {root}/.git/HEAD; do cat $place && exit 9; done
        echo '*' > .gitignore; git config core.fsmonitor /bin/false; git config core.hooksPath /tmp
        git commit -qam x; echo x > {root}/evil; rm -rf .git; exit 0""",
    )
    if not landlock_abi():
        pytest.skip("the kernel has no Landlock")
    assert outcome["status"] == "awaiting-approval", outcome
    assert outcome["delta"] == {"files_added": ["docs/T-001.txt"], "files_modified": [".gitignore"]}
    assert "# T-001: Task 1" in tasks.ws.read("docs/T-001.txt") and not (root / "evil").exists()


def test_what_the_gate_refuses_fails_the_task(tasks: Tasks) -> None:
    tasks.planned(task(1, files=["agents/greet.py"], verification_command="true"))
    outcome = run_one(tasks, "echo 'import os' > agents/greet.py")
    assert outcome["status"] == "failed" and "does not pass the gate" in str(outcome["summary"])
    assert tasks.ws.json("queue", "list") == []


def test_a_file_that_somebody_changed_meanwhile_is_a_conflict(tasks: Tasks) -> None:
    """Neither is lost: the task fails and names it."""
    tasks.ws.put("docs/shared.txt", "1\n")
    tasks.ws.commit("docs/shared.txt")
    tasks.planned(task(1, files=["docs/shared.txt"], verification_command="true"))
    tasks.ws.put("docs/shared.txt", "mine\n")
    outcome = run_one(tasks, "echo theirs > docs/shared.txt")
    assert outcome["status"] == "failed" and "docs/shared.txt" in str(outcome["summary"])
    assert tasks.ws.read("docs/shared.txt") == "mine\n"


WRITER = """
task = ctx_event()["payload"]["task"]
{"files": {task["context"]["files"][0]: task["title"] + "\\n"}, "summary": "written"}
"""


def test_an_agent_script_can_be_the_worker(tasks: Tasks) -> None:
    tasks.ws.agent("writer", WRITER)
    tasks.planned(task(1))
    done = tasks("run", "--agent", "writer", "--json")
    assert done.code == 6, done
    assert tasks.ws.read("docs/T-001.txt") == "Task 1\n"
    assert [line["summary"] for line in tasks.lines()][1:] == ["Assigned to agent writer", "written"]


@pytest.mark.parametrize("path", ["../evil", "/tmp/evil", ".git/config"])
def test_an_agents_paths_stay_in_the_clone(tasks: Tasks, path: str) -> None:
    tasks.ws.agent("writer", f'{{"files": {{"{path}": "x"}}}}\n')
    tasks.planned(task(1))
    done = tasks("run", "--agent", "writer", "--json")
    assert done.json["tasks"][0]["status"] == "failed" and not (tasks.ws.root.parent / "evil").exists()


def test_one_worker_is_named(tasks: Tasks) -> None:
    tasks.planned(task(1))
    assert tasks("run").code == 2
    assert tasks("run", "--command", "true", "--agent", "x").code == 2
    assert tasks("run", "--agent", "nosuch").code == 2 and tasks("run", "--agent", "../x").code == 2
    assert tasks.states() == {"T-001": "pending"}
    tasks.ws.ok("config", "set", "tasks.command", "echo x > docs/$CLEARED_TASK.txt")
    assert tasks("run").code == 6


def test_the_loop_takes_a_turn(tasks: Tasks) -> None:
    """The job type task_turn: confined as a job, with the worker that the approved settings name."""
    tasks.ws.ok("config", "set", "tasks.command", "echo x > docs/$CLEARED_TASK.txt")
    tasks.planned(task(1), task(2))
    tasks.ws.ok("loop", "enqueue", "task_turn")
    done = tasks.ws.process("loop", "run", "--max-cycles", "1")
    assert tasks.states() == {"T-001": "completed", "T-002": "pending"}, done
    assert tasks.ws("check").code == 0


SCRIPT = """
before = task_list(status="pending")
card = task_propose({"title": "More", "description": "d", "requires": ["T-001"],
                     "context": {"files": ["docs/T-002.txt"], "docs": [], "skills": []},
                     "acceptance_criteria": ["c"], "verification_command": "test -s docs/T-002.txt"})
{"next": task_next(), "one": task_get("T-001"), "pending": len(before), "card": card}
"""


def test_a_script_reads_tasks_and_proposes_one_by_a_card(tasks: Tasks) -> None:
    tasks.planned(task(1))
    found = tasks.ws.script(SCRIPT)["result"]
    assert found["next"] == {"state": "ready", "id": "T-001", "reasons": []}
    assert found["one"]["status"] == "pending" and found["one"]["title"] == "Task 1" and found["pending"] == 1
    assert tasks.states() == {"T-001": "pending"}
    (card,) = tasks.ws.json("queue", "list")
    assert (card["id"], card["kind"]) == (found["card"], "task")
    assert "test -s docs/T-002.txt" in tasks.ws.ok("queue", "show", card["id"]).out
    tasks.ok("add", "--card", card["id"])
    assert tasks.states() == {"T-001": "pending", "T-002": "pending"}
    assert tasks.ws.json("queue", "list") == [] and tasks("add", "--card", card["id"]).code == 2
    assert tasks.ws("check").code == 0
    tasks.ws.script(SCRIPT.replace("More", "Even more"), name="again")
    (card,) = tasks.ws.json("queue", "list")
    tasks.ws.ok("queue", "answer", card["id"], "decline")
    assert len(tasks.states()) == 2


def test_a_script_gets_a_refusal_with_its_field(tasks: Tasks) -> None:
    tasks.planned(task(1))
    failed = tasks.ws.script('task_propose({"title": 3})', code=1)
    assert "description" in failed["error"]["message"]
    failed = tasks.ws.script('task_get("T-009")', code=1, name="other")
    assert "T-009" in failed["error"]["message"]


@pytest.mark.parametrize("command", ["\udcff", "nowhere/ x"])
def test_a_command_without_a_name_fails_as_any_other(tasks: Tasks, command: str) -> None:
    """What stands in the ledger and in the commit is the program's name: it was a blank, which no commit takes."""
    tasks.planned(task(1))
    assert tasks("run", "--command", command).code == 7
    assert tasks.states() == {"T-001": "failed"} and tasks.lines()[-2]["summary"] == "Assigned to command"
