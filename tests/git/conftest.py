from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from vcs_samples import Work


@pytest.fixture(autouse=True)
def _nobody(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No user: no global git identity, no settings."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(("GIT_", "XDG_CONFIG")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Work]:
    with Work.make(tmp_path / "work") as made:
        yield made
