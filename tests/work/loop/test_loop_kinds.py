"""Kinds of jobs: what the built-in ones say, what plug-ins may declare, limits of time and output."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from harness import chase, no_traceback, unchanged
from looping import Loop, eventually, plug_in
from running import has_ended

from cleared.trust.keys import cleared_home

pytestmark = pytest.mark.slow

# -- the documented ones ----------------------------------------------------------------------------------------------


def test_git_status_summary_says_what_git_says(loop: Loop) -> None:
    assert loop.once("git_status_summary")["summary"] == "clean: nothing differs from the last commit"
    loop.ws.put("a name with spaces é.txt", "x")
    loop.ws.put("config.yaml", loop.ws.read("config.yaml") + "# more\n")
    index = (loop.ws.root / ".git/index").read_bytes()
    result = loop.once("git_status_summary")
    assert result["summary"] == "1 changed, 1 untracked" and result["target"] == "git status"
    assert loop.output(result["job_id"]).startswith(' M config.yaml\n?? "a name with spaces é.txt"\n')
    assert (loop.ws.root / ".git/index").read_bytes() == index, "read-only"


def test_git_status_summary_runs_no_program_of_the_repositorys_settings(loop: Loop, tmp_path: Path) -> None:
    made = tmp_path / "ran"
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {made}\n")
    hook.chmod(0o755)
    for key in ("core.fsmonitor", "core.pager", "core.sshCommand", "diff.external"):
        loop.ws.git("config", key, str(hook))
    loop.ws.config("sandbox.confine=off")  # nothing else keeps it from writing there
    made.unlink(missing_ok=True)
    loop.ws.put("config.yaml", loop.ws.read("config.yaml") + "# more\n")
    loop.once("git_status_summary")
    assert not made.exists()


def test_continuity_scan_lists_documents(loop: Loop) -> None:
    root = loop.ws.root
    loop.ws.put("continuity/old.md", "old")
    loop.ws.put("continuity/deep/er/new.json", "{}")
    loop.ws.put("continuity/picture.png", "x")
    loop.ws.put("continuity/.git/x.md", "x")
    os.utime(root / "continuity/old.md", (1, 1))
    result = loop.once("continuity_scan")
    assert result["summary"] == "2 documents, 5 bytes; last changed: continuity/deep/er/new.json"
    lines = loop.output(result["job_id"]).splitlines()
    assert lines[1] == "1970-01-01T00:00:01Z          3 continuity/old.md"
    assert loop.once("continuity_scan", "continuity/old.md")["summary"].startswith("1 document, 3 bytes")
    gone = loop.once("continuity_scan", "continuity/none.md")
    assert gone["status"] == "failed" and "continuity/none.md: there is no such file or folder" in gone["summary"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"summary": "all is well", "rows": 3}', "reports/akela_meta.json: all is well"),
        ('{"rows": 3, "inner": {"best": 1.5}, "list": [1, 2]}', "rows 3, inner.best 1.5, list 2 entries"),
        ("# A report\n\nwith text\n", "A report (2 lines)"),
        ("", "empty (0 lines)"),
        ("[1]", "items 1 entry"),
        ("[" * 50_000, "(1 lines)"),
    ],
)
def test_akela_meta_summary_says_what_the_report_says(loop: Loop, text: str, said: str) -> None:
    loop.ws.put("reports/akela_meta.json", text)
    result = loop.once("akela_meta_summary")
    assert result["status"] == "succeeded" and said in result["summary"], result
    assert result["target"] == "Akela meta report"


# -- our own ----------------------------------------------------------------------------------------------------------


def test_what_the_books_kinds_say(posted: Any) -> None:
    loop = Loop(posted)
    for kind in ("queue_summary", "books_check", "runs_report"):
        loop.enqueue(kind)
    loop.run("--max-cycles", "3")
    queue, books, runs = (r["summary"] for r in loop.results())
    assert queue.startswith("2 cards to decide")
    assert books == "the books are in order: 4 entries, every invariant holds"
    assert "1 succeeded" in runs
    assert posted.git("status", "--porcelain") == ""
    path = next(p for p in (posted.root / "books").rglob("*.csv")) if (posted.root / "books").exists() else None
    path = path or next(p for p in posted.root.glob("**/*journal*.csv"))
    path.write_text(path.read_text().replace("4.00", "5.00", 1))
    result = loop.once("books_check")
    assert result["status"] == "failed" and "violation" in result["summary"], result


def test_an_agent_is_run_as_the_command_does(loop: Loop) -> None:
    loop.ws.drop("january.csv", chase(("01/03/2025", "GITHUB *PRO", "-4.00", "996.00")))
    head = loop.ws.head()
    job = loop.enqueue("agent:ingest")
    assert loop.state()["queue"][0]["kind"] == "agent_run" and loop.state()["queue"][0]["target"] == "ingest"
    loop.run("--once")
    result = loop.result(job)
    assert result["status"] == "succeeded" and loop.ws.head() != head, result
    assert loop.ws.head()[:10] in result["summary"] and len(loop.ws.entries()) == 1
    loop.ws.in_order()


def test_what_was_seen_of_the_books_is_kept_and_compared_in_a_job(loop: Loop) -> None:
    """It lies beside the keys: a job of this kind reaches it, and nothing else there."""
    ws, head = loop.ws, loop.ws.head()
    assert loop.once("agent:ingest")["status"] == "succeeded"
    (seen,) = cleared_home().rglob("seen.json")
    (branch,) = json.loads(seen.read_bytes())["branches"].values()
    assert branch["commit"] == head
    main = ws.git("branch", "--show-current").strip()
    ws.git("checkout", "-q", "--orphan", "graft")
    ws.git("commit", "-q", "-m", "another beginning")
    ws.git("checkout", "-q", main)
    ws.git("merge", "-q", "--no-edit", "--allow-unrelated-histories", "graft")
    with unchanged(ws):
        result = loop.once("agent:ingest")
    assert result["status"] == "failed" and "the history has a second beginning" in result["summary"], result


def test_an_agent_that_asks_can_be_answered(loop: Loop) -> None:
    """Fault 1: the one kind whose jobs may sign, with the key of this machine's runs."""
    loop.ws.agent("asker", 'queue_ask("Which?", ["a", "b"])')
    assert "waiting" in loop.once("agent:asker")["summary"]
    (card,) = loop.ws.cards()
    assert card["held"] is None, card
    assert loop.ws.json("queue", "answer", card["id"], "b")["run"]["result"] == "b"


def test_an_agent_that_fails_fails_its_job_and_one_that_is_none_too(loop: Loop) -> None:
    loop.ws.agent("broken", "1 // 0")
    result = loop.once("agent:broken")
    assert result["status"] == "failed" and "broken failed" in result["summary"] and "zero" in result["summary"]
    loop.ws.agent("unapproved", "1")
    loop.ws.put("agents/unapproved.py", loop.ws.read("agents/unapproved.py") + "2\n")
    loop.ws.commit("agents/unapproved.py")
    for name in ("nobody", "unapproved"):
        result = loop.once("agent_run", name)
        assert result["status"] == "failed" and name in result["summary"], result
    for name in ("../ingest", "", "a/b", ".hidden"):
        assert loop.here("enqueue", "agent_run", "--target", name).code == 3
    assert loop.here("enqueue", "agent_run").code == 3


def test_gate_check_all_names_who_does_not_pass(loop: Loop) -> None:
    assert loop.once("gate_check_all")["summary"] == "3 agents passed the gate"
    loop.ws.agent("broken", "import os\n")
    result = loop.once("gate_check_all")
    assert result["status"] == "failed" and result["summary"] == "1 agent did not pass the gate: broken"


# -- plug-ins ---------------------------------------------------------------------------------------------------------

HEAD = "from cleared.jobs.job_types import JobType\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise RuntimeError('no')", "cannot be loaded: RuntimeError: no"),
        ("wrong = 3", "is no job type of that name"),
        ("wrong = JobType('other', 'x', command=('true',))", "is no job type of that name"),
        ("wrong = JobType('wrong', 'x')", "either a command or a function"),
        ("wrong = JobType('wrong', 'x', command=('true',), function='os:getcwd')", "either a command or a function"),
        ("wrong = JobType('wrong', 'x', function='os:getcwd', in_loop=True)", "either a command or a function"),
        ("wrong = JobType('wrong', 'x', command=('true',), timeout=0)", "its limits must be positive"),
        ("wrong = JobType('wrong', 'x', command=('true',), max_output=-1)", "its limits must be positive"),
        (
            "wrong = JobType('wrong', 'x', command=('true',), reads_setting='akela_report')",
            "only built-in job types have",
        ),
    ],
)
def test_a_plug_in_that_is_wrong_is_named(
    loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    folder = plug_in(tmp_path / "plugin", "wrong_kinds", HEAD + text + "\n", ["wrong"])
    monkeypatch.syspath_prepend(folder)
    loop.ws.config("loop.plugins=[wrong]")
    try:
        done = loop.ws("loop", "job-types")
        no_traceback(done)
        assert done.code == 4 and said in done.err and "loop.plugins" in done.err, done
    finally:
        sys.modules.pop("wrong_kinds", None)


def test_a_plug_in_is_inert_until_it_is_named_and_approved(
    loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "imported"
    text = f"{HEAD}open({str(made)!r}, 'w')\nidle = JobType('idle', 'x', command=('true',))\n"
    folder = plug_in(tmp_path / "plugin", "idle_kinds", text, ["idle"])
    monkeypatch.setenv("PYTHONPATH", str(folder))
    assert loop("enqueue", "idle").code == 3 and loop("run", "--once").code == 0
    config = loop.ws.read("config.yaml") + "\nloop:\n  plugins: [idle]\n"
    loop.ws.put("config.yaml", config)
    done = loop("run", "--once", "--enqueue", "idle")
    assert done.code == 3, done
    assert not made.exists()
    assert loop("enqueue", "missing").code == 3


def test_a_plug_in_may_not_take_a_built_in_name(loop: Loop) -> None:
    loop.ws.config("loop.plugins=[git_status_summary]")
    done = loop.ws("loop", "job-types")
    assert done.code == 4 and "there is such a job type already" in done.err


def test_targets_are_arguments_of_their_own(probed: Loop) -> None:
    """No shell sees them."""
    probed.ws.put("docs/; touch made/x;.md", "fine")
    assert probed.once("echoes", "docs/; touch made/x;.md")["summary"] == "docs/; touch made/x;.md"
    assert list((probed.ws.root / "made").iterdir()) == []
    assert probed.here("enqueue", "nothing", "--target", "x").code == 3, "a kind without a target takes none"


# -- how jobs end -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "code", "said"),
    [
        ("nothing", 0, "done"),
        ("fails", 3, "it went wrong"),
        ("silent", 7, "ended with exit code 7"),
        ("killed", -9, "killed by SIGKILL"),
        ("raises", 1, "RuntimeError: in the middle"),
        ("absent", None, "the program no-such-program-anywhere is not installed"),
    ],
)
def test_how_a_job_ended_is_said(probed: Loop, kind: str, code: int | None, said: str) -> None:
    result = probed.once(kind)
    assert (result["exit_code"], result["summary"]) == (code, said)
    assert result["status"] == ("succeeded" if code == 0 else "failed")


def test_a_job_is_stopped_at_its_limit(probed: Loop) -> None:
    result = probed.once("limited")
    assert result["status"] == "failed" and result["summary"] == "stopped at its limit of 0.3 s"
    assert result["exit_code"] == -signal.SIGTERM


def test_a_job_that_will_not_end_is_killed_with_all_it_has_started(probed: Loop) -> None:
    result = probed.once("stubborn")
    assert result["status"] == "failed" and "stopped at its limit of 6 s" in result["summary"]
    assert result["exit_code"] == -signal.SIGKILL
    for name in ("loose", "self"):
        eventually(lambda name=name: has_ended(probed.ws.root / "made" / name))


def test_output_is_kept_up_to_its_limit_and_its_end_is_said(probed: Loop) -> None:
    result = probed.once("loud")
    assert result["status"] == "succeeded" and result["summary"] == "the end"
    text = probed.output(result["job_id"])
    assert 9_000 < len(text) < 10_200 and text.startswith("loud\n") and "characters are not kept]" in text


def test_output_that_is_no_text_is_kept_as_far_as_it_is(probed: Loop) -> None:
    result = probed.once("binary")
    assert result["status"] == "succeeded" and result["summary"] == "over"
    probed.json("show", result["job_id"])


def test_output_can_be_read_while_the_job_is_on(probed: Loop) -> None:
    probed.enqueue("slow_talker")
    process = probed.start()
    found = eventually(probed.running)
    eventually(lambda: probed.output(found["job_id"]) == "first\n")
    (probed.ws.root / "go").touch()
    eventually(lambda: probed.status()["counts"]["succeeded"] == 1)
    assert probed.output(found["job_id"]) == "first\nsecond\n"
    probed.end(process)


def test_nothing_is_left_when_a_job_has_ended(probed: Loop) -> None:
    result = probed.once("counts")
    assert not (probed.folder / "tmp" / result["job_id"]).exists()
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                assert result["job_id"].encode() not in (path / "environ").read_bytes()
            except OSError:
                continue
