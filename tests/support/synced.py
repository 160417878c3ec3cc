"""Two clones of the same books that follow one repository."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from clones import clone
from harness import IDENTITY, Workspace, trust_books


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
