from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fake_engine import FakeEngine
from harness import Workspace

from cleared.work.cycles.engines import ENGINE_MODULES, load_engine


@pytest.fixture
def cyc(ws: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Workspace:
    """A workspace that allows AI cycles, with the files of ``cycle init`` committed."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLEARED_ALLOW_AI", raising=False)
    # The fake engines are Python programs; where their interpreter lies they may run programs from.
    ws.config("loop.ai.enabled=true", f"loop.ai.program_folders=[{sys.prefix}, {sys.base_prefix}]")
    ws.ok("cycle", "init")
    ws.git("add", "-A")
    ws.git("commit", "-qm", "cycles")
    return ws


@pytest.fixture
def engines(tmp_path: Path) -> dict[str, FakeEngine]:
    """One where each engine keeps its credential."""
    return {name: FakeEngine(tmp_path / "home" / load_engine(name).credential_paths[0]) for name in ENGINE_MODULES}


@pytest.fixture
def engine(tmp_path: Path) -> FakeEngine:
    """It keeps its records where Claude Code keeps its own, which it may write."""
    return FakeEngine(tmp_path / "home/.claude")
