"""A person's task, from the first command to the commit."""

from __future__ import annotations

import pytest
from harness import Workspace
from tasking import LEDGER, Tasks, task


@pytest.fixture
def tasks(ws: Workspace) -> Tasks:
    return Tasks(ws)


def test_a_task_is_planned_claimed_verified_and_committed(tasks: Tasks) -> None:
    tasks.ok("add", tasks.file(task(1)))
    assert tasks.ok("next").out == "T-001\n"
    tasks.ok("claim", "T-001")
    tasks.ws.put("docs/T-001.txt", "hello\n")
    assert tasks.ok("verify", "T-001")
    tasks.ok("done", "T-001")
    assert tasks.states() == {"T-001": "completed"}
    assert [line["status"] for line in tasks.lines()] == ["pending", "in-progress", "completed"]
    assert tasks.lines()[-1]["delta"] == {"files_added": ["docs/T-001.txt"]}
    assert tasks.ws.git("status", "--porcelain") == ""
    changed = tasks.ws.git("show", "--name-only", "--format=", "HEAD").split()
    assert {LEDGER, "docs/T-001.txt"} <= set(changed)
    assert tasks("next").code == 6
    assert tasks.ws("check").code == 0
