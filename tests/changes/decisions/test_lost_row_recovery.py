"""Fault 19: what git takes from the branch of what was committed here is missed, said, and brought back."""

from __future__ import annotations

import pytest
from harness import Workspace, chase, refused, take_ok, unchanged

from cleared.changes.workspace_opening import open_workspace
from cleared.gate.manual_runs import run_now
from cleared.git.refs import Branch

MORE = chase(("02/03/2025", "AWS EMEA", "-42.10", "457.90"), ("02/04/2025", "RENT", "-300.00", "157.90"))
LATER = chase(("02/05/2025", "STAPLES", "-7.00", "150.90"))


@pytest.fixture
def books(ws: Workspace) -> Workspace:
    ws.drop("january.csv")
    ws.run("ingest")
    ws.drop("february.csv", MORE)
    ws.run("ingest")
    return ws


def soft(ws: Workspace) -> None:
    """Index and files stay as they are."""
    ws.git("reset", "-q", "--soft", "HEAD~1")


def update_ref(ws: Workspace) -> None:
    ws.git("update-ref", "HEAD", "HEAD~2")


def hard(ws: Workspace) -> None:
    ws.git("reset", "-q", "--hard", "HEAD~2")


def hard_and_notes(ws: Workspace) -> None:
    """The branch goes another way: what was lost is in no history any more."""
    ws.git("reset", "-q", "--hard", "HEAD~1")
    ws.put("notes.txt", "mine\n")
    ws.commit("notes.txt")


def old_index(ws: Workspace) -> None:
    """A commit of the books of yesterday, on top."""
    ws.git("read-tree", "HEAD~1")
    ws.put("notes.txt", "mine\n")
    ws.git("add", "notes.txt")
    ws.git("commit", "-qm", "my notes")


@pytest.mark.parametrize("take", [soft, update_ref, hard, hard_and_notes, old_index])
def test_what_the_branch_lost_is_brought_back(books: Workspace, take) -> None:  # type: ignore[no-untyped-def]
    ws = books
    entries, cards = ws.entries(), ws.cards()
    before = {path: data for path, data in ws.state().files.items() if not path.startswith("logs/")}
    take(ws)
    told = ws("journal", "list")
    assert "the branch has lost" in told.err and "cleared recover" in told.err
    assert told.code == 0
    assert "lost" in [v["check"] for v in ws("check", "--json").json["violations"]]
    assert any("the branch has lost" in line for line in ws("status", "--json").json["trouble"])
    found = ws("doctor")
    assert found.code != 0 and "the branch has lost" in found.out and "cleared recover" in found.out
    with unchanged(ws):
        refused(ws("agent", "run", "ingest"), 4, "the branch has lost", "cleared recover --forget")
        refused(ws("journal", "void", "2025-01-001", "--reason", "x"), 4, "the branch has lost")
    done = ws.json("recover")
    assert done["commit"] == ws.head()
    assert done["left"] == []
    assert (ws.entries(), ws.cards()) == (entries, cards)
    after = {path: data for path, data in ws.state().files.items() if not path.startswith("logs/")}
    after.pop("notes.txt", None)
    assert after == before
    violations = ws("check", "--json").json["violations"]
    assert [v["check"] for v in violations] == (["provenance"] if take is old_index else [])
    assert ws.ok("recover").out == "Nothing is missing.\n"
    assert "lost" not in ws.ok("journal", "list").err
    # The events that had their run have had it, and the next file is booked with the next number.
    assert "Nothing" not in ws.drop("later.csv", LATER).read_text()
    ws.run("ingest")
    assert [e["entry_id"] for e in ws.entries()] == [*(e["entry_id"] for e in entries), "2025-02-003"]
    assert ws.git("fsck", "--strict", "--no-dangling") == ""


def test_a_lost_card_is_named_whatever_is_in_it(posted: Workspace) -> None:
    """Fault: its line was cut at what other programs take for the end of one, and no card was missed."""
    before = posted.head()
    posted.script(
        'journal_add_double(date="2025-02-07", description="a", debit_account=5020, credit_account=1010, amount=1, '
        'confidence=0.1, evidence="one\\u2028two")'
    )
    posted.git("reset", "-q", "--hard", before)
    assert "1 card" in " ".join(posted.json("status")["trouble"])


def test_forget(books: Workspace) -> None:
    ws = books
    ws.git("reset", "-q", "--hard", "HEAD~1")
    assert "Forgotten: the branch has lost 2 entries" in take_ok(ws, "recover", "--forget").out
    assert "lost" not in ws.ok("journal", "list").err
    ws.drop("february.csv", MORE)
    ws.run("ingest")
    assert len(ws.entries()) == 6
    ws.in_order()
    assert ws.ok("recover").out == "Nothing is missing.\n"


@pytest.mark.parametrize("how", ["rebase", "squash", "merge", "amend", "revert", "gc"])
def test_what_keeps_the_rows_is_quiet(books: Workspace, how: str) -> None:
    ws = books
    if how in ("rebase", "merge"):
        ws.git("checkout", "-q", "-b", "side", "HEAD~1")
        ws.put("notes.txt", "theirs\n")
        ws.commit("notes.txt")
        ws.git("checkout", "-q", "main")
        ws.git(*(("rebase", "-q", "side") if how == "rebase" else ("merge", "-q", "side")))
    elif how == "squash":
        ws.git("reset", "-q", "--soft", "HEAD~2")
        ws.git("commit", "-qm", "both imports")
    elif how == "amend":
        ws.git("commit", "-q", "--amend", "-m", "another message")
    elif how == "revert":  # a person says in so many words what is taken back
        ws.git("revert", "--no-edit", "HEAD")
    else:
        ws.git("gc", "-q", "--prune=now")
    said = ws.ok("journal", "list")
    assert "lost" not in said.err
    assert ws.json("recover")["commit"] is None


def test_it_survives_a_gc_that_prunes(books: Workspace) -> None:
    """What is remembered is kept, even where no branch and no reflog leads to it any more."""
    ws = books
    entries = ws.entries()
    ws.git("reset", "-q", "--hard", "HEAD~2")
    ws.git("reflog", "expire", "--expire=now", "--all")
    ws.git("gc", "-q", "--prune=now")
    ws.ok("recover")
    assert ws.entries() == entries
    ws.in_order()


def test_what_does_not_fit_any_more(books: Workspace) -> None:
    """Other rows have taken the places: it is refused with what is wrong and what to do, and nothing is changed."""
    ws = books
    ws.git("branch", "mine")
    ws.git("reset", "-q", "--hard", "HEAD~1")
    take_ok(ws, "recover", "--forget")
    ws.drop("later.csv", LATER)
    ws.run("ingest")
    ws.git("update-ref", "refs/worktree/cleared/main", "mine")
    with unchanged(ws):
        refused(ws("recover"), 1, "does not fit", "git show", "cleared recover --forget")


def test_the_wall_is_what_stops_it(books: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody remembers, the next import takes the place of the one that was lost."""
    ws = books
    taken = ws.entries()[-1]
    ws.git("reset", "-q", "--hard", "HEAD~1")
    ws.drop("later.csv", LATER)
    monkeypatch.setattr(Branch, "read_remembered_commit", lambda _: None)
    monkeypatch.setattr("cleared.changes.lost_rows.read_checkpoint", lambda _: None)
    assert run_now(open_workspace(ws.root), "ingest").status == "succeeded"
    monkeypatch.undo()
    assert ws.entries()[-1]["description"] == "STAPLES"
    assert ws.entries()[-1]["entry_id"] < taken["entry_id"]


def test_of_equal_rows_the_one_that_is_gone_is_named(ws: Workspace) -> None:
    ws.drop("one.csv", chase(("01/06/2025", "COFFEE", "-4.50")))
    ws.run("ingest")
    ws.drop("two.csv", chase(("01/06/2025", "COFFEE", "-4.50"), ("01/06/2025", "COFFEE", "-4.50")))
    ws.run("ingest")
    first, second = (e["entry_id"] for e in ws.entries())
    ws.git("reset", "-q", "--hard", "HEAD~1")
    assert f"the branch has lost 1 entry ({second})" in ws("journal", "list").err
    assert [e["entry_id"] for e in ws.entries()] == [first]
    asked = ws("recover", "--forget").err + ws("recover", "--forget").out
    assert second in asked and first not in asked
    ws.ok("recover")
    assert [e["entry_id"] for e in ws.entries()] == [first, second]
