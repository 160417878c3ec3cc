"""Fault 2 (D17): which books a clone holds is pinned outside the repository: made, followed, shared, asked about."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from clones import clone, copied, live
from harness import Workspace, copy_books, here, no_traceback, refused, take_ok, take_shown, unchanged
from tasking import Tasks, task

from cleared.trust.approval_record import WORKSPACE
from cleared.trust.clone_marks import MARK, pins_folder

NOT_YET = "not trusted on this machine yet"


@pytest.fixture
def books(ws: Workspace) -> Workspace:
    return live(ws)


def test_init_pins_what_it_makes(tmp_path: Path, plain_environment: None) -> None:
    assert here("init", str(tmp_path / "new")).code == 0
    ws = Workspace(tmp_path / "new")
    shown = ws.ok("trust").out
    assert f"Books {ws.read(WORKSPACE).strip()}, pinned" in shown and "agents/approvals/config.json" in shown
    assert WORKSPACE in ws.git("ls-tree", "-r", "--name-only", "HEAD").splitlines()
    assert len(list(pins_folder().iterdir())) == 1
    live(ws)


def test_an_init_that_fails_leaves_no_pin(tmp_path: Path, plain_environment: None) -> None:
    def stop(step: str) -> None:
        raise RuntimeError(step)

    from cleared.base.clock import SystemClock
    from cleared.changes.workspace_creation import create_workspace

    with pytest.raises(RuntimeError):
        create_workspace(
            tmp_path / "new", name=None, entity_type="generic", currency="EUR", clock=SystemClock(), on_step=stop
        )
    assert not (tmp_path / "new").exists() and not list(pins_folder().iterdir())


def test_ones_own_key_is_not_enough_in_a_clone(books: Workspace, tmp_path: Path) -> None:
    there = clone(books, tmp_path / "clone")
    with unchanged(there):
        refused(there("agent", "run", "probe"), 3, NOT_YET, "cleared trust")
        refused(there("config", "set", "sandbox.timeout", "9"), 3, NOT_YET, "cleared trust")
        assert there("trust").code == 3
        refused(there("agent", "run", "ingest"), 3, "cleared trust")  # whose bank files go where is not known yet
    take_ok(there, "trust", "--yes")
    assert there.run("probe")["result"] == 1


def test_of_a_shallow_clone_too(books: Workspace, tmp_path: Path) -> None:
    """It lacks the first commit; its last one is known to the other clone."""
    there = clone(books, tmp_path / "clone", "--depth", "1")
    take_ok(there, "trust", "--yes")
    assert there.run("probe")["result"] == 1


def test_a_directory_that_was_moved_is_followed(books: Workspace, tmp_path: Path) -> None:
    books.root.rename(tmp_path / "moved")
    moved = Workspace(tmp_path / "moved")
    done = moved("agent", "run", "probe")
    assert done.code == 0 and "moved here from" in done.err, done
    assert "moved" not in moved("agent", "run", "probe").err, "said once"
    there = copied(moved, tmp_path / "again")
    refused(there("agent", "run", "probe"), 3, "copy of another clone")


def test_work_that_waits_in_a_directory_goes_on_where_it_was_moved_to(books: Workspace, tmp_path: Path) -> None:
    """Tasks that were taken and jobs that were asked for are signed for their place, as no copy may bring them."""
    tasks = Tasks(books)
    tasks.planned(task(1))
    job = books.ok("loop", "enqueue", "books_check").out.strip()
    copy_books(books.root, tmp_path / "copy", stay=True)
    books.root.rename(tmp_path / "moved")
    tasks.ws = moved = Workspace(tmp_path / "moved")
    assert "moved here from" in moved.ok("loop", "status").err
    assert f"{job} succeeded" in moved.ok("loop", "run", "--once").err
    tasks.finish("T-001")
    there = Workspace(tmp_path / "copy")
    assert there("loop", "run", "--once").code == 3
    assert "its seal is not this machine's" in there.json("task", "show", "T-001")["sealed"]


def test_a_copy_is_asked_about_and_the_other_stays_as_it_is(books: Workspace, tmp_path: Path) -> None:
    there = copied(books, tmp_path / "copy")
    refused(there("agent", "run", "probe"), 3, NOT_YET)
    shown = there("trust")
    assert shown.code == 3 and f"This is a copy of {books.root}." in shown.err
    assert books.run("probe")["result"] == 1
    take_ok(there, "trust", "--yes")
    assert there.run("probe")["result"] == 1 and books.run("probe")["result"] == 1
    marks = {(each.root / ".git" / MARK).read_text() for each in (books, there)}
    assert len(marks) == 2, "from now on they are two clones"


def test_linked_working_trees_share_the_pin(books: Workspace, tmp_path: Path) -> None:
    books.git("worktree", "add", "-q", str(tmp_path / "linked"))
    assert Workspace(tmp_path / "linked").run("probe")["result"] == 1


def test_by_another_path_it_is_the_same_clone(books: Workspace, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(books.root)
    assert Workspace(tmp_path / "link").run("probe")["result"] == 1


def test_where_nobody_can_be_asked(books: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there, own = clone(books, tmp_path / "clone"), books.read(WORKSPACE).strip()
    monkeypatch.setenv("CLEARED_TRUST", "f" * 32)
    refused(there("agent", "run", "probe"), 3, NOT_YET)
    monkeypatch.setenv("CLEARED_TRUST", f"{'f' * 32},{own}")
    assert there.run("probe")["result"] == 1
    books.put(WORKSPACE, "f" * 32 + "\n")
    refused(books("agent", "run", "probe"), 3, "so nothing is run")  # a pin counts for more


def test_other_history_under_a_known_id(books: Workspace, tmp_path: Path) -> None:
    """Row D18: as after a history that was rewritten, or where somebody put records of other books."""
    there = copied(books, tmp_path / "there")
    shutil.rmtree(there.root / ".git")
    there.git("init", "-q", "-b", "main")
    there.git("add", "-A")
    there.git("commit", "-qm", "all of it")
    refused(take_shown(there, "trust", "--yes"), 3, "no commit in common", "--same-books", "--new-books")
    refused(there("agent", "run", "probe"), 3, NOT_YET)
    take_ok(there, "trust", "--same-books", "--yes")
    assert there.run("probe")["result"] == 1


def test_rewriting_the_history_of_a_pinned_clone_changes_nothing(books: Workspace) -> None:
    books.git("checkout", "-q", "--orphan", "fresh")
    books.git("commit", "-qm", "all of it")
    assert books.run("probe")["result"] == 1


def test_another_id_in_a_pinned_clone(books: Workspace) -> None:
    """Row D18: said once, by a person: the file is right."""
    books.put(WORKSPACE, "f" * 32 + "\n")
    books.commit(WORKSPACE)
    for argv in (["agent", "run", "ingest"], ["trust"], ["trust", "--yes"], ["trust", "--new-books"]):
        refused_or_shown = books(*argv)
        assert refused_or_shown.code == 3 and "so nothing is run" in refused_or_shown.err, argv
        no_traceback(refused_or_shown)
    assert books("journal", "list").code == 0, "it can be looked at"
    take_ok(books, "trust", "--same-books", "--yes")
    refused(books("agent", "run", "ingest"), 3, "for another workspace")
    take_ok(books, "config", "approve")
    assert books.run("ingest")["status"] == "succeeded"


def test_trust_is_not_for_a_job(books: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = clone(books, tmp_path / "clone")
    monkeypatch.setenv("CLEARED_JOB", "job_1")
    for option in (["--yes"], ["--new-books"], ["--same-books", "--yes"]):
        done = there("trust", *option)
        assert done.code == 3 and "not for a job" in done.err


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"workspace": 1}', b"\xff", b"[" * 100_000])
def test_a_damaged_pin_is_told_of(books: Workspace, data: bytes) -> None:
    (file,) = pins_folder().iterdir()
    file.write_bytes(data)
    refused(books("agent", "run", "probe"), 4, "damaged", "cleared trust")
    file.unlink()
    refused(books("agent", "run", "probe"), 3, NOT_YET)
    take_ok(books, "trust", "--yes")
    assert books.run("probe")["result"] == 1


def test_books_without_an_id_get_one_with_their_first_approval(ws: Workspace) -> None:
    """As somebody makes them by hand: no id before the first approval, and no pin; nothing runs before it."""
    ws.git("rm", "-q", WORKSPACE, "agents/approvals/config.json")
    ws.git("commit", "-qm", "by hand")
    (ws.root / ".git" / MARK).unlink()
    assert "nobody to trust" in ws.ok("trust").out
    refused(
        ws("agent", "run", "ingest"), 3, "nobody has approved the settings of these books", "cleared config approve"
    )
    take_ok(ws, "config", "approve")
    ws.run("ingest")
    live(ws)
    assert f"Books {ws.read(WORKSPACE).strip()}, pinned" in ws.ok("trust").out
