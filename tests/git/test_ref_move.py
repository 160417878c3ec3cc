"""The branch moves as git moves it, in whatever way its value is stored."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from vcs_samples import Work

from cleared.base.errors import WorkspaceError
from cleared.git import GitBusy, Repository


def log_of(work: Work, name: str) -> list[str]:
    return (work.root / ".git/logs" / name).read_text().splitlines()


def test_the_logs_are_as_git_writes_them(work: Work) -> None:
    work.git("commit", "-q", "--allow-empty", "-m", "by git")
    before = work.repo.read_head()
    commit = work.seal(message="import: 1  transaction\n\nmore")
    form = re.compile(r"[0-9a-f]{40} [0-9a-f]{40} [^<]+ <[^>]+> \d+ \+0000\t.+")
    for name in ("HEAD", "refs/heads/main"):
        by_git, ours = log_of(work, name)[-2:]
        assert form.fullmatch(by_git)
        assert form.fullmatch(ours)
        assert ours == f"{before} {commit} Ann Lee <ann@example.com> 1738389600 +0000\tcleared: import: 1 transaction"
    assert work.git("reflog", "-1", "--format=%H %gs").strip() == f"{commit} cleared: import: 1 transaction"


@pytest.mark.parametrize("branch", ["main", "deep/down/branch"])
@pytest.mark.parametrize("state", ["packed", "without logs", "a link", "no logs wanted"])
def test_however_it_is_stored(work: Work, branch: str, state: str) -> None:
    if branch != "main":
        work.git("checkout", "-q", "-b", branch)
    file, log = work.root / ".git/refs/heads" / branch, work.root / ".git/logs/refs/heads" / branch
    if state == "packed":
        work.git("pack-refs", "--all")
        assert not file.exists()
    elif state == "without logs":
        log.unlink()
    elif state == "a link":
        work.git("update-ref", "refs/heads/real", "HEAD")
        work.git("symbolic-ref", f"refs/heads/{branch}", "refs/heads/real")
    else:
        work.git("config", "core.logAllRefUpdates", "false")
        log.unlink()
        (work.root / ".git/logs/HEAD").unlink()
    with Repository.open(work.root, for_writing=True) as repo:
        fresh = Work(work.root, repo)
        commit = fresh.seal()
        assert repo.read_head() == commit
    assert work.git("rev-parse", "HEAD", branch).split() == [commit] * 2
    assert log.exists() == (state != "no logs wanted")
    assert (file.read_text().startswith("ref: ")) == (state == "a link")
    assert work.git("fsck", "--strict", "--no-dangling") == ""
    assert (work.status(), work.left_over()) == ("", [])


def test_a_log_that_takes_no_line(work: Work) -> None:
    """Nothing has happened then, and the other log says nothing of it."""
    log = work.root / ".git/logs/refs/heads/main"
    head_log = log_of(work, "HEAD")

    def at(step: str) -> None:
        if step == "verified":
            log.rename(log.with_name("away"))
            log.mkdir()

    with pytest.raises(WorkspaceError, match="nothing was changed"):
        work.seal(on_step=at)
    log.rmdir()
    log.with_name("away").rename(log)
    assert log_of(work, "HEAD") == head_log
    assert (work.repo.read_head(), work.status(), work.left_over()) == (work.base, "", [])


@pytest.mark.parametrize("name", ["HEAD.lock", "refs/heads/main.lock", "refs/worktree/cleared/main.lock"])
def test_a_lock_of_another_git_is_waited_for_and_left(work: Work, name: str) -> None:
    work.seal()
    lock: Path = work.root / ".git" / name
    lock.write_bytes(b"")
    with pytest.raises(GitBusy, match=r"nothing was changed: .*lock"):
        work.seal({"books/2025/03/journal.csv": b"more\n"})
    assert lock.exists()
    lock.unlink()
    assert work.left_over() == []
    work.seal({"books/2025/03/journal.csv": b"more\n"})
