"""``git pull`` by a person: what git joins and no clone would have written is named, and nothing goes on from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import LOG, Workspace, refused, take_ok, unchanged
from synced import CAFE, SHOP, follow, part

pytestmark = pytest.mark.slow

Two = tuple[Workspace, Workspace, Path]


def close(ws: Workspace) -> None:
    ws.ok("queue", "approve", "2025-02-001")
    ws.ok("period", "close", "2025-01")


def post_late(ws: Workspace) -> None:
    ws.ok("journal", "add", "2025-01-05", "late", "5070=9", "1010=-9")


@pytest.mark.parametrize("how", ["--no-rebase", "--rebase"])
def test_an_entry_in_a_month_that_the_other_side_had_closed(two: Two, how: str) -> None:
    ws, other, _ = two
    close(other)
    other.ok("sync")
    post_late(ws)
    before = ws.head()
    ws.git("pull", "-q", how, "--no-edit")
    assert "the trial balance at 2025-01-31 is not the one" in ws("check").out
    ws.drop("cafe.csv", CAFE)
    with unchanged(ws):
        refused(ws("agent", "run", "ingest"), 4, "git has joined two clones", "git reset --keep", "cleared sync")
        refused(ws("journal", "add", "2025-02-05", "x", "5070=9", "1010=-9"), 4, "git has joined")
        refused(ws("sync"), 4, "git has joined")
    ws.git("reset", "-q", "--keep", before)
    (step,) = ws.json("sync")["steps"]
    assert "closed" in step["left_out"]
    ws.run("ingest")
    ws.in_order()


def test_it_is_not_fetched_from_others(two: Two) -> None:
    """Who does not use ``sync`` can push it; whoever fetches it by git is told before anything rests on it."""
    ws, other, _ = two
    post_late(other)
    other.ok("sync")
    close(ws)
    ws.git("pull", "-q", "--no-rebase", "--no-edit")
    ws.git("push", "-q")
    with unchanged(other):
        refused(other("sync"), 4, "with what others have pushed")
        other.git("fetch", "-q")
    other.git("pull", "-q", "--ff-only")
    with unchanged(other):
        refused(other("journal", "add", "2025-02-05", "x", "5070=9", "1010=-9"), 4, "git has joined")
    take_ok(other, "recover", "--forget")
    other.ok("period", "reopen", "2025-01", "--reason", "joined by git")
    other.in_order()
    other.ok("sync")
    take_ok(ws, "recover", "--forget")
    ws.ok("sync")
    ws.in_order()


def test_a_merge_that_is_in_order_is_no_matter(two: Two) -> None:
    ws, other = part(two)
    ws.ok("journal", "void", "2025-02-002", "--reason", "no")
    ws.ok("sync")
    other.ok("journal", "add", "2025-01-05", "theirs", "5070=1", "1010=-1")
    other.ok("sync")
    ws.ok("journal", "add", "2025-03-05", "mine", "5070=2", "1010=-2")
    ws.git("pull", "-q", "--no-rebase", "--no-edit")
    ws.ok("journal", "add", "2025-03-06", "more", "5070=3", "1010=-3")
    ws.ok("sync")
    ws.in_order()


@pytest.mark.parametrize("is_altered", [False, True])
def test_a_file_that_git_has_joined_is_no_matter(two: Two, is_altered: bool) -> None:
    """Each has changed another line of it. What somebody has put into the merge beside that stays theirs to explain."""
    ws, other, _ = two
    lines = [f"line {n}" for n in range(9)]
    ws.put("notes.md", "\n".join(lines))
    ws.commit("notes.md")
    ws.ok("sync")
    other.ok("sync")
    for each, line in ((other, 1), (ws, 7)):
        each.put("notes.md", "\n".join([*lines[:line], each.root.name, *lines[line + 1 :]]))
        each.commit("notes.md")
    other.ok("sync")
    ws.git("pull", "-q", "--no-rebase", "--no-edit")
    if is_altered:
        ws.put("notes.md", ws.read("notes.md") + "\nmore")
        ws.git("commit", "-q", "-a", "--amend", "--no-edit")
    joined = ws.read("notes.md")
    other.ok("journal", "add", "2025-02-05", "theirs", "5070=1", "1010=-1")
    other.ok("sync")
    if is_altered:
        with unchanged(ws):
            refused(ws("sync"), 3, "notes.md by hand")
        return
    ws.ok("sync")
    ws.in_order()
    kept = ws.git("log", "--format=%H", "--all", "--", "notes.md").split()
    assert ws.read("notes.md") == joined or any(ws.git("show", f"{c}:notes.md") == joined for c in kept)


def merge(ws: Workspace, other: Workspace, *, drops: bool) -> None:
    """Git joins an entry of each, and may drop that of the others."""
    other.ok("journal", "add", "2025-01-05", "theirs", "5070=1", "1010=-1")
    other.ok("sync")
    ws.ok("journal", "add", "2025-03-05", "mine", "5070=2", "1010=-2")
    ws.git("pull", "-q", "--no-rebase", "--no-edit")
    if drops:
        ws.git("rm", "-q", "books/2025/01/journal.csv")
        ws.git("commit", "-q", "--amend", "--no-edit")
    assert ("merged two clones, and lost" in ws("check").out) == drops


@pytest.mark.parametrize("is_taken_back", [False, True])
@pytest.mark.parametrize("drops", [False, True])
def test_a_merge_that_was_taken_back_is_made_again(two: Two, *, drops: bool, is_taken_back: bool) -> None:
    """Fault: once a command had seen the merge, the branch had lost what others have, and no sync went on."""
    ws, other, _ = two
    merge(ws, other, drops=drops)
    if is_taken_back:
        ws.git("reset", "-q", "--keep", "HEAD^1")
        refused(ws("journal", "add", "2025-03-06", "x", "5070=9", "1010=-9"), 4, "the branch has lost", "recover")
    ws.ok("sync")
    other.ok("sync")
    for each in (ws, other):
        each.in_order()
        assert sorted(e["description"] for e in each.entries()) == ["CORNER SHOP", "mine", "theirs"]


def test_what_was_taken_back_with_a_merge_is_lost_where_others_have_it_not(two: Two) -> None:
    ws, other, _ = two
    merge(ws, other, drops=False)
    merged = ws.head()
    ws.git("reset", "-q", "--keep", "HEAD^1~1")
    with unchanged(ws):
        refused(ws("sync"), 4, "the branch has lost 1 entry (2025-03-001) and 1 attested decision", "cleared recover")
    ws.git("reset", "-q", "--keep", merged)
    ws.ok("sync")
    ws.in_order()


@pytest.mark.parametrize("is_joined", [False, True])
def test_what_a_revert_took_out_and_a_merge_brought_back_is_gone_after_a_sync(
    ws: Workspace, tmp_path: Path, *, is_joined: bool
) -> None:
    """Fault: where nothing was to be joined the run stood in the log of both clones then, and not in the books; else a
    check said that whoever pushed it had brought back what was taken away."""
    ws.drop("shop.csv", SHOP)
    ws.run("ingest")
    ws, other, _ = follow(ws, tmp_path)
    ws.drop("cafe.csv", CAFE)
    run = ws.run("ingest")["run_id"]
    ws.ok("sync")
    other.ok("sync")
    other.ok("journal", "add", "2025-03-05", "theirs", "5070=9", "1010=-9")
    ws.git("revert", "--no-edit", "HEAD")
    ws.ok("accept", "HEAD", "--reason", "meant so")
    ws.ok("sync")
    other.git("pull", "-q", "--no-rebase", "--no-edit")
    assert run in other.read(LOG)
    said = other("check").out
    assert "merged two clones, and brought back what one side had taken out" in said and LOG in said
    if is_joined:
        ws.ok("journal", "add", "2025-03-06", "more", "5070=9", "1010=-9")
        ws.ok("sync")
    assert "post: 2025-03-001 theirs: done again" in other.ok("sync").out
    ws.ok("sync")
    for each in (ws, other):
        assert run not in each.read(LOG)
        assert sorted(e["description"] for e in each.entries()) == ["CORNER SHOP", *["more"] * is_joined, "theirs"]
        each.in_order()
