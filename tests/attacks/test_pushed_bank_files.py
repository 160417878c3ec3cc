"""Whoever can push can put a bank file into ``import/``: it is nobody's on this machine, and is not imported."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Workspace, chase, fails

EVIL = chase(("02/03/2025", "GITHUB *EVIL", "-1234.00"))


@pytest.fixture
def pushed(ws: Workspace, tmp_path: Path) -> Workspace:
    """A workspace into which somebody else has pushed a file."""
    other = tmp_path / "mallory"
    ws.git("clone", "-q", ".", str(other))
    mallory = Workspace(other)
    mallory.put("import/march.csv", EVIL)
    mallory.git("add", "-f", "import/march.csv")
    mallory.git("commit", "-qm", "docs")
    ws.git("pull", "-q", "--ff-only", str(other), "HEAD")
    assert (ws.root / "import/march.csv").exists()
    return ws


def test_a_file_that_came_with_git_is_held_with_a_card(pushed: Workspace) -> None:
    for _ in range(2):
        pushed.run("ingest")
        assert pushed.entries() == [] and (pushed.root / "import/march.csv").exists()
    (card,) = pushed.cards()
    assert card["kind"] == "bad_file" and "nobody on this machine handed it in" in card["title"]
    assert "git rm --cached import/march.csv" in card["title"]
    pushed.drop("mine.csv", chase(("02/04/2025", "GITHUB *PRO", "-4.00")))
    pushed.run("ingest")
    assert [entry["description"] for entry in pushed.entries()] == ["GITHUB *PRO"], "files beside it are imported"


def test_a_script_cannot_name_it_either(pushed: Workspace) -> None:
    fails(pushed, 'importer_parse("march.csv")', "nobody on this machine handed it in")


def test_a_person_takes_it_out_of_git_and_then_it_is_imported_once(pushed: Workspace) -> None:
    pushed.run("ingest")
    pushed.git("rm", "-q", "--cached", "import/march.csv")
    pushed.git("commit", "-qm", "it is ours")
    for _ in range(2):
        pushed.run("ingest")
    assert [entry["amount"] for entry in pushed.entries()] == ["1234.00"]
    assert not [card for card in pushed.cards() if card["kind"] == "bad_file"]
    pushed.in_order()
