"""Whoever can push can put a bank file into ``import/``: it is nobody's on this machine, and is not imported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from harness import CLOCK, Workspace, chase, fails, refused

KEPT = "import/processed/march.csv"
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


def test_whoever_names_it_hears_each_time_that_it_was_not_imported(pushed: Workspace) -> None:
    for _ in range(2):  # the run says why once: a card has it then
        done = pushed("import", str(pushed.root / "import/march.csv"))
        assert done.code == 1 and "import/march.csv was not imported. Its card says why: cleared queue list" in done.err


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


def push_kept_file(ws: Workspace, folder: Path, alter: Callable[[Path], object]) -> None:
    """Somebody else alters an imported file in a commit, and this clone pulls it."""
    ws.git("clone", "-q", ".", str(folder))
    mallory = Workspace(folder)
    alter(folder / KEPT)
    mallory.git("add", "-A", "-f")
    mallory.git("commit", "-qm", "docs")
    ws.git("pull", "-q", "--ff-only", str(folder), "HEAD")


def find_altered(ws: Workspace) -> list[str]:
    """The files that a check names as no longer what was imported."""
    violations = ws("check", "--json").json["violations"]
    assert all("git checkout " in each["remedy"] for each in violations)
    return [each["place"] for each in violations if each["check"] == "bank_files"]


@pytest.fixture(params=["new", "checked"])
def imported(ws: Workspace, request: pytest.FixtureRequest) -> Workspace:
    """One file was imported; a check that has seen that looks at what came since."""
    ws.drop("march.csv", chase(("02/03/2025", "GITHUB *PRO", "-4.00")))
    ws.run("ingest")
    if request.param == "checked":
        ws.ok("check")
    return ws


def test_an_imported_file_that_a_commit_altered_is_named_and_not_taken_again(
    imported: Workspace, tmp_path: Path
) -> None:
    """Undone, the import would come again with what somebody has pushed."""
    push_kept_file(imported, tmp_path / "mallory", lambda kept: kept.write_text(EVIL))
    assert find_altered(imported) == [KEPT]
    imported.ok("import", "undo", "march.csv")
    for argv in (["import"], ["bank", "add"]):
        refused(imported(*argv, str(imported.root / KEPT)), 3, KEPT, "not what was imported", "hand in a copy")
    imported.git("checkout", "-q", "HEAD~2", "--", KEPT)
    imported.git("commit", "-qm", "as it was")
    imported.ok("import", str(imported.root / KEPT))
    assert [each["amount"] for each in imported.entries() if each["status"] == "auto-confirmed"] == ["4.00"]
    imported.in_order()


def test_a_file_of_a_month_that_a_commit_altered_is_named(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cleared.books.importing.drop_folder.KEPT_TOGETHER", 0)
    ws.drop("march.csv", chase(("02/03/2025", "GITHUB *PRO", "-4.00")))
    ws.run("ingest")
    path = f"import/processed/{CLOCK[:7]}/march.csv"
    assert ws.read(path) and find_altered(ws) == []
    ws.put(path, EVIL)
    ws.git("commit", "-qam", "altered")
    assert find_altered(ws) == [path]


def test_a_link_in_place_of_an_imported_file_is_named(imported: Workspace, tmp_path: Path) -> None:
    def put_link(kept: Path) -> None:
        kept.unlink()
        kept.symlink_to("../../config.yaml")

    push_kept_file(imported, tmp_path / "mallory", put_link)
    assert find_altered(imported) == [KEPT]


def test_two_imported_files_of_one_name_are_what_they_were(imported: Workspace) -> None:
    imported.drop("march.csv", chase(("02/04/2025", "GITHUB *PRO", "-5.00")))
    imported.run("ingest")
    assert (imported.root / "import/processed/march-2.csv").exists()
    imported.in_order()


@pytest.mark.parametrize("kept", ["april.csv", "april-3.csv", "april-4."])
def test_a_file_that_was_kept_by_hand_is_named_once_one_of_its_name_is_imported(ws: Workspace, kept: str) -> None:
    path, name = f"import/processed/{kept}", "april." if kept.endswith(".") else "april.csv"
    ws.put(path, EVIL)
    ws.commit(path)
    ws.ok("check")
    ws.drop(name, chase(("02/04/2025", "GITHUB *PRO", "-5.00")))
    ws.run("ingest")
    assert not (ws.root / "import" / name).exists() and find_altered(ws) == [path]


def test_a_damaged_list_of_imports_hides_no_finding(imported: Workspace, tmp_path: Path) -> None:
    def damage(kept: Path) -> None:
        kept.write_text(EVIL)
        with (kept.parents[2] / "books/bank/imports-2025-02.csv").open("a") as imports:
            imports.write("x,y\n")

    push_kept_file(imported, tmp_path / "mallory", damage)
    found = {each["check"] for each in imported("check", "--json").json["violations"]}
    assert found == {"format", "provenance"}
