"""SWIFT: reading without opening the workspace shows what is there now, or is not done."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import Workspace, refused

from cleared.books.index.current_books import open_current_books

READS = (
    ("journal", "balance"),
    ("journal", "balance", "--json"),
    ("journal", "balance", "1010"),
    ("journal", "balance", "--month", "2025-01"),
    ("journal", "balance", "--as-of", "2025-01-06"),
    ("journal", "list"),
    ("journal", "list", "--json", "--limit", "2"),
    ("journal", "list", "--text", "acme"),
    ("journal", "list", "--month", "2025-02"),
)


def read_all(ws: Workspace) -> list[str]:
    return [ws(*argv).out for argv in READS]


def is_quick(ws: Workspace) -> bool:
    return open_current_books(ws.root) is not None


def test_the_quick_answers_are_those_of_the_opened_workspace(posted: Workspace) -> None:
    assert not is_quick(posted)
    opened = []
    for argv in READS:
        shutil.rmtree(posted.root / ".cleared/books", ignore_errors=True)
        opened.append(posted(*argv).out)
    assert is_quick(posted)
    assert read_all(posted) == opened
    assert "ACME INVOICE 12" in opened[5]
    refused(posted("journal", "balance", "99"), 2, "99")  # what is wrong is said by who opened the workspace
    for file in (posted.root / ".cleared/books").glob("2*"):
        file.unlink()  # months that the index has lost are read from git
    assert read_all(posted) == opened


def _commit_by_hand(ws: Workspace) -> None:
    path = ws.root / "books/2025/01/journal.csv"
    path.write_bytes(path.read_bytes().replace(b"1500.00", b"1600.00"))
    ws.git("commit", "-qam", "by hand")


def _name_another_folder(ws: Workspace) -> None:
    config = ws.root / "config.yaml"
    config.write_text(config.read_text().replace("books: books", "books: elsewhere"))


def _switch(ws: Workspace) -> None:
    ws.git("switch", "-qc", "other")


def _detach(ws: Workspace) -> None:
    ws.git("checkout", "-q", "HEAD~1")


def _reset(ws: Workspace) -> None:
    ws.git("reset", "-q", "--soft", "HEAD~1")


def _leave_intent(ws: Workspace) -> None:
    (ws.root / ".cleared/seal.json").write_text("{}")


def _rot(ws: Workspace) -> None:
    file = ws.root / ".cleared/books/current"
    file.write_bytes(file.read_bytes().replace(b"450", b"460"))


@pytest.mark.parametrize(
    "change", [_commit_by_hand, _name_another_folder, _switch, _detach, _reset, _leave_intent, _rot]
)
def test_any_change_around_it_ends_the_quick_way(posted: Workspace, change: Callable[[Workspace], None]) -> None:
    read_all(posted)
    assert is_quick(posted)
    change(posted)
    assert not is_quick(posted)
    shown = [posted(*argv) for argv in READS[:2]]
    shutil.rmtree(posted.root / ".cleared/books")
    assert [(d.code, d.out) for d in (posted(*argv) for argv in READS[:2])] == [(d.code, d.out) for d in shown]


def test_a_packed_branch_is_read_quickly_too(posted: Workspace) -> None:
    opened = read_all(posted)
    posted.git("pack-refs", "--all")
    assert is_quick(posted)
    assert read_all(posted) == opened


def test_what_a_commit_plants_is_refused_and_nothing_of_it_stays(posted: Workspace) -> None:
    """Another clone's index: its seals are of another key."""
    opened = read_all(posted)
    planted = {
        p.name: p.read_bytes()[32:].replace(b"1500", b"9500") for p in (posted.root / ".cleared/books").iterdir()
    }
    for name, content in planted.items():
        posted.put(f".cleared/books/{name}", (b"x" * 32 + content).decode("latin-1"))
    posted.git("add", "-f", ".cleared/books")
    posted.git("commit", "-qm", "helpful files")
    refused(posted("journal", "balance"), 4, "planted", "git rm")
    posted.git("reset", "-q", "HEAD~1")  # the files stay, and git no longer knows them
    assert read_all(posted) == opened


def test_a_moved_workspace_is_opened(posted: Workspace, tmp_path: Path) -> None:
    opened = read_all(posted)
    moved = Workspace(posted.root.rename(tmp_path / "elsewhere"))
    assert not is_quick(moved)
    assert read_all(moved) == opened
    assert is_quick(moved)
