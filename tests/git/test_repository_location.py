"""Where a repository lies is read off a plain one, and is what git says of it; of any other one git is asked."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from vcs_samples import Work

from cleared.base.errors import WorkspaceError
from cleared.git import Repository, git_process

PLAIN = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
SHA256 = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectformat = sha256\n"
LINES = (
    *PLAIN.splitlines(),
    *SHA256.splitlines(),
    "[CORE]",
    '[core "x"]',
    "[core] bare = false",
    "[core",
    "[extensions]",
    "worktreeConfig = true",
    "\tnoop = 1",
    "repositoryformatversion = 2",
    "BARE = true",
    "bare",
    "bare = no",
    "bare = fal\\",
    "se",
    "bare = false # said twice",
    "worktree = /tmp",
    "; worktree = /tmp",
    "# bare = true\\",
    '[remote "origin"]',
    "url = /some/where",
    "[include]",
    "path = other",
    '[includeIf "gitdir:**"]',
    "no setting",
    "1x = 3",
    'name = "open',
    "filemode = xyz",
    "compression = zz",
    '[extensions "objectformat"]',
    "[re mote]",
    "",
)


def open_and_ask_git(root: Path) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Hash, working tree's and common directory, as ``Repository`` and as git say; None where they refuse."""
    try:
        with Repository.open(root, for_writing=False) as repo:
            opened = (repo.hash_name, str(repo.git_dir), str(repo.common_dir))
    except WorkspaceError:
        opened = None
    words = ["git", "-C", str(root), "rev-parse", "--show-object-format", "--absolute-git-dir", "--show-toplevel"]
    asked = subprocess.run(words, capture_output=True, text=True, check=False)
    hash_name, git_dir, top = asked.stdout.splitlines() if asked.returncode == 0 else ("", "", "")
    is_here = asked.returncode == 0 and os.path.samefile(top, root)
    return opened, (hash_name, git_dir, git_dir) if is_here else None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("located") / "books"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


@given(st.lists(st.sampled_from(LINES), max_size=8).map("\n".join))
@example(PLAIN)
@example(SHA256)
@example(PLAIN + "\tworktree = /tmp\n")
@example(PLAIN + "[include]\n\tpath = other\n")
@example(PLAIN.replace("= 0", "= 1") + "[extensions]\n\tworktreeConfig = true\n")
@example(PLAIN + "\tbare = true\n")
@example(PLAIN + "\t1x = 3\n")
@example(PLAIN + '\tname = "open\n')
@example(PLAIN + "\tcompression = zz\n")
@example(PLAIN + '[extensions "objectformat"]\n\tx = 1\n')
def test_it_is_as_git_says(folder: Path, text: str) -> None:
    (folder / ".git/config").write_text(text)
    opened, asked = open_and_ask_git(folder)
    assert opened == asked


def test_no_git_is_started_for_a_plain_one(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object) -> None:
        raise AssertionError("a git was started")

    monkeypatch.setattr(git_process.Git, "start", start)
    monkeypatch.setattr(git_process.Git, "run", start)
    with Repository.open(work.root, for_writing=True) as repo:
        assert (repo.hash_name, repo.git_dir, repo.common_dir) == ("sha1", work.root / ".git", work.root / ".git")


@pytest.mark.parametrize(
    "change",
    [
        lambda git: (git / "HEAD").write_bytes(b""),
        lambda git: (git / "HEAD").unlink(),
        lambda git: (git / "config").unlink(),
        lambda git: (git / "config").write_text(PLAIN + "# " + "x" * 70_000),
        lambda git: shutil.rmtree(git / "refs"),
        lambda git: shutil.rmtree(git / "objects"),
        lambda git: (git.rename(git.with_name("elsewhere")), git.symlink_to("elsewhere")),
        lambda git: (git.rename(git.with_name("elsewhere")), git.write_text("gitdir: elsewhere\n")),
        lambda git: (git / "config.worktree").write_text("[core]\n\tbare = true\n"),
        lambda git: (git / "commondir").write_text("../elsewhere\n"),
    ],
)
def test_of_one_that_is_not_plain_git_is_asked(work: Work, change: object) -> None:
    assert callable(change)
    change(work.root / ".git")
    opened, asked = open_and_ask_git(work.root)
    assert opened == asked
