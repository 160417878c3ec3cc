"""The commits that call themselves the same are found as a look through the whole history finds them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness import IDENTITY, Workspace

from cleared.changes.audit.commit_marks import CommitMarks
from cleared.changes.workspace_opening import open_workspace
from cleared.git import Repository, history

TRAILERS = ("Run: r1", "Run: r2", "Decision: d1", "Decision: r1", "Run: r1\nDecision: d2", "Other: r1", "")
KEPT = ".cleared/books/commit-marks"


@pytest.fixture
def marked(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    return ws


def commit(ws: Workspace, trailers: str) -> None:
    ws.git("commit", "-q", "--allow-empty", "-m", f"any\n\n{trailers}\n")


@contextmanager
def open_marks(ws: Workspace) -> Iterator[tuple[Repository, CommitMarks]]:
    host = open_workspace(ws.root)
    with host.open_for_reading() as repo:
        yield repo, CommitMarks(host, repo, repo.read_head())


def list_alike(ws: Workspace) -> dict[str, list[str]]:
    """Each commit → those that call themselves what it does."""
    commits = history.read_log(ws.root, full_history=True)
    with open_marks(ws) as (_, marks):
        return {each.id: marks.list_alike(each) for each in commits}


def search_alike(ws: Workspace) -> dict[str, list[str]]:
    """The same from all of the history."""
    commits = history.read_log(ws.root, full_history=True)
    found = {}
    for each in commits:
        marks = [(kind, each.trailers[kind]) for kind in ("Run", "Decision", "Proposed") if kind in each.trailers]
        alike = [other.id for kind, name in marks for other in commits if other.trailers.get(kind) == name]
        found[each.id] = list(dict.fromkeys(alike))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_they_are_those_of_the_whole_history(marked: Workspace, seed: int) -> None:
    ws, chance = marked, random.Random(seed)
    for _ in range(6):
        for _ in range(chance.choice((1, 3, 20))):
            commit(ws, chance.choice(TRAILERS))
        deed = chance.choice(("none", "reset", "amend", "merge", "damage"))
        if deed == "reset":
            ws.git("reset", "-q", "--hard", "HEAD~1")
        elif deed == "amend":
            ws.git("commit", "-q", "--amend", "--allow-empty", "-m", f"other\n\n{chance.choice(TRAILERS)}\n")
        elif deed == "merge":
            ws.git("checkout", "-q", "-b", "side", "HEAD~1")
            commit(ws, chance.choice(TRAILERS))
            ws.git("checkout", "-q", "main")
            ws.git("merge", "-q", "--no-ff", "-m", "joined", "side")
            ws.git("branch", "-q", "-D", "side")
        elif deed == "damage" and (kept := ws.root / KEPT).exists():
            kept.write_bytes(kept.read_bytes()[:-1] + b"x")
        assert list_alike(ws) == search_alike(ws)


def test_the_history_is_read_once(marked: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(20):
        commit(marked, f"Run: r{n % 3}")
    found = list_alike(marked)
    assert Path(marked.root, KEPT).exists()
    commit(marked, "Run: r1")
    [newest] = history.read_log(marked.root, 1)

    def read(*_: object, **__: object) -> None:
        raise AssertionError("the whole history was read")

    monkeypatch.setattr(history, "read_log", read)
    with open_marks(marked) as (_, marks):
        assert marks.list_alike(newest) == [newest.id, *next(alike for alike in found.values() if len(alike) == 7)]
