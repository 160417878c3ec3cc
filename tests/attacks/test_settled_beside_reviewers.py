"""Who can push settles a card by a line of the queue where reviewers decide: nothing comes of it, and it is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import IDENTITY, Workspace
from reviewers import People

COFFEE = "2025-01-004"
RUN = "Run: 20250210T055900Z-aaaaaa\nAgent: ingest\nEvent: on_demand 1"


def settle(ws: Workspace, by: str) -> None:
    (card,) = (each["id"] for each in ws.cards() if each["entry_id"] == COFFEE)
    line = {"event": "resolve", "id": card, "at": "2025-02-10T06:00:00Z", "by": by, "resolution": "confirmed"}
    ws.put("queue/2025-02.jsonl", ws.read("queue/2025-02.jsonl") + json.dumps(line) + "\n")


def as_a_run(ws: Workspace) -> None:
    """It calls itself a run, and the line says that its agent settled the card."""
    settle(ws, "ingest")
    ws.git("commit", "-qam", f"ingest: nothing new\n\n{RUN}")


def in_a_merge(ws: Workspace) -> None:
    """With a line that neither side had."""
    ws.git("checkout", "-q", "-b", "side", "HEAD~1")
    ws.put("notes.txt", "x\n")
    ws.commit("notes.txt")
    ws.git("checkout", "-q", "main")
    ws.git("merge", "-q", "--no-ff", "--no-commit", "side")
    settle(ws, "ana")
    ws.git("add", "queue")
    ws.git("commit", "-qm", f"ingest: nothing new\n\n{RUN}")


@pytest.mark.parametrize("how", [as_a_run, in_a_merge], ids=lambda how: how.__name__)
def test_a_card_that_no_reviewer_settled_is_named(
    posted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: Callable[[Workspace], None]
) -> None:
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    people = People(posted, tmp_path)
    people.ok("ben", "queue", "approve", "2025-01-002")
    posted.in_order()  # nobody here trusts the machine of ben, who has signed it
    how(posted)
    assert COFFEE not in [each["entry_id"] for each in posted.cards()]
    found = posted("check", "--json").json["violations"]
    assert any(each["record_id"] == COFFEE and "is settled" in each["message"] for each in found), found
