"""Bookkeepers: reviewers who decide about the books, and approve neither what runs nor settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Workspace, refused, take_ok, unchanged
from reviewers import People

from cleared.changes.decisions.authorization import Authorization
from cleared.trust.trust_store import trust_reviewers

HELLO = '"""\nname: hello\n"""\nctx_log("hello")\n'
WHY = "a bookkeeper decides about the books"


@pytest.fixture
def people(posted: Workspace, tmp_path: Path) -> People:
    """Ana approves; Ben keeps the books."""
    made = People(posted, tmp_path)
    made.ok("ana", "config", "set", "bookkeepers", '["ben"]')
    posted.put("agents/hello.py", HELLO)
    made.ok("ana", "agent", "propose", "hello")
    return made


def test_a_bookkeeper_decides_and_approves_nothing(people: People) -> None:
    ws = people.ws
    with unchanged(ws):
        refused(people("ben", "agent", "approve", "P1"), 3, WHY, "Ask one of those who may: ana")
        refused(people("ben", "config", "set", "thresholds.auto_confirm", "0.5"), 3, WHY)
        refused(people("ben", "config", "set", "bookkeepers", "[]"), 3, WHY)
        refused(people("ben", "agent", "rollback", "ingest"), 3)
    corrected = people.ok("ben", "queue", "correct", "2025-01-004", "--account", "5060")
    assert "Not remembered as a test: a bookkeeper approves none." in corrected.out + corrected.err
    people.ok("ben", "queue", "undo", "--yes")
    people.ok("ben", "period", "close", "2025-01", "--with-pending")
    people.ok("ben", "period", "reopen", "2025-01", "--reason", "more came")
    people.ok("ben", "queue", "approve", "2025-01-002")
    people.ok("ben", "agent", "reject", "P1", "--reason", "not now")
    assert [r["role"] for r in people.json("ben", "queue", "reviewers")["reviewers"]] == ["owner", "bookkeeper"]
    ws.in_order("agents/hello.py")


def test_somebody_is_left_who_approves(people: People) -> None:
    with unchanged(people.ws):
        refused(people("ana", "config", "set", "bookkeepers", '["ana", "ben"]'), 4, "nobody could approve anything")
        refused(people("ana", "config", "set", "bookkeepers", '["cleo"]'), 4, "is not the name of a reviewer")
        refused(people("ana", "config", "set", "bookkeepers", '["ana"]'), 3, "could not take it back")


def test_what_a_bookkeeper_approved_with_a_program_of_their_own_is_found(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts on no machine, also not on one that trusts their key."""
    with monkeypatch.context() as patch:
        patch.setattr(Authorization, "require_approver", lambda self: None)
        people.ok("ben", "agent", "approve", "P1")
    found = people("ana", "check", "--json").json["violations"]
    assert any("with a key of nobody who approves here" in each["message"] for each in found), found
    why = "a bookkeeper, who approves nothing here"
    refused(people("ana", "agent", "run", "hello"), 3, why, "agent propose hello")
    key, books = people.key("ben"), people.ws.read("agents/approvals/workspace").strip()
    with people.at_the_keyboard("ana"):
        assert people.ws.ok("trust").out.count("no: a bookkeeper") == 1, "and nobody is asked about their key"
        (listed,) = [each for each in people.ws.json("trust", "--list") if each["bookkeeper"]]
        assert listed["key"] == key and not listed["trusted"]
        trust_reviewers(books, {key: "ben"})
        assert "no: a bookkeeper" in people.ws.ok("trust", "--list").out
    refused(people("ana", "agent", "run", "hello"), 3, why)
    with monkeypatch.context() as patch:
        for check in ("require_approver", "_require_self_included"):
            patch.setattr(Authorization, check, lambda *_: None)
        with people.at_the_keyboard("ben"):
            take_ok(people.ws, "trust", "--yes")
        people("ben", "config", "set", "bookkeepers", "[]")
    assert '"bookkeepers"' not in people.ws.read("agents/approvals/config.json")
    with unchanged(people.ws):
        refused(people("ana", "agent", "run", "ingest"), 3, why)


def test_older_settings_that_are_pushed_back_restrict_a_bookkeeper_as_before(
    people: People, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on a machine that gets both at once, and trusts their key from before."""
    ws, record = people.ws, "agents/approvals/config.json"
    with monkeypatch.context() as patch:
        patch.setattr(Authorization, "require_approver", lambda self: None)
        people.ok("ben", "agent", "approve", "P1")
    older = ws.git("log", "--format=%H", "--", record).splitlines()[1]
    ws.git("checkout", older, "--", record, "config.yaml")
    ws.git("commit", "-qm", "settings")
    clone = Workspace(tmp_path / "clone")
    ws.git("clone", "-q", str(ws.root), str(clone.root))
    with people.at_the_keyboard("cleo"):
        take_ok(clone, "trust", "--yes")
        refused(clone("agent", "run", "hello"), 3, "a bookkeeper, who approves nothing here")
