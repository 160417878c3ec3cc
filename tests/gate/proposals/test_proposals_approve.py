"""``cleared agent approve``: one commit, with a signature; only for what was reviewed, only by a person."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness import JANUARY, Workspace, here, refused, take_ok, take_shown, unchanged
from patience import PATIENCE
from proposing import FEBRUARY, edit, history, live, proposal, propose, text, threshold, write

from cleared.api.rpc.workspace_server import RequestHandler
from cleared.changes.workspace_opening import open_workspace
from cleared.sandbox.bridge.jsonrpc import Request, RpcError


def count(ws: Workspace, since: str) -> int:
    return int(ws.git("rev-list", "--count", f"{since}..HEAD"))


# -- what it does -----------------------------------------------------------------------------------------------------


def test_d5_approving_is_one_commit_that_makes_it_live(ws: Workspace) -> None:
    """D5: ``agent:``, the proposal's id, trailers; the live file, its record; and it runs."""
    path = write(ws, "41 + 1")
    found = propose(ws, "probe")
    refused(ws("agent", "run", "probe"), 3, "cleared agent propose probe")
    before = ws.head()
    done = take_ok(ws, "agent", "approve", "P1", "--json").json
    assert done == {"id": "P1", "status": "approved", "commit": ws.head(), "files": [path], "edited": []}
    assert count(ws, before) == 1
    assert ws.git("log", "-1", "--format=%s").strip() == "agent: P1 approved: New agent probe"
    trailers = ws.trailers()
    assert trailers["Proposal"] == proposal(ws, "P1")["folder"] and trailers["Digest"] == found["digest"]
    assert trailers["Approved-by"] == trailers["By"] != ""
    assert ws.git("show", f"HEAD:{path}") == text("41 + 1")
    assert ws.run("probe")["result"] == 42
    records = list((ws.root / "agents/approvals/agents/probe").glob("*.json"))
    record = json.loads(records[0].read_text())
    assert len(records) == 1 and record["proposal"] == trailers["Proposal"] and record["by"] == trailers["By"]
    assert record["signature"] and record["base"] == found["base"] and record["effects"] == found["effects"]
    ws.in_order()


def test_d5_the_live_file_changes_though_the_working_copy_was_put_back(ws: Workspace) -> None:
    """D5: what was reviewed lies with the proposal, not in the editor."""
    threshold(ws)
    propose(ws, "ingest")
    ws.git("checkout", "-q", "agents")
    take_ok(ws, "agent", "approve", "P1")
    assert "0.97" in ws.read("agents/ingest.py") and ws.git("status", "--porcelain") == ""
    ws.drop("january.csv")
    assert ws.run("ingest")["result"]["review"] == 3


def test_it_says_what_is_live(ws: Workspace) -> None:
    write(ws, "1")
    propose(ws, "probe")
    assert re.fullmatch(r"P1 is live: agents/probe.py \([0-9a-f]{10}\)\n", take_ok(ws, "agent", "approve", "p1").out)


def test_d13_approving_again_says_so_and_does_nothing(ws: Workspace) -> None:
    """D13: approved already is no error."""
    live(ws, "1")
    with unchanged(ws):
        assert "approved already" in take_ok(ws, "agent", "approve", "P1").out
        assert take_ok(ws, "agent", "approve", "P1", "--json").json["commit"] is None


def test_d13_two_at_once_make_one_commit(ws: Workspace) -> None:
    """D13: two processes; one approves, the other says that it was done. Both exit 0."""
    write(ws, "1")
    propose(ws, "probe")
    before = ws.head()
    both = [ws.start("agent", "approve", "P1", "--json") for _ in range(2)]
    done = [(p.communicate(timeout=PATIENCE), p.returncode) for p in both]
    assert [code for _, code in done] == [0, 0], done
    said = [json.loads(out) for (out, _), _ in done]
    assert sorted((s["commit"] is None) for s in said) == [False, True]
    assert count(ws, before) == 1
    ws.run("probe")


def test_d13_approve_and_reject_at_once(ws: Workspace) -> None:
    """D13: one of the two decides; the other is told who did."""
    write(ws, "1")
    propose(ws, "probe")
    before = ws.head()
    both = [ws.start("agent", "approve", "P1"), ws.start("agent", "reject", "P1", "--reason", "no")]
    done = [(p.communicate(timeout=PATIENCE), p.returncode) for p in both]
    assert sorted(code for _, code in done) == [0, 3] and count(ws, before) == 1
    status = proposal(ws, "P1")["decision"]["status"]
    lost = next(err for (_, err), code in done if code == 3).decode()
    assert f"P1 is {status} already" in lost


def test_d12_nothing_else_is_swept_in(ws: Workspace) -> None:
    """D12: dirty, staged and untracked files stay as they are, uncommitted; so does another agent's edit."""
    write(ws, "1")
    propose(ws, "probe")
    edit(ws, "agents/monthly_summary.py", "description: ", "description: my own ")
    edit(ws, "config.yaml", "# ", "#  ")
    ws.put("notes.txt", "mine")
    ws.put("staged.txt", "mine")
    ws.git("add", "staged.txt", "config.yaml")
    status = ws.git("status", "--porcelain").splitlines()
    take_ok(ws, "agent", "approve", "P1")
    changed = ws.git("show", "--name-only", "--format=").split()
    assert not {"notes.txt", "staged.txt", "config.yaml", "agents/monthly_summary.py"} & set(changed)
    assert ws.git("status", "--porcelain").splitlines() == [s for s in status if "probe" not in s]


# -- only what was reviewed -------------------------------------------------------------------------------------------


def test_d4_a_proposals_own_file_edited_after_the_review_is_refused(ws: Workspace) -> None:
    """D4: in the working tree or committed so by hand, it is not the text that was examined."""
    write(ws, "1")
    propose(ws, "probe")
    stored = f"queue/proposals/{proposal(ws, 'P1')['folder']}/files/agents/probe.py"
    ws.put(stored, text("2"))
    with unchanged(ws):
        refused(take_shown(ws, "agent", "approve", "P1"), 3, stored, "edited after it was proposed")
    ws.commit(stored)
    with unchanged(ws):
        refused(take_shown(ws, "agent", "approve", "P1"), 3, stored, "not the text that P1 was examined with")
    ws.git("rm", "-q", stored)
    ws.git("commit", "-qm", "gone")
    with unchanged(ws):
        refused(take_shown(ws, "agent", "approve", "P1"), 3, stored)


def test_d15_an_unrelated_commit_keeps_the_proposal(ws: Workspace) -> None:
    """D15: commits by hand, another approval, runs of other agents: the effects are the same."""
    threshold(ws)
    propose(ws, "ingest")
    ws.put("notes.txt", "mine")
    ws.commit("notes.txt")
    live(ws, "1", "other")
    ws.run("other")
    ws.run("monthly_summary")
    take_ok(ws, "agent", "approve", "P1")
    assert proposal(ws, "P1")["decision"]["status"] == "approved"


def test_d15_an_agent_that_reads_the_queue_is_not_stale_by_its_own_card(ws: Workspace) -> None:
    """D15: that it is being asked about changes nothing of what it does."""
    edit(ws, "agents/review_reminder.py", "waiting for review, the oldest", "waiting, the oldest")
    propose(ws, "review_reminder")
    write(ws, "1")
    propose(ws, "probe")
    take_ok(ws, "agent", "approve", "P1")
    ws.run("review_reminder")


def stale(ws: Workspace, old: str, new: str, *why: str) -> None:
    """Refused as stale with these reasons; ``new`` has taken its place, waits, and can be approved."""
    live_before = ws.git("show", "HEAD:agents/ingest.py")
    refused(
        take_shown(ws, "agent", "approve", old),
        3,
        f"{old} is stale",
        "nothing was approved",
        *why,
        f"cleared agent diff {new} --impact",
        f"cleared agent approve {new}",
    )
    assert ws.git("show", "HEAD:agents/ingest.py") == live_before
    assert proposal(ws, old)["decision"]["status"] == "stale" and proposal(ws, new)["decision"] is None
    assert [c["title"].split(":")[0] for c in ws.cards() if c["kind"] == "proposal"] == [new]
    with unchanged(ws):
        refused(take_shown(ws, "agent", "approve", old), 3, "stale already", f"{new} takes its place")
    take_ok(ws, "agent", "approve", new)


def test_d15_a_file_imported_meanwhile_makes_it_stale(ws: Workspace) -> None:
    """D15: what was rehearsed over waiting files would do something else now; a new card takes its place."""
    ws.drop("january.csv")
    edit(ws, "agents/ingest.py", "Parsed ", "Read ")
    mine = ws.read("agents/ingest.py")
    propose(ws, "ingest")
    ws.git("checkout", "-q", "agents")
    ws.run("ingest")
    ws.put("agents/ingest.py", mine)
    stale(ws, "P1", "P2", "effects")


def test_d15_a_waiting_file_that_is_gone_makes_it_stale(ws: Workspace) -> None:
    """D15: the rehearsal cannot be held again."""
    file = ws.drop("january.csv")
    threshold(ws)
    propose(ws, "ingest")
    file.unlink()
    stale(ws, "P1", "P2", "import/january.csv", "not here any more")


def test_d15_a_file_dropped_meanwhile_changes_nothing(ws: Workspace) -> None:
    """D15: inputs are pinned when it is proposed."""
    ws.drop("january.csv")
    threshold(ws)
    propose(ws, "ingest")
    ws.drop("february.csv", FEBRUARY)
    take_ok(ws, "agent", "approve", "P1")


def test_d15_another_approved_version_makes_it_stale(ws: Workspace) -> None:
    """D15: the comparison on the card was with what is live no more."""
    ws.put("scripts/inner.py", "1\n")
    threshold(ws)
    one = ws.read("agents/ingest.py")
    propose(ws, "ingest", "scripts/inner.py")
    ws.git("checkout", "-q", "agents")
    edit(ws, "agents/ingest.py", "Parsed ", "Read ")
    propose(ws, "ingest")
    assert proposal(ws, "P1")["decision"] is None, "it changes more, so the newer one does not replace it"
    take_ok(ws, "agent", "approve", "P2")
    ws.put("agents/ingest.py", one)
    stale(ws, "P1", "P3", "agents/ingest.py has another approved version")


def close(ws: Workspace, account: str) -> None:
    chart = ws.root / "accounts/chart-of-accounts.csv"
    lines = chart.read_text().splitlines()
    lines[0] += ",code,currency,status,closed_on"
    lines[1:] = [line + (",,,closed,2025-01-01" if line.startswith(f"{account},") else ",,,,") for line in lines[1:]]
    chart.write_text("\n".join(lines) + "\n")
    ws.commit("accounts/chart-of-accounts.csv", message=f"config: close {account}")


def test_d15_an_account_closed_meanwhile_leaves_nothing_to_approve(ws: Workspace) -> None:
    """D15: re-gated, it does not pass any more: no new card, and it says what is wrong."""
    edit(ws, "agents/ingest.py", "Parsed ", "Read ")
    committed = ws.git("show", "HEAD:agents/ingest.py")
    propose(ws, "ingest")
    close(ws, "5020")
    refused(
        take_shown(ws, "agent", "approve", "P1"),
        3,
        "P1 is stale",
        "does not pass any more",
        "5020",
        "nothing was approved",
    )
    assert ws.git("show", "HEAD:agents/ingest.py") == committed
    assert not [c for c in ws.cards() if c["kind"] == "proposal"]
    assert len(list((ws.root / "queue/proposals").iterdir())) == 1


def test_d15_a_setting_that_it_reads_makes_it_stale(ws: Workspace) -> None:
    """D15: the threshold in config.yaml decides what ingest does."""
    ws.drop("january.csv")
    edit(ws, "agents/ingest.py", "Parsed ", "Read ")
    propose(ws, "ingest")
    ws.config("thresholds.auto_confirm=0.97")
    stale(ws, "P1", "P2", "effects")


def test_d15_a_reverted_live_script_is_not_brought_back_by_an_old_proposal(ws: Workspace) -> None:
    """D15: a script another proposal brought, then rolled back, is another base."""
    live(ws, "1")
    write(ws, "2")
    ws.put("scripts/inner.py", "1\n")
    propose(ws, "probe", "scripts/inner.py")
    ws.put("agents/probe.py", text("1"))
    ws.ok("agent", "rollback", "probe", "--reason", "wrong")
    done = take_shown(ws, "agent", "approve", "P2")
    assert done.code == 3 and "stale" in done.err and "nothing was approved" in done.err, done


def test_a_proposal_from_a_clone_is_examined_again_here(ws: Workspace, tmp_path: Path) -> None:
    """It travels with the repository; another machine does not take its card on trust."""
    history(ws)
    threshold(ws)
    propose(ws, "ingest", "-m", "ask more")
    shutil.rmtree(ws.root / ".cleared")
    take_ok(ws, "agent", "approve", "P1")
    assert ws.trailers()["Proposal"].startswith("P1-")


def test_a_proposal_is_approved_by_another_person_in_a_clone(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the live version trusted, it is the same change; without, nothing is taken for approved."""
    live(ws, "1")
    write(ws, "2")
    propose(ws, "probe")
    clones = []
    for name in ("trusting", "wary"):
        ws.git("clone", "-q", str(ws.root), str(tmp_path / name))
        clones.append(Workspace(tmp_path / name))
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "another machine"))
    refused(take_shown(clones[1], "agent", "approve", "P2"), 3, "not trusted on this machine yet", "cleared trust")
    take_ok(clones[0], "trust", "--yes")
    take_ok(clones[0], "agent", "approve", "P2")
    assert clones[0].run("probe")["result"] == 2


# -- only by a person -------------------------------------------------------------------------------------------------

DECISIONS = [
    ["agent", "approve", "P1"],
    ["agent", "reject", "P1", "--reason", "no"],
    ["config", "set", "thresholds.auto_confirm", "0.5"],
    ["config", "approve"],
]


@pytest.mark.parametrize("argv", DECISIONS, ids=lambda a: " ".join(a[:2]))
def test_a_job_does_not_decide(ws: Workspace, argv: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    write(ws, "1")
    propose(ws, "probe")
    monkeypatch.setenv("CLEARED_JOB", "job\n7")
    with unchanged(ws):
        refused(ws(*argv), 3, "not for a job to make")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ancestors are looked up in /proc")
@pytest.mark.parametrize("argv", DECISIONS[:2], ids=lambda a: " ".join(a[:2]))
def test_a_job_does_not_decide_by_hiding(ws: Workspace, argv: list[str]) -> None:
    """A child without the variable has it among its ancestors."""
    write(ws, "1")
    propose(ws, "probe")
    cleared = f"{sys.executable} -m cleared"
    hidden = f"env -u CLEARED_JOB {cleared} \"$@\" -C '{ws.root}'; code=$?; true; exit $code"
    with unchanged(ws):
        done = subprocess.run(
            [
                "sh",
                "-c",
                f"sh -c '{hidden.replace(chr(39), chr(39) + chr(92) + chr(39) + chr(39))}' sh \"$@\"; exit $?",
                "sh",
                *argv,
            ],
            env={**os.environ, "CLEARED_JOB": "job 7"},
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 3 and b"inside job job 7" in done.stderr, done
    done = subprocess.run(
        ["sh", "-c", f"{cleared} \"$@\" -C '{ws.root}'; exit $?", "sh", *argv],
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done


def test_no_primitive_and_no_method_decides(ws: Workspace) -> None:
    """Decisions are not among what scripts, engines and models can call."""
    write(ws, "1")
    propose(ws, "probe")
    service = RequestHandler(open_workspace(ws.root))
    offered = {m["name"] for m in service.handle_request(Request("rpc.discover", {}, 1))["methods"]}
    names = offered | {p["name"] for p in here("primitives", "--json").json}
    words = r"approv|reject|propos|decid|rollback|quarantin|trust|sign|grant|config_set|settings"
    reads_or_asks = {"proposal.list", "proposal.show", "task_propose"}  # the last one makes a card for a person
    assert {n for n in names if re.search(words, n, re.I)} - reads_or_asks == set()
    with unchanged(ws):
        for name in ("agent.approve", "agent_approve", "approve", "agent.propose", "config.set"):
            with pytest.raises(RpcError, match="Method not found"):
                service.handle_request(Request(name, {"proposal": "P1"}, 1))


def test_a_script_cannot_reach_its_own_proposal(ws: Workspace) -> None:
    """What a rehearsal could change, it could approve: nothing of it is kept."""
    write(ws, 'git_commit("agent: P1 approved")\nctx_emit("proposal.accepted", {"id": "P1"})\n1')
    propose(ws, "probe")
    assert proposal(ws, "P1")["decision"] is None
    refused(ws("agent", "run", "probe"), 3, "cleared agent propose probe")


def test_approving_needs_neither_terminal_nor_answer(ws: Workspace) -> None:
    write(ws, "1")
    propose(ws, "probe")
    done = ws.process("agent", "approve", "P1", stdin=b"")
    assert done.code == 0, done


def test_an_approval_is_not_carried_to_another_script_or_workspace(ws: Workspace) -> None:
    """The record is of these bytes at this path, for this workspace."""
    path = live(ws, "1")
    ws.put("agents/copy.py", ws.read(path))
    shutil.copytree(ws.root / "agents/approvals/agents/probe", ws.root / "agents/approvals/agents/copy")
    ws.commit("agents/copy.py", "agents/approvals")
    refused(ws("agent", "run", "copy"), 3, "is not its record of approval", "cleared agent propose copy")
    ws.put("agents/approvals/workspace", "f" * 32 + "\n")
    ws.commit("agents/approvals/workspace")
    refused(ws("agent", "run", "probe"), 3, "nothing is run")


def test_the_starter_is_approved_without_a_record(ws: Workspace) -> None:
    ws.drop("january.csv", JANUARY)
    ws.run("ingest")
    edit(ws, "agents/ingest.py", "Parsed ", "Read ")
    ws.commit("agents/ingest.py")
    refused(ws("agent", "run", "ingest"), 3, "nobody has approved this version", "cleared agent propose ingest")
