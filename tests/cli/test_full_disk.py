"""FLAT: what only reads needs no disk: on a full one it answers as on any other."""

from __future__ import annotations

import resource
import shutil

import pytest
from harness import Workspace, command

pytestmark = pytest.mark.slow

COMMANDS = ("check", "journal balance", "journal list", "queue list", "status", "report pnl", "run list")


def fill_disk() -> None:
    """For this process: no file takes another byte."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


@pytest.mark.parametrize("kept", [True, False])
def test_reading_commands_answer_on_a_full_disk(posted: Workspace, kept: bool) -> None:
    """Also where nothing is there that could have been kept from before."""
    posted.ok("journal", "add", "2025-02-05", "draw", "3200=77.00", "1010=-77.00")
    for line in COMMANDS if kept else COMMANDS[:4]:
        if not kept:
            shutil.rmtree(posted.root / ".cleared")
        full = command("-C", str(posted.root), *line.split(), preexec_fn=fill_disk)
        assert full.code == 0, (line, full)
        assert full.out == posted(*line.split()).out
