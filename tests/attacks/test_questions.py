"""MEND 1, D19: nothing on a card decides what runs, for which event, at which time.

Each attack is made by somebody who can commit, and has a key of their own that nobody here trusts. Beside the test that
it is stopped, one where the single wall that stops it is taken away, and it succeeds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from harness import QUEUE, Workspace, refused, unchanged

from cleared.approvals import tickets
from cleared.approvals.keys import Key
from cleared.approvals.record import digest_of
from cleared.approvals.standing import Approvals
from cleared.cards.model import Card
from cleared.runs import questions
from cleared.runs.questions import Questions

POST = (
    'journal_add_double(date=ctx_now()[:10], description="for " + {what}, debit_account=5010, credit_account=2100,'
    ' amount=7, confidence=0.9, status="auto-confirmed", evidence="asked")'
)
ASKS = f"""
choice = queue_ask("Pay it?", ["no", "yes"], default="no"{{more}})
{POST.format(what="choice")}
git_commit("agent: asked")
"""
TIMED = ', on_timeout="default", timeout="12h"'
NEVER_ASKS = f'{POST.format(what="ctx_event()[" + repr("payload") + "]")}\ngit_commit("agent: paid")'


def asks(ws: Workspace, more: str = "") -> dict[str, Any]:
    """An approved agent waits for an answer: the card."""
    (card,) = ws.script(ASKS.format(more=more), name="asker")["cards"]
    return dict(card)


def mallory() -> Key:
    """A key of whoever can only commit."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Key(Ed25519PrivateKey.generate())


def opened(ws: Workspace, identity: str) -> dict[str, Any]:
    """The line that opened a card."""
    (line,) = [x for x in lines(ws) if x["event"] == "open" and x["id"] == identity]
    return line


def lines(ws: Workspace) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ws.read(QUEUE).splitlines()]


def write(ws: Workspace, found: list[dict[str, Any]]) -> None:
    """The queue as somebody has written and committed it."""
    ws.put(QUEUE, "".join(json.dumps(line) + "\n" for line in found))
    ws.commit(QUEUE, message="log: nothing to see here")


def edit(ws: Workspace, identity: str, change: Callable[[dict[str, Any]], None]) -> None:
    found = lines(ws)
    for line in found:
        if line["event"] == "open" and line["id"] == identity:
            change(line)
    write(ws, found)


def signed(line: dict[str, Any], key: Key, **changes: Any) -> dict[str, Any]:
    """The card with its ticket changed, matching again, and signed with a key."""
    details = {k: v for k, v in line["details"].items() if k != "ticket"}
    card = Card(line["id"], "question", line["title"], line["created_at"], line["run_id"], None, line["agent"], details)
    ticket = replace(tickets.parse(line["details"]["ticket"]), shown=questions.shown(card), **changes)
    return {**line, "details": {**details, "ticket": tickets.signed(key, ticket).data()}}


def answers(ws: Workspace, identity: str, choice: str = "yes") -> None:
    """It is refused, and nothing has changed."""
    with unchanged(ws):
        refused(ws("queue", "answer", identity, choice), 3, identity, "held")


def posted(ws: Workspace) -> list[tuple[str, str]]:
    return [(e["date"], e["description"]) for e in ws.entries()]


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
        line, key, card="mallory1", run="R-1999", seed="R-1999", path=path, digest=digest_of(ws.read(path).encode()),
        event={"id": "on_demand:R-1999", "kind": "on_demand", "name": "", "payload": "mallory"},
        clock="1999-12-31T00:00:00Z", due="1999-12-31T00:00:01Z", default="yes", place=place, answers={},
    )  # fmt: skip
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


def test_a_card_without_a_ticket_runs_nothing(ws: Workspace) -> None:
    """What the version before would have believed: every field that it read is there."""
    ws.agent("payer", NEVER_ASKS)
    blob = ws.git("rev-parse", "HEAD:agents/payer.py").strip()
    event = {"id": "on_demand:R-1999", "kind": "on_demand", "name": "", "payload": "mallory"}
    details = {
        "question": "Pay it?", "choices": ["no", "yes"], "default": "yes", "on_timeout": "default",
        "due": "1999-12-31T00:00:01Z", "key": "0:abc", "run": "R-1999", "clock": "1999-12-31T00:00:00Z",
        "script": f"agents/payer.py@{blob}", "answers": {}, "event": event, "origin": None, "futures": {},
    }  # fmt: skip
    line = {"event": "open", "id": "mallory1", "kind": "question", "title": "payer asks: Pay it?",
            "created_at": "1999-12-31T00:00:00Z", "run_id": "R-1999", "agent": "payer", "details": details}  # fmt: skip
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
def test_a_forged_question_of_an_agent_that_asks(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, walled: bool
) -> None:  # fmt: skip
    """With the key trusted, it posts in 1999 what nobody has answered: so the key is what stops it."""
    card = asks(ws, TIMED)
    ws.ok("queue", "reject", card["id"], "--reason", "no")
    line = opened(ws, card["id"]) | {"id": "mallory1", "run_id": "R-1999"}
    line["details"]["run"] = "R-1999"
    found = signed(
        line, mallory(), card="mallory1", run="R-1999", seed="R-1999", clock="1999-12-31T00:00:00Z",
        due="1999-12-31T00:00:01Z", default="yes",
    )  # fmt: skip
    write(ws, [*lines(ws), found])
    if walled:
        with unchanged(ws):
            assert ws.json("queue", "expire")["runs"] == []
        assert posted(ws) == []
    else:
        monkeypatch.delitem(questions.DOUBTS, "key")
        assert ws.json("queue", "expire")["runs"][0]["status"] == "succeeded"
        assert posted(ws) == [("1999-12-31", "for yes")]


# -- a genuine one, altered -------------------------------------------------------------------------------------------


def alter(ws: Workspace, card: str) -> None:
    """The ticket of a real question: due long ago, with the other choice as its default."""

    def change(line: dict[str, Any]) -> None:
        details = {k: v for k, v in line["details"].items() if k != "ticket"} | {"default": "yes"}
        ticket = line["details"]["ticket"] | {"due": "2025-02-10T06:00:00Z", "default": "yes"}
        shown = Card(card, "question", line["title"], "", line["run_id"], None, line["agent"], details)
        line["details"] = {**details, "ticket": ticket | {"shown": questions.shown(shown)}}

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
        monkeypatch.delitem(questions.DOUBTS, "signature")
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
        monkeypatch.delitem(questions.DOUBTS, "shown")
        assert ws.json("queue", "answer", card, "yes")["run"]["status"] == "succeeded"


@pytest.mark.parametrize("walled", [True, False])
def test_the_ticket_of_another_question(ws: Workspace, monkeypatch: pytest.MonkeyPatch, walled: bool) -> None:
    """A copy under another id, to have one run asked about twice."""
    card = asks(ws)["id"]
    write(ws, [*lines(ws), opened(ws, card) | {"id": "mallory1"}])
    if walled:
        answers(ws, "mallory1")
    else:
        monkeypatch.delitem(questions.DOUBTS, "card")
        assert ws("queue", "answer", "mallory1", "yes").code == 0


@pytest.mark.parametrize("walled", [True, False])
def test_the_ticket_of_another_workspace(ws: Workspace, monkeypatch: pytest.MonkeyPatch, walled: bool) -> None:
    """Signed with this machine's own key, for other books."""
    from cleared.approvals.keys import run_key

    card = asks(ws)["id"]
    key = run_key(ws.root)
    assert key is not None
    edit(ws, card, lambda line: line.update(signed(line, key, workspace="fedcba9876543210" * 2)))
    if walled:
        answers(ws, card)
    else:
        monkeypatch.delitem(questions.DOUBTS, "workspace")
        assert ws.json("queue", "answer", card, "yes")["run"]["status"] == "succeeded"


# -- answers ----------------------------------------------------------------------------------------------------------


def test_an_answer_that_nobody_signed_settles_nothing(ws: Workspace) -> None:
    card = asks(ws)["id"]
    write(ws, [*lines(ws), {"event": "resolve", "id": card, "at": "2025-02-10T06:00:00Z", "by": "ana",
                            "resolution": "yes"}])  # fmt: skip
    with unchanged(ws):
        assert ws.json("queue", "expire")["runs"] == []
    assert [c["id"] for c in ws.cards()] == [card], "it waits still, for an answer of its own"
    assert ws.json("queue", "answer", card, "no")["run"]["status"] == "succeeded"
    assert posted(ws) == [("2025-02-10", "for no")]


def forge_answer(ws: Workspace, card: str, key: Key, by: str = "ana", choice: str = "yes") -> None:
    at, ticket = "2025-02-10T06:00:00Z", opened(ws, card)["details"]["ticket"]
    proof = tickets.sign_answer(key, ticket["workspace"], card, ticket, at, by, choice)
    write(ws, [*lines(ws), {"event": "resolve", "id": card, "at": at, "by": by, "resolution": choice, **proof}])


@pytest.mark.parametrize("walled", [True, False])
def test_an_answer_with_another_key(ws: Workspace, monkeypatch: pytest.MonkeyPatch, walled: bool) -> None:
    card = asks(ws)["id"]
    forge_answer(ws, card, mallory())
    if walled:
        with unchanged(ws):
            found = ws.json("queue", "expire")
        assert found["runs"] == [] and "not signed by anybody who may" in found["said"][0]
        assert posted(ws) == []
        assert ws.run("asker", "--again", card)["status"] == "waiting"
    else:
        monkeypatch.setattr(Questions, "_may_settle", lambda *_: True)
        assert ws.json("queue", "expire")["runs"][0]["status"] == "succeeded"
        assert posted(ws) == [("2025-02-10", "for yes")]


@pytest.mark.parametrize("walled", [True, False])
def test_a_replayed_answer(ws: Workspace, monkeypatch: pytest.MonkeyPatch, walled: bool) -> None:
    """What was answered to one question is copied to another one with the same words."""
    first = asks(ws)["id"]
    ws.ok("queue", "answer", first, "yes")
    (line,) = [x for x in lines(ws) if x["event"] == "resolve"]
    second = asks(ws)["id"]
    write(ws, [*lines(ws), line | {"id": second}])
    if walled:
        with unchanged(ws):
            assert ws.json("queue", "expire")["runs"] == []
        assert len(posted(ws)) == 1
    else:
        monkeypatch.setattr(questions, "is_answer", lambda *_: True)
        assert ws.json("queue", "expire")["runs"][0]["status"] == "succeeded"
        assert len(posted(ws)) == 2


@pytest.mark.parametrize("walled", [True, False])
def test_a_timeout_before_its_time(ws: Workspace, monkeypatch: pytest.MonkeyPatch, walled: bool) -> None:
    """Who has a trusted machine cannot have it say that nobody answered, hours before that is so."""
    from cleared.approvals.keys import run_key

    card = asks(ws, TIMED)["id"]
    key = run_key(ws.root)
    assert key is not None
    forge_answer(ws, card, key, by="timeout", choice="no")
    if walled:
        assert ws.json("queue", "expire")["runs"] == []
    else:
        monkeypatch.setattr(questions, "TIMEOUT", "nobody")
        assert ws.json("queue", "expire")["runs"][0]["status"] == "succeeded"


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
        monkeypatch.setattr(Questions, "must_be_live", lambda *_: None)
        assert ws.json("queue", "answer", card, "yes")["run"]["status"] == "succeeded"


@pytest.mark.parametrize("walled", [True, False])
def test_it_does_not_ask_that_again(ws: Workspace, monkeypatch: pytest.MonkeyPatch, walled: bool) -> None:
    """The books have moved so that the run asks nothing: what it would do now is not what was answered."""
    from cleared.runs import asking

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
        real = asking.resume
        monkeypatch.setattr(asking, "resume", lambda *a: replace(real(*a), place=""))
        assert ws.json("queue", "answer", card["id"], "yes")["run"]["status"] == "succeeded"
        assert len(posted(ws)) == 5


# -- once -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["squash", "rebase", "line", "trailer"])
def test_a_run_goes_on_once(ws: Workspace, how: str) -> None:
    """Whatever becomes of its commit: the queue has it, the trailer has it, and each is enough."""
    card = asks(ws)["id"]
    before = ws.head()
    ws.ok("queue", "answer", card, "yes")
    (ws.root / ".cleared/runs.db").unlink()
    if how == "squash":  # all trailers are gone
        ws.git("reset", "-q", "--soft", f"{before}~1")
        ws.git("commit", "-q", "-m", "January")
    elif how == "rebase":
        ws.git("commit", "-q", "--amend", "--no-edit", "--date", "2025-01-01T00:00:00Z")
    elif how == "line":
        write(ws, [x for x in lines(ws) if x["event"] != "went_on"])
    else:
        ws.git("commit", "-q", "--amend", "-m", "agent: asked")
    with unchanged(ws):
        assert ws.json("queue", "expire")["runs"] == []
        assert ws("queue", "answer", card, "yes").code == 3
    assert len(posted(ws)) == 1


def test_it_would_go_on_twice_if_neither_said_so(ws: Workspace) -> None:
    card = asks(ws)["id"]
    before = ws.head()
    ws.ok("queue", "answer", card, "yes")
    (ws.root / ".cleared/runs.db").unlink()
    ws.git("reset", "-q", "--soft", f"{before}~1")
    ws.git("commit", "-q", "-m", "January")
    write(ws, [x for x in lines(ws) if x["event"] != "went_on"])
    assert ws.json("queue", "expire")["runs"][0]["status"] == "succeeded"
    assert len(posted(ws)) == 2


@pytest.mark.parametrize("walled", [True, False])
def test_a_decision_that_was_taken_back_is_replayed(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, walled: bool
) -> None:  # fmt: skip
    """Whoever can write the queue removes the lines by which an answer was taken back, before its run went on."""
    from cleared.app import open_workspace
    from cleared.review.decisions import answer

    card = asks(ws)["id"]
    answer(open_workspace(ws.root), card, "yes")  # and is killed before the run goes on
    kept = lines(ws)
    ws.ok("queue", "undo")
    write(ws, kept)
    if walled:
        with unchanged(ws):
            assert "is not in this history any more" in ws.json("queue", "expire")["said"][0]
        assert posted(ws) == []
    else:
        monkeypatch.setattr(Questions, "must_stand", lambda *_: None)
        assert ws.json("queue", "expire")["runs"][0]["status"] == "succeeded"


# -- other clones -----------------------------------------------------------------------------------------------------


def test_another_clone_answers_once_it_is_trusted(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """On another machine: its key is made there, and both say whom they trust."""
    card = asks(ws)["id"]
    other = Workspace(tmp_path / "other")
    ws.git("clone", "-q", str(ws.root), str(other.root))
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "other-home"))
    answers(other, card)
    found = other.json("trust", "--yes")
    assert any(s["paths"] == ["questions of runs"] for s in found)
    assert other.json("queue", "answer", card, "yes")["run"]["status"] == "succeeded"
    monkeypatch.delenv("CLEARED_HOME")
    ws.git("pull", "-q", "--ff-only", str(other.root), "HEAD")
    with unchanged(ws):
        assert ws.json("queue", "expire")["runs"] == []
    assert len(posted(ws)) == 1


def test_a_trusted_machine_approves_nothing(ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its key is for runs: a record that is signed with it lets no script run."""
    from cleared.approvals import trust
    from cleared.approvals.record import Record, record_path
    from cleared.approvals.record import signed as signed_record

    asks(ws)
    workspace, key = "0123456789abcdef" * 2, mallory()
    known = trust.load(workspace)
    known.runs[key.public] = "mallory"
    known.save()
    ws.put("agents/evil.py", ws.read("agents/asker.py"))
    digest = digest_of(ws.read("agents/evil.py").encode())
    record = signed_record(Record("script", "agents/evil.py", digest, "m", "2025-02-10T06:00:00Z", workspace), key)
    ws.put(record_path("agents/evil.py", digest), record.render())
    ws.commit("agents", message="agent: evil")
    with unchanged(ws):
        refused(ws("agent", "run", "evil"), 3, "not trusted")


# -- from before there were tickets -----------------------------------------------------------------------------------


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
    answers(ws, card, "no")


def test_old_questions_are_looked_for_once(ws: Workspace) -> None:
    """One that comes later without a ticket gets none, whatever the trace says: a job can write that."""
    as_before(ws)
    ws.json("queue", "list")
    card = asks(ws)["id"]
    edit(ws, card, lambda line: line["details"].pop("ticket"))
    answers(ws, card, "no")
