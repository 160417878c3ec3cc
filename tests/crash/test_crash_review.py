"""Killed at each step of a decision, of its undoing, of a run that asks and of its answer: all of it or nothing.

The same command again has the same end.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import preloaded
import pytest
from harness import Workspace, copy_books, environment, here
from kill_points import choose_cases

from cleared.git import STEPS

pytestmark = pytest.mark.slow

COMMANDS = {
    "approve": ["queue", "approve", "2025-01-002", "2025-01-004"],
    "correct": ["queue", "correct", "2025-01-004", "--account", "5060"],
    "undo": ["queue", "undo"],
    "import": ["import", "undo", "january.csv"],
    "ask": ["agent", "run", "asker"],
    "answer": ["queue", "answer", "{card}", "5060"],
}
ASKER = """
choice = queue_ask("Which?", ["5010", "5060"])
journal_add_double(date="2025-02-09", description="asked", debit_account=int(choice), credit_account=2100, amount=7,
                   confidence=0.9, status="auto-confirmed", evidence="asked")
git_commit("agent: asked")
"""
CHILD = """
import os, signal, sys
from cleared.changes import workspace_opening
left, real = int(sys.argv[2]), workspace_opening.open_workspace

def stop(name):
    global left
    left -= name == sys.argv[1]
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

workspace_opening.open_workspace = lambda *a, **k: real(*a, **{**k, "on_step": stop})
from cleared.cli.command_runner import run
sys.exit(run(sys.argv[3:]))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """For each command a workspace in which it is next."""
    folder = tmp_path_factory.mktemp("review")
    with pytest.MonkeyPatch.context() as patch:
        for key, value in (environment(folder) | {"CLEARED_HOME": str(folder / "home")}).items():
            patch.setenv(key, value)
        assert here("init", str(folder / "approve"), "--name", "Acme").code == 0
        ws = Workspace(folder / "approve")
        ws.drop("january.csv")
        ws.run("ingest")
        copy_books(ws.root, folder / "correct")
        copy_books(ws.root, folder / "undo")
        Workspace(folder / "undo").ok(*COMMANDS["correct"])
        copy_books(ws.root, folder / "import")
        copy_books(ws.root, folder / "ask")
        Workspace(folder / "ask").agent("asker", ASKER)
        copy_books(folder / "ask", folder / "answer")
        Workspace(folder / "answer").run("asker")
        for name in COMMANDS:
            after = Workspace(copy_books(folder / name, folder / f"{name}-after"))
            after.ok(*words(after, name))
        yield folder


def words(ws: Workspace, name: str) -> list[str]:
    asked = [c["id"] for c in ws.cards("--status", "all") if c["kind"] == "question"]
    return [w.format(card=asked[0] if asked else "") for w in COMMANDS[name]]


def found(ws: Workspace) -> dict[str, Any]:
    """All that has to agree, but for ids that a clock or chance makes."""
    return {
        "entries": [{k: e[k] for k in ("entry_id", "status", "description", "lines")} for e in ws.entries()],
        "cards": sorted((c["kind"], c["status"], c["title"]) for c in ws.cards("--status", "all")),
        "files": [
            p for p in ws.git("ls-tree", "-r", "--name-only", "HEAD").split() if not p.startswith("tests/cases/")
        ],
        "subject": ws.git("log", "-1", "--format=%s"),
        "commits": int(ws.git("rev-list", "--count", "HEAD")),
    }


def killed_at(ws: Workspace, step: str, nth: int, argv: list[str]) -> bool:
    done = preloaded.run([CHILD, step, str(nth), *argv, "-C", str(ws.root)], function="preloaded:execute")
    assert done.returncode in (-signal.SIGKILL, 0), done.stderr.decode()
    return done.returncode == -signal.SIGKILL


FEW = ("checked", STEPS[0], "ref", STEPS[-1])
PLACES = [(name, step, 1) for name in ("correct", "answer") for step in ("checked", *STEPS)]
PLACES += [(name, step, 1) for name in ("approve", "undo", "import", "ask") for step in FEW]
PLACES += [("correct", "file", n) for n in (2, 5)] + [("ask", "begun", 1), ("ask", "ran", 1)]
PLACES += [("answer", step, 2) for step in ("checked", STEPS[0], "ref", STEPS[-1])]
PLACES += [("answer", "begun", 1), ("answer", "ran", 1)]
PLACES = choose_cases(
    PLACES,
    lambda place: place[1:],
    lambda place: (place[0], place[1] in STEPS and STEPS.index(place[1]) >= STEPS.index("ref")),
)


@pytest.mark.parametrize(("name", "step", "nth"), PLACES)
def test_killed_at_each_step(made: Path, tmp_path: Path, name: str, step: str, nth: int) -> None:
    ws = Workspace(copy_books(made / name, tmp_path / "w"))
    before, after = found(ws), found(Workspace(made / f"{name}-after"))
    argv = words(ws, name)
    if not killed_at(ws, step, nth, argv):
        assert (name, step) in {("ask", "ran")} or step not in ("ref", "checked"), "it never came to that step"
        return
    now = found(ws)
    assert now["commits"] in (before["commits"], before["commits"] + 1, after["commits"])
    if now["commits"] == before["commits"]:
        assert now == before
    elif now["commits"] == after["commits"]:
        assert now == after
    else:  # answered, and the run has not gone on yet
        assert name == "answer" and now["entries"] == before["entries"]
        assert ("question", "resolved", "asker asks: Which?") in now["cards"]
    assert ws.json("check") == {"ok": True, "violations": []}
    assert ws.git("status", "--porcelain") == "" and ws.git("fsck", "--strict", "--no-dangling", "--no-progress") == ""
    if now != after:
        ws.ok(*argv)
        assert found(ws) == after
    assert ws.json("queue", "expire")["runs"] == []
