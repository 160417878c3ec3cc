"""What came with the program runs unapproved only in books that never had a version of their own, nor removed it."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import IDENTITY, Workspace, refused, take_ok
from proposing import propose, threshold

from cleared.trust import verification

OLDER = (Path(__file__).parents[1] / "workspace/first_ingest.txt").read_bytes()
WHY = "these books have had a version of their own, or have removed it"
RECORDS = "agents/approvals/agents/ingest"


@pytest.fixture
def own(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Books whose ``ingest`` is a version of their own."""
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    threshold(ws)
    take_ok(ws, "agent", "approve", propose(ws, "ingest")["id"])
    return ws


@pytest.fixture
def unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall switched off: each version that was ever shipped counts, in any books."""
    monkeypatch.setattr(verification.Approvals, "_has_left_starter", lambda approvals, path: False)


def push(ws: Workspace, *removed: str, **files: bytes) -> None:
    """A commit of somebody else's, as a pull brings it."""
    for path in removed:
        ws.git("rm", "-rq", "--", path)
    for name, data in files.items():
        ws.put(f"agents/{name}.py", data)
        ws.git("add", f"agents/{name}.py")
    ws.git("commit", "-qm", "agents")


def does_not_run(ws: Workspace, why: str = WHY, state: str = "not approved") -> None:
    """Whoever looks before it is run reads what the run says, and what to do."""
    listed = next(a for a in ws.json("agent", "list") if a["name"] == "ingest")
    remedy = listed["remedy"]
    assert listed["state"] == state and why in listed["approval"] and "cleared agent propose ingest" in remedy
    for argv in (["agent", "list"], ["status"], ["agent", "show", "ingest"]):
        done = ws(*argv)
        assert why in done.out + done.err and remedy in done.out + done.err, done
    ws.drop("january.csv")
    refused(ws("agent", "run", "ingest"), 3, why, remedy)


def test_an_older_starter_over_an_approved_version_does_not_run(own: Workspace) -> None:
    push(own, ingest=OLDER)
    does_not_run(own)


def test_it_would_if_each_shipped_version_counted(own: Workspace, unguarded: None) -> None:
    push(own, ingest=OLDER)
    own.drop("january.csv")
    own.run("ingest")


def test_nor_where_the_records_are_removed_with_it(own: Workspace) -> None:
    push(own, RECORDS, ingest=OLDER)
    does_not_run(own)


def test_nor_where_the_history_is_rewritten_to_before(own: Workspace) -> None:
    """This machine has signed that approval, and remembers it."""
    own.git("reset", "-q", "--hard", "HEAD~2")
    take_ok(own, "recover", "--forget")
    does_not_run(own)


def test_nor_in_a_clone_that_gets_both_at_once(own: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    push(own, RECORDS, ingest=OLDER)
    own.git("clone", "-q", ".", str(tmp_path / "clone"))
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "another"))
    clone = Workspace(tmp_path / "clone")
    take_ok(clone, "trust", "--yes")
    does_not_run(clone)


@pytest.mark.parametrize("way", ["proposed", "by hand"])
def test_a_starter_that_was_removed_does_not_come_back(ws: Workspace, way: str) -> None:
    starter = (ws.root / "agents/ingest.py").read_bytes()
    (ws.root / "agents/ingest.py").unlink()
    if way == "proposed":
        take_ok(ws, "agent", "approve", propose(ws, "ingest")["id"])
    else:
        ws.git("commit", "-qam", "no ingest")
    for data in (starter, OLDER):
        push(ws, ingest=data)
        is_known = way == "proposed" and data == starter
        does_not_run(ws, *(("the script was removed", "quarantined") if is_known else ()))


def test_one_that_came_back_can_be_proposed_before_it_was_ever_refused(ws: Workspace) -> None:
    starter = (ws.root / "agents/ingest.py").read_bytes()
    push(ws, "agents/ingest.py")
    push(ws, ingest=starter)
    take_ok(ws, "agent", "approve", propose(ws, "ingest")["id"])
    ws.drop("january.csv")
    ws.run("ingest")
    assert {a["name"]: a["state"] for a in ws.json("agent", "list")}["ingest"] == "approved"


def test_it_runs_again_once_it_is_approved(own: Workspace) -> None:
    push(own, ingest=OLDER)
    own.put("agents/ingest.py", OLDER)
    take_ok(own, "agent", "approve", propose(own, "ingest")["id"])
    own.drop("january.csv")
    own.run("ingest")


def test_what_a_rollback_brings_back_is_the_starter_that_was_replaced(own: Workspace) -> None:
    """Not an older one, which was pushed in between; and it runs, as a person has brought it back."""
    replaced = own.git("show", "HEAD~2:agents/ingest.py").encode()
    mine = (own.root / "agents/ingest.py").read_bytes()
    push(own, ingest=OLDER)
    push(own, ingest=mine)
    assert own.json("agent", "rollback", "ingest")["restored"]
    assert (own.root / "agents/ingest.py").read_bytes() == replaced
    own.drop("january.csv")
    own.run("ingest")
    assert own.json("agent", "list")[0]["state"] == "approved"
