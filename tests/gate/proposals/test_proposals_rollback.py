"""``cleared agent rollback``: the version before is back, the bad one barred, what it posted told. D7."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from harness import Workspace, refused, take_ok, take_shown, unchanged
from patience import PATIENCE

HEADER = '"""\nname: Probe\ntrigger: on_demand\n"""\n'
DOUBLE = 'journal_add_double(date="2025-01-03", description="{0}", debit_account=5020, credit_account=1010, amount="1")'
MANY = """journal_add_many(entries=[
    {{"date": "2025-01-04", "description": "{0} a", "lines": [
        {{"account_id": 5020, "debit": "2"}}, {{"account_id": 1010, "credit": "2"}}]}},
    {{"date": "2025-01-05", "description": "{0} b", "lines": [
        {{"account_id": 5020, "debit": "3"}}, {{"account_id": 1010, "credit": "3"}}]}},
])"""


def propose(ws: Workspace, *targets: str, code: int = 0) -> dict[str, Any]:
    done = ws("agent", "propose", *targets, "--json")
    assert done.code == code, done
    found = done.json
    assert isinstance(found, dict)
    return found


def go_live(ws: Workspace, body: str, name: str = "probe") -> str:
    """Write, propose and approve a version, as a person does; its text."""
    text = HEADER + body + "\n"
    ws.put(f"agents/{name}.py", text)
    take_ok(ws, "agent", "approve", propose(ws, name)["id"])
    return text


def rollback(ws: Workspace, name: str = "probe", *options: str) -> dict[str, Any]:
    found = ws.json("agent", "rollback", name, *options)
    assert isinstance(found, dict)
    return found


def events(ws: Workspace, name: str = "probe") -> list[str]:
    return [e["event"] for e in ws.json("agent", "history", name)]


def test_d7_one_command_restores_the_version_before_and_bars_the_bad_one(ws: Workspace) -> None:
    """D7: v1 is live again and runs; v2, brought back by hand, is refused until it is approved again."""
    good = go_live(ws, "1")
    bad = go_live(ws, "2")
    head = ws.head()
    done = rollback(ws, "probe", "--reason", "it was\nwrong")
    assert ws.read("agents/probe.py") == good and ws.run("probe")["result"] == 1
    assert ws.git("rev-list", "--count", f"{head}..HEAD").strip() == "1", "one commit"
    assert done["restored"] and done["quarantined"] != done["restored"] and done["entries"] == []
    assert ws.read(done["kept"]) == bad

    ws.put("agents/probe.py", bad)
    ws.commit("agents/probe.py")
    with unchanged(ws):
        refused(ws("agent", "run", "probe"), 3, "rolled back", "it was wrong", "cleared agent propose probe")
    assert events(ws)[-2:] == ["rolled back", "committed by hand"]

    take_ok(ws, "agent", "approve", propose(ws, "probe")["id"])
    assert ws.run("probe")["result"] == 2
    ws.in_order()


def test_d7_history_tells_of_every_step_also_of_a_quarantine_that_was_lifted(ws: Workspace) -> None:
    """D7: what was proposed, approved, rolled back and approved again is all told, oldest first."""
    go_live(ws, "1")
    bad = go_live(ws, "2")
    rollback(ws, "probe", "--reason", "no good")
    ws.put("agents/probe.py", bad)
    again = propose(ws, "probe")
    assert "rolled back" in events(ws)
    take_ok(ws, "agent", "approve", again["id"])
    told = ws.json("agent", "history", "probe")
    assert sorted(e["event"] for e in told) == sorted(["proposed", "approved"] * 3 + ["rolled back"])
    back = next(e for e in told if e["event"] == "rolled back")
    assert back["about"] == "no good" and back["version"] == again["files"][0]["digest"][7:19]
    assert "rolled back" in ws.ok("agent", "history", "probe").out


def test_d7_the_entries_it_posted_stay_and_are_listed_with_the_command_that_voids_them(ws: Workspace) -> None:
    """D7: entries of journal_add_double and journal_add_many; voided ones and those of other versions are not told."""
    go_live(ws, DOUBLE.format("old") + "\n1")
    ws.run("probe")
    go_live(ws, DOUBLE.format("new") + "\n" + MANY.format("new") + "\n2")
    posted = [e["entry_id"] for e in ws.run("probe")["entries"]]
    assert len(posted) == 3
    ws.ok("journal", "void", posted[0], "--reason", "x")
    books = {e["entry_id"]: e["status"] for e in ws.entries()}
    done = rollback(ws)
    assert {e["entry_id"]: e["status"] for e in ws.entries()} == books
    assert [e["entry_id"] for e in done["entries"]] == posted[1:]
    assert {e["description"] for e in done["entries"]} == {"new a", "new b"}
    for line in done["void"]:
        words = line.removeprefix("cleared ").replace("…", "wrong").split()
        ws.ok(*words)
    assert [e["status"] for e in ws.entries() if e["description"].startswith("new")] == ["voided"] * 3
    ws.in_order()


def test_d7_the_very_first_version_leaves_nothing_but_its_text(ws: Workspace) -> None:
    """D7: with no version before, the agent is gone; what it said is kept."""
    text = go_live(ws, "1")
    said = ws.ok("agent", "rollback", "probe")
    assert "is gone" in said.out and "Its text is kept as" in said.err
    assert not (ws.root / "agents/probe.py").exists()
    kept = next((ws.root / "agents/approvals/agents/probe").glob("*.py"))
    assert kept.read_text() == text
    refused(ws("agent", "run", "probe"), 2, "no agent 'probe'")
    refused(ws("agent", "rollback", "probe"), 2, "no agent 'probe'")
    assert events(ws) == ["proposed", "approved", "rolled back"]
    ws.put("agents/probe.py", text)
    take_ok(ws, "agent", "approve", propose(ws, "probe")["id"])
    assert ws.run("probe")["result"] == 1
    ws.in_order()


def test_d7_a_changed_starter_goes_back_to_the_starter_and_that_can_go_as_well(ws: Workspace) -> None:
    """D7: the package's own version counts as the one before; rolled back itself, it may not run either."""
    starter = ws.read("agents/ingest.py")
    ws.put("agents/ingest.py", starter + "# mine\n")
    take_ok(ws, "agent", "approve", propose(ws, "ingest")["id"])
    rollback(ws, "ingest")
    assert ws.read("agents/ingest.py") == starter
    ws.run("ingest")
    rollback(ws, "ingest")
    assert not (ws.root / "agents/ingest.py").exists()
    ws.put("agents/ingest.py", starter)
    ws.commit("agents/ingest.py")
    refused(ws("agent", "run", "ingest"), 3, "rolled back")
    take_ok(ws, "agent", "approve", propose(ws, "ingest")["id"])
    ws.run("ingest")


def test_d7_rolling_back_twice_goes_two_versions_back(ws: Workspace) -> None:
    """D7: each rollback bars one more."""
    texts = [go_live(ws, str(n)) for n in (1, 2, 3)]
    rollback(ws)
    assert ws.read("agents/probe.py") == texts[1]
    rollback(ws)
    assert ws.read("agents/probe.py") == texts[0] and ws.run("probe")["result"] == 1
    for text in texts[1:]:
        ws.put("agents/probe.py", text)
        ws.commit("agents/probe.py")
        refused(ws("agent", "run", "probe"), 3, "rolled back")


def test_d7_a_version_approved_again_goes_back_to_the_one_that_was_live_between(ws: Workspace) -> None:
    """D7: "before" is by approvals, not by text: 1, 2, 1 again goes back to 2."""
    first = go_live(ws, "1")
    second = go_live(ws, "2")
    ws.put("agents/probe.py", first)
    take_ok(ws, "agent", "approve", propose(ws, "probe")["id"])
    rollback(ws)
    assert ws.read("agents/probe.py") == second and ws.run("probe")["result"] == 2


def test_d7_text_committed_by_hand_goes_back_to_what_was_approved(ws: Workspace) -> None:
    """D7: also where the live text never was approved."""
    good = go_live(ws, "1")
    ws.put("agents/probe.py", HEADER + "666\n")
    ws.commit("agents/probe.py")
    refused(ws("agent", "run", "probe"), 3, "nobody has approved")
    rollback(ws)
    assert ws.read("agents/probe.py") == good and ws.run("probe")["result"] == 1


def test_d7_what_is_not_there_is_refused(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """D7: unknown agents, bad names, and a job that would decide."""
    go_live(ws, "1")
    go_live(ws, "2")
    with unchanged(ws):
        refused(ws("agent", "rollback", "nobody"), 2, "no agent 'nobody'")
        refused(ws("agent", "rollback", "../probe"), 2)
        refused(ws("agent", "history", "nobody"), 2, "no agent 'nobody'")
    monkeypatch.setenv("CLEARED_JOB", "7")
    with unchanged(ws):
        refused(ws("agent", "rollback", "probe"), 3, "not for a job")
    assert ws("agent", "history", "probe").code == 0, "a job may look"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="ancestors are not seen here")
def test_d7_a_job_does_not_decide_by_clearing_its_childs_environment(ws: Workspace) -> None:
    """D7: the process tree is looked at, not only the variable that was handed on."""
    go_live(ws, "1")
    go_live(ws, "2")
    inner = f"env -u CLEARED_JOB {sys.executable} -m cleared agent rollback probe -C {ws.root}"
    with unchanged(ws):
        done = subprocess.run(
            ["sh", "-c", f"sh -c '{inner}; exit $?'; exit $?"],
            env={**os.environ, "CLEARED_JOB": "night"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 3 and "job night" in done.stderr, done


def test_d7_a_change_proposed_before_the_rollback_is_stale_after_it(ws: Workspace) -> None:
    """D7: it was compared with a version that is live no more."""
    go_live(ws, "1")
    go_live(ws, "2")
    ws.put("agents/probe.py", HEADER + "3\n")
    waiting = propose(ws, "probe")
    ws.git("checkout", "-q", "--", "agents/probe.py")
    rollback(ws)
    refused(take_shown(ws, "agent", "approve", waiting["id"]), 3, "stale", "another approved version")
    assert ws.run("probe")["result"] == 1


def test_d7_reverting_the_rollback_with_git_does_not_bring_the_approval_back(ws: Workspace) -> None:
    """D7: the record comes back with the commit; on this machine it counts no more, until it is approved anew."""
    go_live(ws, "1")
    bad = go_live(ws, "2")
    rollback(ws)
    ws.git("revert", "--no-edit", "HEAD")
    assert ws.read("agents/probe.py") == bad
    with unchanged(ws):
        refused(ws("agent", "run", "probe"), 3, "withdrawn by a rollback", "cleared agent propose probe")
    take_ok(ws, "agent", "approve", propose(ws, "probe")["id"])
    assert ws.run("probe")["result"] == 2


def test_d7_a_shared_script_is_rolled_back_by_its_path(ws: Workspace) -> None:
    """D7: what agents run together leaves by one command as well."""
    for n in (1, 2):
        ws.put("scripts/tool.py", f"{n}\n")
        ws.put("agents/probe.py", HEADER + 'script_run("tool")\n')
        take_ok(ws, "agent", "approve", propose(ws, "probe" if n == 1 else "scripts/tool.py")["id"])
    assert ws.run("probe")["result"] == 2
    rollback(ws, "scripts/tool.py")
    assert ws.run("probe")["result"] == 1
    assert events(ws, "scripts/tool.py")[-1] == "rolled back"
    ws.put("scripts/tool.py", "2\n")
    ws.commit("scripts/tool.py")
    done = ws.run("probe", code=1)
    assert "rolled back" in json.dumps(done["error"])


def test_d7_a_damaged_quarantine_still_bars(ws: Workspace) -> None:
    """D7: what forbids needs no signature, and none of its fields."""
    go_live(ws, "1")
    bad = go_live(ws, "2")
    rollback(ws)
    mark = next((ws.root / "agents/approvals/agents/probe").glob("*.quarantined.json"))
    mark.write_text("{")
    ws.put("agents/probe.py", bad)
    ws.commit("agents")
    refused(ws("agent", "run", "probe"), 3, "rolled back")


def test_d7_the_kept_text_of_a_version_counts_only_as_it_was_approved(ws: Workspace) -> None:
    """Whoever can push can write to the file that a rollback would bring back: its digest is in the signed record."""
    first = go_live(ws, "1")
    go_live(ws, "2")
    (kept,) = [p for p in (ws.root / "agents/approvals/agents/probe").glob("*.py") if p.read_text() == first]
    kept.write_text(first.replace("\n1\n", "\n3\n"))
    ws.git("commit", "-qam", "forged")
    assert ws.run("probe")["result"] == 2
    ws("agent", "rollback", "probe")
    path = ws.root / "agents/probe.py"
    assert not path.exists() or "\n3\n" not in path.read_text()
    ended = ws("agent", "run", "probe", "--json")
    assert ended.code != 0 or ended.json["result"] != 3
