"""A coding engine for tasks."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_engine import FakeEngine


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """One that does as it is told, and is found as the real one is."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLEARED_ALLOW_AI", raising=False)
    fake = FakeEngine(tmp_path / "home/.claude")
    monkeypatch.setenv("CLAUDE_BIN", str(fake.binary))
    return fake
