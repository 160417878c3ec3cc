"""What scripts see of the loop: asking for jobs by their commits, reading how jobs went."""

from __future__ import annotations

import json
import os
from datetime import datetime
from typing import Any

import pytest
from harness import CLOCK, Done, Workspace, fails, take_ok, unchanged
from scripting import GIT, begun, end, own

from cleared.base.clock import SystemClock
from cleared.base.errors import PolicyError
from cleared.changes.workspace_opening import open_workspace
from cleared.git import Repository
from cleared.jobs.inbox import enqueue_job
from cleared.primitives.loop import loop_enqueue
from cleared.triggers.requested_jobs import CommittedJobRequest, read_job_requests
from cleared.workspace.settings.config_file import load_config_file

ASK = 'loop_enqueue("git_status_summary")'


def asked(ws: Workspace, cursor: str | None = None) -> list[CommittedJobRequest]:
    """What the loop would take in."""
    host = open_workspace(ws.root)
    with Repository.open(host.root, for_writing=False) as repo:
        return read_job_requests(host, repo, repo.read_head() or "", cursor, datetime.fromisoformat(CLOCK))


def proposed(ws: Workspace, body: str, header: str = "", name: str = "probe") -> Done:
    ws.put(f"agents/{name}.py", f'"""\nname: {name}\ntrigger: on_demand\n{header}"""\n{body}\n')
    return ws("agent", "propose", name, "--json")


def emitted(ws: Workspace) -> list[dict[str, Any]]:
    path = ws.root / "logs/events-2025-02.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# -- asking -----------------------------------------------------------------------------------------------------------


def test_b17_a_script_asks_for_a_job_and_reads_how_jobs_are_but_cannot_write_the_ledger(ws: Workspace) -> None:
    """B17: granted only ``loop.*``, through the gate; then journal_add_double is refused by gate and host."""
    begun(ws)
    body = f'{ASK}\ngit_commit("ask")\n[loop_status()["status"], len(loop_jobs())]'
    made = proposed(ws, body, GIT)
    assert made.code == 0, made
    take_ok(ws, "agent", "approve", made.json["id"])
    assert ws.run("probe")["result"] == ["idle", 0]
    assert [(each.kind, each.target) for each in asked(ws)] == [("git_status_summary", "git status")]
    post = 'journal_add_double(date="2025-01-03", description="x", debit_account=5020, credit_account=1010, amount=1)'
    refused = proposed(ws, post, GIT, "writer")
    assert refused.code == 1 and "journal_add_double is not granted by the header" in refused.err
    (ws.root / "agents/writer.py").unlink()
    fails(ws, post, "journal_add_double is not granted to this script", header=GIT, name="other")
    assert ws.entries() == []


def test_a_job_is_asked_for_by_the_commit_and_named_with_the_run(ws: Workspace) -> None:
    made = ws.script(f'{ASK}\nloop_enqueue("git_status_summary", target=None)', header=GIT)
    assert made["result"] == {"kind": "git_status_summary", "target": "git status"}
    assert ws.trailers()["Emits"] == "2"
    run = made["run_id"]
    first, second = asked(ws)
    assert (first.requested_by, first.run, first.key, first.depth) == (f"run:{run}", run, f"{run}/0", 1)
    assert second.key == f"{run}/1" and first.commit == ws.head()
    assert [event["name"] for event in emitted(ws)] == ["loop.enqueue"] * 2


def test_it_is_told_once_up_to_the_cursor_also_over_other_commits(ws: Workspace) -> None:
    before = ws.head()
    ws.script(ASK, header=GIT)
    after = ws.head()
    assert len(asked(ws, before)) == 1 and asked(ws, after) == []
    ws.put("notes.txt", "by hand")
    ws.commit("notes.txt")
    ws.ok("event", "emit", "something.else")
    assert asked(ws, after) == []
    ws.run("probe")
    (again,) = asked(ws, after)
    assert again.commit == ws.head() and len(asked(ws, before)) == 2 == len(asked(ws))


def test_another_clones_jobs_are_not_this_ones(ws: Workspace) -> None:
    ws.script(ASK, header=GIT)
    ws.git("clone", "-q", str(ws.root), str(ws.root.parent / "clone"))
    clone = Workspace(ws.root.parent / "clone")
    assert asked(clone) == [] and len(asked(ws)) == 1


def test_a_run_that_fails_has_asked_for_nothing(ws: Workspace) -> None:
    fails(ws, f"{ASK}\n[][1]", header=GIT)
    assert asked(ws) == [] == emitted(ws)


def test_a_dry_run_asks_for_nothing(ws: Workspace) -> None:
    ws.agent("probe", ASK, GIT)
    with unchanged(ws):
        done = ws.run("probe", "--dry-run")
    assert done["result"] == {"kind": "git_status_summary", "target": "git status"}
    assert asked(ws) == [] and list(own(ws).inbox_folder.iterdir()) == []


def test_a_run_that_asked_wakes_the_loop_once_it_is_committed(ws: Workspace) -> None:
    bell = own(ws).wakeup_pipe
    os.mkfifo(bell)
    descriptor = os.open(bell, os.O_RDONLY | os.O_NONBLOCK)
    try:
        ws.agent("probe", ASK, GIT)
        ws.run("probe", "--dry-run")
        ws.script("1 + 1", name="other")
        assert os.read(descriptor, 10) == b""
        ws.run("probe")
        assert os.read(descriptor, 10) == b"."
    finally:
        os.close(descriptor)


def test_a_loop_that_cannot_be_woken_fails_no_run(ws: Workspace) -> None:
    own(ws).wakeup_pipe.mkdir()
    assert ws.script(ASK, header=GIT)["status"] == "succeeded"


def test_nobody_else_emits_what_the_loop_takes_for_an_order(ws: Workspace) -> None:
    order = '{"kind": "git_status_summary", "target": "git status"}'
    for name in ("loop.enqueue", "loop.job_finished"):
        fails(ws, f'ctx_emit("{name}", {order})', f"{name} is told by the program itself")
        done = ws("event", "emit", name, "--data", "{}")
        assert done.code == 2 and f"{name} is told by the program itself" in done.err


def test_a_forged_line_without_a_job_is_passed_over(ws: Workspace) -> None:
    run = ws.script('ctx_emit("mine", 1)', header="")["run_id"]
    ws.put("logs/events-2025-02.jsonl", ws.read("logs/events-2025-02.jsonl").replace('"mine"', '"loop.enqueue"'))
    ws.git("add", "logs/events-2025-02.jsonl")
    ws.git("commit", "-q", "--amend", "--no-edit")
    assert emitted(ws)[0]["run"] == run and asked(ws) == []


# -- what is granted --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    ["", "grants: [loop.enqueue]\n", "grants: [loop_enqueue]\n", "grants: [loop.enqueue, loop_enqueue:books_check]\n"],
)
def test_a_kind_that_the_header_does_not_name_is_refused(ws: Workspace, header: str) -> None:
    fails(
        ws,
        f'kind = "git_status_summary"\n{ASK[:13]}kind)',
        "to enqueue git_status_summary is not granted",
        "kind",
        "Add loop_enqueue:git_status_summary",
        header=header,
    )
    assert asked(ws) == []


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ('"git_status_sumary"', ("kind", "no job type", "Did you mean git_status_summary?")),
        ('"git_status_summary", "elsewhere"', ("target", "takes no target")),
        ('"continuity_scan", "../outside"', ("target", "no job may read this")),
        ('"continuity_scan", ".env"', ("target", ".env is forbidden to jobs")),
        ('"agent_run"', ("target", "needs the name of an agent")),
        ('"agent_run", "a/b"', ("target", "slash")),
    ],
)
def test_what_no_loop_would_run_is_refused_at_once(ws: Workspace, call: str, said: tuple[str, ...]) -> None:
    grants = "grants: [loop_enqueue:git_status_summary, loop_enqueue:continuity_scan, loop_enqueue:agent_run]\n"
    fails(ws, f"loop_enqueue({call})", "loop_enqueue", *said, header=grants)


def test_one_agents_job_can_be_granted_alone(ws: Workspace) -> None:
    header = "grants: [loop_enqueue:agent:ingest]\n"
    made = ws.script('loop_enqueue("agent:ingest")', header=header)
    assert made["result"] == {"kind": "agent_run", "target": "ingest"}
    fails(ws, 'loop_enqueue("agent_run", "review_reminder")', "loop_enqueue:agent:review_reminder", header=header)
    (only,) = asked(ws)
    assert (only.kind, only.target) == ("agent_run", "ingest")


def test_a_shared_script_is_bound_by_the_agent_that_runs_it(ws: Workspace) -> None:
    ws.shared("ask", ASK)
    assert ws.script('script_run("ask")', header="grants: [script.run, loop_enqueue:git_status_summary]\n")["result"]
    fails(
        ws,
        'script_run("ask")',
        "to enqueue git_status_summary is not granted",
        header="grants: [script.run, loop_enqueue:books_check]\n",
    )
    fails(ws, 'script_run("ask")', "to enqueue git_status_summary is not granted")
    assert len(asked(ws)) == 1


def test_grants_that_an_edited_header_adds_count_for_nothing_before_they_are_approved(ws: Workspace) -> None:
    made = proposed(ws, ASK, GIT)
    take_ok(ws, "agent", "approve", made.json["id"])
    path = ws.root / "agents/probe.py"
    path.write_text(path.read_text().replace("git_status_summary, git", "books_check, git"))
    assert ws("agent", "run", "probe").code == 0, "the approved version runs"
    assert [job.kind for job in asked(ws)] == ["git_status_summary"]
    ws.commit("agents/probe.py")
    assert ws("agent", "run", "probe").code == 3
    assert len(asked(ws)) == 1


# -- the gate ---------------------------------------------------------------------------------------------------------


def test_the_card_and_the_record_name_the_kinds(ws: Workspace) -> None:
    made = proposed(ws, ASK, GIT)
    assert "probe may have the loop run git_status_summary." in made.json["card"]
    take_ok(ws, "agent", "approve", made.json["id"])
    (record,) = (ws.root / "agents/approvals/agents/probe").glob("*.json")
    assert json.loads(record.read_text())["grants"] == ["loop_enqueue", "loop_enqueue:git_status_summary"]
    more = proposed(ws, f'{ASK}\nloop_enqueue("books_check")', GIT.replace("loop.read", "loop_enqueue:books_check"))
    assert "probe may now also have the loop run books_check (loop_enqueue:books_check)." in more.json["card"]
    take_ok(ws, "agent", "approve", more.json["id"])
    assert ws.run("probe")["status"] == "succeeded" and len(asked(ws)) == 2


def test_a_script_that_asks_is_rehearsed_the_same_whatever_the_loop_does(ws: Workspace) -> None:
    body = f'{ASK}\nif loop_status()["succeeded"] > 0 or loop_jobs():\n    ctx_emit("seen")\n'
    made = proposed(ws, body, GIT.replace("]", ", ctx.emit]"))
    assert made.code == 0, made
    end(ws, "job_20250210T050000Z_git_status_summary")
    done = take_ok(ws, "agent", "approve", made.json["id"])
    assert "stale" not in done.err
    assert asked(ws) == [], "what is only rehearsed asks for nothing"
    ws.run("probe")
    assert [event["name"] for event in emitted(ws)] == ["loop.enqueue", "seen"], "a run sees the loop"


def found(done: Done) -> list[tuple[str, int]]:
    assert done.code == 1, done
    return [(finding["rule"], finding["line"]) for finding in done.json["findings"]]


def test_the_gate_finds_kinds_that_are_not_or_are_not_granted(ws: Workspace) -> None:
    assert found(proposed(ws, ASK, GIT.replace("git_status_summary", "git_status_sumary"))) == [
        ("unknown-grant", 4),
        ("grants", 6),
    ]
    assert found(proposed(ws, f'{ASK}\nloop_enqueue(kind="books_check")', GIT)) == [("grants", 7)]
    assert found(proposed(ws, f'{ASK}\nk = "books_check"\nloop_enqueue(k)', GIT)) == [("grants", 7)]
    assert found(proposed(ws, ASK)) == [("grants", 5)], "without a grants: line nothing may be enqueued"
    agents = "grants: [loop_enqueue:agent:ingest, loop_enqueue:agent:other]\n"
    assert proposed(ws, 'loop_enqueue("agent:ingest")\nloop_enqueue("agent_run", "other")', agents).code == 0
    assert found(proposed(ws, 'loop_enqueue("agent:third")', agents)) == [("grants", 6)]
    assert proposed(ws, 'loop_enqueue("agent:third")', "grants: [loop_enqueue:agent_run]\n").code == 0


# -- reading ----------------------------------------------------------------------------------------------------------


def test_where_there_has_never_been_a_loop_that_is_said(ws: Workspace) -> None:
    read = ws.script("[loop_status(), loop_jobs()]", header="grants: [loop.read]\n")["result"]
    assert read[0]["status"] == "none" and read[0]["up"] is False and read[0]["queued"] == 0 and read[1] == []
    assert not (ws.root / ".cleared/loop").exists()
    fails(ws, 'loop_result("job_20250210T050000Z_books_check")', "loop_result", "no loop")


def test_jobs_are_read_while_they_wait_and_when_they_have_ended(ws: Workspace) -> None:
    runtime = begun(ws)
    end(ws, "job_20250210T050000Z_git_status_summary", by="rotation", summary="2 files differ")
    waits = enqueue_job(
        runtime, load_config_file(ws.root / "config.yaml"), "books_check", None, "person", SystemClock()
    )
    jobs = ws.script("loop_jobs(limit=10)")["result"]
    assert [(job["job_id"], job["status"]) for job in jobs] == [
        (waits, "queued"),
        ("job_20250210T050000Z_git_status_summary", "succeeded"),
    ]
    assert len(ws.script("loop_jobs(1)")["result"]) == 1
    assert ws.script("loop_status()")["result"]["queued"] == 1
    result = ws.script('loop_result("job_20250210T050000Z_git_status_summary")')["result"]
    assert result == {
        "job_id": "job_20250210T050000Z_git_status_summary",
        "kind": "git_status_summary",
        "target": "git status",
        "status": "succeeded",
        "started_at": "2025-02-10T05:00:00Z",
        "ended_at": "2025-02-10T05:00:00Z",
        "duration_sec": 0.25,
        "exit_code": 0,
        "summary": "2 files differ",
    }
    assert ws.script(f'loop_result("{waits}")["status"]')["result"] == "queued"
    fails(ws, 'loop_result("job_20250210T050000Z_nothing")', "job_id", "there is no job")
    fails(ws, 'loop_result("../../etc/passwd")', "job_id", "not the id of a job")
    fails(ws, "loop_jobs(limit=0)", "limit")


def test_a_result_that_is_none_is_passed_over(ws: Workspace) -> None:
    runtime = begun(ws)
    end(ws, "job_20250210T050000Z_git_status_summary")
    (runtime.jobs_folder / "job_20250210T050001Z_git_status_summary.result.json").write_text('{"ended_at": "2026"}')
    assert len(ws.script("loop_jobs()")["result"]) == 1


def test_outside_of_a_run_jobs_can_be_read_and_not_asked_for(ws: Workspace) -> None:
    from cleared.api.rpc.workspace_server import RequestHandler

    service = RequestHandler(open_workspace(ws.root))
    with service.open_dispatcher() as door:
        assert door.call_primitive("loop_jobs", (), {}) == []
    with service.open_dispatcher() as door, pytest.raises(PolicyError):
        door.call_primitive(loop_enqueue.name, ("git_status_summary",), {})
