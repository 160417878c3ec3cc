"""FLAT: a check judges what came since the last one, and says what a whole check would say."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest
from harness import ATTESTED, Workspace

from cleared.changes.audit import attested_state, provenance

JOURNAL = "books/2025/01/journal.csv"


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What judged a whole history."""
    calls: list[str] = []
    for module, name in ((provenance, "find_unexplained_commits"), (attested_state.AttestedState, "find_residue")):

        def record(*args: object, name: str = name, original: Callable[..., object] = getattr(module, name)) -> object:
            calls.append(name)
            return original(*args)

        monkeypatch.setattr(module, name, record)
    return calls


@pytest.fixture
def right(posted: Workspace) -> Workspace:
    """Books that were checked and shown, and one decision since."""
    assert posted("check").code == 0
    posted.ok("status")
    posted.ok("journal", "add", "2025-02-05", "draw", "3200=77.00", "1010=-77.00")
    return posted


def test_only_what_came_since_is_judged(right: Workspace, whole: list[str]) -> None:
    right.ok("status")
    assert (right("check").code, whole) == (0, [])
    right.put("notes.txt", "no book")
    right.commit("notes.txt")
    right.ok("status")
    assert (right("check").code, whole) == (0, [])
    shutil.rmtree(right.root / ".cleared/books")
    right.ok("status")
    assert (right("check").code, whole) == (0, ["find_residue", "find_unexplained_commits", "find_residue"])


def by_hand(ws: Workspace) -> None:
    ws.put(JOURNAL, ws.read(JOURNAL).replace("COFFEE", "TEA"))
    ws.git("commit", "-qam", "by hand")


def amended(ws: Workspace) -> None:
    """The decision's own commit, with something more."""
    ws.put(JOURNAL, ws.read(JOURNAL).replace("COFFEE", "TEA"))
    ws.git("commit", "-q", "--amend", "--no-edit", "-a")


def dropped_line(ws: Workspace) -> None:
    """An attestation says nothing of the other lines beside it."""
    *_, last = lines = ws.read(ATTESTED).splitlines(keepends=True)
    ws.put(ATTESTED, "".join([*lines[:-2], last]))
    ws.git("commit", "-q", "--amend", "--no-edit", "-a")


def added_line(ws: Workspace) -> None:
    """That of another run in another part of the file: it counts once."""
    ws.put("logs/attestations-2025-02_002.jsonl", ws.read(ATTESTED).splitlines(keepends=True)[0])
    ws.git("add", "logs")
    ws.git("commit", "-q", "--amend", "--no-edit")


def renamed(ws: Workspace) -> None:
    message = ws.git("log", "-1", "--format=%B").replace("draw", "rent")
    ws.git("commit", "-q", "--amend", "-m", message)


def replayed(ws: Workspace) -> None:
    """Taken back by hand, and done once more as it was."""
    done = ws.head()
    ws.git("revert", "--no-edit", done)
    ws.git("cherry-pick", "--allow-empty", done)


@pytest.mark.parametrize("tamper", [by_hand, amended, dropped_line, added_line, renamed, replayed])
def test_whoever_tampers_is_found_as_by_a_whole_check(right: Workspace, tamper: Callable[[Workspace], None]) -> None:
    tamper(right)
    known = right("check", "--json")
    shutil.rmtree(right.root / ".cleared/books")
    assert known.json == right("check", "--json").json
    assert known.code == (tamper is not added_line)


def test_a_record_by_others_counts_for_nothing(right: Workspace, whole: list[str]) -> None:
    by_hand(right)
    judged = right.root / ".cleared/books/judged"
    sealed = judged.read_bytes()
    judged.write_bytes(sealed[:-40] + right.head().encode())
    assert right("check").code == 1
    assert "find_unexplained_commits" in whole
