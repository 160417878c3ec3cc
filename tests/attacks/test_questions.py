"""Fault 1, D19: nothing on a card decides what runs, for which event, at which time.

Each attack is made by somebody who can commit, and has a key of their own that nobody here trusts. Beside the test that
it is stopped, one where the single wall that stops it is taken away, and it succeeds.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from asking import ASKS, NEVER_ASKS, POST, TIMED, answers, asks, edit, lines, mallory, opened, posted, signed, write
from harness import QUEUE, Workspace, refused, unchanged
from msgspec.structs import replace
from world import World

from cleared.cards.card import Card
from cleared.runs import question_tickets
from cleared.runs.question_tickets import Questions, displayed_digest
from cleared.trust.approval_record import digest_of
from cleared.trust.keys import Key
from cleared.trust.verification import Approvals

# -- a forged question ------------------------------------------------------------------------------------------------


def forge(ws: Workspace, key: Key) -> str:
    """A question, due long ago, of an approved agent that never asks anything."""
    ws.agent("payer", NEVER_ASKS)
    example = opened(ws, asks(ws, TIMED)["id"])
    path = "agents/payer.py"
    place = example["details"]["key"]
    line = example | {"id": "mallory1", "title": "payer asks: Pay it?", "agent": "payer", "run_id": "R-1999"}
    line["details"] = example["details"] | {"run": "R-1999"}
    found = signed(
        line,
        key,
        card="mallory1",
        run="R-1999",
        seed="R-1999",
        path=path,
        digest=digest_of(ws.read(path).encode()),
        event={"id": "on_demand:R-1999", "kind": "on_demand", "name": "", "payload": "mallory"},
        clock="1999-12-31T00:00:00Z",
        due="1999-12-31T00:00:01Z",
        default="yes",
        place=place,
        answers={},
    )
    write(ws, [*lines(ws), found])
    return "mallory1"


def test_a_forged_question_runs_nothing(ws: Workspace) -> None:
    """As in the issue: neither when it is answered, nor unattended when its time is said to be over."""
    card = forge(ws, mallory())
    answers(ws, card)
    with unchanged(ws):
        found = ws.json("queue", "expire")
    assert found["runs"] == [] and "not trusted on this machine" in found["said"][0]
    assert posted(ws) == []


def test_without_trust_in_keys_it_would(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    forge(ws, mallory())
    monkeypatch.setattr(Approvals, "trusts_run", lambda self, key: True)
    done = ws("queue", "expire", "--json")
    assert "does not ask again" in done.json["runs"][0]["error"]["message"], "it ran, which is all a forger needs"


def test_a_service_runs_nothing_and_says_so_once(ws: Workspace) -> None:
    """Unattended: the forged time is over, and stays so."""
    with World(ws) as world:
        card = forge(ws, mallory())
        world.settle()
        ws.ok("queue", "skip", card)  # the queue has changed: it is looked at again
        world.forward(hours=2)
        said = [row["text"] for row in world.log("question.trouble") if card in row["text"]]
    assert len(said) == 1 and "is held" in said[0] and posted(ws) == []


def test_a_held_question_offers_nothing_but_to_ask_again(ws: Workspace) -> None:
    """On the screen, too."""
    from cleared.changes.workspace_opening import open_workspace
    from cleared.review.card_view import show_card
    from cleared.review.queue_snapshot import read_queue

    card = forge(ws, mallory())
    shown = show_card(read_queue(open_workspace(ws.root)), card)
    assert [c.verb for c in shown.choices] == ["retry"]
    assert any("not trusted" in line for s in shown.sections for line in s.lines)


def test_a_card_without_a_ticket_runs_nothing(ws: Workspace) -> None:
    """What the version before would have believed: every field that it read is there."""
    ws.agent("payer", NEVER_ASKS)
    blob = ws.git("rev-parse", "HEAD:agents/payer.py").strip()
    event = {"id": "on_demand:R-1999", "kind": "on_demand", "name": "", "payload": "mallory"}
    details = {
        "question": "Pay it?",
        "choices": ["no", "yes"],
        "default": "yes",
        "on_timeout": "default",
        "due": "1999-12-31T00:00:01Z",
        "key": "0:abc",
        "run": "R-1999",
        "clock": "1999-12-31T00:00:00Z",
        "script": f"agents/payer.py@{blob}",
        "answers": {},
        "event": event,
        "origin": None,
        "futures": {},
    }
    line = {
        "event": "open",
        "id": "mallory1",
        "kind": "question",
        "title": "payer asks: Pay it?",
        "created_at": "1999-12-31T00:00:00Z",
        "run_id": "R-1999",
        "agent": "payer",
        "details": details,
    }
    ws.put(QUEUE, json.dumps(line) + "\n")
    ws.commit(QUEUE, message="log: a question")
    answers(ws, "mallory1")
    with unchanged(ws):
        assert ws.json("queue", "expire")["runs"] == []
    # What it says that it was run for is shown, and believed only if a person says so.
    with unchanged(ws):
        refused(ws("agent", "run", "payer", "--again", "mallory1"), 3, "mallory", "--yes")
    assert posted(ws) == []
    found = ws.run("payer", "--again", "mallory1", "--yes")
    assert found["status"] == "succeeded" and posted(ws) == [("2025-02-10", "for mallory")], "today, not in 1999"
    assert ws.cards() == []


@pytest.mark.parametrize("walled", [True, False])
def test_a_forged_question_of_an_agent_that_asks(ws: Workspace, monkeypatch: pytest.MonkeyPatch, walled: bool) -> None:
    """With the key trusted, it posts in 1999 what nobody has answered: so the key is what stops it."""
    card = asks(ws, TIMED)
    ws.ok("queue", "reject", card["id"], "--reason", "no")
    line = opened(ws, card["id"]) | {"id": "mallory1", "run_id": "R-1999"}
    line["details"]["run"] = "R-1999"
    found = signed(
        line,
        mallory(),
        card="mallory1",
        run="R-1999",
        seed="R-1999",
        clock="1999-12-31T00:00:00Z",
        due="1999-12-31T00:00:01Z",
        default="yes",
    )
    write(ws, [*lines(ws), found])
    if walled:
        with unchanged(ws):
            assert ws.json("queue", "expire")["runs"] == []
        assert posted(ws) == []
    else:
        monkeypatch.delitem(question_tickets.TICKET_CHECKS, "key")
        assert ws.json("queue", "expire")["runs"][0]["status"] == "succeeded"
        assert posted(ws) == [("1999-12-31", "for yes")]


# -- a genuine one, altered -------------------------------------------------------------------------------------------


def alter(ws: Workspace, card: str) -> None:
    """The ticket of a real question: due long ago, with the other choice as its default."""

    def change(line: dict[str, Any]) -> None:
        details = {k: v for k, v in line["details"].items() if k != "ticket"} | {"default": "yes"}
        ticket = line["details"]["ticket"] | {"due": "2025-02-10T06:00:00Z", "default": "yes"}
        shown = Card(card, "question", line["title"], "", line["run_id"], None, line["agent"], details)
        line["details"] = {**details, "ticket": ticket | {"shown": displayed_digest(shown)}}

    edit(ws, card, change)


@pytest.mark.parametrize("walled", [True, False])
def test_an_altered_ticket(ws: Workspace, monkeypatch: pytest.MonkeyPatch, walled: bool) -> None:
    card = asks(ws, TIMED)["id"]
    alter(ws, card)
    if walled:
        answers(ws, card)
        with unchanged(ws):
            assert "was altered" in ws.json("queue", "expire")["said"][0]
        assert posted(ws) == []
    else:
        monkeypatch.delitem(question_tickets.TICKET_CHECKS, "signature")
        assert ws.json("queue", "expire")["answered"] == {card: "yes"}
        assert posted(ws) == [("2025-02-10", "for yes")]


@pytest.mark.parametrize("walled", [True, False])
def test_a_card_edited_by_hand(ws: Workspace, monkeypatch: pytest.MonkeyPatch, walled: bool) -> None:
    """The ticket is genuine; what the person reads is not what they answer."""
    card = asks(ws)["id"]
    edit(ws, card, lambda line: line.update(title="asker asks: Feed the cat?"))
    if walled:
        answers(ws, card)
        assert ws.json("queue", "show", card)["held"] and ws.ok("queue", "list").out.count("held: ") == 1
    else:
        monkeypatch.delitem(question_tickets.TICKET_CHECKS, "shown")
        assert ws.json("queue", "answer", card, "yes")["run"]["status"] == "succeeded"


@pytest.mark.parametrize("walled", [True, False])
def test_the_ticket_of_another_question(ws: Workspace, monkeypatch: pytest.MonkeyPatch, walled: bool) -> None:
    """A copy under another id, to have one run asked about twice."""
    card = asks(ws)["id"]
    write(ws, [*lines(ws), opened(ws, card) | {"id": "mallory1"}])
    if walled:
        answers(ws, "mallory1")
    else:
        monkeypatch.delitem(question_tickets.TICKET_CHECKS, "card")
        assert ws("queue", "answer", "mallory1", "yes").code == 0


@pytest.mark.parametrize("walled", [True, False])
def test_the_ticket_of_another_workspace(ws: Workspace, monkeypatch: pytest.MonkeyPatch, walled: bool) -> None:
    """Signed with this machine's own key, for other books."""
    from cleared.trust.keys import run_key

    card = asks(ws)["id"]
    key = run_key(ws.root)
    assert key is not None
    edit(ws, card, lambda line: line.update(signed(line, key, workspace="fedcba9876543210" * 2)))
    if walled:
        answers(ws, card)
    else:
        monkeypatch.delitem(question_tickets.TICKET_CHECKS, "workspace")
        assert ws.json("queue", "answer", card, "yes")["run"]["status"] == "succeeded"


# -- what has changed since it asked ----------------------------------------------------------------------------------


@pytest.mark.parametrize("walled", [True, False])
def test_another_version_is_live(ws: Workspace, monkeypatch: pytest.MonkeyPatch, walled: bool) -> None:
    """Approved since, or brought back since: the answer was to what the other one asked."""
    card = asks(ws)["id"]
    ws.agent("asker", ASKS.format(more="").replace("for ", "newer, for "))
    if walled:
        answers(ws, card)
        found = ws.run("asker", "--again", card)
        assert found["status"] == "waiting" and [c["id"] for c in ws.cards()] == [found["cards"][0]["id"]]
        assert ws.json("queue", "answer", found["cards"][0]["id"], "yes")["run"]["status"] == "succeeded"
        assert posted(ws) == [("2025-02-10", "newer, for yes")]
    else:
        monkeypatch.setattr(Questions, "require_live_version", lambda *_: None)
        assert ws.json("queue", "answer", card, "yes")["run"]["status"] == "succeeded"


@pytest.mark.parametrize("walled", [True, False])
def test_it_does_not_ask_that_again(ws: Workspace, monkeypatch: pytest.MonkeyPatch, walled: bool) -> None:
    """The books have moved so that the run asks nothing: what it would do now is not what was answered."""
    from cleared.runs import suspended_runs

    body = f'if len(journal_query()) == 0:\n    queue_ask("Pay it?", ["no", "yes"])\n{POST.format(what="nobody")}'
    (card,) = ws.script(body.replace("nobody", '"nobody"'), name="asker")["cards"]
    ws.drop("january.csv")
    ws.run("ingest")
    if walled:
        done = ws("queue", "answer", card["id"], "yes", "--json")
        assert done.code == 1 and "does not ask again" in done.json["run"]["error"]["message"]
        assert len(posted(ws)) == 4
        assert [c["kind"] for c in ws.cards() if c["agent"] == "asker"] == ["failed_run"]
    else:
        real = suspended_runs.resume_run
        monkeypatch.setattr(suspended_runs, "resume_run", lambda *a: replace(real(*a), expected_question=""))
        assert ws.json("queue", "answer", card["id"], "yes")["run"]["status"] == "succeeded"
        assert len(posted(ws)) == 5
