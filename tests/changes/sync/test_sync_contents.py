"""What comes along with a sync: decisions, questions, receipts, agents, events, and what a person commits."""

from __future__ import annotations

from pathlib import Path

import pytest
from asking import asks
from clones import clone
from harness import Workspace, chase, take_ok
from receipt_files import make_png
from reviewers import People
from synced import CAFE, SHOP, follow, left_out, part, run_git, tip_of

from cleared.changes.workspace_opening import open_workspace
from cleared.gate.manual_runs import run_command
from cleared.workspace.location import cleared_home

pytestmark = pytest.mark.slow

POST = 'journal_add_double(date="2025-02-07", description="a", debit_account=5020, credit_account=1010, amount=1)'


def test_an_agent_that_was_approved_stays_approved(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, _ = part(two)
    ws.script('git_commit("agent: probe")\n7', name="probe")
    ws.ok("sync")
    assert ws.run("probe")["result"] == 7
    ws.in_order()


def test_a_decision_names_its_card_and_entry_as_they_are_now(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, _ = part(two)
    ws.drop("tea.csv", chase(("02/07/2025", "TEA", "-2.00")))
    ws.run("ingest")
    ws.ok("queue", "approve", "2025-02-003")
    ws.ok("sync")
    card, entry = ws.trailers()["Cards"].split()
    assert entry == "2025-02-004" and ws.json("queue", "show", card)["entry_id"] == entry
    assert {e["entry_id"]: e["status"] for e in ws.entries()}[entry] == "user-confirmed"
    ws.in_order()


def test_a_persons_own_commits_come_along(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, _ = part(two)
    ws.put("notes.md", "mine\n")
    ws.git("add", "notes.md")
    ws.git("commit", "-q", "-m", "Take notes\n\nReviewed-by: Ana")
    ws.ok("sync")
    assert ws.read("notes.md") == "mine\n"
    assert (
        ws.git("log", "-1", "--format=%an %s %(trailers:only,unfold)").split("\n")[0]
        == "User Take notes Reviewed-by: Ana"
    )
    ws.in_order()


def test_an_import_that_is_taken_back_can_come_again(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, _ = part(two)
    ws.drop("mine.csv", chase(("02/08/2025", "CAKE", "-3.00")))
    ws.run("ingest")
    ws.ok("import", "undo", "mine.csv", "--reason", "wrong file")
    ws.ok("sync")
    ws.in_order()
    ws.drop("mine.csv", chase(("02/08/2025", "CAKE", "-3.00")))
    ws.run("ingest")
    assert [e["description"] for e in ws.entries() if e["status"] == "pending-review"][-1] == "CAKE"
    ws.in_order()


def test_a_question_is_answered_once(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, _ = part(two)
    card = asks(ws)
    ws.ok("sync")
    other = two[1]
    other.ok("sync")
    other.ok("journal", "add", "2025-02-06", "theirs", "5070=8", "1010=-8")
    other.ok("sync")
    ws.ok("queue", "answer", card["id"], "yes")
    ws.ok("sync")
    ws.in_order()
    assert sorted(e["description"] for e in ws.entries())[-2:] == ["for yes", "theirs"]


def test_receipts_of_both_stay_with_their_entries(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, other = part(two)
    for each in (ws, other):
        receipt = each.root.parent / f"{each.root.name}.png"
        receipt.write_bytes(make_png(60 + (each is ws)))
        each.ok("receipt", "add", str(receipt), "--entry", "2025-02-002")
    other.ok("sync")
    ws.ok("sync")
    linked = [sorted(each["entries"]) for each in ws.json("receipt", "list")["receipts"]]
    assert sorted(linked) == [["2025-02-002"], ["2025-02-003"]], linked
    ws.in_order()


def test_a_receipt_stays_with_its_entry_where_others_have_none(two: tuple[Workspace, Workspace, Path]) -> None:
    """The others have posted an entry under the same number, and have not written the record of receipts."""
    ws, _ = part(two)
    receipt = ws.root.parent / "scan.png"
    receipt.write_bytes(make_png())
    ws.ok("receipt", "add", str(receipt), "--entry", "2025-02-002")
    ws.ok("sync")
    [linked] = [each["entries"] for each in ws.json("receipt", "list")["receipts"]]
    assert linked == ["2025-02-003"] and ws.json("why", "2025-02-002")["receipts"] == []
    ws.in_order()


def test_two_people_on_two_machines(ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ws.drop("shop.csv", SHOP)
    ws.run("ingest")
    own, _, shared = follow(ws, tmp_path)
    home, others = str(cleared_home()), str(tmp_path / "others-home")
    monkeypatch.setenv("CLEARED_HOME", others)
    other = clone(Workspace(shared), tmp_path / "desk")
    take_ok(other, "trust")
    other.ok("journal", "add", "2025-02-06", "theirs", "5070=8", "1010=-8")
    other.ok("sync")
    monkeypatch.setenv("CLEARED_HOME", home)
    own.ok("journal", "add", "2025-02-05", "mine", "5070=9", "1010=-9")
    own.ok("sync")
    take_ok(own, "trust")
    own.in_order()
    monkeypatch.setenv("CLEARED_HOME", others)
    other.ok("sync")
    other.in_order()
    assert [e["description"] for e in other.entries()] == ["CORNER SHOP", "theirs", "mine"]


def test_a_reviewers_decision_is_signed_anew(ws: Workspace, tmp_path: Path) -> None:
    ws.drop("shop.csv", SHOP)
    ws.run("ingest")
    people = People(ws, tmp_path, ("ana",))
    with people.at_the_keyboard("ana"):
        _, other, _ = follow(ws, tmp_path)
        other.drop("cafe.csv", CAFE)
        other.run("ingest")
        other.ok("sync")
        ws.ok("queue", "approve", "2025-02-001")
        before = ws.trailers()
        ws.ok("sync")
        assert ws.trailers()["Key"] == before["Key"] and ws.trailers()["Signature"] != before["Signature"]
        ws.in_order()


ACCRUES = """
journal_add_double(date="2025-02-09", description="rent", debit_account=5040, credit_account=2100, amount={amount},
                   confidence=1, status="auto-confirmed", evidence="sure")
ctx_emit("rent", 1)
git_commit("agent: rent")
"""


def run_for(ws: Workspace, agent: str, key: str) -> None:
    """The run for an event that has this key wherever it comes."""
    assert run_command(open_workspace(ws.root), agent, key=key).status == "succeeded"


def test_an_event_that_both_had_has_one_run(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, other, _ = two
    ws.agent("rent", ACCRUES.format(amount=70))
    ws.ok("sync")
    other.ok("sync")
    for each, day in ((other, "05"), (ws, "06")):
        run_for(each, "rent", "2025-02")
        each.drop(f"{day}.csv", chase((f"02/{day}/2025", "TEA", "-2.00")))
        run_for(each, "ingest", "2025-02-09")
        each.ok("sync")
    assert [e["description"] for e in ws.entries()] == ["CORNER SHOP", "rent", "TEA", "TEA"]
    ws.in_order()


def test_an_event_of_which_something_else_came_is_named(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, other, _ = two
    ws.agent("rent", ACCRUES.format(amount="70 if len(journal_query()) < 2 else 80"))
    ws.ok("sync")
    other.ok("sync")
    other.drop("tea.csv", chase(("02/05/2025", "TEA", "-2.00")))
    other.run("ingest")
    for each in (other, ws):
        run_for(each, "rent", "2025-02")
    other.ok("sync")
    left_out(ws, "others have had its event")
    assert [e["amount"] for e in ws.entries() if e["description"] == "rent"] == ["80.00"]


def test_a_number_of_the_bank_that_looks_like_an_id_stays(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, _ = part(two)
    ws.drop("bill.csv", chase(("02/09/2025", "INV 2025-02-002", "-7.00")))
    ws.run("ingest")
    ws.ok("journal", "add", "2025-02-10", "see 2025-02-002", "5070=4", "1010=-4")
    ws.ok("journal", "void", "2025-02-003", "--reason", "paid with 2025-02-002")
    assert ws.json("sync")["renamed"]["2025-02-003"] == "2025-02-004"
    entries = {each["entry_id"]: each for each in ws.entries()}
    assert [entries[f"2025-02-{n:03d}"]["description"] for n in (4, 5, 6)] == [
        "INV 2025-02-002",
        "see 2025-02-002",
        "Void 2025-02-004: INV 2025-02-002",
    ]
    assert entries["2025-02-006"]["tags"][0] == "@rev=2025-02-004"
    assert ws.git("log", "-1", "--format=%s").startswith("void: 2025-02-004: paid with 2025-02-002")
    ws.in_order()


def test_the_key_of_an_event_that_looks_like_an_id_stays(two: tuple[Workspace, Workspace, Path]) -> None:
    ws, other, _ = two
    ws.agent("rent", ACCRUES.format(amount=70))
    ws.ok("sync")
    other.ok("sync")
    other.ok("journal", "add", "2025-02-06", "theirs", "5070=8", "1010=-8")
    other.ok("sync")
    run_for(ws, "rent", "2025-02-002")
    assert ws.json("sync")["renamed"] == {"2025-02-002": "2025-02-003"}
    assert ws.trailers()["Event"].endswith(" 2025-02-002")
    ws.in_order()


def test_each_repository_has_a_ref_of_its_own(two: tuple[Workspace, Workspace, Path], tmp_path: Path) -> None:
    ws, other, shared = two
    backup = tmp_path / "backup.git"
    run_git(tmp_path, "clone", "-q", "--bare", str(shared), str(backup))
    other.ok("journal", "add", "2025-02-06", "theirs", "5070=8", "1010=-8")
    other.ok("sync")
    ws.ok("sync")
    ws.ok("sync", str(backup))
    fetched = ws.git("for-each-ref", "--format=%(objectname)", "refs/cleared/sync/of/").split()
    assert len(set(fetched)) == 2 and tip_of(backup) == ws.head()


def test_a_row_of_the_log_stays_one_row_whatever_is_in_it(two: tuple[Workspace, Workspace, Path]) -> None:
    """Fault: it was cut at what other programs take for the end of a line, and both parts were left out."""
    ws, _ = part(two)
    ws.script('ctx_log("one\\u2028two\\x85three\\x0bfour")\n' + POST, name="say")
    ws.ok("sync")
    assert ",say,log,one\u2028two\x85three\x0bfour,," in ws.read("logs/agent-log-2025-02.csv")
    ws.in_order()
