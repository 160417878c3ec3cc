"""Two clones to be joined."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Workspace
from synced import SHOP, follow


@pytest.fixture
def two(ws: Workspace, tmp_path: Path) -> tuple[Workspace, Workspace, Path]:
    """Two clones of books with one entry that waits, 2025-02-001, and the repository that both follow."""
    ws.drop("shop.csv", SHOP)
    ws.run("ingest")
    return follow(ws, tmp_path)
