"""Which entries name others is known without reading past months, and is what they say."""

from __future__ import annotations

import random

import pytest
from harness import Workspace

from cleared.books.index.entry_links import iter_linked_entries
from cleared.books.ledger.journal import JournalMonth
from cleared.books.ledger.staged_journal import Books
from cleared.books.queries import open_committed_books
from cleared.changes.workspace_opening import open_workspace


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The months that were read, one after the other."""
    months, scan = [], Books.scan_month

    def note(books: Books, year: int, month: int) -> JournalMonth:
        months.append((year, month))
        return scan(books, year, month)

    monkeypatch.setattr(Books, "scan_month", note)
    return months


def post(ws: Workspace, month: int) -> None:
    ws.ok("journal", "add", f"2024-{month:02d}-17", "by hand", "5020=7.00", "1010=-7.00")


def compare_links(ws: Workspace) -> int:
    """How many entries name others, asked for the first time and again, and as all months say."""
    host, found = open_workspace(ws.root), []
    for _ in range(2):
        with open_committed_books(host) as (_, _, books, _):
            found.append([(each.entry_id, each.tags) for each in iter_linked_entries(host.layout.state_dir, books)])
    with open_committed_books(host) as (_, _, books, _):
        said = [(each.entry_id, each.tags) for each in books.iter_entries() if "@" in each.tags]
    assert found == [said, said]
    return len(said)


@pytest.mark.parametrize("seed", range(3))
def test_they_are_what_all_months_say(ws: Workspace, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = random.Random(seed)
    linked = [0]
    for month in (1, 2, 3, 4):
        monkeypatch.setenv("CLEARED_CLOCK", f"2024-{month:02d}-28T20:00:00Z")
        for _ in range(2):
            post(ws, month)
        for _ in range(2):
            standing = [each["entry_id"] for each in ws.entries() if each["status"] != "voided"]
            ws.ok("journal", "void", chance.choice(standing), "--reason", "a test")
        linked.append(compare_links(ws))
    assert linked == sorted(set(linked))
    ws.git("reset", "-q", "--hard", "HEAD~3")
    compare_links(ws)


def test_a_correction_reads_no_past_month(ws: Workspace, scanned: list[tuple[int, int]]) -> None:
    for month in (1, 2, 3):
        post(ws, month)
    ws.ok("journal", "void", "2024-03-001", "--reason", "a test")
    assert (2024, 1) in scanned
    post(ws, 3)
    scanned.clear()
    ws.ok("journal", "void", "2024-03-003", "--reason", "a test")
    assert set(scanned) <= {(2024, 3)}
