"""What a person's ``git revert`` took back: its numbers go to others, on which no undo, revert or why may act."""

from __future__ import annotations

from harness import Workspace, chase, refused, unchanged

RENT = """journal_add_double(
    date="2025-01-31", description="RENT", debit_account=5150, credit_account=3100, amount=1200,
    confidence=0.9, evidence="monthly", status="auto-confirmed")"""
TWO = "2025-01-002"
FOUR = "2025-01-004"


def add(ws: Workspace, day: str, words: str) -> None:
    ws.ok("journal", "add", day, words, "5220=10", "1590=-10")


def take_back(ws: Workspace, commit: str = "HEAD") -> str:
    """Revert a commit by plain git: how the new one is called in messages."""
    ws.git("revert", "--no-edit", commit)
    return f"by git, in commit {ws.head()[:7]}"


def in_order(ws: Workspace) -> None:
    """Every invariant holds once somebody answers for what was done by git alone."""
    for commit in ws.git("log", "--format=%H", "--grep=This reverts commit").split():
        ws.ok("accept", commit, "--reason", "meant so")
    ws.in_order()


def statuses(ws: Workspace) -> dict[str, str]:
    return {entry["entry_id"]: entry["status"] for entry in ws.entries()}


def test_undo_leaves_the_entry_that_got_the_number(ws: Workspace) -> None:
    add(ws, "2025-01-14", "First")
    add(ws, "2025-01-15", "Depreciation")
    by = take_back(ws)
    ws.script(RENT, name="accrue")
    with unchanged(ws):
        refused(ws("queue", "undo", "--dry-run"), 3, "Depreciation", f"was taken back already {by}", "undo --older")
        refused(ws("queue", "undo"), 3, "Depreciation", f"was taken back already {by}", "undo --older")
    assert "took back: post: 2025-01-001 First" in ws.ok("queue", "undo", "--older").err
    found = statuses(ws)
    assert found["2025-01-001"] == "voided" and found[TWO] == "auto-confirmed"
    refused(ws("queue", "undo", "--older"), 3, "there is no decision to take back")
    in_order(ws)


def test_undo_leaves_an_entry_that_is_the_same_but_for_its_maker(ws: Workspace) -> None:
    """The same words, day and amounts under the same number, by another act."""
    add(ws, "2025-01-15", "Depreciation")
    by = take_back(ws)
    add(ws, "2025-01-15", "Depreciation")
    ws.ok("queue", "undo")
    with unchanged(ws):
        refused(ws("queue", "undo"), 3, f"was taken back already {by}")
    in_order(ws)


def test_undo_after_git_took_back_a_correction_whose_number_a_bank_line_got(posted: Workspace) -> None:
    posted.ok("queue", "approve", TWO)
    posted.ok("queue", "correct", FOUR, "--account", "5070")
    by = take_back(posted)
    posted.drop("more.csv", chase(("01/25/2025", "NEW SHOP", "-77.00")))
    posted.run("ingest")
    with unchanged(posted):
        refused(posted("queue", "undo"), 3, f"correct: {FOUR}", f"was taken back already {by}")
    assert f"took back: confirm: {TWO}" in posted.ok("queue", "undo", "--older").err
    assert [e["status"] for e in posted.entries() if e["description"] == "NEW SHOP"] == ["pending-review"]
    in_order(posted)


def test_undo_after_git_took_back_a_void_or_a_confirmation(posted: Workspace) -> None:
    posted.ok("queue", "approve", FOUR)
    for words in (["journal", "void", "2025-01-001", "--reason", "oops"], ["queue", "approve", TWO]):
        posted.ok(*words)
        by = take_back(posted)
        with unchanged(posted):
            refused(posted("queue", "undo"), 3, f"was taken back already {by}")
    assert f"took back: confirm: {FOUR}" in posted.ok("queue", "undo", "--older").err
    in_order(posted)


def test_undo_after_git_took_back_what_was_not_the_last_commit(posted: Workspace) -> None:
    """There a revert keeps the lines that are only ever appended to, such as what attests the decision."""
    posted.ok("queue", "approve", "2025-01-001")
    reverted = posted.head()
    posted.ok("queue", "approve", FOUR)
    by = take_back(posted, reverted)
    posted.ok("queue", "undo")
    with unchanged(posted):
        refused(posted("queue", "undo"), 3, f"was taken back already {by}")


def test_undo_after_a_commit_by_hand_changed_what_it_wrote(ws: Workspace) -> None:
    """Nobody says then that git took it back, but that it may be so, and what to do."""
    add(ws, "2025-01-15", "Depreciation")
    path = "books/2025/01/journal.csv"
    ws.put(path, ws.read(path).replace(",Depreciation,", ",Van,"))
    ws.commit(path)
    with unchanged(ws):
        refused(ws("queue", "undo"), 3, f"taken back or changed by git, in commit {ws.head()[:7]}", "Decide anew")


def test_undo_of_what_git_brought_back(posted: Workspace) -> None:
    """A decision whose revert was reverted stands; so does one whose undo was reverted."""
    posted.ok("queue", "approve", TWO)
    before = statuses(posted)
    take_back(posted)
    take_back(posted)
    posted.ok("queue", "undo")
    assert statuses(posted)[TWO] == "voided"
    take_back(posted)
    assert statuses(posted) == before
    assert f"took back: confirm: {TWO}" in posted.ok("queue", "undo").err
    assert statuses(posted)[TWO] == "voided"


def test_undo_after_git_took_back_a_setting(posted: Workspace) -> None:
    posted.ok("queue", "approve", TWO)
    posted.ok("config", "set", "review.remind_after", "1h")
    by = take_back(posted)
    with unchanged(posted):
        refused(posted("queue", "undo"), 3, "config: review.remind_after", f"was taken back already {by}", "--older")
    posted.ok("queue", "undo", "--older")
    in_order(posted)


def test_a_script_that_changed_a_row_since_is_not_git(posted: Workspace) -> None:
    """An act whose entry a run voided is named as before; so is one beside a commit by hand that changed none."""
    posted.ok("queue", "approve", FOUR)
    posted.put("notes.txt", "by hand")
    posted.commit("notes.txt")
    posted.script(f'journal_void("{FOUR}", "twice")')
    with unchanged(posted):
        refused(posted("queue", "undo"), 3, f"{FOUR} was voided since")
