"""Two clones of the same books, joined with plain git (fault 21)."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import IDENTITY, Workspace, chase

FEBRUARY = chase(("02/04/2025", "GITHUB *PRO", "-4.00"), ("02/05/2025", "COFFEE", "-5.50"))
ALSO_FEBRUARY = chase(("02/06/2025", "AWS EMEA", "-41.10"), ("02/07/2025", "BAKERY", "-7.25"))
MARCH = chase(("03/04/2025", "GITHUB *PRO", "-4.00"), ("03/05/2025", "TEA", "-3.20"))


@pytest.fixture
def clones(posted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Workspace, Workspace]:
    """January is posted in both."""
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    other = tmp_path / "other"
    posted.git("clone", "-q", str(posted.root), str(other))
    return posted, Workspace(other)


def book(ws: Workspace, name: str, data: str) -> None:
    ws.drop(name, data)
    ws.run("ingest")


def violations(ws: Workspace) -> list[dict[str, str]]:
    found: list[dict[str, str]] = ws("journal", "check", "--json").json["violations"]
    return found


def test_a_clean_merge_of_different_months_is_in_order_in_both(clones: tuple[Workspace, Workspace]) -> None:
    mine, other = clones
    book(mine, "february.csv", FEBRUARY)
    mine.ok("queue", "approve", mine.cards()[0]["id"])
    book(other, "march.csv", MARCH)
    mine.git("pull", "-q", "--no-rebase", "--no-edit", str(other.root), "HEAD")
    other.git("pull", "-q", "--no-rebase", "--no-edit", str(mine.root), "HEAD")
    for ws in clones:
        assert len(ws.git("log", "-1", "--format=%P").split()) == 2
        ws.in_order()
        assert {e["date"][:7] for e in ws.entries()} == {"2025-01", "2025-02", "2025-03"}


def test_a_merge_that_changes_something_itself_is_named(clones: tuple[Workspace, Workspace]) -> None:
    """An amount that neither clone had."""
    mine, other = clones
    book(mine, "february.csv", FEBRUARY)
    book(other, "march.csv", MARCH)
    mine.git("pull", "-q", "--no-rebase", "--no-commit", str(other.root), "HEAD")
    path = mine.root / "books/2025/02/journal.csv"
    path.write_text(path.read_text().replace("COFFEE", "DINNER"))
    mine.git("commit", "-q", "-a", "-m", "Merge")
    found = [v for v in violations(mine) if v["check"] == "provenance"]
    assert {v["place"] for v in found} == {"books/2025/02/journal.csv"}
    assert any("added what neither had: " in v["message"] and "DINNER" in v["message"] for v in found)
    assert any("lost " in v["message"] and "COFFEE" in v["message"] for v in found)
    mine.ok("recover", "--forget")
    merge = mine.git("log", "-1", "--merges", "--format=%H").strip()
    mine.ok("journal", "accept", merge, "--reason", "it was dinner")
    assert [v for v in violations(mine) if v["check"] == "provenance"] == []


@pytest.mark.parametrize("strategy", [["-s", "ours"], ["-X", "ours"]])
def test_a_merge_that_drops_one_side_is_named(clones: tuple[Workspace, Workspace], strategy: list[str]) -> None:
    mine, other = clones
    book(mine, "february.csv", FEBRUARY)
    book(other, "also.csv", ALSO_FEBRUARY)
    mine.git("pull", "-q", "--no-rebase", "--no-edit", *strategy, str(other.root), "HEAD")
    found = [v for v in violations(mine) if "merged two clones, and lost" in v["message"]]
    assert "books/2025/02/journal.csv" in {v["place"] for v in found}
    assert all("docs/howto/two-clones.md" in v["remedy"] for v in found)


def test_a_merge_that_collides_is_named_while_it_is_under_way(clones: tuple[Workspace, Workspace]) -> None:
    mine, other = clones
    book(mine, "february.csv", FEBRUARY)
    book(other, "also.csv", ALSO_FEBRUARY)
    mine.git("pull", "-q", "--no-rebase", str(other.root), "HEAD", check=False)
    [found] = violations(mine)
    assert (found["check"], found["place"]) == ("provenance", "books/2025/02/journal.csv")
    assert "two clones have both written here" in found["message"]
    assert "git merge --abort" in found["remedy"] and "docs/howto/two-clones.md" in found["remedy"]
    done = mine("agent", "run", "ingest")
    assert done.code == 4 and "in the middle of a merge" in done.err, done


def test_ids_that_both_gave_are_named_where_both_were_kept(clones: tuple[Workspace, Workspace]) -> None:
    """Somebody has joined by hand what git could not."""
    mine, other = clones
    book(mine, "february.csv", FEBRUARY)
    book(other, "also.csv", ALSO_FEBRUARY)
    mine.git("pull", "-q", "--no-rebase", str(other.root), "HEAD", check=False)
    path = mine.root / "books/2025/02/journal.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.startswith(("<<<<<<<", "=======", ">>>>>>>"))))
    mine.git("commit", "-q", "-a", "-m", "Merge")
    found = [v for v in violations(mine) if v["check"] == "ids"]
    assert found and all("docs/howto/two-clones.md" in v["remedy"] for v in found), violations(mine)
