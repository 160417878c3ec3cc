"""Where ``sync.remote`` is approved, the service joins this clone with another one by itself."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from harness import Workspace
from running import Up, eventually
from synced import follow, tip_of

from cleared.cli.options import open_host
from cleared.service.regular_sync import RegularSync

pytestmark = pytest.mark.slow

NOW = datetime.fromisoformat("2025-02-10T06:00:00+00:00")


def test_it_joins_both_ways_where_it_is_approved(ws: Workspace, up: Up, tmp_path: Path) -> None:
    _, other, shared = follow(ws, tmp_path)
    other.ok("journal", "add", "2025-02-06", "theirs", "5070=8", "1010=-8")
    other.ok("sync")
    ws.ok("journal", "add", "2025-02-05", "mine", "5070=9", "1010=-9")
    ws.put("config.yaml", ws.read("config.yaml") + "sync: {remote: origin}\n")
    mine = ws.head()
    up.start()
    assert ws.head() == mine != tip_of(shared), "not before a person approves it"
    up.stop()
    ws.ok("config", "approve")
    up.start()
    eventually(lambda: ws.head() == tip_of(shared))
    assert sorted(e["description"] for e in ws.entries()) == ["mine", "theirs"]
    assert "joined with origin/main" in eventually(lambda: up.log("sync.done"))[-1]["text"]
    up.stop()
    ws.in_order()


def test_what_is_wrong_is_said_once(ws: Workspace) -> None:
    ws.config("sync.remote=nowhere")
    said: list[str] = []
    duty = RegularSync(lambda event, text, **_: said.append(text))  # type: ignore[arg-type]
    host, now = open_host(ws.root), NOW
    for _ in range(2):
        while True:
            duty.perform_if_due(host, now)
            assert duty.due_at is not None
            waits, now = duty.due_at - now, duty.due_at
            if waits > timedelta(minutes=1):  # it has ended
                break
            time.sleep(0.01)
    assert len(said) == 1 and "nowhere cannot be read" in said[0], said
