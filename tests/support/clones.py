"""Books with an agent that is live, clones and copies of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from harness import IDENTITY, Workspace, take_ok, wait_for_packing

HEADER = '"""\nname: probe\ntrigger: on_demand\n"""\n'


def live(ws: Workspace, body: str = "1") -> Workspace:
    """The agent ``probe`` is approved with this body, and has run."""
    ws.put("agents/probe.py", f"{HEADER}{body}\n")
    take_ok(ws, "agent", "approve", str(ws.json("agent", "propose", "probe")["id"]))
    assert str(ws.run("probe")["result"]) == body
    return ws


def clone(ws: Workspace, where: Path, *options: str) -> Workspace:
    """As git makes one; nobody has said yet that it is trusted."""
    subprocess.run(
        ["git", "clone", "-q", *options, f"file://{ws.root}", str(where)],
        check=True,
        env=os.environ | IDENTITY,
        capture_output=True,
    )
    return Workspace(where)


def copied(ws: Workspace, where: Path) -> Workspace:
    """The whole folder, as ``cp -r`` makes it."""
    wait_for_packing(ws.root)
    return Workspace(Path(shutil.copytree(ws.root, where, symlinks=True)))
