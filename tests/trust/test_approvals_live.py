"""What is live stays live (D17, fault 15): while a script is edited or proposed, what is approved in HEAD runs, and
what is decided leaves a person's edit as it is."""

from __future__ import annotations

import json

import pytest
from harness import Workspace, refused, take_ok, take_shown, unchanged
from proposing import edit, live, proposal, propose, text, threshold, write
from world import World

from cleared.changes.decisions.shown_cards import expecting
from cleared.changes.workspace_opening import open_workspace
from cleared.gate.proposals.approval import approve_proposal
from cleared.gate.proposals.shown_proposal import read_shown_proposal

STATUS = ("status", "--porcelain", "--", "agents", "scripts", "config.yaml", "tests")


def test_d17_a_trigger_runs_what_is_approved_while_it_is_edited(ws: Workspace) -> None:
    """D17: an edit in agents/ and in scripts/, a missing file, an open proposal: events are dealt with as before."""
    ws.put("scripts/word.py", '"""\nname: word\n"""\n"approved"\n')
    ws.put("agents/hears.py", '"""\nname: h\ntrigger: event\nevent: ping\n"""\nctx_emit(script_run("word"))\n')
    take_ok(ws, "agent", "approve", propose(ws, "hears")["id"])
    with World(ws) as world:
        for number, change in enumerate(("edited", "proposed", "missing", "broken"), 1):
            if change == "edited":
                ws.put("agents/hears.py", ws.read("agents/hears.py") + 'ctx_emit("unapproved")\n')
                ws.put("scripts/word.py", '"""\nname: word\n"""\n"unapproved"\n')
            elif change == "proposed":
                propose(ws, "hears")
            elif change == "missing":
                (ws.root / "agents/hears.py").unlink()
            else:
                ws.put("agents/hears.py", b"\xff\x00 not even text")
            ws.ok("event", "emit", "ping")
            world.settle()
            assert len(world.ran("hears")) == number, world.log()
        assert not world.log("run.refused")
        assert {a["name"]: a["state"] for a in ws.json("status")["agents"]}["hears"] == "approved"
    said = [json.loads(line)["name"] for line in ws.read_events().splitlines()]
    assert said.count("approved") == 4 and "unapproved" not in said


def test_d17_where_head_itself_is_not_approved_nothing_runs(ws: Workspace) -> None:
    """D17: the working copy is approved, the commit is not: that runs nothing, as before."""
    path = live(ws, "1")
    approved = ws.read(path)
    ws.put(path, text("666"))
    ws.commit(path)
    ws.put(path, approved)
    with unchanged(ws):
        refused(ws("agent", "run", "probe"), 3, "nobody has approved")


def test_d4_d17_what_was_reviewed_is_approved_and_a_later_edit_stays(ws: Workspace) -> None:
    """D4, D17: P1 waits, somebody edits on: what becomes live is what was reviewed, to the byte; the edit is left."""
    threshold(ws)
    propose(ws, "ingest")
    reviewed = ws.read("agents/ingest.py")
    edit(ws, "agents/ingest.py", "0.97", "0.10")
    edited = ws.read("agents/ingest.py")
    done = take_shown(ws, "agent", "approve", "P1")
    assert done.code == 0 and "working copy of agents/ingest.py is another" in done.err, done
    assert ws.git("show", "HEAD:agents/ingest.py") == reviewed and ws.read("agents/ingest.py") == edited
    assert ws.git(*STATUS) == " M agents/ingest.py\n", "the index is as the commit"
    ws.drop("january.csv")
    assert ws.run("ingest")["status"] == "succeeded"
    assert ws.trailers()["Script"].split("@")[1] == ws.git("rev-parse", "HEAD:agents/ingest.py").strip()
    again = propose(ws, "ingest")
    assert take_ok(ws, "agent", "approve", again["id"]).err == ""
    assert ws.git(*STATUS) == ""


def test_d17_an_approval_leaves_removed_and_odd_working_copies_alone(ws: Workspace) -> None:
    """D17: whatever lies there. A file removed meanwhile stays so, a link is not followed."""
    outside = ws.root.parent / "outside.py"
    outside.write_text("mine")
    for name in ("gone", "link"):
        path = ws.root / live(ws, "1", name)
        write(ws, "2", name)
        proposed = propose(ws, name)["id"]
        path.unlink()
        if name == "link":
            path.symlink_to(outside)
        found = take_ok(ws, "agent", "approve", proposed, "--json").json
        assert found["edited"] == [f"agents/{name}.py"]
        assert ws.git("show", f"HEAD:agents/{name}.py") == text("2", name="Probe")
        assert path.is_symlink() if name == "link" else not path.exists()
        assert ws.run(name)["result"] == 2
    assert outside.read_text() == "mine"


def test_d17_a_proposal_is_approved_while_another_file_of_it_is_edited(ws: Workspace) -> None:
    """D17: also the shared script that goes live with it."""
    ws.put("scripts/inner.py", "1\n")
    write(ws, 'script_run("inner")')
    propose(ws, "probe")
    ws.put("scripts/inner.py", "2\n")
    take_ok(ws, "agent", "approve", "P1")
    assert ws.read("scripts/inner.py") == "2\n" and ws.run("probe")["result"] == 1
    assert ws.run("probe", "--dry-run")["result"] == 2


def test_d17_a_rollback_does_not_wait_for_an_edit_to_be_put_away(ws: Workspace) -> None:
    """D7, D17: a bad version goes back at once; the edit stays, and may be proposed."""
    path = live(ws, "1")
    good = ws.read(path)
    live(ws, "666")
    mine = ws.read(path) + "# mine\n"
    ws.put(path, mine)
    found = ws.json("agent", "rollback", "probe")
    assert found["edited"] and ws.read(path) == mine
    assert ws.git("show", f"HEAD:{path}") == good and ws.run("probe")["result"] == 1
    assert proposal(ws, propose(ws, "probe")["id"])["files"][0]["path"] == path


@pytest.mark.parametrize("step", ["ref", "file", "worktree"])
def test_d17_a_killed_approval_leaves_the_edit_too(ws: Workspace, step: str) -> None:
    """D17: finished by the next command, it overwrites nothing either."""

    class Killed(BaseException):
        """Nothing of the program sees it coming."""

    def kill(name: str) -> None:
        if name == step:
            raise Killed

    threshold(ws)
    propose(ws, "ingest")
    reviewed = ws.read("agents/ingest.py")
    edit(ws, "agents/ingest.py", "0.97", "0.10")
    edited = ws.read("agents/ingest.py")
    host = open_workspace(ws.root, on_step=kill)
    shown = read_shown_proposal(host, "P1")
    with pytest.raises(Killed), expecting({shown.proposal.folder: shown.digest}):
        approve_proposal(host, "P1", "P1")
    ws.ok("agent", "propose", "ingest")
    assert ws.git("show", "HEAD:agents/ingest.py") == reviewed and ws.read("agents/ingest.py") == edited
    assert proposal(ws, "P1")["decision"]["status"] == "approved"
    assert ws.git(*STATUS) == " M agents/ingest.py\n"
