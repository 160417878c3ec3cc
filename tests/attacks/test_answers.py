"""Fault 1, D19: only what somebody who may has signed answers a question, and its run goes on once.

As in ``test_questions``: each attack, and the same without the one wall that stops it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from asking import ASKS, TIMED, asks, lines, mallory, opened, write
from asking import posted as posted_rows
from harness import Workspace, refused, take_ok, unchanged
from reviewers import People

from cleared.runs import question_tickets
from cleared.runs.question_tickets import Questions
from cleared.trust import tickets
from cleared.trust.approval_record import digest_of
from cleared.trust.keys import Key
from cleared.trust.reviewers import UNRESTRICTED

# -- answers ----------------------------------------------------------------------------------------------------------


def test_an_answer_that_nobody_signed_settles_nothing(ws: Workspace) -> None:
    card = asks(ws)["id"]
    write(
        ws,
        [*lines(ws), {"event": "resolve", "id": card, "at": "2025-02-10T06:00:00Z", "by": "ana", "resolution": "yes"}],
    )
    with unchanged(ws):
        assert ws.json("queue", "expire")["runs"] == []
    assert [c["id"] for c in ws.cards()] == [card], "it waits still, for an answer of its own"
    assert ws.json("queue", "answer", card, "no")["run"]["status"] == "succeeded"
    assert posted_rows(ws) == [("2025-02-10", "for no")]


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
        assert posted_rows(ws) == []
        assert ws.run("asker", "--again", card)["status"] == "waiting"
    else:
        monkeypatch.setattr(Questions, "_may_settle", lambda *_: True)
        assert ws.json("queue", "expire")["runs"][0]["status"] == "succeeded"
        assert posted_rows(ws) == [("2025-02-10", "for yes")]


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
        assert len(posted_rows(ws)) == 1
    else:
        monkeypatch.setattr(question_tickets, "is_signed_answer", lambda *_: True)
        assert ws.json("queue", "expire")["runs"][0]["status"] == "succeeded"
        assert len(posted_rows(ws)) == 2


@pytest.mark.parametrize("walled", [True, False])
def test_a_timeout_before_its_time(ws: Workspace, monkeypatch: pytest.MonkeyPatch, walled: bool) -> None:
    """Who has a trusted machine cannot have it say that nobody answered, hours before that is so."""
    from cleared.trust.keys import run_key

    card = asks(ws, TIMED)["id"]
    key = run_key(ws.root)
    assert key is not None
    forge_answer(ws, card, key, by="timeout", choice="no")
    if walled:
        assert ws.json("queue", "expire")["runs"] == []
    else:
        monkeypatch.setattr(question_tickets, "TIMEOUT_ACTOR", "nobody")
        assert ws.json("queue", "expire")["runs"][0]["status"] == "succeeded"


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
    if how == "line":  # another clone misses nothing
        take_ok(ws, "recover", "--forget")
    with unchanged(ws):
        assert ws.json("queue", "expire")["runs"] == []
        assert ws("queue", "answer", card, "yes").code == 3
    assert len(posted_rows(ws)) == 1


def test_it_would_go_on_twice_if_neither_said_so(ws: Workspace) -> None:
    card = asks(ws)["id"]
    before = ws.head()
    ws.ok("queue", "answer", card, "yes")
    (ws.root / ".cleared/runs.db").unlink()
    ws.git("reset", "-q", "--soft", f"{before}~1")
    ws.git("commit", "-q", "-m", "January")
    write(ws, [x for x in lines(ws) if x["event"] != "went_on"])
    ws.git("rm", "-q", "-f", "logs/attestations-2025-02.jsonl")
    ws.git("commit", "-q", "-m", "nor does an attestation")
    take_ok(ws, "recover", "--forget")
    assert ws.json("queue", "expire")["runs"][0]["status"] == "succeeded"
    assert len(posted_rows(ws)) == 2


@pytest.mark.parametrize("walled", [True, False])
def test_a_decision_that_was_taken_back_is_replayed(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, walled: bool
) -> None:
    """Whoever can write the queue removes the lines by which an answer was taken back, before its run went on."""
    from cleared.changes.workspace_opening import open_workspace
    from cleared.review.card_decisions import answer_card

    card = asks(ws)["id"]
    answer_card(open_workspace(ws.root), card, "yes")  # and is killed before the run goes on
    kept = lines(ws)
    ws.ok("queue", "undo")
    write(ws, kept)
    take_ok(ws, "recover", "--forget")
    if walled:
        with unchanged(ws):
            assert "is not in this history any more" in ws.json("queue", "expire")["said"][0]
        assert posted_rows(ws) == []
    else:
        monkeypatch.setattr(Questions, "require_not_settled", lambda *_: None)
        assert ws.json("queue", "expire")["runs"][0]["status"] == "succeeded"


# -- other clones -----------------------------------------------------------------------------------------------------


def test_another_clone_answers_once_it_is_trusted(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On another machine: its key is made there, and both say whom they trust."""
    card = asks(ws)["id"]
    other = Workspace(tmp_path / "other")
    ws.git("clone", "-q", str(ws.root), str(other.root))
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "other-home"))
    with unchanged(other):
        refused(other("queue", "answer", card, "yes"), 3, "so nothing is run or decided", "cleared trust")
    found = take_ok(other, "trust", "--yes", "--json").json
    assert any("questions of runs" in s["paths"] for s in found)
    assert other.json("queue", "answer", card, "yes")["run"]["status"] == "succeeded"
    monkeypatch.delenv("CLEARED_HOME")
    ws.git("pull", "-q", "--ff-only", str(other.root), "HEAD")
    with unchanged(ws):
        assert ws.json("queue", "expire")["runs"] == []
    assert len(posted_rows(ws)) == 1


def test_a_trusted_machine_approves_nothing(ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its key is for runs: a record that is signed with it lets no script run."""
    from cleared.trust import trust_store
    from cleared.trust.approval_record import ApprovalRecord, record_path
    from cleared.trust.approval_record import sign_record as signed_record

    asks(ws)
    workspace, key = ws.read("agents/approvals/workspace").strip(), mallory()
    known = trust_store.load_trust(workspace)
    known.runs[key.public] = "mallory"
    known.save()
    ws.put("agents/evil.py", ws.read("agents/asker.py"))
    digest = digest_of(ws.read("agents/evil.py").encode())
    record = signed_record(
        ApprovalRecord("script", "agents/evil.py", digest, "m", "2025-02-10T06:00:00Z", workspace), key
    )
    ws.put(record_path("agents/evil.py", digest), record.render())
    ws.commit("agents", message="agent: evil")
    with unchanged(ws):
        refused(ws("agent", "run", "evil"), 3, "not trusted")


def test_a_run_whose_commit_is_lost_is_asked_again(ws: Workspace) -> None:
    """The branch was set back to before it went on: it does not go on by itself a second time, and is not stuck."""
    card = asks(ws)["id"]
    ws.ok("queue", "answer", card, "yes")
    ws.git("reset", "-q", "--hard", "HEAD~1")
    take_ok(ws, "recover", "--forget")
    with unchanged(ws):
        assert "its run went on here" in ws.json("queue", "expire")["said"][0]
    found = ws.run("asker", "--again", card)
    assert ws.json("queue", "answer", found["cards"][0]["id"], "no")["run"]["status"] == "succeeded"
    assert posted_rows(ws) == [("2025-02-10", "for no")]
    with unchanged(ws):
        refused(ws("agent", "run", "asker", "--again", card), 2, "is settled")


def test_only_what_is_held_is_asked_again(ws: Workspace) -> None:
    first = asks(ws)["id"]
    with unchanged(ws):
        refused(ws("agent", "run", "asker", "--again", first), 2, "waits for its answer")
        refused(ws("agent", "run", "ingest", "--again", first), 2, "not a question of ingest")
    ws.ok("queue", "reject", first, "--reason", "no")
    with unchanged(ws):
        refused(ws("agent", "run", "asker", "--again", first), 2, "is settled: rejected")


def test_a_question_that_is_rebased_or_squashed_is_answered(ws: Workspace) -> None:
    """Its ticket is in the tree: no commit's id, message or trailer is in it."""
    ws.agent("asker", ASKS.format(more=""))
    before = ws.head()
    card = ws.run("asker")["cards"][0]["id"]
    ws.git("reset", "-q", "--soft", f"{before}~1")
    ws.git("commit", "-q", "-m", "January")
    assert ws.json("queue", "answer", card, "yes")["run"]["status"] == "succeeded"


def test_two_clones_answer(ws: Workspace, tmp_path: Path) -> None:
    """Each before it has seen the other's: joined, nothing goes on a third time."""
    (card,) = ws.script('queue_ask("Which?", ["no", "yes"])', name="asker")["cards"]
    other = Workspace(tmp_path / "other")
    ws.git("clone", "-q", str(ws.root), str(other.root))
    take_ok(other, "trust", "--yes")
    for each, choice in ((ws, "no"), (other, "yes")):
        assert each.json("queue", "answer", card["id"], choice)["run"]["result"] == choice
    write(ws, [*lines(ws), *lines(other)[1:]])
    with unchanged(ws):
        assert ws.json("queue", "expire")["runs"] == []
        assert ws("queue", "answer", card["id"], "yes").code == 3


@pytest.mark.parametrize("walled", [True, False])
def test_a_trusted_machine_answers_for_no_reviewer(
    posted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, walled: bool
) -> None:
    """Where reviewers are named, an answer is theirs: one who may run things here writes one by hand."""
    from cleared.trust.keys import run_key

    people = People(posted, tmp_path)
    with people.at_the_keyboard("ana"):
        card = asks(posted)["id"]
        key = run_key(posted.root)
        assert key is not None
        forge_answer(posted, card, key, by="cleo")
        if not walled:
            monkeypatch.setattr(Questions, "rules", property(lambda self: UNRESTRICTED))
        found = posted.json("queue", "expire")
    assert bool(found["runs"]) is not walled, found


def test_a_key_that_others_can_read_is_named(ws: Workspace) -> None:
    """Nothing is signed or believed with it, and the way out is said."""
    from cleared.trust.keys import cleared_home

    card = asks(ws)["id"]
    (cleared_home() / "run-key").chmod(0o644)
    assert "others can read the run key" in ws.json("queue", "show", card)["held"]
    with unchanged(ws):
        refused(ws("queue", "answer", card, "yes"), 4, "others can read the run key", "chmod 600")
        assert "chmod 600" in ws.json("queue", "expire")["said"][0]
    (cleared_home() / "run-key").chmod(0o600)
    assert ws.json("queue", "answer", card, "yes")["run"]["status"] == "succeeded"
