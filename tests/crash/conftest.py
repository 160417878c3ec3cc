from __future__ import annotations

import os
from pathlib import Path

import pytest
from crash_books import make_template


@pytest.fixture(scope="session", autouse=True)
def _nobody(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No user: no global git identity, no settings."""
    for name in list(os.environ):
        if name.startswith(("GIT_", "XDG_CONFIG")):
            del os.environ[name]
    os.environ["HOME"] = str(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory, _nobody: None) -> Path:
    return make_template(tmp_path_factory.mktemp("crash") / "template")
