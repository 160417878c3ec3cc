"""Jobs of a plug-in that attack, and what somebody pushes to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Workspace
from held_jobs import Jobs, holding
from pushing import make_remote


@pytest.fixture
def jobs(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    with holding(ws, monkeypatch) as found:
        yield found


@pytest.fixture
def remote(posted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return make_remote(posted, tmp_path, monkeypatch)
