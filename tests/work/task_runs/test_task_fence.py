"""What a verification command tries on what lies outside of its fence; with the fence switched off it succeeds."""

from __future__ import annotations

from pathlib import Path

import pytest
from fence_attack import ALWAYS, ATTACK, aimed_at, possible
from harness import Workspace
from tasking import Tasks, task

from cleared.processes.confinement import landlock_abi

PYTHON = "/usr/bin/python3"


@pytest.mark.skipif(not landlock_abi(), reason="this kernel has no Landlock")
@pytest.mark.skipif(not Path(PYTHON).exists(), reason="needs the system's Python")
@pytest.mark.parametrize("wall", [True, False])
def test_a_verification_command_reaches_nothing_outside(ws: Workspace, wall: bool) -> None:
    """No opt-in is needed for it: whoever writes a task's file writes its command."""
    tasks = Tasks(ws)
    with aimed_at(ws) as outside:
        command = " ".join([PYTHON, "docs/T-001.txt", *outside.argv(ws)])
        tasks.planned(task(1, verification_command=command))
        if not wall:
            ws.config("sandbox.confine=off")
        tasks.ok("claim", "T-001")
        ws.put("docs/T-001.txt", ATTACK)
        done = tasks("verify", "T-001", "--json")
        found = possible(done.json["output"])
        assert found == set() if wall else found >= ALWAYS, (found, ALWAYS - found)
        assert outside.has_heard() is not wall
