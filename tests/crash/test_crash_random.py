"""Killed at any time: at least 200 here, a thousand by ``python -m tests.crash --kills 1000`` (B13)."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_kill import Killer
from crash_random import CHUNK, campaign

CHUNKS = 10


@pytest.mark.parametrize("seed", range(CHUNKS))
def test_killed_at_any_time(template: Path, tmp_path: Path, seed: int) -> None:
    assert CHUNKS * CHUNK >= 200
    with Killer(seed) as killer:
        told = campaign(template, tmp_path, killer, CHUNK)
    assert told.kills >= CHUNK
