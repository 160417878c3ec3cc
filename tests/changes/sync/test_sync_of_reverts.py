"""A sync where somebody took something back by git, and answered for it: the clones come together all the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Workspace, chase, refused, take_ok, unchanged
from receipt_files import make_png
from synced import part, run_git, tip_of

pytestmark = pytest.mark.slow
Two = tuple[Workspace, Workspace, Path]


def take_back(ws: Workspace, commit: str) -> None:
    ws.git("revert", "--no-edit", commit)
    ws.ok("accept", "HEAD", "--reason", "meant so")


def describe_entries(ws: Workspace) -> list[str]:
    return [entry["description"] for entry in ws.entries() if entry["status"] != "voided"]


def find_left_out(ws: Workspace) -> str:
    """What the one card about something that was left out shows."""
    (card,) = [card for card in ws.cards() if card["kind"] == "left_out"]
    return ws.ok("queue", "show", card["id"]).out


def test_what_was_made_and_taken_back_here_goes_nowhere(two: Two) -> None:
    """Others have its number; what was posted after it comes along, and what rests on it does not."""
    ws, other = part(two)
    made = ws.head()
    (ws.root.parent / "scan.png").write_bytes(make_png())
    ws.ok("receipt", "add", str(ws.root.parent / "scan.png"), "--entry", "2025-02-002")
    ws.ok("journal", "add", "2025-03-05", "march", "5070=9", "1010=-9")
    take_back(ws, made)
    said = ws.ok("sync").out
    assert "post: 2025-02-002 by hand: left out" in said and "took it back by git" in said
    other.ok("sync")
    for each in (ws, other):
        assert describe_entries(each) == ["CORNER SHOP", "CAFE", "march"]
        assert each.json("receipt", "list")["receipts"] == []
    titles = [card["title"] for card in ws.cards() if card["kind"] == "left_out"]
    assert len(titles) == 2 and "Revert" in titles[1] and "scan.png" in titles[0], titles
    ws.in_order()
    other.in_order()


def test_what_was_pushed_stands_until_somebody_decides_anew(two: Two) -> None:
    ws, other, _ = two
    ws.ok("journal", "add", "2025-02-05", "by hand", "5070=9", "1010=-9")
    made = ws.head()
    ws.ok("sync")
    other.ok("sync")
    other.ok("journal", "add", "2025-02-06", "theirs", "5070=8", "1010=-8")
    other.ok("sync")
    take_back(ws, made)
    ws.ok("sync")
    told = find_left_out(ws)
    assert "changes by hand what only runs and decisions may change" in told and "cleared journal void" in told
    assert describe_entries(ws) == ["CORNER SHOP", "by hand", "theirs"]
    ws.in_order()
    ws.ok("journal", "void", "2025-02-002", "--reason", "as it was taken back")
    ws.ok("sync")
    other.ok("sync")
    assert "by hand" not in describe_entries(other) and "theirs" in describe_entries(other)
    other.in_order()


def test_who_has_not_answered_for_it_is_told_to(two: Two) -> None:
    ws, _ = part(two)
    ws.git("revert", "--no-edit", "HEAD")
    commit = ws.head()
    with unchanged(ws):
        refused(
            ws("sync"), 3, f"{commit[:10]} changes by hand", f"cleared accept {commit[:10]} --reason", "two-clones.md"
        )
    ws.ok("accept", commit[:10], "--reason", "meant so")
    ws.ok("sync")
    assert describe_entries(ws) == ["CORNER SHOP", "CAFE"]
    ws.in_order()


@pytest.mark.parametrize("is_answered", [False, True])
def test_what_was_taken_back_and_brought_back_here_is_done_again(two: Two, is_answered: bool) -> None:
    """A revert and its own revert come to nothing; what they were about comes along."""
    ws, other = part(two)
    ws.git("revert", "--no-edit", "HEAD")
    first = ws.head()
    if is_answered:
        ws.ok("accept", "HEAD", "--reason", "meant so")
    ws.git("revert", "--no-edit", first)
    if is_answered:
        ws.ok("accept", "HEAD", "--reason", "after all")
    ws.ok("journal", "add", "2025-03-05", "march", "5070=9", "1010=-9")
    ws.ok("sync")
    other.ok("sync")
    for each in (ws, other):
        assert sorted(describe_entries(each)) == sorted(["CORNER SHOP", "CAFE", "by hand", "march"])
        each.in_order()


def test_what_git_took_back_and_brought_back_and_took_back_goes_nowhere(two: Two) -> None:
    ws, _ = part(two)
    for _again in range(3):
        ws.git("revert", "--no-edit", "HEAD")
    ws.ok("accept", "HEAD", "--reason", "meant so")
    ws.ok("sync")
    assert describe_entries(ws) == ["CORNER SHOP", "CAFE"]
    ws.in_order()


@pytest.mark.parametrize(("first", "second"), [("b\na\nc\n", "c\nb\na\n"), ("b\nc\n", "b\nc\na\n")])
def test_a_revert_that_leaves_other_lines_in_order_is_not_its_own(two: Two, first: str, second: str) -> None:
    """Fault: lines were counted, so that two changes of their order came to nothing, and were dropped."""
    ws, _ = part(two)
    ws.put("NOTES.md", "a\nb\nc\n")
    ws.commit("NOTES.md")
    for notes in (first, second):
        ws.git("revert", "--no-edit", "HEAD~1")
        ws.put("NOTES.md", notes)
        ws.git("commit", "-q", "--amend", "--no-edit", "NOTES.md")
        ws.ok("accept", "HEAD", "--reason", "meant so")
    with unchanged(ws):
        refused(ws("sync"), 3, "brings back by git what was taken back by git")
    assert ws.read("NOTES.md") == second


@pytest.mark.parametrize("what", ["something else", "between"])
def test_records_that_somebody_added_by_hand_are_joined_by_hand(two: Two, what: str) -> None:
    """What was done since may rest on them; their numbers are those of others there."""
    ws, _ = part(two)
    take_back(ws, "HEAD")
    if what == "between":
        ws.ok("journal", "add", "2025-03-05", "march", "5070=9", "1010=-9")
    ws.git("revert", "--no-commit", "HEAD~2" if what == "between" else "HEAD~1")
    if what == "something else":
        ws.put("NOTES.md", "mine")
        ws.git("add", "NOTES.md")
    ws.git("commit", "-qm", "Reapply")
    ws.ok("accept", "HEAD", "--reason", "after all")
    with unchanged(ws):
        commit = ws.git("rev-parse", "HEAD~1").strip()[:10]
        said = f"{commit} brings back by git what was taken back by git (post: 2025-02-002"
        refused(ws("sync"), 3, said, f"git reset --keep {commit}~1", "docs/howto/two-clones.md")
    ws.git("reset", "-q", "--keep", f"{commit}~1")
    take_ok(ws, "recover", "--forget")
    ws.ok("sync")
    assert [each for each in describe_entries(ws) if each != "march"] == ["CORNER SHOP", "CAFE"]
    ws.in_order()


def test_a_commit_that_somebody_has_changed_is_named_with_its_file(two: Two) -> None:
    ws, _ = part(two)
    path = "books/2025/02/journal.csv"
    ws.put(path, ws.read(path).replace("by hand", "by foot"))
    ws.git("commit", "-qa", "--amend", "--no-edit")
    take_ok(ws, "recover", "--forget")
    with unchanged(ws):
        refused(ws("sync"), 3, f"{path}: {ws.head()[:10]} is not as it was made", "docs/howto/two-clones.md")


def test_a_clone_takes_over_what_others_have_taken_back_and_pushed(two: Two) -> None:
    """As the refusal says, and what a check names then."""
    ws, other, _ = two
    ws.ok("journal", "add", "2025-02-05", "by hand", "5070=9", "1010=-9")
    ws.ok("sync")
    other.ok("sync")
    take_back(ws, "HEAD")
    ws.ok("sync")
    other.ok("journal", "add", "2025-03-05", "march", "5070=8", "1010=-8")
    refused(
        other("sync"), 4, "others have taken away what was in the books: 2025-02-002", "git merge", "recover --forget"
    )
    other.git("merge", "-q", "--no-edit", "origin/main")
    other.ok("recover", "--forget")
    assert f"cleared accept {other.head()[:10]} --reason" in other("check").out
    other.ok("accept", "HEAD", "--reason", "the log keeps both")
    other.ok("sync")
    ws.ok("sync")
    for each in (ws, other):
        assert describe_entries(each) == ["CORNER SHOP", "march"]
        each.in_order()


def test_a_number_that_was_freed_is_that_of_what_has_it_now(two: Two) -> None:
    """Nothing that came later is left out for it: an entry, an import, what was decided about these."""
    ws, other = part(two)
    take_back(ws, ws.head())
    ws.ok("journal", "add", "2025-02-20", "depreciation", "5220=300", "1590=-300")
    ws.ok("sync")
    assert "depreciation" in describe_entries(ws)
    ws.in_order()
    bank = chase(("02/12/2025", "OTHER SHOP", "-9.99"))
    ws.drop("late.csv", chase(("02/11/2025", "CORNER CAFE", "-8.20")))
    ws.run("ingest")
    other.ok("sync")
    other.ok("journal", "add", "2025-02-27", "theirs", "5070=8", "1010=-8")
    other.ok("sync")
    take_back(ws, ws.head())
    ws.drop("other.csv", bank)
    ws.run("ingest")
    (card,) = [card for card in ws.cards() if "OTHER SHOP" in card["title"] and card["kind"] == "entry"]
    ws.ok("queue", "approve", card["id"])
    ws.ok("sync")
    (entry,) = [each for each in ws.entries() if each["description"] == "OTHER SHOP"]
    assert entry["status"] == "user-confirmed" and "CORNER CAFE" not in describe_entries(ws)
    ws.in_order()


def test_a_message_takes_nothing_back(two: Two) -> None:
    """That is left out which a commit took out of the records, whatever it says."""
    ws, _ = part(two)
    made = ws.head()
    ws.git("revert", "--no-commit", made)
    ws.git("checkout", made, "--", "books", "logs")
    ws.put("queue/notes.txt", "x")
    ws.git("add", "-A")
    ws.git("commit", "-qm", f"Revert all\n\nThis reverts commit {made}.")
    ws.ok("accept", "HEAD", "--reason", "so be it")
    ws.ok("sync")
    assert "by hand" in describe_entries(ws)


def test_a_file_beside_what_was_taken_back_is_not_lost(two: Two) -> None:
    ws, _ = part(two)
    made = ws.head()
    ws.git("revert", "--no-commit", made)
    ws.put("NOTES.md", "mine")
    ws.git("add", "NOTES.md")
    ws.git("commit", "-qm", f"Taken back\n\nThis reverts commit {made}.")
    ws.ok("accept", "HEAD", "--reason", "so be it")
    with unchanged(ws):
        refused(ws("sync"), 3, "NOTES.md, too", "two-clones.md")


def test_an_answer_that_was_taken_back_counts_no_more(two: Two) -> None:
    ws, _ = part(two)
    take_back(ws, "HEAD")
    first = ws.git("rev-parse", "HEAD~1").strip()
    take_back(ws, "HEAD")
    with unchanged(ws):
        refused(ws("sync"), 3, f"cleared accept {first[:10]} --reason")


def test_an_answer_for_a_commit_that_others_have_is_done_again(two: Two) -> None:
    """Fault: it was dropped, as if others had answered, and the commit was named anew in each clone."""
    ws, other = part(two)
    for each in (ws, other, ws):
        each.ok("sync")
    ws.ok("journal", "add", "2025-02-05", "mine", "5020=7.00", "1010=-7.00")
    ws.git("revert", "--no-edit", "HEAD")
    ws.git("push", "-q")
    other.ok("sync")
    ws.ok("accept", "HEAD", "--reason", "meant so")
    other.ok("journal", "add", "2025-02-06", "theirs", "5020=8.00", "1010=-8.00")
    other.ok("sync")
    assert "done again" in ws.ok("sync").out
    other.ok("sync")
    for each in (ws, other):
        assert each("check").code == 0


def test_what_nobody_answered_for_is_not_pushed_where_nothing_is_to_be_joined(two: Two) -> None:
    """Fault: it was named where others had pushed meanwhile, and pushed where nobody had."""
    ws, _, shared = two
    ws.ok("journal", "add", "2025-02-05", "by hand", "5070=9", "1010=-9")
    ws.ok("sync")
    tip = tip_of(shared)
    ws.git("revert", "--no-edit", "HEAD")
    commit = ws.head()
    ws.ok("journal", "add", "2025-03-05", "march", "5070=9", "1010=-9")
    for options in (["--dry-run"], []):
        with unchanged(ws):
            refused(ws("sync", *options), 3, commit[:10], "nothing is pushed", f"cleared accept {commit[:10]} --reason")
    assert tip_of(shared) == tip
    ws.ok("accept", commit[:10], "--reason", "meant so")
    ws.ok("sync")
    assert tip_of(shared) == ws.head()
    ws.in_order()


def test_a_new_branch_gets_nothing_that_nobody_answered_for(two: Two) -> None:
    ws, _, shared = two
    run_git(shared, "update-ref", "-d", "refs/heads/main")
    ws.put("books/2025/02/journal.csv", ws.read("books/2025/02/journal.csv").replace("CORNER SHOP", "THE SHOP"))
    commit = ws.commit("books/2025/02/journal.csv")
    with unchanged(ws):
        refused(ws("sync"), 3, commit[:10], "nothing is pushed", f"cleared accept {commit[:10]} --reason")
    ws.ok("accept", commit[:10], "--reason", "meant so")
    assert ws.json("sync")["relation"] == "new" and tip_of(shared) == ws.head()


def test_what_a_person_may_commit_is_pushed_as_it_is(two: Two) -> None:
    ws, other, shared = two
    ws.put("NOTES.md", "mine")
    chart = "accounts/chart-of-accounts.csv"
    ws.put(chart, ws.read(chart) + "5999,Odds and ends,expense,,,\n")
    ws.git("add", "-A")
    ws.git("commit", "-qm", "Notes and an account")
    ws.ok("sync")
    assert tip_of(shared) == ws.head()
    other.ok("sync")
    other.in_order()
