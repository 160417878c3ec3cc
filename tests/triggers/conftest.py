"""The service in a process of its own, killed when the test is over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import Workspace
from running import Up


@pytest.fixture
def up(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Up]:
    monkeypatch.delenv("CLEARED_CLOCK")
    found = Up(ws)
    yield found
    if found.process is not None:
        found.process.kill()
        found.process.communicate()
