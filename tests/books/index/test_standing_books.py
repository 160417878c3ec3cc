"""What counts of a commit is the same from the index, parsed, and kept of the commit before."""

from __future__ import annotations

from pathlib import Path

from harness import Workspace, chase

from cleared.books.index.standing_books import read_standing_books
from cleared.books.ledger.entry import Entry
from cleared.books.ledger.standing_entries import list_standing_entries
from cleared.books.staged_books import open_books
from cleared.changes.record_sources import CommittedSource
from cleared.changes.workspace_opening import open_workspace
from cleared.git import Snapshot


def read_both(ws: Workspace, commit: str = "") -> tuple[list[tuple[str, Entry]], list[tuple[str, Entry]]]:
    """By the function, and by the books as a decision reads them."""
    host = open_workspace(ws.root)
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, commit or repo.read_head())
        books, _ = open_books(host.layout, CommittedSource(snapshot))
        found = read_standing_books(host.layout, snapshot, host.decimal_places)
        counted = [each for part in found.parts for each in part.items.values()]
        assert counted == list(list_standing_entries(books.iter_entries()))
        return list(found.entries.items()), [(entry.entry_id, entry) for entry in books.iter_entries()]


def index_files(ws: Workspace) -> list[Path]:
    return sorted((ws.root / ".cleared/books").glob("*.entries"))


def test_the_entries_are_those_of_the_books_whatever_the_index_has(ws: Workspace) -> None:
    days = [f"0{month}/0{day}/2025" for month in (1, 2, 3) for day in (3, 4)]
    ws.drop("f.csv", chase(*((day, f"TEA {n}", f"-{n}.25") for n, day in enumerate(days, 1))))
    ws.run("ingest")
    found, expected = read_both(ws)
    assert found == expected and len(found) == 6
    files = index_files(ws)
    assert len(files) == 3, "what is read the first time is there for the next start"
    ws.ok("queue", "approve", "2025-02-001")
    ws.ok("queue", "correct", "2025-03-001", "--account", "5070")
    found, expected = read_both(ws)
    assert found == expected and dict(found)["2025-02-001"].status == "user-confirmed"
    assert any("corrects" in entry.tags for _, entry in found)
    for file in index_files(ws):
        file.write_bytes(file.read_bytes()[:-3])  # torn: it has no valid seal
    found, expected = read_both(ws)
    assert found == expected


def test_another_commit_is_read_from_what_is_known_of_any(ws: Workspace) -> None:
    """Forwards and backwards: what was voided counts again, and what corrects it in another month does not."""
    days = [f"01/0{day}/2025" for day in (3, 4, 5, 6)]
    ws.drop("f.csv", chase(*((day, f"TEA {n}", f"-{n}.25") for n, day in enumerate(days, 1))))
    ws.run("ingest")
    commits = [ws.head()]
    for argv in (
        ("queue", "approve", "2025-01-003"),
        ("period", "close", "2025-01", "--with-pending"),
        ("queue", "correct", "2025-01-003", "--account", "5070"),
        ("journal", "void", "2025-01-002", "--reason", "twice"),
        ("queue", "correct", "2025-01-003", "--account", "5060"),
        ("journal", "void", "2025-01-003", "--reason", "twice"),
    ):
        ws.ok(*argv)
        commits.append(ws.head())
    months = {entry.month for _, entry in read_both(ws)[0] if "corrects" in entry.tags}
    assert months == {(2025, 2)}
    for commit in (*commits, *reversed(commits), *commits[::2], *commits[::-3]):
        found, expected = read_both(ws, commit)
        assert found == expected


def test_books_without_a_month_have_no_entries(ws: Workspace) -> None:
    assert read_both(ws) == ([], [])
