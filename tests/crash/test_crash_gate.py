"""Killed at each step of a proposal, its approval, a rollback, a setting: the next command finds all of it or nothing.

Live script, record, decision, card and setting agree afterwards, and the same command again has the same end.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from forked import Forks
from harness import Workspace, copy_books, environment, here, name_shown, take_ok, take_shown
from kill_points import choose_cases
from patience import PATIENCE

from cleared.changes.workspace_opening import open_workspace
from cleared.git import STEPS

PLACES = [(step, nth) for step in STEPS for nth in ((1, 2, 4) if step == "file" else (1,))]
COMMANDS = {
    "propose": (["propose", "probe"], ["agent", "propose", "probe"]),
    "approve": (["approve", "P2"], ["agent", "approve", "P2"]),
    "reject": (["reject", "P2", "no"], ["agent", "reject", "P2", "--reason", "no"]),
    "rollback": (["rollback", "probe"], ["agent", "rollback", "probe"]),
    "set": (["set", "sandbox.timeout", "20"], ["config", "set", "sandbox.timeout", "20"]),
}


def text(version: int) -> str:
    return f'"""\nname: Probe\ntrigger: on_demand\n"""\n{version}\n'


@dataclass
class Made:
    """For each command: a workspace in which it is next, and how it is found before and after; the user's key."""

    folder: Path
    forks: Forks
    before: dict[str, Any]
    after: dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    folder = tmp_path_factory.mktemp("gate")
    with pytest.MonkeyPatch.context() as patch, Forks() as forks:
        for key, value in (environment(folder) | {"CLEARED_HOME": str(folder / "home")}).items():
            patch.setenv(key, value)
        assert here("init", str(folder / "set"), "--name", "Acme").code == 0
        ws = Workspace(folder / "set")
        ws.put("agents/probe.py", text(1))
        ws.ok("agent", "propose", "probe")
        take_ok(ws, "agent", "approve", "P1")
        ws.put("agents/probe.py", text(2))
        copy_books(ws.root, folder / "propose")
        ws.ok("agent", "propose", "probe")
        copy_books(ws.root, folder / "approve")
        copy_books(ws.root, folder / "reject")
        take_ok(ws, "agent", "approve", "P2")
        copy_books(ws.root, folder / "rollback")
        before, after = {}, {}
        for name, (_, words) in COMMANDS.items():
            ws = copy(folder, name, folder / f"{name}-after", patch)
            before[name] = found(ws)
            (take_ok(ws, *words) if name == "approve" else ws.ok(*words))
            after[name] = found(ws)
            assert before[name] != after[name]
        yield Made(folder, forks, before, after)


def copy(folder: Path, name: str, root: Path, patch: pytest.MonkeyPatch) -> Workspace:
    """The workspace, and the user's home with it: what a rollback takes back is remembered there."""
    shutil.copytree(folder / "home", root.with_suffix(".home"))
    patch.setenv("CLEARED_HOME", str(root.with_suffix(".home")))
    return Workspace(copy_books(folder / name, root))


def found(ws: Workspace) -> dict[str, Any]:
    """All that has to agree: files, the live text, what runs, decisions, cards, settings."""
    ran = ws("agent", "run", "probe", "--json")
    return {
        "files": ws.git("ls-tree", "-r", "--name-only", "HEAD").splitlines(),
        "live": ws.git("show", "HEAD:agents/probe.py"),
        "runs": ran.json["result"] if ran.code == 0 else f"exit {ran.code}",
        "history": ws.json("agent", "history", "probe"),
        "cards": [(c["kind"], c["title"]) for c in ws.cards()],
        "setting": open_workspace(ws.root).config.sandbox.timeout,
        "subject": ws.git("log", "-1", "--format=%s"),
        "commits": ws.git("rev-list", "--count", "HEAD"),
    }


def sound(ws: Workspace, *working: str) -> None:
    assert ws.git("fsck", "--strict", "--no-dangling", "--no-progress") == ""
    assert ws.git("status", "--porcelain", "-uall").splitlines() == [f" M {path}" for path in working]
    assert not (ws.root / ".cleared/seal.json").exists()
    left = [p for p in ws.root.rglob("*") if p.name.endswith((".tmp", ".lock"))]
    assert [p.name for p in left if p.name != "writer.lock"] == []


def is_committed(step: str) -> bool:
    return STEPS.index(step) >= STEPS.index("ref")


CASES = choose_cases(
    [(name, step, nth) for name in COMMANDS for step, nth in PLACES],
    lambda case: case[1:],
    lambda case: (case[0], is_committed(case[1])),
)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "step", "nth"), CASES)
def test_killed_at_each_step(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, step: str, nth: int
) -> None:
    ws = copy(made.folder, name, tmp_path / "w", monkeypatch)
    order, words = COMMANDS[name]
    if not made.forks.killed_at(ws.root, order, step, nth):
        assert step == "file" and nth > 1, "fewer files than that"
        return
    now = found(ws)
    committed = is_committed(step)
    expected = dict(made.after[name] if committed else made.before[name])
    if name == "rollback" and not committed and now["runs"] == "exit 3":
        # What is to be taken back is refused already, and told so; no more than that was done.
        expected["runs"] = "exit 3"
        assert "withdrawn" in now["history"].pop()["about"]
    assert now == expected
    working = ["agents/probe.py"] if name in ("propose", "approve", "reject") and now["live"] == text(1) else []
    sound(ws, *working)
    again = take_shown(ws, *words) if name == "approve" else ws(*words)
    if name == "rollback" and committed:
        return  # that would be one more
    assert again.code == (3 if name == "reject" and committed else 0), again
    assert found(ws) == made.after[name]


@pytest.mark.parametrize("step", [step for step in STEPS if is_committed(step)])
def test_a_killed_rollback_stays_one(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Reverted with plain git it does not bring the version back, though the command could not say goodbye."""
    ws = copy(made.folder, "rollback", tmp_path / "w", monkeypatch)
    assert made.forks.killed_at(ws.root, ["rollback", "probe"], step)
    ws.ok("agent", "list")
    ws.git("revert", "--no-edit", "HEAD")
    assert ws.read("agents/probe.py") == text(2)
    refused = ws("agent", "run", "probe")
    assert refused.code == 3 and "cleared agent propose probe" in refused.err, refused


@pytest.mark.parametrize("seed", range(3))
def test_two_approvals_at_once(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Of one proposal: one commit. Of two for the same agent: each is live or refused, whole."""
    ws = copy(made.folder, "approve", tmp_path / "w", monkeypatch)
    before = ws.json("agent", "history", "probe")
    if seed:  # a second one beside it, by somebody who has taken the first one's end away
        ws.put("agents/probe.py", text(3))
        ws.ok("agent", "propose", "probe")
        (first,) = (ws.root / "queue/proposals").glob("P2-*")
        ws.git("rm", "-q", f"queue/proposals/{first.name}/decision.json")
        ws.git("commit", "-qm", "by hand")
        ws.git("checkout", "-q", "--", "agents/probe.py")
    commands = [("agent", "approve", p) for p in ("P2", "P3" if seed else "P2")]
    processes = [ws.start(*(name_shown(words, ws(*words)) or words)) for words in commands]
    codes = []
    for process in processes:
        process.communicate(timeout=PATIENCE)
        codes.append(process.returncode)
    ws.ok("agent", "list")
    history = ws.json("agent", "history", "probe")[len(before) :]
    approved = [e for e in history if e["event"] == "approved"]
    assert sorted(codes) in ([[0, 0]] if not seed else [[0, 3], [0, 0]]), codes
    assert len(approved) == (1 if not seed else codes.count(0))
    live = ws.run("probe")["result"]
    assert live in ((2, 3) if seed else (2,))
    sound(ws)
    commits = ws.git("log", "--format=%s", "--grep=^Approved-by:").splitlines()
    assert len(commits) == 1 + len(approved)
