"""What a commit that fails leaves behind."""

from __future__ import annotations

import errno
import os
from functools import partial

import pytest
from harness import Workspace

from cleared.changes import workspace_opening


def test_a_file_whose_import_was_not_committed_is_held_no_more(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be looked at for a week, as a file that was imported and may have grown."""
    path, taken = ws.drop("january.csv"), ws.root / ".cleared/taken"
    held: list[int] = []

    def fill_disk(step: str) -> None:
        if step == "staged" and not held:
            held.append(len(list(taken.glob("*.json"))))
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        opening = partial(workspace_opening.open_workspace, on_step=fill_disk)
        patch.setattr(workspace_opening, "open_workspace", opening)
        assert ws("agent", "run", "ingest").code != 0
    assert held == [1] and list(taken.iterdir()) == []
    assert path.is_file() and ws.entries() == []
    ws.run("ingest")
    assert len(ws.entries()) == 4
