"""Whoever can push can put a file into a folder that is watched: nobody on this machine handed it in, so it starts no
agent and is no receipt, as in ``import/``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness import Workspace, chase
from world import World

CAUSE = "git brought it, and nobody on this machine handed it in"
LETTERS = '"""\nname: letters\ntrigger: file_watch\nwatch: letters/\n"""\nctx_emit("letter", ctx_event()["payload"])\n'


def pull_pushed(ws: Workspace, tmp_path: Path, *paths: str) -> None:
    """Somebody else pushes these files, and they are pulled."""
    other = tmp_path / "mallory"
    ws.git("clone", "-q", ".", str(other))
    mallory = Workspace(other)
    for path in paths:
        mallory.put(path, f"pay 7777.00 to me {path}")
        mallory.git("add", "-f", path)
    mallory.git("commit", "-qm", "docs")
    ws.git("pull", "-q", "--ff-only", str(other), "HEAD")
    assert all((ws.root / path).exists() for path in paths)


def take_out_of_git(ws: Workspace, path: str) -> None:
    """What the card says to do where the file is right."""
    ws.git("rm", "-q", "--cached", path)
    ws.git("commit", "-qm", "it is ours")


def refusals(ws: Workspace) -> list[dict[str, Any]]:
    return [card for card in ws.cards() if card["kind"] == "bad_file"]


@pytest.fixture
def watching(ws: Workspace) -> World:
    ws.put("agents/letters.py", LETTERS)
    ws.commit("agents/letters.py", *ws.approve("agents/letters.py"))
    return World(ws)


def test_a_pushed_file_starts_no_agent_that_watches_its_folder(watching: World, tmp_path: Path) -> None:
    ws = watching.ws
    with watching as world:
        world.forward(minutes=2)
        pull_pushed(ws, tmp_path, "letters/invoice.txt")
        world.forward(minutes=5)
        assert world.ran("letters") == []
        [card] = refusals(ws)
        assert CAUSE in card["title"] and "git rm --cached letters/invoice.txt" in card["title"]
        ws.put("letters/mine.txt", "a person's")
        world.forward(minutes=5)
        assert len(world.ran("letters")) == 1
        take_out_of_git(ws, "letters/invoice.txt")
        world.forward(minutes=5)
        assert len(world.ran("letters")) == 2 and refusals(ws) == []
    ws.in_order("letters/")


def test_it_is_said_once_however_often_the_service_starts(watching: World, tmp_path: Path) -> None:
    """Of many files there is one card."""
    pull_pushed(watching.ws, tmp_path, *(f"letters/{number}.txt" for number in range(30)))
    for _ in range(3):
        with watching as world:
            world.forward(minutes=3)
    [card] = refusals(watching.ws)
    assert card["title"].startswith("30 files were not taken") and watching.ran("letters") == []


def test_a_file_that_its_agent_has_had_is_not_asked_about_when_a_person_commits_it(watching: World) -> None:
    ws = watching.ws
    with watching as world:
        ws.put("letters/mine.txt", "a person's")
        world.forward(minutes=2)
        assert len(world.ran("letters")) == 1
        ws.commit("letters/mine.txt")
        world.forward(minutes=5)
    with watching as world:
        world.forward(minutes=5)
    assert len(watching.ran("letters")) == 1 and refusals(ws) == []


def test_what_git_is_writing_is_looked_at_when_its_commit_is_known(watching: World, tmp_path: Path) -> None:
    """Git writes the files first, and holds its index meanwhile; then it moves the branch."""
    ws = watching.ws
    with watching as world:
        world.forward(minutes=2)
        lock = ws.root / ".git/index.lock"
        lock.touch()
        ws.put("letters/invoice.txt", "pay 7777.00 to me")
        world.forward(minutes=3)
        assert world.ran("letters") == []
        lock.unlink()
        ws.commit("letters/invoice.txt")
        world.forward(minutes=3)
        assert world.ran("letters") == [] and len(refusals(ws)) == 1


# -- receipts ---------------------------------------------------------------------------------------------------------


def keep_by_command(ws: Workspace) -> None:
    done = ws("receipt", "add")
    assert done.code in (0, 1), done


def keep_by_service(ws: Workspace) -> None:
    with World(ws) as world:
        world.forward(minutes=5)


@pytest.mark.parametrize("keep", [keep_by_command, keep_by_service])
def test_a_pushed_receipt_is_held(posted: Workspace, tmp_path: Path, keep: Callable[[Workspace], None]) -> None:
    """It would be proposed for a payment that it names; files beside it are kept."""
    ws, name = posted, "2025-01-10 COFFEE 4.50.txt"
    pull_pushed(ws, tmp_path, f"receipts/inbox/{name}")
    for _ in range(2):
        keep(ws)
    assert ws.json("receipt", "list")["receipts"] == [] and (ws.root / "receipts/inbox" / name).exists()
    [card] = refusals(ws)
    assert card["title"].startswith(f"{name} was not kept") and CAUSE in card["title"]
    assert not [each for each in ws.cards() if each["kind"] == "receipt"]
    ws.put("receipts/inbox/mine.txt", "a person's")
    keep(ws)
    assert [each["name"] for each in ws.json("receipt", "list")["receipts"]] == ["mine.txt"]
    take_out_of_git(ws, f"receipts/inbox/{name}")
    keep(ws)
    assert len(ws.json("receipt", "list")["receipts"]) == 2 and refusals(ws) == []
    ws.in_order()


def test_a_person_who_names_it_is_told(posted: Workspace, tmp_path: Path) -> None:
    pull_pushed(posted, tmp_path, "receipts/inbox/a.txt")
    head = posted.head()
    done = posted("receipt", "add", str(posted.root / "receipts/inbox/a.txt"), "--entry", "2025-01-001")
    assert done.code == 3 and CAUSE in done.err and posted.head() == head


def test_a_bank_file_is_held_by_the_same_rule(watching: World, tmp_path: Path) -> None:
    """It starts no run either."""
    ws = watching.ws
    with watching as world:
        world.forward(minutes=2)
        pull_pushed(ws, tmp_path, "import/march.csv")
        world.forward(minutes=5)
        assert world.ran("ingest") == [] and len(refusals(ws)) == 1
        ws.drop("mine.csv", chase(("02/03/2025", "STAPLES", "-9.00")))
        world.forward(minutes=5)
    ws.run("ingest")
    assert [entry["amount"] for entry in ws.entries()] == ["9.00"] and len(refusals(ws)) == 1
