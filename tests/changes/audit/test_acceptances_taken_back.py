"""Git took back that somebody answered for a commit by hand: then nobody does, whoever answers for that."""

from __future__ import annotations

import pytest
from harness import Workspace

JOURNAL, CHART = "books/2025/01/journal.csv", "accounts/chart-of-accounts.csv"
EDITS = {"row": (JOURNAL, "Amazon Web Services", "Somebody"), "account": (CHART, "Meals", "Fun")}
SHORT = 10


def accept(ws: Workspace, commit: str) -> None:
    ws.ok("accept", commit, "--reason", "meant so")


def list_named(ws: Workspace, *commits: str) -> list[bool]:
    """Of which of these commits a check says that somebody has to answer for them."""
    told = ws("check").out
    return [f"cleared accept {commit[:SHORT]}" in told for commit in commits]


@pytest.mark.parametrize("what", sorted(EDITS))
def test_the_edit_is_named_until_somebody_answers_for_it_again(posted: Workspace, what: str) -> None:
    """Else who answers for the revert has taken over an edit that was not to stand, and nobody ever hears of it."""
    path, old, new = EDITS[what]
    posted.put(path, posted.read(path).replace(old, new))
    posted.commit(path)
    edit = posted.head()
    accept(posted, edit)
    posted.in_order()
    posted.git("revert", "--no-edit", "HEAD")
    revert = posted.head()
    assert list_named(posted, edit, revert) == [True, True]
    accept(posted, revert)
    assert list_named(posted, edit, revert) == [True, False]
    assert "cleared check" in posted.ok("status").out, "nor does anybody rely on the books before"
    accept(posted, edit)
    posted.in_order()


def test_an_answer_that_git_brings_back_counts(posted: Workspace) -> None:
    path, old, new = EDITS["row"]
    posted.put(path, posted.read(path).replace(old, new))
    posted.commit(path)
    edit = posted.head()
    accept(posted, edit)
    posted.git("revert", "--no-edit", "HEAD")
    accept(posted, "HEAD")
    accept(posted, edit)
    posted.git("revert", "--no-edit", "HEAD")
    posted.git("revert", "--no-edit", "HEAD")
    again = posted.git("rev-parse", "HEAD~1", "HEAD").split()
    assert list_named(posted, edit, *again) == [False, True, True]
    for commit in again:
        accept(posted, commit)
    posted.in_order()


def test_an_edit_that_is_taken_back_with_its_answer_leaves_nothing(posted: Workspace) -> None:
    path, old, new = EDITS["row"]
    before = posted.read(path)
    posted.put(path, before.replace(old, new))
    posted.commit(path)
    edit = posted.head()
    accept(posted, edit)
    posted.git("revert", "--no-edit", "HEAD", edit)
    assert posted.read(path) == before
    reverts = posted.git("rev-parse", "HEAD~1", "HEAD").split()
    for commit in (edit, *reverts):
        accept(posted, commit)
    posted.in_order()


def test_an_answer_that_was_amended_counts_no_more_for_accounts(posted: Workspace) -> None:
    """What was found right holds of the history that it was found in."""
    chart = "accounts/chart-of-accounts.csv"
    posted.put(chart, posted.read(chart).replace("3200,Member draws", "3200,Meals"))
    posted.commit(chart)
    posted.ok("accept", "HEAD", "--reason", "it is called so")
    assert "changed accounts by hand" not in str(posted.json("status")["trouble"])
    message = posted.git("log", "-1", "--format=%B").replace("\n", " x\n", 1)
    posted.git("commit", "-q", "--amend", "-m", message)
    assert posted("check").code == 1
    assert "changed accounts by hand" in str(posted("status", "--json").json["trouble"])
