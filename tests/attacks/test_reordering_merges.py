"""Who can push writes a merge that adds no row and loses none: of some files the last row is what counts."""

from __future__ import annotations

import pytest
from harness import IDENTITY, Workspace, take_ok
from pushing import check

from cleared.changes.audit import provenance

PERIODS = "books/periods.csv"


@pytest.fixture
def closed(posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """January was closed, reopened and closed again; on a side branch nothing was done about it."""
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    posted.git("branch", "-M", "main")
    posted.git("branch", "side")
    posted.ok("period", "close", "2025-01", "--with-pending")
    take_ok(posted, "period", "reopen", "2025-01", "--reason", "a bill came")
    posted.ok("period", "close", "2025-01", "--with-pending")
    posted.in_order()
    posted.git("checkout", "-q", "side")
    posted.put("notes.txt", "x\n")
    posted.commit("notes.txt")
    posted.git("checkout", "-q", "main")
    return posted


def is_open(ws: Workspace) -> bool:
    return ws("journal", "add", "2025-01-31", "late", "5020=1.00", "1010=-1.00").code == 0


@pytest.mark.parametrize("wall", [True, False])
@pytest.mark.parametrize("how", ["repeated", "put elsewhere"])
def test_a_merge_moves_and_repeats_no_row(
    closed: Workspace, monkeypatch: pytest.MonkeyPatch, how: str, wall: bool
) -> None:
    closed.git("merge", "-q", "--no-ff", "--no-commit", "side")
    header, first, opened, last = closed.read(PERIODS).splitlines(keepends=True)
    rows = [first, opened, last, opened] if how == "repeated" else [first, last, opened]
    closed.put(PERIODS, "".join([header, *rows]))
    closed.git("commit", "-qam", "Merge branch 'side'")
    if not wall:
        monkeypatch.setattr(provenance, "_find_merge_changes", lambda *_, **__: [])
        closed.in_order()
    else:
        (found,) = check(closed)
        assert "merged two clones, and" in found and how in found and closed.head()[:10] in found
    assert is_open(closed)


def test_a_merge_as_git_makes_it_is_in_order(closed: Workspace) -> None:
    closed.git("merge", "-q", "--no-ff", "--no-edit", "side")
    closed.in_order()
    assert not is_open(closed)
