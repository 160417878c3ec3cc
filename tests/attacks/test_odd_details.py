"""Whoever can push writes cards whose details are none: each is shown and held, its commit is named, and no command
stumbles."""

from __future__ import annotations

import json

import pytest
from harness import Workspace, refused

KINDS = ("near_match", "balance_gap", "duplicate_file", "revision", "line")
CASES = ('["x"]', '"x"', "5", "true", "null", '[["a","b"]]')


@pytest.mark.parametrize("details", CASES)
def test_cards_without_readable_details_hold_up_no_command(posted: Workspace, details: str) -> None:
    cards = {f"push{number}": kind for number, kind in enumerate(KINDS)}
    lines = [
        json.dumps({"event": "open", "id": card, "kind": kind, "title": kind, "created_at": "2024-12-01T00:00:00Z"})
        for card, kind in cards.items()
    ]
    posted.put("queue/2024-12.jsonl", "".join(f'{line[:-1]}, "details": {details}}}\n' for line in lines))
    posted.commit("queue/2024-12.jsonl", message="push")
    pushed = posted.git("rev-parse", "HEAD").strip()
    posted.ok("status")
    posted.json("status")
    posted.ok("queue", "list")
    differs = posted("reconcile", "1010", "--date", "2025-01-31", "--balance", "1.00")
    assert differs.code == 1 and "differ" in differs.out
    told = posted("check")
    assert told.code == 1 and pushed in told.out and "without a run or a decision" in told.out
    assert all(f"the card {card} " in told.out for card, kind in cards.items() if kind in ("near_match", "revision"))
    for card, kind in cards.items():
        shown = posted.json("queue", "show", card)
        assert (shown["title"], shown["details"]) == (kind, {})
        refused(posted("queue", "approve", card), 3, f"the card {card} is held: nothing shows that a run or decision")
