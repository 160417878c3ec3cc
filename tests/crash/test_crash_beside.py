"""Fault 19: some of the stops of ``python -m tests.crash --beside-git``, which makes all of them.

Row I7.
"""

from __future__ import annotations

from pathlib import Path

import crash_beside
import pytest


@pytest.mark.parametrize("name", ["commit -a", "gc", "reset --soft"])
def test_git_beside_a_seal(tmp_path: Path, name: str) -> None:
    """Row I7."""
    template = crash_beside.make_template(tmp_path / "template")
    found = crash_beside.part((template, tmp_path / "w", name, 5, 23))
    assert found.stops >= 5
    assert found.sealed > 0
