"""What somebody else does while a run is under way, or before a killed one is repaired."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from crash_books import (
    AFTER,
    BEFORE,
    DROPPED,
    FEBRUARY,
    FEBRUARY_OPENING,
    KEPT,
    bank_file,
    check_booked,
    check_goes_on,
    check_lines,
    check_sound,
    copy,
    files,
    git,
    ingest,
    journal_of,
    read,
)
from crash_kill import stopped_at
from harness import Workspace
from kill_points import EVERY

from cleared.base.errors import ClearedError, Interrupted
from cleared.books.decisions.entry_voiding import void_entry
from cleared.changes.audit.record_violations import find_violations
from cleared.changes.workspace_opening import open_workspace
from cleared.gate.manual_runs import run_now
from cleared.git import STEPS, HeadMoved
from cleared.review.queue_cards import read_cards
from cleared.runs import run_queries
from cleared.runs.outcome import RunResult
from cleared.trust.keys import cleared_home

pytestmark = pytest.mark.slow

USER = os.environ | {f"GIT_{w}_{k}": "a@b" for w in ("AUTHOR", "COMMITTER") for k in ("NAME", "EMAIL")}
ALSO = ("2025-02-27", "LATE FEE", Decimal("-1.00"))


@pytest.fixture
def root(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Beside a key of its own: what is approved in one copy is remembered there of all copies of the same books."""
    monkeypatch.setenv("CLEARED_HOME", str(shutil.copytree(cleared_home(), tmp_path / "home")))
    return copy(template, tmp_path / "w")


def during(
    root: Path, step: str, act: Callable[[], object], times: int = 1, said: list[str] | None = None
) -> RunResult:
    """A run during which something else is done at a step."""
    left = times

    def on_step(name: str) -> None:
        nonlocal left
        if name == step and left:
            left -= 1
            act()

    return run_now(open_workspace(root, on_step=on_step, say=(said if said is not None else []).append), "ingest")


def user_commits(root: Path) -> None:
    n = len(git(root, "log", "--format=%h").splitlines())
    (root / f"notes-{n}.txt").write_text("mine\n")
    subprocess.run(["git", "add", "--", f"notes-{n}.txt"], cwd=root, check=True)
    subprocess.run(["git", "commit", "-qm", "mine"], cwd=root, check=True, env=USER)


def cards(root: Path, kind: str) -> list[str]:
    return [card["title"] for card in read_cards(open_workspace(root)) if card["kind"] == kind]


@pytest.mark.parametrize("step", ["ran", "checked", "intent", "staged"])
def test_a_file_replaced_after_it_was_parsed_is_not_booked(root: Path, step: str) -> None:
    """The run fails and says why; the new content stays, and the next run books it."""
    new = bank_file([*FEBRUARY, ALSO], FEBRUARY_OPENING)
    result = during(root, step, lambda: (root / "import/february.csv").write_bytes(new))
    assert result.status == "failed"
    assert result.error is not None and "changed" in result.error.message
    entries, _ = read(root)
    check_booked(root, entries, BEFORE)
    assert (root / "import/february.csv").read_bytes() == new
    assert len(cards(root, "failed_run")) == 1
    check_sound(root)
    assert ingest(root) == []
    entries, _ = read(root)
    assert journal_of(entries) == Counter([*AFTER, ALSO])
    check_lines(root, [*AFTER, ALSO])
    check_sound(root)


@pytest.mark.parametrize("step", ["ran", "verified"])
def test_the_same_file_dropped_again_meanwhile(root: Path, step: str) -> None:
    path = root / "import/february.csv"

    def again() -> None:
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data)

    assert during(root, step, again).status == "succeeded"
    check_booked(root, read(root)[0], AFTER)
    check_sound(root)


@pytest.mark.parametrize("step", ["verified", "ref", "worktree"])
def test_a_file_of_that_name_dropped_while_the_commit_is_made(root: Path, step: str) -> None:
    """It is another file: it stays, and is booked by the next run beside the first."""
    path = root / "import/february.csv"
    new = bank_file([*FEBRUARY, ALSO], FEBRUARY_OPENING)
    assert during(root, step, lambda: path.write_bytes(new)).status == "succeeded"
    assert path.read_bytes() == new
    assert journal_of(read(root)[0]) == Counter(AFTER)
    assert ingest(root) == []
    assert journal_of(read(root)[0]) == Counter([*AFTER, ALSO])
    check_lines(root, [*AFTER, ALSO])
    assert "import/processed/february-2.csv" in files(root, "import")
    assert cards(root, "duplicate_file") == [], "the balances say which rows came before"
    check_sound(root)


@pytest.mark.parametrize("step", ["begun", "ran", "checked", "staged"])
def test_the_branch_moves_once(root: Path, step: str) -> None:
    """The run is done again on the new commit, and says so."""
    said: list[str] = []
    assert during(root, step, lambda: user_commits(root), said=said).status == "succeeded"
    assert sum("running it again" in line for line in said) == 1
    check_booked(root, read(root)[0], AFTER)
    check_sound(root)
    assert git(root, "log", "--format=%s").splitlines()[:2] == ["import: 6 transactions from 2 files", "mine"]
    check_goes_on(root)


def test_the_branch_moves_again_and_again(root: Path) -> None:
    """Twice is enough: refused, with nothing changed; later it goes through."""
    with pytest.raises(HeadMoved):
        during(root, "checked", lambda: user_commits(root), times=9)
    check_booked(root, read(root)[0], BEFORE)
    check_sound(root)
    assert ingest(root) == []
    check_booked(root, read(root)[0], AFTER)


def test_a_script_that_fails_while_the_branch_moves(root: Path) -> None:
    """Its failure may come of what is old by now: once more on the new commit, and that is what counts."""
    done = False

    def act() -> None:
        nonlocal done
        if not done:
            done = True
            user_commits(root)
            (root / "import/march.csv").write_bytes(b"no bank file any more\n")

    result = during(root, "ran", act)
    assert result.status == "succeeded"
    assert len(cards(root, "bad_file")) == 1
    assert journal_of(read(root)[0]) == Counter([*BEFORE, *FEBRUARY])
    check_sound(root)


@pytest.mark.parametrize("step", ["begun", "ran", "checked", *STEPS])
def test_interrupted_at_each_step(root: Path, step: str) -> None:
    """Ctrl-C says what became of it, and leaves all or nothing."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        during(root, step, interrupt)
    committed = step in STEPS[STEPS.index("ref") :]
    assert ("nothing was changed" in str(caught.value)) == (not committed)
    entries, said = read(root)
    assert len(said) == (committed and step != "done")
    check_booked(root, entries, AFTER if committed else BEFORE)
    check_sound(root)
    assert ingest(root) == []
    check_booked(root, read(root)[0], AFTER)
    if step in ("checked", "ref") or EVERY:
        check_goes_on(root)


@pytest.mark.parametrize("step", ["file", "worktree"])
def test_a_disk_that_is_full_after_the_commit(root: Path, step: str) -> None:
    """The books are safe and the run has succeeded; that the working tree is behind is a warning."""

    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    result = during(root, step, full)
    assert result.status == "succeeded"
    assert result.commits == [git(root, "rev-parse", "HEAD").strip()]
    assert len(result.records["entries"]) == 6
    assert "working tree" in result.warnings[0]
    entries, said = read(root)
    assert len(said) == 1
    check_booked(root, entries, AFTER)
    check_sound(root)
    check_goes_on(root)


@pytest.mark.parametrize("step", ["objects", "staged", "verified"])
def test_a_disk_that_is_full_before_the_commit(root: Path, step: str) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    result = during(root, step, full)
    assert result.status == "failed"
    check_booked(root, read(root)[0], BEFORE)
    check_sound(root)
    assert ingest(root) == []
    check_booked(root, read(root)[0], AFTER)


def test_the_user_edits_the_journal_before_the_repair(root: Path) -> None:
    """His edit is left alone and named; nothing runs until it is undone, and then nothing is missing."""
    assert stopped_at(root, ["run", "ingest"], "ref")
    journal = root / "books/2025/01/journal.csv"
    cardfile = next((root / "queue").glob("*.jsonl"))
    mine = cardfile.read_bytes() + b"the user was here\n"
    cardfile.write_bytes(mine)
    entries, said = read(root)
    assert len(said) == 1 and cardfile.name in said[0] and "left alone" in said[0]
    assert journal_of(entries) == Counter(AFTER)
    assert cardfile.read_bytes() == mine
    with pytest.raises(ClearedError, match="differ from the last commit"):
        run_now(open_workspace(root), "ingest")
    assert [v.check for v in find_violations(open_workspace(root))] == ["unchanged"]
    subprocess.run(["git", "checkout", "-q", "--", "queue"], cwd=root, check=True)
    assert journal.exists()
    check_booked(root, read(root)[0], AFTER)
    check_sound(root)
    check_goes_on(root)


@pytest.mark.parametrize("delete", [False, True])
def test_the_input_changes_before_the_repair(root: Path, delete: bool) -> None:
    """The commit holds what was booked; a new file of that name is a new file."""
    assert stopped_at(root, ["run", "ingest"], "ref")
    path = root / "import/february.csv"
    if delete:
        path.unlink()
    else:
        path.write_bytes(bank_file([*FEBRUARY, ALSO], FEBRUARY_OPENING))
    _, said = read(root)
    assert len(said) == 1
    assert path.exists() == (not delete)
    assert (root / "import/processed/february.csv").exists()
    assert ingest(root) == []
    assert journal_of(read(root)[0]) == Counter(AFTER if delete else [*AFTER, ALSO])
    check_sound(root)


def test_the_state_folder_is_deleted_before_the_repair(root: Path) -> None:
    """Fault 19: deleting ``.cleared/`` loses nothing: what was under way stands in the lock on git's index, too."""
    assert stopped_at(root, ["run", "ingest"], "ref")
    subprocess.run(["rm", "-rf", str(root / ".cleared")], check=True)
    entries, said = read(root)
    assert len(said) == 1
    check_booked(root, entries, AFTER)
    check_sound(root)
    check_goes_on(root)


@pytest.mark.parametrize("step", ["", "verified", "ref", "file", "worktree", "done"])
def test_bank_files_that_stay_on_this_machine(root: Path, step: str) -> None:
    """``import.keep: local``: the file moves in the same act, and git never hears of its content."""
    Workspace(root).config("import.keep=local")
    assert stopped_at(root, ["run", "ingest"], step) == bool(step)
    assert len(read(root)[1]) == (step not in ("", "done"))
    assert ingest(root) == []
    entries, _ = read(root)
    assert journal_of(entries) == Counter(AFTER)
    check_lines(root, AFTER)
    check_sound(root)
    committed = git(root, "ls-tree", "-r", "--name-only", "HEAD").split()
    assert not any(name in path for path in committed for name in DROPPED)
    assert files(root, "import") == KEPT | {"import/processed/.gitignore"} | {
        f"import/processed/{name}" for name in DROPPED
    }
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    assert git(root, "status", "--porcelain") == ""  # not even by the user's own git add
    check_goes_on(root)


def test_a_failed_run_then_a_good_one(root: Path) -> None:
    agent = root / "agents/ingest.py"
    good = agent.read_text()
    agent.write_text(good.replace('git_commit("import', 'journal_balance(9999)\n    git_commit("import'))
    Workspace(root).commit("agents/ingest.py", *Workspace(root).approve("agents/ingest.py"), message="break it")
    for _ in range(2):
        result = run_now(open_workspace(root), "ingest")
        assert result.status == "failed"
        check_booked(root, read(root)[0], BEFORE)
        check_sound(root)
    assert len(cards(root, "failed_run")) == 1
    agent.write_text(good)
    Workspace(root).commit("agents/ingest.py", *Workspace(root).approve("agents/ingest.py"), message="mend it")
    assert ingest(root) == []
    entries, _ = read(root)
    check_booked(root, entries, AFTER)
    ids = sorted(e["entry_id"] for e in entries)
    assert "2025-02-004" in ids and "2025-02-005" not in ids  # a failure takes no number
    check_sound(root)


def test_a_name_that_is_no_text(root: Path) -> None:
    """A file name that is not UTF-8 gets a card like any other bad file, and the others are booked."""
    raw = os.fsencode(root / "import") + b"/caf\xe9.csv"
    with open(raw, "wb") as file:
        file.write(b"not a bank file\n")
    assert ingest(root) == []
    assert journal_of(read(root)[0]) == Counter(AFTER)
    assert len(cards(root, "bad_file")) == 1
    with open(raw, "wb") as file:
        file.write(bank_file([ALSO]))
    result = run_now(open_workspace(root), "ingest")
    assert result.status == "succeeded"
    check_sound(root)


def test_the_trace_of_a_killed_run(root: Path) -> None:
    """It says killed; what the run had committed by then, it has committed."""
    assert stopped_at(root, ["run", "ingest"], "ran")
    newest = run_queries.read_runs(open_workspace(root), 1)[0]
    assert (newest["status"], newest["commits"]) == ("killed", [])
    assert stopped_at(root, ["run", "ingest"], "ref")
    newest = run_queries.read_runs(open_workspace(root), 1)[0]
    assert (newest["status"], newest["commits"]) == ("succeeded", [git(root, "rev-parse", "HEAD").strip()])
    assert run_queries.read_run(open_workspace(root), newest["run_id"])["status"] == "succeeded"


@pytest.mark.parametrize("times", [1, 9])
def test_the_branch_moves_while_something_is_decided(root: Path, times: int) -> None:
    """Fault 22: done again on the new commit, by itself; given up, it is busy (5), not broken."""
    ingest(root)
    said: list[str] = []
    left = times

    def on_step(name: str) -> None:
        nonlocal left
        if name == "checked" and left:
            left -= 1
            user_commits(root)

    host = open_workspace(root, on_step=on_step, say=said.append)
    if times == 1:
        entry, reversal, commit = void_entry(host, "2025-02-001", "twice")
        assert (entry, reversal, commit) == ("2025-02-001", "2025-02-005", git(root, "rev-parse", "HEAD").strip())
        assert "once more" in said[-1]
    else:
        with pytest.raises(HeadMoved) as caught:
            void_entry(host, "2025-02-001", "twice")
        assert caught.value.exit_code == 5
    check_sound(root)
