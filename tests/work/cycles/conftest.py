from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fake_engine import FakeEngine
from harness import Workspace, copy_books, use_machine_of

from cleared.work.cycles.engines import load_engine
from cleared.workspace.settings.ai_cycle_section import ENGINE_NAMES


@pytest.fixture(scope="session")
def cycles_start(starting_point: Path) -> Path:
    """A workspace that allows AI cycles, with the files of ``cycle init`` committed; tests get copies."""
    root = starting_point.parents[1] / "cycles/books"
    with use_machine_of(root):
        ws = Workspace(copy_books(starting_point, root))
        # The fake engines are Python programs; where their interpreter lies they may run programs from.
        ws.config("loop.ai.enabled=true", f"loop.ai.program_folders=[{sys.prefix}, {sys.base_prefix}]")
        ws.ok("cycle", "init")
        ws.git("add", "-A")
        ws.git("commit", "-qm", "cycles")
    return root


@pytest.fixture
def cyc(cycles_start: Path, tmp_path: Path, plain_environment: None) -> Workspace:
    """A copy of it; the home is ``home`` beside the workspace."""
    return Workspace(copy_books(cycles_start, tmp_path / "books", stay=True))


@pytest.fixture
def engines(tmp_path: Path) -> dict[str, FakeEngine]:
    """One where each engine keeps its credential."""
    return {name: FakeEngine(tmp_path / "home" / load_engine(name).credential_paths[0]) for name in ENGINE_NAMES}


@pytest.fixture
def engine(tmp_path: Path) -> FakeEngine:
    """It keeps its records where Claude Code keeps its own, which it may write."""
    return FakeEngine(tmp_path / "home/.claude")
