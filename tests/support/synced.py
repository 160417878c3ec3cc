"""Two clones of the same books that follow one repository."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from clones import clone
from harness import IDENTITY, Workspace, chase, trust_books

SHOP = chase(("02/03/2025", "CORNER SHOP", "-5.00"))
CAFE = chase(("02/04/2025", "CAFE", "-6.00"))


def follow(ws: Workspace, folder: Path) -> tuple[Workspace, Workspace, Path]:
    """The books, a clone of them that is trusted, and the repository that both follow."""
    shared = folder / "shared.git"
    run_git(folder, "clone", "-q", "--bare", f"file://{ws.root}", str(shared))
    run_git(shared, "config", "receive.denyNonFastForwards", "true")
    ws.git("remote", "add", "origin", f"file://{shared}")
    ws.git("fetch", "-q")
    ws.git("branch", "-q", "-u", "origin/main")
    other = clone(Workspace(shared), folder / "other")
    trust_books(other.root)
    return ws, other, shared


def run_git(where: Path, *args: str) -> str:
    """Git as a person uses it."""
    done = subprocess.run(["git", *args], cwd=where, env=os.environ | IDENTITY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tip_of(shared: Path) -> str:
    """The last commit that was pushed."""
    return run_git(shared, "rev-parse", "main").strip()


def part(two: tuple[Workspace, Workspace, Path]) -> tuple[Workspace, Workspace]:
    """The other clone has pushed an entry; this one has made another, which has the same id."""
    ws, other, _ = two
    other.drop("cafe.csv", CAFE)
    other.run("ingest")
    other.ok("sync")
    ws.ok("journal", "add", "2025-02-05", "by hand", "5070=9", "1010=-9")
    return ws, other


def left_out(ws: Workspace, why: str) -> None:
    """A sync leaves one thing out, for this reason: a card says so, and what it was is still there."""
    before = ws.head()
    (left,) = [step for step in ws.json("sync")["steps"] if step["left_out"]]
    assert why in left["left_out"] and left["now"] is None, left
    (card,) = [card for card in ws.cards() if card["kind"] == "left_out"]
    shown = ws.ok("queue", "show", card["id"]).out
    assert why in shown and left["was"][:10] in shown, shown
    assert left["was"] == before and before in ws.git("rev-list", "--all").split()
    ws.in_order()
    ws.ok("queue", "answer", card["id"], "seen")
