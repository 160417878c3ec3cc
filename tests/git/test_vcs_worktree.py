"""Finding what was changed by hand, without the index and without filters."""

from __future__ import annotations

import os
from pathlib import Path

from vcs_samples import Work, put

from cleared.git import Difference, Snapshot, find_differences


def look(work: Work, *prefixes: str) -> dict[str, str]:
    found = find_differences(Snapshot(work.repo, work.base), work.root, prefixes or [""])
    assert found == sorted(found)
    return {item.path: item.kind for item in found}


def test_clean(work: Work) -> None:
    work.git("gc", "-q")
    assert look(work) == {}
    (work.root / "other.txt").chmod(0o755)
    assert look(work, "books/", "config.yaml", "nowhere") == {}


def test_every_kind(work: Work, tmp_path: Path) -> None:
    put(work.root, "books/2025/01/journal.csv", b"changed\n")
    (work.root / "books/2025/02/journal.csv").unlink()
    put(work.root, "books/new/ö.csv", b"new\n")
    (work.root / "config.yaml").unlink()
    (work.root / "config.yaml").symlink_to("other.txt")
    (work.root / "link").unlink()
    put(work.root, "link", b"config.yaml")
    (work.root / "other.txt").unlink()
    (work.root / "other.txt").mkdir()
    os.mkfifo(work.root / "books/pipe")
    assert look(work) == {
        "books/2025/01/journal.csv": "modified",
        "books/2025/02/journal.csv": "deleted",
        "books/new/ö.csv": "untracked",
        "books/pipe": "untracked",
        "config.yaml": "type",
        "link": "type",
        "other.txt": "type",
    }
    assert look(work, "books/2025/01") == {"books/2025/01/journal.csv": "modified"}
    assert look(work, "config.yaml", "books/new") == {"config.yaml": "type", "books/new/ö.csv": "untracked"}


def test_symlinked_folders_are_not_followed(work: Work, tmp_path: Path) -> None:
    (work.root / "books").rename(tmp_path / "books")
    (work.root / "books").symlink_to(tmp_path / "books")
    for prefix in ("books", "books/2025", "books/2025/01/journal.csv"):
        found = look(work, prefix)
        assert found.pop("books") == "untracked"
        assert set(found.values()) == {"deleted"}


def test_ignored_and_our_own(work: Work) -> None:
    put(work.root, "books/.cleared-seal-0011223344556677.tmp", b"")
    put(work.root, "books/cache/x", b"")
    put(work.root, "books/x~", b"")
    put(work.root, "books/x", b"")
    put(work.root, "books/2025/01/journal.csv", b"changed\n")
    found = find_differences(
        Snapshot(work.repo, work.base),
        work.root,
        ["books"],
        lambda path: path.endswith("~") or path in ("books/cache/", "books/2025/", "books/2025/01/journal.csv"),
    )
    assert found == [Difference("books/2025/01/journal.csv", "modified"), Difference("books/x", "untracked")]


def test_before_the_first_commit(work: Work) -> None:
    found = find_differences(Snapshot(work.repo, None), work.root, ["books"])
    assert {item.kind for item in found} == {"untracked"}
