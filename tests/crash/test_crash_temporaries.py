"""``git add -A && git commit`` beside a commit or after a kill takes no temporary file of the program along, however
the repository lies, and one that somebody has committed all the same stops nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from crash_books import Watcher, check_goes_on, copy, drop, git, ingest
from crash_kill import stopped_at
from harness import Workspace, take_ok, trust_books
from kill_points import choose_cases

from cleared.base.safe_files import is_temporary, write_parts
from cleared.gate.manual_runs import run_now
from cleared.git import STEPS

_OTHER_DISKS = ("/dev/shm", "/tmp", "/var/tmp", str(Path.home()))


def plain(template: Path, tmp_path: Path) -> Path:
    return copy(template, tmp_path / "w")


def linked_worktree(template: Path, tmp_path: Path) -> Path:
    main, root = copy(template, tmp_path / "w"), tmp_path / "linked"
    git(main, "worktree", "add", "-q", "-b", "other", str(root))
    drop(root)
    return root


def submodule(template: Path, tmp_path: Path) -> Path:
    whole = tmp_path / "whole"
    git(tmp_path, "init", "-q", str(whole))
    git(whole, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(template), "books")
    trust_books(whole / "books")
    drop(whole / "books")
    return whole / "books"


def other_disk(template: Path, tmp_path: Path) -> Path:
    """Git's directory where no file of it can be renamed into the working tree."""
    root = copy(template, tmp_path / "w")
    here = root.stat().st_dev
    places = [Path(place) for place in _OTHER_DISKS if Path(place).is_dir() and os.access(place, os.W_OK)]
    other = next((place for place in places if place.stat().st_dev != here), None)
    if other is None:
        pytest.skip("there is one disk only")
    there = other / f"cleared-test-{os.getpid()}-{tmp_path.name}"
    shutil.move(root / ".git", there)
    (root / ".git").write_text(f"gitdir: {there}\n")
    trust_books(root)
    return root


LAYOUTS = (plain, linked_worktree, submodule, other_disk)


@pytest.fixture
def _tidy(tmp_path: Path) -> None:
    yield  # type: ignore[misc]
    for place in map(Path, _OTHER_DISKS):
        for left in place.glob(f"cleared-test-{os.getpid()}-{tmp_path.name}"):
            shutil.rmtree(left)


def commit_everything(root: Path) -> None:
    """What a person does, or a program that they left running; git may be locked at that moment."""
    who = ["-c", "user.name=me", "-c", "user.email=me@example.com", "-c", "commit.gpgsign=false"]
    for args in (["add", "-A"], [*who, "commit", "-q", "-m", "everything"]):
        subprocess.run(["git", "-C", str(root), *args], check=False, capture_output=True)


def temporaries_in_git(root: Path) -> list[str]:
    names = git(root, "log", "--all", "--name-only", "--format=").splitlines()
    return [name for name in names if is_temporary(name) or ".tmp" in name or ".cleared" in name]


@pytest.mark.usefixtures("_tidy")
@pytest.mark.parametrize(
    ("layout", "step"),
    choose_cases(
        [(layout, step) for layout in LAYOUTS for step in STEPS if step != "done"],
        lambda case: case[1],
        lambda case: (case[0], STEPS.index(case[1]) >= STEPS.index("ref")),
    ),
)
def test_everything_is_committed_after_a_kill(
    template: Path, tmp_path: Path, step: str, layout: Callable[[Path, Path], Path]
) -> None:
    root = layout(template, tmp_path)
    assert stopped_at(root, ["run", "ingest"], step)
    commit_everything(root)
    assert temporaries_in_git(root) == []
    ingest(root)
    check_goes_on(root)
    assert temporaries_in_git(root) == []
    kept = Path(git(root, "rev-parse", "--path-format=absolute", "--git-dir").strip())
    assert not list(kept.glob("cleared-index-*")), "what the kill left is swept"


@pytest.mark.usefixtures("_tidy")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_everything_is_committed_beside_a_commit(
    template: Path, tmp_path: Path, layout: Callable[[Path, Path], Path]
) -> None:
    """At the step at which the new files lie ready, and git is not locked yet."""
    root = layout(template, tmp_path)
    taken: list[str] = []

    def commit_beside(step: str) -> None:
        if step == "staged" and not taken:
            (root / "note.txt").write_text("a person's own file")
            commit_everything(root)
            taken.append(git(root, "log", "-1", "--format=%s").strip())

    watcher = Watcher(root)
    watcher.host.on_step = commit_beside
    assert run_now(watcher.host, "ingest").status == "succeeded"
    assert taken == ["everything"]
    assert "note.txt" in git(root, "ls-files") and temporaries_in_git(root) == []


@pytest.mark.parametrize(
    "there",
    [
        "config.yaml",
        "agents/new.py",
        "exports/journal.csv",
        "memories/consensus.md",
        ".cleared/books/2025-01.sums",
        ".git/info/exclude",
    ],
)
def test_a_file_that_was_being_written_when_its_writer_was_killed(template: Path, tmp_path: Path, there: str) -> None:
    root = copy(template, tmp_path / "w")
    code = (
        "import os, signal, sys; from pathlib import Path; from cleared.base.safe_files import write_parts\n"
        "with write_parts(Path(sys.argv[1])) as file: file.write(b'half'); file.flush(); os.kill(0, signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(root / there)], check=False, start_new_session=True)
    assert done.returncode == -signal.SIGKILL
    left = [path for path in root.rglob("*") if is_temporary(str(path))]
    assert len(left) == 1
    commit_everything(root)
    assert temporaries_in_git(root) == []
    ingest(root)
    assert not left[0].exists()


def test_what_is_being_written_is_not_swept(ws: Workspace) -> None:
    """A command that takes the writer lock sweeps; another may be writing an export or a setting."""
    path = ws.root / "exports/journal.csv"
    with write_parts(path) as file:
        file.write(b"all ")
        assert [p.parent.name for p in ws.root.rglob("*") if is_temporary(str(p))] == [".cleared"]
        ws.config("git.author_name=Ann")
        file.write(b"of it")
    assert path.read_bytes() == b"all of it"
    assert not [p for p in ws.root.rglob("*") if is_temporary(str(p))]


def test_one_that_somebody_committed_stops_nothing(ws: Workspace) -> None:
    """It is said what it is, with a command that takes it out of git."""
    ws.put("books/.cleared-seal-0123456789abcdef.tmp", "2025-01-001,")
    ws.put("queue/.cleared-0123456789ab.tmp", "{}")
    ws.commit("books", "queue")
    (ws.root / "books/.cleared-seal-0123456789abcdef.tmp").unlink()
    ws.drop("january.csv")
    done = ws.process("agent", "run", "ingest")
    assert done.code == 0, done
    assert "2 temporary files" in done.err
    assert ws.process("check").code == 0
    remedy = next(line for line in done.err.splitlines() if "temporary files" in line).partition("take them out: ")[2]
    done_by_hand = subprocess.run(
        remedy,
        shell=True,
        cwd=ws.root,
        check=False,
        capture_output=True,
        env=os.environ
        | {
            "GIT_AUTHOR_NAME": "me",
            "GIT_AUTHOR_EMAIL": "m@x",
            "GIT_COMMITTER_NAME": "me",
            "GIT_COMMITTER_EMAIL": "m@x",
        },
    )
    assert done_by_hand.returncode == 0, done_by_hand.stderr
    assert not [path for path in ws.git("ls-files").splitlines() if is_temporary(path)]
    again = ws.process("agent", "run", "ingest")
    assert again.code == 0 and "temporary" not in again.err
    ws.in_order()


@pytest.mark.parametrize("command", ["agent run ingest", "config set git.author_name A"])
def test_a_writing_command_has_git_pass_over_them(ws: Workspace, command: str) -> None:
    """Also where a person has removed the line."""
    exclude = ws.root / ".git/info/exclude"
    assert exclude.read_text() == ".cleared-*.tmp\n", "init has written it"
    exclude.write_text("mine.txt")
    ws.ok(*command.split())
    assert exclude.read_text() == "mine.txt\n.cleared-*.tmp\n"
    ws.put("agents/.cleared-0123456789ab.tmp", "half")
    assert ws.git("status", "--porcelain") == ""


def test_a_clone_that_is_trusted_has_git_pass_over_them(ws: Workspace, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(ws.root), "clone")
    clone = Workspace(tmp_path / "clone")
    take_ok(clone, "trust", "--yes")
    clone.put("agents/.cleared-0123456789ab.tmp", "half")
    assert clone.git("status", "--porcelain") == ""
