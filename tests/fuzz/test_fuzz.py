"""Ten seconds of ``python -m tests.fuzz``, another seed each time; a failure prints seed and input."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from fuzz_targets import Fuzzer
from harness import Workspace

from cleared.changes import workspace_opening

pytestmark = pytest.mark.slow

SECONDS = 10.0


def test_nothing_is_found_in_ten_seconds(ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No crash, no hang, no write outside of the workspace's ``.cleared/``."""
    for name in ("cwd", "tmp"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    watched = (ws.root, tmp_path / "cwd", tmp_path / "tmp")
    fuzzer = Fuzzer(workspace_opening.open_workspace(ws.root), watched, tmp_path / "last")
    assert fuzzer.run(SECONDS) > len(fuzzer.targets)
