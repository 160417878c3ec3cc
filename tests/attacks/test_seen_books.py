"""What this machine saw last of the books stands outside the repository: what comes after is compared with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import IDENTITY, Workspace, chase, refused, take_ok, unchanged
from patience import PATIENCE
from pushing import check

from cleared.base.errors import WorkspaceError
from cleared.changes import lost_rows, reverted_decisions
from cleared.changes.audit import provenance
from cleared.trust.keys import cleared_home

FEBRUARY = chase(("02/03/2025", "AWS EMEA", "-42.10"), ("02/04/2025", "RENT", "-300.00"))
MARCH = chase(("03/03/2025", "AWS EMEA", "-41.10"))


@pytest.fixture
def other(posted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A clone that has pulled all of it, and committed nothing: git remembers nothing of this program's there."""
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    posted.git("branch", "-M", "main")
    posted.drop("february.csv", FEBRUARY)
    posted.run("ingest")
    posted.git("clone", "-q", ".", str(tmp_path / "other"))
    clone = Workspace(tmp_path / "other")
    take_ok(clone, "trust", "--yes")
    assert said(clone) == ""
    return clone


def said(ws: Workspace) -> str:
    return ws.ok("journal", "list").err


def is_named(ws: Workspace, *words: str) -> None:
    """Each command says it, and nothing is written, until a person accepts it."""
    told = said(ws)
    assert all(word in told for word in words), told
    found = [v["message"] for v in ws("check", "--json").json["violations"] if v["check"] == "lost"]
    assert len(found) == 1 and all(word in found[0] for word in words), found
    assert words[0] in ws("doctor").out and words[0] in ws("status").out
    with unchanged(ws):
        refused(ws("journal", "void", "2025-01-001", "--reason", "x"), 4, *words, "cleared recover --forget")
    assert words[0] in take_ok(ws, "recover", "--forget").out
    assert said(ws) == "" and ws.ok("recover").out == "Nothing is missing.\n"


def test_a_history_that_was_grafted_on_is_named(other: Workspace, posted: Workspace) -> None:
    posted.git("checkout", "-q", "--orphan", "graft")
    posted.git("rm", "-rfq", ".")
    posted.put("notes.txt", "x\n")
    posted.commit("notes.txt", message="notes")
    root = posted.head()
    posted.git("checkout", "-q", "main")
    posted.git("merge", "-q", "--no-edit", "--allow-unrelated-histories", "graft")
    other.git("pull", "-q", "--ff-only")
    is_named(other, "the history has a second beginning", root[:10], "'notes'")


def test_a_pull_that_has_fewer_rows_is_named(other: Workspace, posted: Workspace) -> None:
    posted.git("reset", "-q", "--hard", "HEAD~1")
    other.git("fetch", "-q")
    other.git("reset", "-q", "--hard", "origin/main")
    is_named(other, "the branch has lost 2 entries", "2 bank lines")


def test_rows_of_any_age_are_missed(other: Workspace, posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cleared.changes.lost_rows.MAX_COMMITS_COMPARED", 1)
    posted.git("rm", "-rq", "books/2025/01")
    posted.git("commit", "-qm", "x")
    other.git("pull", "-q", "--ff-only")
    is_named(other, "the branch has lost 4 entries")


@pytest.mark.parametrize("how", ["pulled", "done again", "lines"])
@pytest.mark.parametrize("wall", [True, False])
def test_what_was_taken_away_and_comes_back_is_named(
    other: Workspace, monkeypatch: pytest.MonkeyPatch, how: str, wall: bool
) -> None:
    """Somebody has kept the commit, and pushes it again, or one that does the same; or its attestation alone."""
    other.ok("journal", "void", "2025-01-001", "--reason", "x")
    gone, logs = other.head(), sorted((other.root / "logs").glob("attestations-*"))[-1]
    line = logs.read_text()
    other.git("reset", "-q", "--hard", "HEAD~1")
    take_ok(other, "recover", "--forget")
    other.ok("journal", "void", "2025-01-002", "--reason", "y")
    other.git("reset", "-q", "--hard", "HEAD~1")
    take_ok(other, "recover", "--forget")
    if how == "pulled":
        other.git("merge", "-q", "--ff-only", gone)
    elif how == "done again":
        other.put("notes.txt", "x\n")
        other.commit("notes.txt")
        other.git("cherry-pick", gone)
    else:
        logs.write_text(line)
        message = other.git("log", "-1", "--format=%B", gone)
        other.git("commit", "-qam", message.replace("void", "x"))
    if not wall:
        monkeypatch.setattr(provenance, "read_forgotten", lambda _: frozenset())
        found = other("check", "--json").json["violations"]
        assert "brings back" not in str(found) and (how == "lines" or not found)
        return
    (found,) = [each for each in check(other) if "brings back what was taken away here" in each]
    assert other.head()[:10] in found
    other.ok("accept", "HEAD", "--reason", "after all")
    other.in_order()


@pytest.mark.parametrize("wall", [True, False])
def test_words_take_no_commit_back(posted: Workspace, monkeypatch: pytest.MonkeyPatch, wall: bool) -> None:
    """A history without a decision, whose last commit says that it reverts it; on the machine that made it."""
    posted.ok("journal", "void", "2025-01-001", "--reason", "x")
    gone = posted.head()
    posted.git("reset", "-q", "--hard", "HEAD~1")
    posted.put("notes.txt", "x\n")
    posted.commit("notes.txt", message=f"Tidy\n\nThis reverts commit {gone}.")
    if not wall:
        count = reverted_decisions._count_changes
        monkeypatch.setattr(
            reverted_decisions, "_count_changes", lambda *what: count(what[0], what[1], gone, what[3])[:1] * 2
        )
        assert said(posted) == "" and posted.in_order() is None
        return
    told = said(posted)
    assert "the branch has lost 1 entry" in told and "1 attested decision" in told


def test_one_that_was_reverted_and_rebased_is_not_missed(other: Workspace, posted: Workspace) -> None:
    other.ok("journal", "void", "2025-01-001", "--reason", "x")
    other.git("revert", "--no-edit", "HEAD")
    posted.put("notes.txt", "x\n")
    posted.commit("notes.txt")
    other.git("pull", "-q", "--rebase")
    assert said(other) == ""


def test_where_git_has_it_no_more_numbers_are_compared(other: Workspace) -> None:
    other.git("reset", "-q", "--hard", "HEAD~1")
    other.git("remote", "remove", "origin")
    other.git("reflog", "expire", "--expire=now", "--all")
    other.git("update-ref", "-d", "ORIG_HEAD")
    other.git("gc", "-q", "--prune=now")
    is_named(other, "the books have fewer rows than this machine saw last", "8 rows of entries", "12 rows of entries")


def test_an_attestation_that_is_taken_out_is_missed(other: Workspace) -> None:
    path = next((other.root / "logs").glob("attestations-*"))
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    other.git("commit", "-qam", "tidy")
    is_named(other, "the branch has lost 1 attested decision")


DECISIONS = {
    "an account": ("accounts", "add", "6999", "Tea", "--type", "expense"),
    "a confirmation": ("queue", "approve", "2025-01-002"),
    "an agent": ("agent", "disable", "ingest"),
}


@pytest.mark.parametrize("what", DECISIONS)
@pytest.mark.parametrize("whose", ["mine", "theirs"])
def test_a_decision_that_left_no_entry_is_missed(other: Workspace, posted: Workspace, what: str, whose: str) -> None:
    """Taken out of the branch by this machine's git, or by somebody who pushed a history without it."""
    (other if whose == "mine" else posted).ok(*DECISIONS[what])
    other.git("pull", "-q", "--ff-only")
    assert said(other) == ""
    posted.git("reset", "-q", "--hard", "HEAD~1")
    other.git("fetch", "-q")
    other.git("reset", "-q", "--hard", "HEAD~1" if whose == "mine" else "origin/main")
    if whose == "theirs":
        return is_named(other, "the branch has lost", "1 attested decision")
    told = said(other)
    assert "the branch has lost" in told and "1 attested decision" in told, told
    assert "1 attested decision" in other.ok("recover").out
    other.in_order()
    assert said(other) == ""


def test_without_the_checkpoint_none_of_it_is(other: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cleared.changes.lost_rows.read_checkpoint", lambda _: None)
    other.git("reset", "-q", "--hard", "HEAD~1")
    assert said(other) == ""


@pytest.mark.parametrize("how", ["pull", "rebase", "merge", "drop", "switch", "amend", "worktree", "away"])
def test_what_people_do_with_git_is_quiet(other: Workspace, posted: Workspace, how: str) -> None:
    posted.drop("march.csv", MARCH)
    posted.run("ingest")
    other.put("notes.txt", "mine\n")
    other.commit("notes.txt", message="notes")
    assert said(other) == ""
    if how == "pull":
        other.git("pull", "-q", "--no-rebase", "--no-edit")
    elif how == "rebase":
        other.git("pull", "-q", "--rebase")
    elif how == "merge":
        other.git("fetch", "-q")
        other.git("merge", "-q", "--no-ff", "--no-edit", "origin/main")
    elif how == "drop":
        other.git("reset", "-q", "--hard", "HEAD~1")
    elif how == "switch":
        other.git("checkout", "-q", "-b", "side", "HEAD~1")
        assert said(other) == ""
        other.git("checkout", "-q", "main")
    elif how == "amend":
        other.git("commit", "-q", "--amend", "-m", "other words")
    elif how == "worktree":  # of the same clone, on a branch of its own
        other.git("worktree", "add", "-q", "-b", "beside", str(other.root.parent / "beside"), "HEAD~1")
        beside = Workspace(other.root.parent / "beside")
        beside.ok("journal", "void", "2025-01-003", "--reason", "x")
        other.ok("journal", "void", "2025-01-001", "--reason", "x")
        assert said(beside) == "" and said(other) == ""
    else:  # as a kill between the commit and the checkpoint leaves it
        made = seen_file(other)
        before = made.read_bytes()
        other.ok("journal", "void", "2025-01-001", "--reason", "x")
        made.write_bytes(before)
    assert said(other) == ""
    assert not [v for v in other("check", "--json").json["violations"] if v["check"] == "lost"]
    assert other.ok("recover").out == "Nothing is missing.\n"


@pytest.mark.parametrize("wall", [True, False])
@pytest.mark.parametrize("how", ["older", "of others", "detached"])
def test_a_branch_that_is_new_here_and_has_less_is_told_of_and_can_be_used(
    other: Workspace, posted: Workspace, monkeypatch: pytest.MonkeyPatch, how: str, wall: bool
) -> None:
    """Somebody has pushed it without what main has, or a person has made it of an older commit."""
    if not wall:
        monkeypatch.setattr(lost_rows, "_compare_with_last_branch", lambda *_: None)
    if how == "of others":
        posted.git("checkout", "-q", "-b", "side", "HEAD~1")
        posted.put("notes.txt", "x\n")
        posted.commit("notes.txt")
        other.git("fetch", "-q")
        other.git("checkout", "-q", "side")
    else:
        other.git("checkout", "-q", *([] if how == "detached" else ["-b", "side"]), "HEAD~1")
    here = "no branch is checked out, and HEAD" if how == "detached" else "the branch side is new here, and"
    told = said(other)
    assert (f"{here} lacks 2 entries" in told and "of main" in told and "git checkout main" in told) is wall
    if wall:
        checked = other.process("check", "--json")
        assert here in checked.err
        assert not [each for each in checked.json["violations"] if each["check"] == "lost"]  # it may be meant
    if how != "detached":
        other.ok("journal", "void", "2025-01-001", "--reason", "x")
        assert (here in said(other)) is wall
        if wall:
            refused(other("recover"), 1, here)
            take_ok(other, "recover", "--forget")
        assert said(other) == ""
    other.git("checkout", "-q", "main")
    assert said(other) == ""
    other.in_order()


def seen_file(ws: Workspace) -> Path:
    return cleared_home() / "checkpoints" / (ws.root / ".git/cleared-clone").read_text().strip() / "seen.json"


def test_one_that_is_damaged_is_told_of_and_begun_anew(other: Workspace) -> None:
    seen_file(other).write_text("{")
    refused(other("journal", "void", "2025-01-001", "--reason", "x"), 4, "is damaged: what this machine saw last")
    assert "is damaged" in other("doctor").out and "is damaged" in take_ok(other, "recover", "--forget").out
    other.ok("journal", "void", "2025-01-001", "--reason", "x")


def test_a_clone_that_is_trusted_begins_its_own(other: Workspace, tmp_path: Path) -> None:
    other.git("clone", "-q", ".", str(tmp_path / "third"))
    third = Workspace(tmp_path / "third")
    third.ok("journal", "list")
    assert not (third.root / ".git/cleared-clone").exists()
    take_ok(third, "trust", "--yes")
    assert seen_file(third).exists()


def test_where_it_cannot_be_kept_nothing_is_written(other: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full: reading goes on, and the next command keeps it."""
    other.put("notes.txt", "x\n")
    other.commit("notes.txt")
    with monkeypatch.context() as patch:

        def write_nothing(path: Path, data: bytes) -> None:
            raise WorkspaceError(f"{path} cannot be written: no space is left on the device")

        patch.setattr("cleared.trust.checkpoint.write_atomic", write_nothing)
        assert said(other) == ""
        with unchanged(other):
            refused(other("journal", "void", "2025-01-001", "--reason", "x"), 4, "no space is left")
    other.ok("journal", "void", "2025-01-001", "--reason", "x")
    assert said(other) == ""


def test_commands_at_once_keep_it_whole(other: Workspace) -> None:
    """Readers beside commits: what they keep is one of the commits that they saw, and nobody misses anything."""
    done = []
    for number in range(3):
        readers = [other.start("journal", "list") for _ in range(4)]
        done.append(other.start("journal", "void", f"2025-01-00{number + 1}", "--reason", "x"))
        for process in [*readers, done[-1]]:
            _, err = process.communicate(timeout=PATIENCE)
            assert process.returncode == 0 and b"has lost" not in err and b"damaged" not in err, err
        assert said(other) == ""
    other.in_order()
    assert json.loads(seen_file(other).read_bytes())["branches"]["refs/heads/main"]["commit"] == other.head()
