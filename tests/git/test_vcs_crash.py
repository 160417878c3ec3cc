"""Kill it anywhere: the next command finds all of the seal or nothing of it, and repairs without being asked."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from kill_points import choose_cases
from preloaded import Preloaded
from vcs_samples import CHANGES, Work, after, put

from cleared.git import STEPS, GitBusy, Repository, recover_interrupted_commit

CHILD = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from vcs_samples import CHANGES, Work
from cleared.git import LocalMove, Repository
stop, nth = {stop!r}, {nth}
def at(step):
    global nth
    if step == stop:
        nth -= 1
        if nth == 0:
            os.kill(os.getpid(), signal.SIGKILL) if {hard} else os._exit(9)
work = Work(Path({root!r}), Repository.open(Path({root!r}), for_writing=True))
print("ready", flush=True)
work.seal(on_step=at, moves=[LocalMove("drop.csv", "processed/deep/drop.csv", b"rows")])
print("sealed", flush=True)
"""


def child(work: Work, stop: str, nth: int = 1, *, hard: bool = True) -> subprocess.Popen[str]:
    code = CHILD.format(tests=str(Path(__file__).parent), root=str(work.root), stop=stop, nth=nth, hard=hard)
    return Preloaded([code], function="preloaded:execute", stdout=subprocess.PIPE, text=True)


def check_all_or_nothing(work: Work, before: dict[str, bytes]) -> bool:
    """Whether it is all."""
    head = work.repo.read_head()
    if head == work.base:
        assert work.files() == before
    else:
        assert work.git("rev-parse", f"{head}~1").strip() == work.base
        moved = {"drop.csv": None, "processed/deep/drop.csv": b"rows"}
        assert work.files() == after(before, CHANGES | moved)
    assert work.status() == STAGED
    assert work.git("fsck", "--strict", "--no-dangling") == ""
    assert work.left_over() == []
    if head == work.base:
        assert not (work.root / "books/2025/03").exists()
    assert recover_interrupted_commit(work.repo) is None
    return head != work.base


#: What the user had staged must survive all of it.
STAGED = "A  mine.txt\n"


@pytest.fixture
def ready(work: Work) -> Work:
    put(work.root, "mine.txt", b"staged\n")
    work.git("add", "mine.txt")
    put(work.root, ".git/info/exclude", b"*.csv\n")
    put(work.root, "drop.csv", b"rows")
    return work


@pytest.mark.parametrize(
    ("stop", "nth", "hard"),
    choose_cases(
        [
            (step, nth, hard)
            for step in STEPS
            for nth in ((1, 2, 3) if step == "file" else (1,))
            for hard in (True, False)
        ],
        lambda case: case[:2],
        lambda case: (case[2], STEPS.index(case[0]) >= STEPS.index("ref")),
    ),
)
def test_killed_at_each_step(ready: Work, stop: str, nth: int, hard: bool) -> None:
    before = ready.files()
    process = child(ready, stop, nth, hard=hard)
    assert "sealed" not in process.communicate()[0]
    assert process.returncode == (-signal.SIGKILL if hard else 9)
    told = recover_interrupted_commit(ready.repo)
    assert (told is None) == (stop in ("objects", "done"))
    assert told is None or "\n" not in told
    assert check_all_or_nothing(ready, before) == (STEPS.index(stop) >= STEPS.index("ref"))


@pytest.mark.parametrize("seed", range(int(os.environ.get("CLEARED_KILLS", "15"))))
def test_killed_at_any_time(ready: Work, seed: int) -> None:
    """Recovery starts at once, while a git that the killed process started may still be running."""
    before = ready.files()
    process = child(ready, "")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(random.Random(seed).uniform(0, 0.04))
    process.kill()
    process.wait()
    recover_interrupted_commit(ready.repo)
    check_all_or_nothing(ready, before)
    process.stdout.close()


def failing(real: Callable[..., object], nth: int) -> Callable[..., object]:
    calls = itertools.count(1)

    def call(*args: object, **named: object) -> object:
        if next(calls) == nth:
            raise KeyboardInterrupt
        return real(*args, **named)

    return call


@pytest.mark.parametrize("stop", ["intent", "staged", "ref", "file", "worktree"])
def test_recovery_can_be_killed_too(ready: Work, stop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the first calls it makes to the system fails once, as if it had been killed there."""
    before = ready.files()
    child(ready, stop).communicate()
    for name in ("rename", "replace", "unlink", "rmdir", "open", "link"):
        for nth in range(1, 6):
            with monkeypatch.context() as patch:
                patch.setattr(os, name, failing(getattr(os, name), nth))
                with suppress(KeyboardInterrupt):
                    recover_interrupted_commit(ready.repo)
    recover_interrupted_commit(ready.repo)
    assert check_all_or_nothing(ready, before) == (stop in ("ref", "file", "worktree"))


def test_what_the_user_wrote_since_is_left_alone(ready: Work) -> None:
    child(ready, "ref").communicate()
    put(ready.root, "books/2025/01/journal.csv", b"the user was here\n")
    told = recover_interrupted_commit(ready.repo)
    assert told is not None
    assert "left alone" in told
    assert "books/2025/01/journal.csv" in told
    assert (ready.root / "books/2025/01/journal.csv").read_bytes() == b"the user was here\n"
    assert ready.status() == " M books/2025/01/journal.csv\n" + STAGED
    assert recover_interrupted_commit(ready.repo) is None


def remove_lock(work: Work) -> None:
    """As git says that one may, when a lock is in its way."""
    said = work.git("commit", "-q", "-m", "mine", check=False)
    assert "index.lock': File exists" in said
    (work.root / ".git/index.lock").unlink()


def test_the_user_commits_before_the_repair(ready: Work) -> None:
    """Fault 19: git is kept from it; where he removes the lock, what he commits is not behind the branch."""
    child(ready, "ref").communicate()
    sealed = ready.repo.read_head()
    remove_lock(ready)
    ready.git("commit", "-q", "-m", "mine")
    assert ready.git("show", "--stat", "--format=", "HEAD").split()[0] == "mine.txt"
    told = recover_interrupted_commit(ready.repo)
    assert told is not None
    assert sealed[:10] in told
    assert ready.git("status", "--porcelain") == ""


def test_the_user_went_back_or_to_another_branch(ready: Work) -> None:
    child(ready, "ref").communicate()
    remove_lock(ready)
    ready.git("reset", "-q", "--hard", ready.base)
    assert "never made" in str(recover_interrupted_commit(ready.repo))
    assert ready.status() == ""
    put(ready.root, "drop.csv", b"rows")
    child(ready, "worktree").communicate()
    remove_lock(ready)
    ready.git("checkout", "-q", "-f", "-b", "side", ready.base)
    with Repository.open(ready.root, for_writing=True) as side:
        assert "refs/heads/main" in str(recover_interrupted_commit(side))
    assert ready.status() == ""


def test_the_state_folder_is_gone(ready: Work) -> None:
    """Fault 19: what a killed seal was about stands in its lock, too."""
    before = ready.files()
    for stop in ("index", "ref"):
        child(ready, stop).communicate()
        shutil.rmtree(ready.root / ".cleared")
        assert "interrupted commit" in str(recover_interrupted_commit(ready.repo))
        assert check_all_or_nothing(ready, before) == (stop == "ref")


def test_another_git_commits_what_a_killed_seal_had_staged(ready: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault 19: a commit that was begun before, in the instant between the index and the branch: it is finished."""
    child(ready, "index").communicate()
    with monkeypatch.context() as patch:  # as git commit does, which looks at no lock from here on
        patch.setenv("GIT_INDEX_FILE", str(shutil.copy(ready.root / ".git/index", ready.root / ".git/read")))
        tree = ready.git("write-tree").strip()
    mine = ready.git("commit-tree", "-p", "HEAD", "-m", "mine", tree).strip()
    assert "File exists" in ready.git("update-ref", "HEAD", mine, check=False)
    for lock in ("HEAD.lock", "refs/heads/main.lock"):  # as git says that one may
        (ready.root / ".git" / lock).unlink()
    ready.git("update-ref", "HEAD", mine)
    assert "finished the interrupted" in str(recover_interrupted_commit(ready.repo))
    assert ready.status() == ""
    assert recover_interrupted_commit(ready.repo) is None
    assert (ready.root / "books/2025/03/journal.csv").exists()
    assert not (ready.root / "drop.csv").exists()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b'{"version": 9}',
        b"\xff\xfe",
        b"[" * 100_000,
        json.dumps({"version": 1, "base": None, "commit": "x" * 40, "branch": "b"}).encode(),
    ],
)
def test_a_damaged_intent_is_set_aside(work: Work, text: bytes) -> None:
    put(work.root, ".cleared/seal.json", text)
    assert "set aside" in str(recover_interrupted_commit(work.repo))
    assert recover_interrupted_commit(work.repo) is None
    assert any((work.root / ".cleared").glob("seal.damaged-*"))
    work.seal()


@pytest.mark.parametrize("path", ["../outside", "/tmp/outside", ".git/hooks/post-commit", "way/outside"])
def test_a_forged_intent_leads_nowhere(work: Work, path: str, tmp_path: Path) -> None:
    """A hostile clone can bring an intent of its own."""
    (tmp_path / "way").mkdir()
    (work.root / "way").symlink_to(tmp_path / "way")
    put(work.root, "loot", b"loot")
    oid = work.git("hash-object", "loot").strip()
    intent = {"version": 1, "base": work.base, "commit": work.base, "branch": "refs/heads/main"}
    intent |= {"paths": [{"path": path, "old": None, "new": oid}], "made": [], "pending": []}
    intent["moves"] = [{"source": "loot", "target": path, "oid": oid}]
    put(work.root, ".cleared/seal.json", json.dumps(intent).encode())
    recover_interrupted_commit(work.repo)
    assert (work.root / "loot").read_bytes() == b"loot"
    assert list((tmp_path / "way").iterdir()) == []
    assert not (tmp_path / "outside").exists()
    assert not (work.root / ".git/hooks/post-commit").exists()


def test_locks_of_a_killed_git(ready: Work) -> None:
    """As after killing the whole process group: git's own locks are left, with nobody to let go."""
    before = ready.files()
    child(ready, "staged").communicate()
    lock = ready.root / ".git/refs/heads/main.lock"
    commit = json.loads((ready.root / ".cleared/seal.json").read_text())["commit"]
    lock.write_text(commit + "\n")
    (ready.root / ".git/HEAD.lock").write_bytes(b"")
    (ready.root / ".git/index.lock").write_bytes(b"held by cleared\n")
    assert "Removed the lock" in str(recover_interrupted_commit(ready.repo))
    assert not check_all_or_nothing(ready, before)


def test_a_lock_of_somebody_else_is_respected(ready: Work) -> None:
    child(ready, "staged").communicate()
    lock = ready.root / ".git/refs/heads/main.lock"
    lock.write_text("1" * 40 + "\n")
    with pytest.raises(GitBusy, match="another git command"):
        recover_interrupted_commit(ready.repo)
    assert lock.exists()
    lock.unlink()
    assert recover_interrupted_commit(ready.repo) is not None
