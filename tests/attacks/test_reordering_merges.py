"""Who can push writes a merge that adds no row and loses none: of some files the last row is what counts."""

from __future__ import annotations

import pytest
from harness import IDENTITY, Workspace, take_ok
from pushing import check, ignore_states

from cleared.changes import lost_rows
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


def switch_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "find_merge_changes", lambda *_, **__: [])
    monkeypatch.setattr(lost_rows, "find_moved_rows", lambda *_: [])
    ignore_states(monkeypatch)


def commit_tree(ws: Workspace, *parents: str) -> str:
    """A commit of what is staged, on these parents."""
    tree, sides = ws.git("write-tree").strip(), [arg for parent in parents for arg in ("-p", parent)]
    return ws.git("commit-tree", tree, *sides, "-m", "Merge").strip()


def make_parents(ws: Workspace, how: str) -> list[str]:
    """Parents of a merge, more than one of which has all that was done about January, or some of it."""
    closed, reopened = ws.git("rev-parse", "main", "main~1").split()
    if how == "crosswise":
        return [commit_tree(ws, closed, "side"), commit_tree(ws, "side", closed)]
    sides = []
    for name, at in (("first", closed), ("second", reopened)):
        ws.git("checkout", "-q", "-b", name, at)
        ws.put(f"{name}.txt", "x\n")
        ws.commit(f"{name}.txt")
        sides.append(ws.head())
    ws.git("checkout", "-q", "main")
    return [closed, *sides, "side"]


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
        switch_off(monkeypatch)
        closed.in_order()
    else:
        (found,) = check(closed)
        assert "merged two clones, and" in found and how in found and closed.head()[:10] in found
    assert is_open(closed) is (not wall or how == "repeated")  # a clone that has seen another order writes nothing


def test_a_merge_as_git_makes_it_is_in_order(closed: Workspace) -> None:
    closed.git("merge", "-q", "--no-ff", "--no-edit", "side")
    closed.in_order()
    assert not is_open(closed)


@pytest.mark.parametrize("wall", [True, False])
@pytest.mark.parametrize("how", ["three parents", "crosswise"])
def test_no_row_counts_once_for_each_side_that_has_it(
    closed: Workspace, monkeypatch: pytest.MonkeyPatch, how: str, wall: bool
) -> None:
    parents = make_parents(closed, how)
    closed.put(PERIODS, closed.read(PERIODS) + closed.read(PERIODS).splitlines(keepends=True)[2])
    closed.git("add", PERIODS)
    closed.git("reset", "-q", "--hard", commit_tree(closed, *parents))
    if wall:
        (found,) = check(closed)
        assert "merged two clones, and repeated" in found and closed.head()[:10] in found
    else:
        switch_off(monkeypatch)
        closed.in_order()
    assert is_open(closed)


@pytest.mark.parametrize("how", ["three parents", "crosswise"])
def test_such_a_merge_that_repeats_none_is_in_order(closed: Workspace, how: str) -> None:
    parents = make_parents(closed, how)
    closed.git("reset", "-q", "--hard", commit_tree(closed, *parents))
    closed.in_order()
    assert not is_open(closed)


def test_a_merge_keeps_what_one_side_has_once_more(closed: Workspace) -> None:
    """Both have the first closing, one has it again, of the same second: the last one is gone."""
    header, first, opened, last = closed.read(PERIODS).splitlines(keepends=True)
    assert first == last
    closed.git("branch", "-f", "side", "main~2")
    closed.git("checkout", "-q", "side")
    closed.put("notes.txt", "y\n")
    closed.commit("notes.txt")
    closed.git("checkout", "-q", "main")
    closed.git("merge", "-q", "--no-ff", "--no-commit", "side")
    closed.put(PERIODS, "".join([header, first, opened]))
    closed.git("commit", "-qam", "Merge branch 'side'")
    (found,) = check(closed)
    assert "merged two clones, and lost" in found and closed.head()[:10] in found


@pytest.mark.parametrize("wall", [True, False])
@pytest.mark.parametrize("where", ["books/2025/03/journal.csv", "books/2026"])
def test_a_merge_brings_no_link(closed: Workspace, monkeypatch: pytest.MonkeyPatch, where: str, wall: bool) -> None:
    closed.git("merge", "-q", "--no-ff", "--no-commit", "side")
    (closed.root / where).parent.mkdir(parents=True, exist_ok=True)
    (closed.root / where).symlink_to("../01/journal.csv")
    closed.git("add", where)
    closed.git("commit", "-qm", "Merge branch 'side'")
    if wall:
        (found,) = check(closed)
        assert "merged two clones, and put there what is no file" in found
    else:
        switch_off(monkeypatch)
        assert check(closed) == []
