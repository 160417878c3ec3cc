"""Folders that an engine's variables, or its own links, name: they open nothing more of the home folder to it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fake_engine import FakeEngine, good
from harness import Done, Workspace

from cleared.processes.confinement import landlock_abi
from cleared.trust.keys import cleared_home
from cleared.work.cycles import engine_confinement
from cleared.work.loop import job_confinement

pytestmark = pytest.mark.skipif(not landlock_abi(), reason="this kernel has no Landlock")
SWAP = "import os, sys\nos.unlink(sys.argv[1])\nos.symlink(sys.argv[2], sys.argv[1])\n"


def run_cycles(cyc: Workspace, binary: Path, number: int = 1) -> Done:
    more = ("--claude-bin", str(binary), "--interval", "0", "--max-cycles", str(number))
    return cyc("cycle", "start", "--engine", "claude", "--allow-ai", *more)


@pytest.mark.parametrize("wall", [True, False])
def test_a_link_in_place_of_its_program_opens_nothing(
    cyc: Workspace, engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    """Its program lies where it keeps its credential: it can put a link there, and what that leads to is a folder of
    its owner's."""
    if not wall:
        monkeypatch.setattr(engine_confinement, "_is_led_away", lambda *_: False)
    private = tmp_path / "home/notes"
    private.mkdir()
    (private / "letter").write_text("s3cret")
    shutil.copy2(engine.binary, private / "tool")
    (engine.folder / "swap.py").write_text(SWAP)
    swapping = [str(engine.folder / "swap.py"), str(engine.binary), str(private / "tool")]
    engine.plan(good(run=swapping), good("More.", read=[str(private / "letter")]))
    done = run_cycles(cyc, engine.binary, 2)
    assert engine.binary.is_symlink(), "the engine may do that"
    assert ("s3cret" in cyc("cycle", "last").out) is not wall
    assert len(engine.calls) == (1 if wall else 2)
    assert ("CLAUDE_BIN" in done.err) is wall, done
    again = run_cycles(cyc, engine.binary)
    assert (again.code != 0) is wall and len(engine.calls) == (1 if wall else 3), again


def test_a_link_to_a_program_may_lie_where_no_engine_writes(cyc: Workspace, engine: FakeEngine, tmp_path: Path) -> None:
    """As package managers make them; and within its own folder."""
    installed, inner = tmp_path / "bin/claude", engine.folder / "current"
    installed.parent.mkdir()
    inner.symlink_to(engine.binary.name)
    installed.symlink_to(inner)
    engine.plan(good())
    assert run_cycles(cyc, installed).code == 0 and len(engine.calls) == 1


@pytest.mark.parametrize("wall", [True, False])
def test_a_folder_around_the_home_is_not_its_own(
    cyc: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    """CLAUDE_CONFIG_DIR names one that neither workspace nor keys lie in, but the home folder does."""
    if not wall:
        for module in (engine_confinement, job_confinement):
            monkeypatch.setattr(module, "list_closed", lambda root: (root.resolve(), cleared_home().resolve()))
    home = tmp_path / "people/anna"
    engine = FakeEngine(home / ".claude")
    (home / "letter").write_text("mine")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home.parent))
    engine.plan(good(write={str(home / "letter"): "its"}))
    run_cycles(cyc, engine.binary)
    assert len(engine.calls) == 1
    assert (home / "letter").read_text() == ("mine" if wall else "its")
