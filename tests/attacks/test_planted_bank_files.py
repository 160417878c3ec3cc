"""A bank file that came with git: whoever can push planted it, and no run takes anything of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness import JANUARY, Workspace, chase, trust_books
from world import World

CAUSE = "git brought it, and nobody on this machine handed it in"
READ = 'importer_parse("{}")\nimporter_mark_processed("{}")\ngit_commit("took it")'


def plant(ws: Workspace, name: str = "march.csv", data: str = JANUARY) -> Path:
    """What somebody pushed, and a ``git pull`` brought."""
    path = ws.drop(name, data)
    ws.commit(f"import/{name}", message="helpful files")
    return path


def refusals(ws: Workspace) -> list[dict[str, Any]]:
    return [card for card in ws.cards() if card["kind"] == "bad_file"]


def test_a_clone_that_pulls_it_imports_nothing(ws: Workspace, tmp_path: Path) -> None:
    """One card says what it is and what to do; handed over by a person here, it is imported once."""
    clone = Workspace(tmp_path / "clone")
    ws.git("clone", "-q", str(ws.root), str(clone.root))
    trust_books(clone.root)
    plant(ws)
    clone.git("pull", "-q")
    for _ in range(2):
        clone.run("ingest")
    assert not clone.entries() and clone.read("import/march.csv") == JANUARY
    [card] = refusals(clone)
    assert card["title"].startswith("march.csv was not")
    assert "git rm --cached import/march.csv" in card["title"] and CAUSE in card["title"]
    assert "import/march.csv" in clone("doctor").out

    clone.git("rm", "-q", "--cached", "import/march.csv")
    clone.git("commit", "-qm", "it is right")
    for _ in range(2):
        clone.run("ingest")
    assert len(clone.entries()) == 4 and not refusals(clone)
    clone.in_order()


def test_the_service_looks_at_it_once(ws: Workspace) -> None:
    """The file stays where it is, and starts no run again and again; a person's file beside it is imported."""
    plant(ws)
    world = World(ws)
    with world:
        world.forward(minutes=5)
        runs = len(world.ran("ingest"))
        assert runs <= 1
        ws.drop("own.csv", chase(("02/03/2025", "STAPLES", "-9.00")))
        world.forward(minutes=5)
    with world:
        world.forward(minutes=5)
    assert len(world.ran("ingest")) == runs + 1
    assert [e["amount"] for e in ws.entries()] == ["9.00"] and len(refusals(ws)) == 1
    assert (ws.root / "import/march.csv").exists()


@pytest.mark.parametrize("name", ["march.csv", "./march.csv", "march.csv/checking"])
def test_a_script_that_names_it_is_refused(ws: Workspace, name: str) -> None:
    plant(ws)
    error = ws.script(READ.format(name, name), code=1)["error"]
    assert CAUSE in error["message"] and not ws.entries()


def link_folder(ws: Workspace) -> None:
    """The drop folder itself is a link to files of the commit."""
    ws.put("docs/march.csv", JANUARY)
    ws.git("rm", "-rq", "--cached", "import")
    (ws.root / "import").rename(ws.root / "before")
    (ws.root / "import").symlink_to("docs")
    ws.git("add", "-f", "import", "docs")
    ws.git("commit", "-qm", "tidy up")


def link_sub_folder(ws: Workspace) -> None:
    ws.put("docs/march.csv", JANUARY)
    (ws.root / "import/more").symlink_to("../docs")
    ws.commit("docs/march.csv", "import/more")


def link_file(ws: Workspace) -> None:
    ws.put("docs/march.csv", JANUARY)
    (ws.root / "import/march.csv").symlink_to("../docs/march.csv")
    ws.commit("docs/march.csv", "import/march.csv")


def add_submodule(ws: Workspace) -> None:
    """Its files are those of another repository; this commit has only its name."""
    ws.git("update-index", "--add", "--cacheinfo", f"160000,{ws.head()},import/bank")
    ws.git("commit", "-qm", "a submodule")
    ws.drop("bank/march.csv")


@pytest.mark.parametrize("plant_way", [link_folder, link_sub_folder, link_file, add_submodule])
def test_ways_that_a_commit_can_lay_take_nothing(ws: Workspace, plant_way: Callable[[Workspace], None]) -> None:
    plant_way(ws)
    ws("agent", "run", "ingest")
    assert not ws.entries()


def test_many_files_are_one_card(ws: Workspace) -> None:
    plant(ws, "a.csv")
    plant(ws, "b.csv", JANUARY.replace("COFFEE", "TEA"))
    ws.run("ingest")
    [card] = refusals(ws)
    assert card["title"].startswith("2 files were not imported") and not ws.entries()


def test_a_name_that_a_shell_would_run_is_quoted(ws: Workspace) -> None:
    plant(ws, "a;$(id).csv")
    ws.run("ingest")
    assert "git log -- 'import/a;$(id).csv'" in refusals(ws)[0]["title"]


def test_only_the_commit_counts_not_the_index(ws: Workspace) -> None:
    """``git add`` alone is a person's on this machine."""
    ws.drop("march.csv")
    ws.git("add", "-f", "import/march.csv")
    ws.run("ingest")
    assert len(ws.entries()) == 4


def test_a_commit_writes_nothing_to_a_held_file(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    from cleared.changes import imported_files as holding

    monkeypatch.setattr(holding, "_link_file", lambda *_: None)
    ws.drop("january.csv")
    ws.run("ingest")
    [held_file] = [p for p in (ws.root / "import").iterdir() if p.name.endswith(".taken.csv")]
    held_file.write_text(JANUARY + "DEBIT,01/31/2025,LATE,-7.00,ACH_DEBIT,2439.40,,\n")
    ws.commit(f"import/{held_file.name}")
    for _ in range(2):
        ws.run("ingest")
    assert not ws.entries("--text", "LATE")
