"""This machine's own state that came with a commit: whoever can push planted it, and nothing believes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import Workspace, chase, here, refused


@pytest.mark.parametrize("name", [".auto-loop-state", ".auto-loop-stop", ".Auto-Loop-codex.pid"])
def test_the_state_of_a_loop_that_was_pushed_stops_everything(posted: Workspace, name: str) -> None:
    """It says what cycles have cost so far, and which process is the loop."""
    posted.put(name, "{}")
    posted.git("add", "-f", name)
    posted.git("commit", "-qm", "helpful files")
    for argv in (["journal", "list"], ["agent", "run", "ingest"]):
        refused(posted(*argv), 4, "planted", f"git rm -r -f {name}")


@pytest.mark.parametrize("name", [".Cleared", ".CLEARED"])
def test_state_under_a_name_that_some_disks_take_for_its_own_stops_everything(posted: Workspace, name: str) -> None:
    posted.put(f"{name}/runs.db", "x")
    posted.commit(f"{name}/runs.db")
    refused(posted("journal", "list"), 4, "planted", f"git rm -r -f {name}")


def test_a_planted_note_about_an_unfinished_commit_moves_nothing(posted: Workspace) -> None:
    """It would move a file of the commit to where nobody asks any more whether git brought it."""
    posted.put("notes/rows.csv", chase(("02/03/2025", "DRAW", "-7777.00")))
    posted.commit("notes/rows.csv")
    oid = posted.git("rev-parse", "HEAD:notes/rows.csv").strip()
    move = {"source": "notes/rows.csv", "target": "import/rows.csv", "oid": oid}
    head, branch = posted.head(), posted.git("symbolic-ref", "HEAD").strip()
    note = {"version": 1, "base": head, "commit": head, "branch": branch, "paths": [], "moves": [move]}
    posted.put(".cleared/seal.json", json.dumps(note | {"made": [], "pending": []}))
    posted.commit(".cleared/seal.json")
    for argv in (["status"], ["agent", "run", "ingest"], ["journal", "list"], ["recover"], ["doctor"]):
        posted(*argv)
        assert not (posted.root / "import/rows.csv").exists(), argv
        assert (posted.root / ".cleared/seal.json").exists(), argv
    refused(posted("journal", "list"), 4, "planted", "git rm")


def test_nor_does_one_in_a_repository_in_which_no_books_are_yet(ws: Workspace, tmp_path: Path) -> None:
    """Somebody's repository that was cloned, and in which books are to begin."""
    foreign = Workspace(tmp_path / "foreign")
    foreign.root.mkdir()
    foreign.git("init", "-q")
    foreign.put("notes/rows.csv", "x\n")
    foreign.commit("notes/rows.csv")
    head, branch = foreign.head(), foreign.git("symbolic-ref", "HEAD").strip()
    move = {"source": "notes/rows.csv", "target": "import/rows.csv"} | {
        "oid": foreign.git("rev-parse", "HEAD:notes/rows.csv").strip()
    }
    note = {"version": 1, "base": head, "commit": head, "branch": branch, "paths": [], "moves": [move]}
    foreign.put(".cleared/seal.json", json.dumps(note | {"made": [], "pending": []}))
    foreign.commit(".cleared/seal.json")
    before = foreign.state()
    refused(here("init", str(foreign.root)), 4, "planted", "git rm")
    assert not foreign.state().changed_since(before) and not (foreign.root / "import").exists()


def test_a_commit_with_state_in_it_stops_everything_until_it_is_removed(posted: Workspace) -> None:
    """A forged session, answers of a model, sums of money: git checks out what is tracked, ignored or not."""
    posted.put(".cleared/sessions/S20991231T000000-abcd/session.json", "{}")
    posted.git("add", "-f", ".cleared/sessions")
    posted.git("commit", "-qm", "helpful files")
    for argv in (["agent", "run", "ingest"], ["journal", "list"], ["queue", "list"], ["agent", "list"]):
        refused(posted(*argv), 4, "planted", "git rm")
    posted.git("rm", "-rqf", ".cleared")
    posted.git("commit", "-qm", "removed")
    assert posted("journal", "list").code == 0
