"""An entry that a script leaves to a person always has a card: the host asks where the script does not."""

from __future__ import annotations

from typing import Any

from harness import Workspace
from proposing import edit, history, propose

POST = 'journal_add_double("2025-01-03", "{what}", 5020, 1010, "4.00", status="{status}")["entry_id"]\n'
PENDING, SURE = "pending-review", "auto-confirmed"
ASKS = 'if status == "pending-review":\n'
UNASKED = "the script left it for a person to confirm"


def entry_cards(ws: Workspace) -> dict[str, Any]:
    return {card["entry_id"]: card for card in ws.cards() if card["kind"] == "entry"}


def test_an_entry_that_waits_is_asked_about_though_the_script_does_not(ws: Workspace) -> None:
    found = ws.script(POST.format(what="GITHUB", status=PENDING) + POST.format(what="AWS", status=SURE))
    assert [card["entry_id"] for card in found["cards"]] == ["2025-01-001"]
    (card,) = entry_cards(ws).values()
    assert card["title"] == f"2025-01-03 4.00 GITHUB ({UNASKED})"
    ws.ok("queue", "approve", card["id"])
    assert {each["status"] for each in ws.entries()} == {"user-confirmed", SURE}
    assert entry_cards(ws) == {}
    ws.in_order()


def test_a_card_about_another_entry_is_none_about_this_one(ws: Workspace) -> None:
    ws.script(
        f"a = {POST.format(what='one', status=PENDING)}b = {POST.format(what='two', status=PENDING)}"
        "queue_add_review(entry_id=a, description='is it one?')\nqueue_add_review(entry_id=a, description='again')\n"
    )
    asked = {name: card["details"]["description"] for name, card in entry_cards(ws).items()}
    assert asked == {"2025-01-001": "is it one?", "2025-01-002": UNASKED}


def test_what_the_script_settles_itself_is_not_asked(ws: Workspace) -> None:
    found = ws.script(
        f"a = {POST.format(what='one', status=PENDING)}b = {POST.format(what='two', status=PENDING)}"
        f"journal_update_status(a, '{SURE}')\njournal_void(b, 'twice')\n"
    )
    assert found["cards"] == [] and entry_cards(ws) == {}


def test_an_entry_that_is_to_wait_again_is_asked_about_once(ws: Workspace) -> None:
    ws.script(POST.format(what="GITHUB", status=SURE))
    back = f'journal_update_status("2025-01-001", "{PENDING}")\n'
    ws.script(back)
    assert list(entry_cards(ws)) == ["2025-01-001"]
    ws.script(f'journal_update_status("2025-01-001", "{SURE}")\n{back}')
    assert len(ws.cards()) == 1
    ws.in_order()


def test_a_change_that_stops_asking_still_shows_its_questions(ws: Workspace) -> None:
    """The dry runs ask as the runs do: a script that asks no more takes no question from the card."""
    history(ws)
    before = {card["entry_id"] for card in ws.cards()}
    edit(ws, "agents/ingest.py", ASKS, ASKS.replace(":", " and confidence > 2:"))
    found = propose(ws, "ingest")
    assert not any(line.startswith("Questions to you:") for line in found["card"]), found["card"]
    ws.ok("agent", "reject", found["id"], "--reason", "no")
    ws.git("checkout", "-q", "agents")
    edit(ws, "agents/ingest.py", 'status = "auto-confirmed"', 'status = "pending-review"')
    edit(ws, "agents/ingest.py", ASKS, ASKS.replace(":", " and confidence > 2:"))
    found = propose(ws, "ingest")
    assert f"Questions to you: 6 instead of {len(before)}." in found["card"], found["card"]
