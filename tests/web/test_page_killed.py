"""The server is killed at each point of a decision and of an upload: nothing is lost, nothing is there twice."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path

import pytest
from forked_server import COPIED, ForkedServers
from harness import JANUARY, Workspace, chase

pytestmark = pytest.mark.slow

FEBRUARY = chase(("02/03/2025", "PRINTER PAPER", "-30.00"))
NO_ANSWER = (http.client.HTTPException, OSError)


@pytest.fixture(scope="module")
def servers() -> Iterator[ForkedServers]:
    with ForkedServers() as forks:
        yield forks


def test_a_decision_that_is_killed_at_a_step_is_made_once_or_not(
    ws: Workspace, tmp_path: Path, servers: ForkedServers
) -> None:
    steps = ("checked", "intent", "prepared", "ref", "worktree", "done")
    ws.drop("many.csv", chase(*((f"01/{n + 1:02}/2025", f"SHOP {chr(65 + n)}", "-1.00") for n in range(8))))
    ws.run("ingest")
    made = 0
    for step in steps:
        with servers.serve(ws.root, tmp_path / "place", step) as server:
            queue = server.get("/queue")
            card = queue.fields("card")[0]
            with pytest.raises(NO_ANSWER):
                server.submit(queue, "/queue", ("choice", "confirm"))
        assert servers.killed, step
        waiting = [each["id"] for each in ws.cards()]
        made += card not in waiting
        confirmed = [entry for entry in ws.entries() if entry["status"] == "user-confirmed"]
        assert len(confirmed) == made == 8 - len(waiting), step
    assert 2 <= made < len(steps), "some points are before the decision, some after it"
    ws.in_order()


def test_an_upload_that_is_killed_leaves_whole_files_or_none(
    ws: Workspace, tmp_path: Path, servers: ForkedServers
) -> None:
    files = {
        "january.csv": JANUARY.encode(),
        "february.csv": FEBRUARY.encode(),
    }
    waiting: list[str] = []
    for step, left in ((f"not {COPIED}", 2), (COPIED, 1), (COPIED, 0)):
        todo = {name: data for name, data in files.items() if name not in waiting}
        with servers.serve(ws.root, tmp_path / "place", step) as server:
            page = server.get("/")
            with pytest.raises(NO_ANSWER):
                server.upload(page, todo)
        assert servers.killed, step
        waiting = sorted(path.name for path in (ws.root / "import").glob("*.csv"))
        assert len(waiting) == 2 - left
        assert all((ws.root / "import" / name).read_bytes() == files[name] for name in waiting)
    ws.run("ingest")
    assert len(ws.entries()) == 5
    ws.in_order()
