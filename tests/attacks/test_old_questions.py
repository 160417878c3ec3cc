"""Fault 1, D19: a question from before there were tickets gets one where this machine's own trace agrees, once."""

from __future__ import annotations

from typing import Any

import pytest
from asking import TIMED, answers, asks, edit, posted
from harness import Workspace, refused


def as_before(ws: Workspace, **changes: Any) -> str:
    """A question as the version before has made it: what this one does not have on its card stood there."""
    card = asks(ws, TIMED)["id"]
    blob = ws.git("rev-parse", "HEAD:agents/asker.py").strip()

    def change(line: dict[str, Any]) -> None:
        ticket = line["details"].pop("ticket")
        line["details"] |= {"clock": ticket["clock"], "script": f"agents/asker.py@{blob}", "answers": {},
                            "origin": ticket["origin"], **changes}  # fmt: skip

    edit(ws, card, change)
    for path in (ws.root.parent / "home/cleared/workspaces").glob("*.json"):
        path.unlink()
    return card


def test_an_old_question_goes_on_where_the_trace_agrees(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    card = as_before(ws)
    assert ws.json("queue", "show", card)["held"] is None
    monkeypatch.setenv("CLEARED_CLOCK", "2025-02-10T18:00:00Z")
    assert ws.json("queue", "expire")["answered"] == {card: "no"}
    assert posted(ws) == [("2025-02-10", "for no")]


@pytest.mark.parametrize(
    "changes",
    [{"clock": "1999-12-31T00:00:00Z"}, {"default": "yes"}, {"due": "2025-02-10T06:00:00Z"}, {"answers": {"0:a": "b"}},
     {"event": {"id": "x", "kind": "on_demand", "name": "", "payload": "mallory"}}, {"run": "R-1"},
     {"choices": ["yes", "no"]}, {"script": "agents/ingest.py@x"}],
)  # fmt: skip
def test_an_old_question_is_asked_again_where_it_does_not(ws: Workspace, changes: dict[str, Any]) -> None:
    card = as_before(ws, **changes)
    answers(ws, card, "no")


def test_a_trace_that_was_committed_proves_nothing(ws: Workspace) -> None:
    """Who writes the card can write the trace, too: git puts it there."""
    card = as_before(ws)
    ws.git("add", "-f", ".cleared/runs.db")
    ws.git("commit", "-q", "-m", "log: nothing")
    refused(ws("queue", "answer", card, "yes"), 4, "planted")


def test_old_questions_are_looked_for_once(ws: Workspace) -> None:
    """One that comes later without a ticket gets none, whatever the trace says: a job can write that."""
    as_before(ws)
    ws.json("queue", "list")
    card = asks(ws)["id"]
    edit(ws, card, lambda line: line["details"].pop("ticket"))
    answers(ws, card, "no")
