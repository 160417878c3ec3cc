"""Loops that are ended with their test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Workspace
from looping import Loop, probes


@pytest.fixture
def loop(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loop]:
    """The loop of a fresh workspace, at its usual place, in real time."""
    monkeypatch.delenv("CLEARED_CLOCK")
    found = Loop(ws)
    yield found
    found.clean_up()


@pytest.fixture
def probed(loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loop]:
    """The same with the kinds of ``looping.PROBES``."""
    folder = tmp_path / "plugin"
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.syspath_prepend(folder)
    probes(loop.ws, folder)
    yield loop
    loop.clean_up()
    sys.modules.pop("probe_kinds", None)
