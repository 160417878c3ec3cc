"""What ``cleared sync`` does not do, and that everything is as it was then; and what becomes of it in the middle."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import asks
from clones import clone
from harness import Workspace, chase, read_tree, refused, remove_tree, take_ok, unchanged, write_tree
from receipt_files import make_png
from reviewers import People
from stepped import list_steps, run_stepped
from synced import follow, run_git, tip_of

from cleared.changes.sync import clone_sync, redone_work
from cleared.changes.workspace_opening import open_workspace
from cleared.gate.manual_runs import run_command
from cleared.git import remote_branch
from cleared.workspace.location import cleared_home

SHOP = chase(("02/03/2025", "CORNER SHOP", "-5.00"))
CAFE = chase(("02/04/2025", "CAFE", "-6.00"))


@pytest.fixture
def two(ws: Workspace, tmp_path: Path) -> Iterator[tuple[Workspace, Workspace, Path]]:
    """Two clones of books with one entry that waits: 2025-02-001."""
    ws.drop("shop.csv", SHOP)
    ws.run("ingest")
    yield follow(ws, tmp_path)


def part(two: tuple[Workspace, Workspace, Path]) -> tuple[Workspace, Workspace]:
    """The other clone has pushed an entry; this one has made another, which has the same id."""
    ws, other, _ = two
    other.drop("cafe.csv", CAFE)
    other.run("ingest")
    other.ok("sync")
    ws.ok("journal", "add", "2025-02-05", "by hand", "5070=9", "1010=-9")
    return ws, other


def left_out(ws: Workspace, why: str) -> None:
    """A sync leaves one thing out, for this reason: a card says so, and what it was is still there."""
    before = ws.head()
    (left,) = [step for step in ws.json("sync")["steps"] if step["left_out"]]
    assert why in left["left_out"] and left["now"] is None, left
    (card,) = [card for card in ws.cards() if card["kind"] == "left_out"]
    shown = ws.ok("queue", "show", card["id"]).out
    assert why in shown and left["was"][:10] in shown, shown
    assert left["was"] == before and before in ws.git("rev-list", "--all").split()
    ws.in_order()
    ws.ok("queue", "answer", card["id"], "seen")


def test_each_relation_of_two_histories(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, other, shared = two
    assert ws.json("sync")["relation"] == "same"
    ws.ok("queue", "approve", "2025-02-001")
    assert ws.json("sync")["relation"] == "ahead" and tip_of(shared) == ws.head()
    assert "Nothing to do" in ws.ok("sync").out
    assert other.json("sync")["relation"] == "behind" and other.head() == ws.head()
    other.in_order()
    run_git(shared, "update-ref", "-d", "refs/heads/main")
    assert ws.json("sync")["relation"] == "new" and tip_of(shared) == ws.head()


def test_what_is_done_again_says_so(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, other = part(two)
    before = ws.head()
    with unchanged(ws):
        plan = ws.json("sync", "--dry-run")
    assert plan["renamed"] == {"2025-02-002": "2025-02-003"} and tip_of(two[2]) == other.head()
    done = ws.ok("sync")
    assert "2025-02-002 is 2025-02-003 now" in done.out
    assert ws.trailers()["Renamed"] == "2025-02-002=2025-02-003"
    assert before in ws.git("for-each-ref", "--format=%(objectname)", "refs/cleared/before-sync").split()
    ws.in_order()
    ws.ok("journal", "void", "2025-02-003", "--reason", "no")
    assert other.ok("sync") and other.ok("sync")


def test_what_others_have_done_too_is_dropped(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, other, _ = two
    for each in (other, ws):
        each.drop("cafe.csv", CAFE)
        each.run("ingest")
        each.ok("queue", "approve", "2025-02-001")
    other.ok("sync")
    ws.ok("queue", "approve", "2025-02-002")
    done = ws.json("sync")
    assert [step["now"] is None for step in done["steps"]] == [True, True, False]
    assert [e["status"] for e in ws.entries()] == ["user-confirmed"] * 2
    ws.in_order()


def test_who_decided_otherwise_is_told(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, other, shared = two
    other.ok("queue", "approve", "2025-02-001")
    other.ok("sync")
    ws.ok("queue", "reject", "2025-02-001", "--reason", "no", "--outcome", "personal")
    left_out(ws, "2025-02-001")
    assert [e["status"] for e in ws.entries()] == ["user-confirmed"]
    assert other.ok("sync") and tip_of(shared) == other.head()


def test_a_month_that_was_closed_there_takes_nothing(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, other, _ = two
    other.ok("queue", "approve", "2025-02-001")
    other.ok("period", "close", "2025-01")
    other.ok("sync")
    ws.ok("journal", "add", "2025-01-05", "late", "5070=9", "1010=-9")
    left_out(ws, "closed")
    assert "late" not in [e["description"] for e in ws.entries()]


def test_a_month_is_not_closed_over_what_others_posted(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, other, _ = two
    other.ok("journal", "add", "2025-01-05", "late", "5070=9", "1010=-9")
    other.ok("sync")
    ws.ok("period", "close", "2025-01")
    left_out(ws, "close it again")
    ws.ok("journal", "add", "2025-01-06", "it is open", "5070=9", "1010=-9")


def test_a_persons_own_commits_come_along(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, _ = part(two)
    ws.put("notes.md", "mine\n")
    ws.git("add", "notes.md")
    ws.git("commit", "-q", "-m", "Take notes\n\nReviewed-by: Ana")
    ws.ok("sync")
    assert ws.read("notes.md") == "mine\n"
    assert (
        ws.git("log", "-1", "--format=%an %s %(trailers:only,unfold)").split("\n")[0]
        == "User Take notes Reviewed-by: Ana"
    )
    ws.in_order()


def test_a_file_that_both_changed_is_named(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, other = part(two)
    for each, text in ((other, "theirs"), (ws, "mine")):
        each.put("notes.md", text)
        each.git("add", "notes.md")
        each.git("commit", "-q", "-m", text)
    other.ok("sync")
    left_out(ws, "notes.md was changed there, too")
    assert ws.read("notes.md") == "theirs"


def test_nothing_is_vouched_for_that_was_not_made_here(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, _ = part(two)
    ws.put("notes.md", "more")
    ws.git("add", "notes.md")
    ws.git("commit", "-q", "--amend", "--no-edit")
    with unchanged(ws):
        refused(ws("sync"), 3, "not as it was made")


def test_a_forged_run_is_not_done_again(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, _ = part(two)
    ws.put("notes.md", "x")
    ws.git("add", "notes.md")
    ws.git("commit", "-q", "-m", "import: more\n\nRun: 20250210T060000Z-aaaaaa\nAgent: ingest")
    with unchanged(ws):
        refused(ws("sync"), 3, "nothing vouches for")


def test_a_commit_of_another_machine_is_not_done_again(
    two: tuple[Workspace, Workspace, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It lies in this clone, from a stick or a branch; this machine would sign it as its own."""
    ws, _ = part(two)
    home = cleared_home()
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "others-home"))
    stick = clone(ws, tmp_path / "stick")
    take_ok(stick, "trust")
    stick.ok("journal", "add", "2025-02-07", "theirs", "5070=7", "1010=-7")
    monkeypatch.setenv("CLEARED_HOME", str(home))
    ws.git("pull", "-q", "--ff-only", str(stick.root), "main")
    with unchanged(ws):
        refused(ws("sync"), 3, "was made on another machine")


def test_the_state_of_a_machine_is_not_taken_over(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, other, _ = two
    other.put(".cleared/seal.json", "{}")
    other.git("add", "-f", ".cleared/seal.json")
    other.git("commit", "-q", "-m", "planted")
    other.git("push", "-q")
    with unchanged(ws):
        refused(ws("sync"), 4, ".cleared", "planted")


def test_a_file_in_the_way_stays(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, other, _ = two
    other.put("notes.md", "theirs")
    other.git("add", "notes.md")
    other.git("commit", "-q", "-m", "notes")
    other.ok("sync")
    ws.put("notes.md", "not committed")
    with unchanged(ws):
        refused(ws("sync"), 4, "notes.md", "in the way")
    (ws.root / "notes.md").unlink()
    ws.ok("sync")
    assert ws.read("notes.md") == "theirs"


def test_no_other_repository(ws: Workspace, tmp_path: Path) -> None:
    with unchanged(ws):
        refused(ws("sync"), 2, "git remote add")
    ws.git("remote", "add", "origin", f"file://{tmp_path}/nowhere")
    with unchanged(ws):
        refused(ws("sync"), 4, "origin cannot be read")


def test_who_is_slower_does_it_once_more(
    two: tuple[Workspace, Workspace, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    ws, other = part(two)
    push, raced = remote_branch.push_commit, list[int]()

    def push_second(*args: object) -> bool:
        if not raced:
            raced.append(1)
            other.ok("journal", "add", "2025-02-06", "faster", "5070=8", "1010=-8")
            other.git("push", "-q")
        return bool(push(*args))  # type: ignore[arg-type]

    monkeypatch.setattr(clone_sync, "push_commit", push_second)
    assert ws.json("sync")["renamed"] == {"2025-02-003": "2025-02-004"}
    ws.in_order()
    assert sorted(e["description"] for e in ws.entries()) == ["CAFE", "CORNER SHOP", "by hand", "faster"]


def test_an_agent_that_was_approved_stays_approved(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, _ = part(two)
    ws.script('git_commit("agent: probe")\n7', name="probe")
    ws.ok("sync")
    assert ws.run("probe")["result"] == 7
    ws.in_order()


def test_a_decision_names_its_card_and_entry_as_they_are_now(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, _ = part(two)
    ws.drop("tea.csv", chase(("02/07/2025", "TEA", "-2.00")))
    ws.run("ingest")
    ws.ok("queue", "approve", "2025-02-003")
    ws.ok("sync")
    card, entry = ws.trailers()["Cards"].split()
    assert entry == "2025-02-004" and ws.json("queue", "show", card)["entry_id"] == entry
    assert {e["entry_id"]: e["status"] for e in ws.entries()}[entry] == "user-confirmed"
    ws.in_order()


def test_killed_anywhere_it_ends_in_the_same(two: tuple[Workspace, Workspace, Path], tmp_path: Path) -> None:
    ws, _ = part(two)
    places = [ws.root, two[2], cleared_home()]
    kept = [read_tree(place) for place in places]
    argv = ["sync", "-C", str(ws.root)]
    steps = list_steps(argv, tmp_path / "steps")
    entries = ws.entries()
    assert "ref" in steps
    for step in dict.fromkeys(steps):
        for tree, place in zip(kept, places, strict=True):
            remove_tree(place)
            write_tree(tree, place)
        assert run_stepped(argv, step).returncode == -signal.SIGKILL
        ws.ok("sync")
        assert ws.entries() == entries and tip_of(two[2]) == ws.head(), step
        ws.in_order()


def test_what_rests_on_what_was_left_out_is_left_out(two: tuple[Workspace, Workspace, Path]) -> None:
    """Its entry would have had the id of another one of the others."""
    ws, other, _ = two
    other.ok("period", "close", "2025-01")
    other.ok("sync")
    ws.ok("journal", "add", "2025-01-05", "late", "5070=9", "1010=-9")
    ws.ok("journal", "void", "2025-01-001", "--reason", "twice")
    ws.ok("journal", "add", "2025-02-09", "in time", "5070=8", "1010=-8")
    done = ws.json("sync")
    assert [bool(step["left_out"]) for step in done["steps"]] == [True, True, False]
    assert "2025-01-001, which was left out" in done["steps"][1]["left_out"]
    assert [e["description"] for e in ws.entries()] == ["CORNER SHOP", "in time"]
    ws.in_order()


def test_an_import_is_not_taken_back_from_others(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, other, _ = two
    tea = ("02/07/2025", "TEA", "-2.00")
    other.drop("theirs.csv", chase(tea))
    other.run("ingest")
    other.ok("sync")
    ws.drop("mine.csv", chase(tea, ("02/08/2025", "CAKE", "-3.00")))
    ws.run("ingest")
    ws.ok("import", "undo", "mine.csv", "--reason", "wrong file")
    left_out(ws, "a file of others has the bank line")
    assert [(e["description"], e["status"]) for e in ws.entries()][1:] == [
        ("TEA", "pending-review"),
        ("CAKE", "pending-review"),
    ]


def test_an_import_that_is_taken_back_can_come_again(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, _ = part(two)
    ws.drop("mine.csv", chase(("02/08/2025", "CAKE", "-3.00")))
    ws.run("ingest")
    ws.ok("import", "undo", "mine.csv", "--reason", "wrong file")
    ws.ok("sync")
    ws.in_order()
    ws.drop("mine.csv", chase(("02/08/2025", "CAKE", "-3.00")))
    ws.run("ingest")
    assert [e["description"] for e in ws.entries() if e["status"] == "pending-review"][-1] == "CAKE"
    ws.in_order()


def test_a_question_is_answered_once(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, _ = part(two)
    card = asks(ws)
    ws.ok("sync")
    other = two[1]
    other.ok("sync")
    other.ok("journal", "add", "2025-02-06", "theirs", "5070=8", "1010=-8")
    other.ok("sync")
    ws.ok("queue", "answer", card["id"], "yes")
    ws.ok("sync")
    ws.in_order()
    assert sorted(e["description"] for e in ws.entries())[-2:] == ["for yes", "theirs"]


def test_receipts_of_both_stay_with_their_entries(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, other = part(two)
    for each in (ws, other):
        receipt = each.root.parent / f"{each.root.name}.png"
        receipt.write_bytes(make_png(60 + (each is ws)))
        each.ok("receipt", "add", str(receipt), "--entry", "2025-02-002")
    other.ok("sync")
    ws.ok("sync")
    linked = [sorted(each["entries"]) for each in ws.json("receipt", "list")["receipts"]]
    assert sorted(linked) == [["2025-02-002"], ["2025-02-003"]], linked
    ws.in_order()


def test_two_people_on_two_machines(ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ws.drop("shop.csv", SHOP)
    ws.run("ingest")
    own, _, shared = follow(ws, tmp_path)
    home, others = str(cleared_home()), str(tmp_path / "others-home")
    monkeypatch.setenv("CLEARED_HOME", others)
    other = clone(Workspace(shared), tmp_path / "desk")
    take_ok(other, "trust")
    other.ok("journal", "add", "2025-02-06", "theirs", "5070=8", "1010=-8")
    other.ok("sync")
    monkeypatch.setenv("CLEARED_HOME", home)
    own.ok("journal", "add", "2025-02-05", "mine", "5070=9", "1010=-9")
    own.ok("sync")
    take_ok(own, "trust")
    own.in_order()
    monkeypatch.setenv("CLEARED_HOME", others)
    other.ok("sync")
    other.in_order()
    assert [e["description"] for e in other.entries()] == ["CORNER SHOP", "theirs", "mine"]


def test_a_reviewers_decision_is_signed_anew(ws: Workspace, tmp_path: Path) -> None:
    ws.drop("shop.csv", SHOP)
    ws.run("ingest")
    people = People(ws, tmp_path, ("ana",))
    with people.at_the_keyboard("ana"):
        _, other, _ = follow(ws, tmp_path)
        other.drop("cafe.csv", CAFE)
        other.run("ingest")
        other.ok("sync")
        ws.ok("queue", "approve", "2025-02-001")
        before = ws.trailers()
        ws.ok("sync")
        assert ws.trailers()["Key"] == before["Key"] and ws.trailers()["Signature"] != before["Signature"]
        ws.in_order()


def test_settings_by_which_work_means_something_else_come_first(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, other, _ = two
    ws.ok("journal", "add", "2025-02-05", "by hand", "5070=400", "1010=-400")
    take_ok(other, "config", "set", "limits.max_amount", "500")
    other.ok("sync")
    with unchanged(ws):
        refused(ws("sync"), 3, "limits")


def test_nothing_is_lost_by_a_fault_of_the_program(
    two: tuple[Workspace, Workspace, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    ws, _ = part(two)
    monkeypatch.setattr(redone_work.WorkRedoing, "redo_step", lambda _, step: redone_work.RedoneStep(step, None))
    with unchanged(ws):
        refused(ws("sync"), 4, "2025-02-002", "would be lost")


ACCRUES = """
journal_add_double(date="2025-02-09", description="rent", debit_account=5040, credit_account=2100, amount={amount},
                   confidence=1, status="auto-confirmed", evidence="sure")
ctx_emit("rent", 1)
git_commit("agent: rent")
"""


def run_for(ws: Workspace, agent: str, key: str) -> None:
    """The run for an event that has this key wherever it comes."""
    assert run_command(open_workspace(ws.root), agent, key=key).status == "succeeded"


def test_an_event_that_both_had_has_one_run(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, other, _ = two
    ws.agent("rent", ACCRUES.format(amount=70))
    ws.ok("sync")
    other.ok("sync")
    for each, day in ((other, "05"), (ws, "06")):
        run_for(each, "rent", "2025-02")
        each.drop(f"{day}.csv", chase((f"02/{day}/2025", "TEA", "-2.00")))
        run_for(each, "ingest", "2025-02-09")
        each.ok("sync")
    assert [e["description"] for e in ws.entries()] == ["CORNER SHOP", "rent", "TEA", "TEA"]
    ws.in_order()


def test_an_event_of_which_something_else_came_is_named(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, other, _ = two
    ws.agent("rent", ACCRUES.format(amount="70 if len(journal_query()) < 2 else 80"))
    ws.ok("sync")
    other.ok("sync")
    other.drop("tea.csv", chase(("02/05/2025", "TEA", "-2.00")))
    other.run("ingest")
    for each in (other, ws):
        run_for(each, "rent", "2025-02")
    other.ok("sync")
    with unchanged(ws):
        refused(ws("sync"), 3, "others have had its event")
