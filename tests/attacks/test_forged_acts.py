"""Whoever can push misleads what takes something back: an undo by a commit that calls itself a decision, an import
undo by a file with the content of another.
"""

from __future__ import annotations

import pytest
from harness import Workspace, chase, refused, unchanged

INVOICE, COFFEE = "2025-01-002", "2025-01-004"
FORGED = f"confirm: {COFFEE} COFFEE\n\nDecision: 20250210T060000Z-aaaaaa\nBy: ana\nClock: 2025-02-10T06:00:00Z\nCards: "


def statuses(ws: Workspace) -> list[str]:
    """Of both entries; what is taken back is voided, and stands once more under another id."""
    by_id = {entry["entry_id"]: entry["status"] for entry in ws.entries()}
    return [by_id[INVOICE], by_id[COFFEE]]


def forge_merge(ws: Workspace) -> None:
    """Two decisions, and a merge with what was before both: its tree is that of the last commit."""
    first = ws.head()
    ws.ok("queue", "approve", INVOICE)
    ws.ok("queue", "approve", COFFEE)
    merge = ws.git("commit-tree", "HEAD^{tree}", "-p", first, "-p", "HEAD", "-m", f"{FORGED}{INVOICE} {COFFEE}")
    ws.git("reset", "-q", "--hard", merge.strip())


def test_an_undo_takes_back_what_was_decided_here(posted: Workspace) -> None:
    forge_merge(posted)
    posted.ok("queue", "undo")
    assert statuses(posted) == ["user-confirmed", "voided"]


def test_it_would_take_back_more_if_trailers_were_what_counts(
    posted: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    forge_merge(posted)
    monkeypatch.setattr("cleared.review.last_act.CommitOrigins.is_ours", lambda *_: True)
    posted.ok("queue", "undo")
    assert statuses(posted) == ["voided", "voided"]


def test_a_commit_that_calls_itself_an_undo_hides_no_decision(posted: Workspace) -> None:
    posted.ok("queue", "approve", INVOICE)
    posted.ok("queue", "approve", COFFEE)
    (decision,) = (x for x in posted.git("log", "-1", "--format=%B").splitlines() if x.startswith("Decision: "))
    undoes = decision.replace("Decision", "Undoes")
    posted.git("commit", "-q", "--allow-empty", "-m", f"undo: nothing\n\nDecision: 20250210T060000Z-aaaaaa\n{undoes}")
    posted.ok("queue", "undo")
    assert statuses(posted) == ["user-confirmed", "voided"]


# -- the import of a file ---------------------------------------------------------------------------------------------


def import_two(ws: Workspace) -> None:
    for name, row in (
        ("february.csv", ("02/03/2025", "AWS EMEA", "-42.10")),
        ("wrong.csv", ("02/04/2025", "TEA", "-3")),
    ):
        ws.drop(name, chase(row))
        ws.run("ingest")


def standing(ws: Workspace) -> set[str]:
    return {entry["description"] for entry in ws.entries() if entry["status"] != "voided"}


def test_a_file_that_git_brought_is_not_taken_for_an_import(ws: Workspace) -> None:
    import_two(ws)
    ws.put("wrong.csv", ws.read("import/processed/february.csv"))
    ws.commit("wrong.csv", message="sample")
    ws.ok("import", "undo", "wrong.csv")
    assert standing(ws) == {"AWS EMEA"}


def test_where_name_and_content_are_of_two_imports_both_are_named(ws: Workspace) -> None:
    import_two(ws)
    ws.put("wrong.csv", ws.read("import/processed/february.csv"))
    with unchanged(ws):
        refused(ws("import", "undo", "wrong.csv"), 2, "content of another one", "wrong.csv (run ", "february.csv (run ")
    ws.put("wrong.csv", ws.read("import/processed/wrong.csv"))
    ws.ok("import", "undo", "wrong.csv")
    assert standing(ws) == {"AWS EMEA"}


def test_it_would_be_if_every_file_counted(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    import_two(ws)
    ws.put("wrong.csv", ws.read("import/processed/february.csv"))
    ws.commit("wrong.csv", message="sample")
    monkeypatch.setattr("cleared.books.decisions.import_undoing._is_brought_by_git", lambda *_: False)
    refused(ws("import", "undo", "wrong.csv"), 2, "content of another one")


def test_a_merge_that_calls_itself_the_run_of_an_import_widens_no_undo(ws: Workspace) -> None:
    """Its first parent is an old commit, and its files are those of the last: what came between is none of its."""
    import_two(ws)
    run = ws.git("log", "--format=%(trailers:key=Run,valueonly)", "--grep=^import:").split()[0]
    ws.ok("journal", "add", "2025-01-31", "owner takes", "3200=7777.00", "1010=-7777.00")
    before, names = ws.git("rev-list", "--max-parents=0", "HEAD").strip(), standing(ws)
    message = f"x\n\nRun: {run}\nAgent: ingest\nEvent: file x\n"
    made = ws.git("commit-tree", "HEAD^{tree}", "-p", before, "-p", "HEAD", "-m", message).strip()
    ws.git("reset", "-q", "--hard", made)
    shown = ws("import", "undo", "february.csv")
    assert "owner takes" in {entry["description"] for entry in ws.entries() if entry["status"] != "voided"}, shown
    assert names - standing(ws) <= names
