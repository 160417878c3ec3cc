"""GitPython, with every git command started by ``git_process``: the same switches, the same clean environment.

Importing GitPython takes longer than a whole run: only ``history`` imports this module, when it is first asked.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from cleared.base.errors import WorkspaceError
from cleared.git.git_process import Git, find_git

# Importing GitPython runs "git version" with this path, and complains on stderr where it fails.
os.environ["GIT_PYTHON_GIT_EXECUTABLE"] = find_git()
os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")

import git


class HardenedGit(git.Git):
    """Hands every command that GitPython runs to ``Git``. A failure is a ``GitFailed``; output is bytes."""

    def execute(self, command: Sequence[str], istream: BinaryIO | None = None, **_: Any) -> bytes:  # type: ignore[override]
        runner = Git(Path(str(self.working_dir)))
        return runner.run(*command[1:], input=None if istream is None else istream.read())


class HardenedRepo(git.Repo):
    """A repository of GitPython's whose commands are run by ``HardenedGit``."""

    GitCommandWrapperType = HardenedGit


def open_repo(root: Path) -> HardenedRepo:
    """The repository at ``root``. Raises ``WorkspaceError`` where there is none. To be closed."""
    try:
        return HardenedRepo(root, expand_vars=False)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError) as error:
        raise WorkspaceError(f"{root} is not a git repository", remedy="Make it one: git init.") from error
