"""The files of a directory that git does not pass over, whatever the index of the repository holds."""

from __future__ import annotations

from pathlib import Path

from cleared.vcs.git_process import Git
from cleared.vcs.repository import Repository


def list_untracked_files(repo: Repository, root: Path) -> frozenset[str]:
    """Every file below ``root`` but the ignored ones, relative to it; a repository in it as a folder with a slash.

    ``root`` may be another directory than the repository's own. Settings and objects are those of ``repo``, so what
    lies in a ``.git`` of ``root`` plays no part.
    """
    environment = {
        "GIT_DIR": str(repo.git_dir), "GIT_COMMON_DIR": str(repo.common_dir), "GIT_WORK_TREE": str(root),
        "GIT_INDEX_FILE": str(repo.git_dir / "no-such-index"),
    }  # fmt: skip
    output = Git(root).run("ls-files", "--others", "--exclude-standard", "-z", env=environment)
    return frozenset(path for path in output.decode("utf-8", "surrogateescape").split("\0") if path)
