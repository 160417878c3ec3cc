"""Whoever can push writes cards whose details are none: each is shown and held, its commit is named, and no command
stumbles."""

from __future__ import annotations

import json

import pytest
from harness import Workspace, chase, refused
from web_client import inner_server

from cleared.cards.kinds import KINDS as ALL_KINDS

KINDS = ("near_match", "balance_gap", "duplicate_file", "revision", "line")
CASES = ('["x"]', '"x"', "5", "true", "null", '[["a","b"]]')


@pytest.mark.parametrize(
    "line",
    [
        {"event": "open", "id": "push", "kind": "question", "details": {"choices": 5, "futures": 5}},
        {"event": "open", "id": "push", "kind": "question", "details": {"choices": ["yes"], "futures": ["x"]}},
        {"event": "open", "id": "push", "kind": "proposal", "details": {"proposal": ["x"], "says": "x"}},
        {"event": "open", "id": "push", "kind": "near_match", "details": {"rows": 5, "proposal": {}, "says": [1]}},
        {"event": "agree", "id": "ENTRY", "decision": "x"},
    ],
    ids=lambda line: f"{line.get('kind', line['event'])}",
)
def test_odd_values_in_a_card_end_no_command(posted: Workspace, line: dict[str, object]) -> None:
    entry = next(card["id"] for card in posted.cards() if card["kind"] == "entry")
    line = {"title": "t", "created_at": "2025-01-01T00:00:00Z", **line}
    text = json.dumps(line).replace("ENTRY", entry) + "\n"
    posted.put("queue/2024-12.jsonl", text)
    posted.commit("queue/2024-12.jsonl", message="push")
    assert posted("check").code == 1
    for words in (["list"], ["show", json.loads(text)["id"]]):
        done = posted("queue", *words)
        assert done.code in (0, 2) and "Traceback" not in done.err, done


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


_NAMES = (
    *("account", "branch", "choices", "commit", "count", "cycles", "default", "due", "entries", "entry", "event"),
    *("file", "files", "futures", "gaps", "line", "lines", "notes", "proposal", "question", "receipt", "rows", "run"),
    *("says", "sha256", "tags", "text", "ticket"),
)
"""Details that some kind of card has."""
_ODD = (5, True, "x", [["x"]], [{"a": 1}], {"a": ["x"]})


@pytest.mark.parametrize("value", _ODD, ids=str)
def test_no_kind_of_card_with_odd_details_ends_a_run_a_decision_or_a_page(posted: Workspace, value: object) -> None:
    """Each kind, with the same odd value for whatever a card's details may hold."""
    mine = [card["id"] for card in posted.cards()]
    opened = {"event": "open", "created_at": "2025-01-01T00:00:00Z", "agent": "ingest"}
    cards = [
        {**opened, "id": f"push-{kind}", "kind": kind, "title": kind, "details": dict.fromkeys(_NAMES, value)}
        for kind in ALL_KINDS
    ]
    posted.put("queue/2024-12.jsonl", "".join(f"{json.dumps(card)}\n" for card in cards))
    posted.commit("queue/2024-12.jsonl", message="push")
    posted.drop("february.csv", chase(("02/03/2025", "COFFEE 0231", "-4.80")))
    assert posted.run("ingest")["status"] == "succeeded"
    posted.ok("queue", "approve", mine[0])
    posted.ok("queue", "undo")
    posted.ok("journal", "void", posted.entries()[-1]["entry_id"], "--reason", "test")
    with inner_server(posted.root) as server:
        server.sign_in(server.code)
        for card in cards:
            assert server.get(f"/queue?card={card['id']}").status == 200, card
    for words in (["check"], ["reconcile", "1010", "--date", "2025-01-31", "--balance", "1.00"]):
        assert posted(*words).code == 1
    refused(posted("period", "close", "2025-01"), 3)
