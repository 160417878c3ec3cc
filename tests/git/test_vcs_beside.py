"""Fault 19: a person uses git while a seal is under way. Neither undoes what the other has reported as done."""

from __future__ import annotations

import itertools

import pytest
from kill_points import choose_cases
from vcs_samples import BASE, CHANGES, Work, put

from cleared.base.errors import WorkspaceError
from cleared.git import STEPS, GitBusy, LocalMove, Snapshot, index, recover_interrupted_commit, ref_move

#: What the person does, as shell commands; the work that is his is in ``notes.txt``.
DEEDS = {
    "commit": "git commit -qm notes",
    "commit -a": "git commit -qam notes",
    "commit --only": "git commit -qm notes notes.txt",
    "commit --amend": "git commit -q --amend -m notes",
    "stash": "git stash -q && git stash pop -q",
    "gc": "git gc -q --prune=now",
    "reset --soft": "git reset -q --soft HEAD~1",
    "checkout": "git checkout -q side && git checkout -q main",
    "merge": "git merge -q other",
    "pull --rebase": "git pull -q --rebase . other",
    "add": "git add -A",
}


@pytest.fixture
def ready(work: Work) -> Work:
    return prepare(work)


def prepare(work: Work) -> Work:
    """Other branches, and a file that waits to be taken in."""
    work.git("branch", "side")
    work.git("checkout", "-q", "-b", "other")
    put(work.root, "theirs.txt", b"theirs\n")
    work.git("add", "-A")
    work.git("commit", "-qm", "theirs")
    work.git("checkout", "-q", "main")
    put(work.root, "early.txt", b"early\n")
    work.git("add", "-A")
    work.git("commit", "-qm", "early")
    put(work.root, ".git/info/exclude", b"drop.csv\nprocessed/\n")
    put(work.root, "drop.csv", b"rows")
    work.base = work.repo.read_head()
    return work


def deed(work: Work, name: str) -> str:
    if "pull" not in name and "merge" not in name:
        put(work.root, "notes.txt", b"mine\n")
        work.git("add", "notes.txt", check=False)
    said = [work.git(*part.split()[1:], check=False) for part in DEEDS[name].split(" && ")]
    return "".join(said)


@pytest.mark.parametrize(
    ("step", "name"),
    choose_cases(
        itertools.product(STEPS, DEEDS), lambda case: case[0], lambda case: (STEPS.index(case[0]) // 3, case[1])
    ),
)
def test_git_at_each_step(ready: Work, step: str, name: str) -> None:
    done = False

    def at(now: str) -> None:
        nonlocal done
        if now == step and not done:
            done = True
            deed(ready, name)

    sealed = None
    try:
        sealed = ready.seal(on_step=at, moves=[LocalMove("drop.csv", "processed/drop.csv", b"rows")])
    except (GitBusy, WorkspaceError) as error:
        assert "nothing was changed" in str(error) or "differs from" in str(error)
    check(ready, sealed)
    if sealed is None:  # what he did is done, and now it goes through
        ready.git("checkout", "-q", "main", check=False)
        check(ready, ready.seal(moves=[LocalMove("drop.csv", "processed/drop.csv", b"rows")]))


def check(work: Work, sealed: str | None) -> None:
    """All of the seal is there, or nothing; and what git says of the repository is sound."""
    assert work.left_over() == []
    assert recover_interrupted_commit(work.repo) is None
    assert work.git("fsck", "--strict", "--no-dangling", "--no-reflogs") == ""
    assert work.git("symbolic-ref", "HEAD") == "refs/heads/main\n"
    if sealed is not None and "reset: moving to HEAD~1" in work.git("reflog", "-1", "--format=%gs"):
        return  # he took the commit itself away, by what looks at no lock
    head = Snapshot(work.repo, work.repo.read_head())
    expected = {path: BASE.get(path) for path in CHANGES} if sealed is None else CHANGES
    assert {path: head.read_file(path) for path in CHANGES} == expected
    work.git("reset", "-q")
    put(work.root, ".git/info/exclude", b"drop.csv\nprocessed/\nnotes.txt\ntheirs.txt\nearly.txt\n")
    assert work.status() == ""
    assert (work.root / "drop.csv").exists() == (sealed is None)
    assert (work.root / "processed/drop.csv").exists() == (sealed is not None)


def test_the_wall_is_what_stops_it(ready: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a lock, and with the index behind the branch for an instant, an unrelated commit undoes the seal."""
    monkeypatch.setattr(index, "link_lock", lambda *_: True)
    monkeypatch.setattr(ref_move, "link_lock", lambda *_: True)
    monkeypatch.setattr(index.IndexLock, "install_index", lambda _: None)
    commit = ready.seal(on_step=lambda step: deed(ready, "commit") and None if step == "ref" else None)
    head = Snapshot(ready.repo, ready.repo.read_head())
    assert head.commit != commit
    assert head.read_file("books/2025/03/journal.csv") is None
