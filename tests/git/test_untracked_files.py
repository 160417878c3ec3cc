"""Which files git passes over, and the names that it would take for something else."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Workspace

from cleared.git import Repository
from cleared.git.untracked_files import find_ignored, list_unignored_files

NAMES = ("plain", ":(top)build", ":!build", "[a]*", "-z", "with\nline", "build/x", "a/build/:y")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_a_name(ws: Workspace, name: str) -> None:
    ws.put(".gitignore", "build/\n")
    with Repository.open(ws.root, for_writing=False) as repo:
        assert find_ignored(repo, [name]) == ({name} if "build/" in name else set())
        assert find_ignored(repo, NAMES) == {"build/x", "a/build/:y"}


def test_what_lies_below_a_link_is_not_asked_for(ws: Workspace, tmp_path: Path) -> None:
    """Git refuses the whole list for it."""
    ws.put(".gitignore", "*.tmp\n")
    (ws.root / "data").symlink_to(tmp_path)
    with Repository.open(ws.root, for_writing=False) as repo:
        assert find_ignored(repo, ["data/in/x.tmp", "data/y.tmp", "z.tmp"]) == {"z.tmp"}


def test_what_python_compiles_never_counts(ws: Workspace, tmp_path: Path) -> None:
    ws.put(".gitignore", "*.log\n")
    other = tmp_path / "other"
    for path in ("a.py", "__pycache__/a.pyc", "b/__pycache__/c.pyc", "b/d.log", "b/d.txt"):
        (other / path).parent.mkdir(parents=True, exist_ok=True)
        (other / path).touch()
    with Repository.open(ws.root, for_writing=False) as repo:
        assert list_unignored_files(repo, other) == {"a.py", "b/d.txt"}
