"""Killed at any time: 20 kills here, a thousand by ``python -m tests.crash --kills 1000`` (B13).

The kills at each step are all in ``test_crash_steps.py``; these look for steps that nobody thought of.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_kill import Killer
from crash_random import CHUNK, campaign

pytestmark = pytest.mark.slow


def test_killed_at_any_time(template: Path, tmp_path: Path) -> None:
    with Killer(0) as killer:
        told = campaign(template, tmp_path, killer, CHUNK)
    assert told.kills >= CHUNK
