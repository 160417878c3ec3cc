"""What ``cleared sync`` does not do, and that everything is as it was then; and what becomes of it in the middle."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import preloaded
import pytest
from clones import clone
from harness import Workspace, chase, read_tree, refused, remove_tree, take_ok, unchanged, write_tree
from patience import PATIENCE
from proposing import live
from stepped import MACHINE, list_steps, run_stepped
from synced import CAFE, left_out, part, run_git, tip_of

from cleared.changes.sync import clone_sync, redone_work
from cleared.git import remote_branch
from cleared.workspace.location import cleared_home

pytestmark = pytest.mark.slow


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


def test_many_ids_are_told_by_their_ends(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, _ = part(two)
    ws.drop("many.csv", chase(*((f"02/1{n}/2025", f"TEA {n}", f"-{n}.10") for n in range(1, 6))))
    ws.run("ingest")
    assert "2025-02-002…2025-02-007 are 2025-02-003…2025-02-008 now" in ws.ok("sync").out
    assert ws.trailers()["Renamed"] == "2025-02-003…2025-02-007=2025-02-004…2025-02-008"
    ws.in_order()


def test_ctrl_c_while_git_ends_by_itself_is_no_fault(two: tuple[Workspace, Workspace, Path], tmp_path: Path) -> None:
    """The push is refused at the moment at which the person gives up."""
    ws, _, shared = two
    ws.ok("queue", "approve", "2025-02-001")
    hook, named = shared / "hooks/pre-receive", tmp_path / "pid"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nwhile [ ! -s {named} ]; do sleep 0.05; done\nkill -INT $(cat {named})\nexit 1\n")
    hook.chmod(0o755)
    pipe = subprocess.PIPE
    with preloaded.Preloaded(["-C", str(ws.root), "sync"], stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe) as sync:
        named.with_suffix(".new").write_text(str(sync.pid))
        named.with_suffix(".new").rename(named)
        said = sync.communicate(timeout=PATIENCE)[1].decode()
    assert sync.returncode == 130 and "interrupted" in said and "No such process" not in said, (sync.returncode, said)
    ws.in_order()


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


def test_a_lock_that_a_killed_push_left_is_named(two: tuple[Workspace, Workspace, Path]) -> None:
    """Nobody is faster, and saying it again would not help."""
    ws, _, shared = two
    ws.ok("queue", "approve", "2025-02-001")
    for name in ("HEAD.lock", "refs/heads/main.lock"):
        lock = shared / name
        lock.touch()
        refused(ws("sync"), 4, "origin did not take it", lock.name, "File exists")
        lock.unlink()
    assert ws.json("sync")["pushed"] == 1


def test_killed_anywhere_it_ends_in_the_same(two: tuple[Workspace, Workspace, Path], tmp_path: Path) -> None:
    ws, other = part(two)
    for each, name in ((other, "Boats"), (ws, "Horses")):
        each.ok("accounts", "add", f"599{len(name)}", name, "--type", "expense")
    other.ok("sync")
    live(ws, 'git_commit("agent: probe")\n1')
    places = [ws.root, two[2], cleared_home()]
    kept = [read_tree(place) for place in places]
    argv = ["sync", "-C", str(ws.root)]
    steps = list_steps(argv, tmp_path / "steps")
    entries = ws.entries()
    assert "ref" in steps
    first = [(step, 1) for step in dict.fromkeys(steps)]
    for step, nth in [*first, *((MACHINE, nth) for nth in range(2, steps.count(MACHINE) + 1))]:
        for tree, place in zip(kept, places, strict=True):
            remove_tree(place)
            write_tree(tree, place)
        assert run_stepped(argv, step, nth).returncode == -signal.SIGKILL
        ws.ok("check")
        ws.ok("sync")
        assert ws.entries() == entries and tip_of(two[2]) == ws.head(), (step, nth)
        assert "approved" in [each["state"] for each in ws.json("agent", "list") if each["name"] == "probe"]
        ws.in_order()


@pytest.mark.parametrize("first", ["recover", "journal add 2025-02-07 next 5070=8 1010=-8"])
@pytest.mark.parametrize("step", ["ref", "done"])
def test_whatever_comes_after_a_kill_misses_nothing(
    two: tuple[Workspace, Workspace, Path], step: str, first: str
) -> None:
    """What the sync has done again is not taken for lost; what goes after that is."""
    ws, _ = part(two)
    assert run_stepped(["sync", "-C", str(ws.root)], step).returncode == -signal.SIGKILL
    ws.ok(*first.split())
    assert ws.ok("recover").out == "Nothing is missing.\n"
    ws.ok("journal", "add", "2025-02-08", "last", "5070=7", "1010=-7")
    ws.in_order()
    ws.git("reset", "-q", "--hard", "HEAD~1")
    told = ws("sync")
    assert told.code == 4 and "the branch has lost 1 entry" in told.err, told
    ws.ok("recover")
    ws.ok("sync")
    names = ["CAFE", "CORNER SHOP", "by hand", "last", *(["next"] if first != "recover" else [])]
    assert sorted(each["description"] for each in ws.entries()) == names
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


def test_what_this_clone_has_lost_is_said_once(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, _ = part(two)
    ws.git("reset", "-q", "--hard", "HEAD~1")
    for words in (("sync",), ("sync", "--dry-run")):
        with unchanged(ws):
            done = ws(*words)
        refused(done, 4, "the branch has lost 1 entry", "cleared recover")
        assert done.err.count("has lost") == 1, done


JOURNAL = "books/2025/02/journal.csv"


def edit_line(ws: Workspace) -> None:
    ws.put(JOURNAL, ws.read(JOURNAL).replace("CORNER SHOP", "corner shop"))


def stage_line(ws: Workspace) -> None:
    edit_line(ws)
    ws.git("add", JOURNAL)


def add_line(ws: Workspace) -> None:
    ws.put(JOURNAL, ws.read(JOURNAL) + ws.read(JOURNAL).splitlines()[-1].replace("001", "009") + "\n")


def remove_file(ws: Workspace) -> None:
    (ws.root / JOURNAL).unlink()


def put_file(ws: Workspace) -> None:
    ws.put("books/2025/04/journal.csv", ws.read(JOURNAL).replace("2025-02", "2025-04"))


@pytest.mark.parametrize("edit", [edit_line, stage_line, add_line, remove_file, put_file])
@pytest.mark.parametrize("is_behind", [False, True])
def test_ledger_lines_that_are_not_committed_are_not_lost(
    two: tuple[Workspace, Workspace, Path], edit: Callable[[Workspace], None], is_behind: bool
) -> None:
    """Where others have pushed, the sync says so and does nothing; else what is committed is pushed."""
    ws, other, shared = two
    if is_behind:
        other.ok("journal", "add", "2025-02-05", "theirs", "5070=9", "1010=-9")
        other.ok("sync")
    ws.ok("journal", "add", "2025-03-05", "mine", "5070=9", "1010=-9")
    edit(ws)
    status = ws.git("status", "--porcelain")
    with unchanged(ws):
        done = ws("sync")
    assert status and ws.git("status", "--porcelain") == status
    if is_behind:
        refused(done, 4, "differ from the last commit", "books/2025")
    else:
        assert done.code == 0 and tip_of(shared) == ws.head()
    ws.git("stash", "push", "-q", "-u")
    ws.ok("sync")
    ws.in_order()
    assert ws.git("stash", "show", "--stat", "-u").strip()


def test_notes_that_are_not_committed_stay(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, other = part(two)
    ws.put("notes.md", "old")
    ws.put("staged.md", "staged")
    ws.commit("notes.md")
    ws.put("notes.md", "new")
    ws.git("add", "staged.md")
    before = ws.git("status", "--porcelain")
    ws.ok("sync")
    assert (ws.read("notes.md"), ws.read("staged.md")) == ("new", "staged")
    assert ws.git("status", "--porcelain") == before
    other.ok("sync")
    assert other.read("notes.md") == "old"
