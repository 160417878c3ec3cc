"""A run that asks: it stops, keeps nothing, and goes on with the answer as if it had been there at once."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from harness import Workspace, copy_books, refused, unchanged
from patience import PATIENCE

POST = (
    'journal_add_double(date="2025-02-0" + str({n}), description={what}, debit_account={account},'
    ' credit_account=2100, amount=1, confidence=0.9, status="auto-confirmed", evidence="asked")'
)
ONE = f"""
choice = queue_ask("Which account?", ["5010", "5060"], default="5060")
{POST.format(n=1, what='"for " + choice', account="int(choice)")}
git_commit("agent: asked")
choice
"""
NESTED = f"""
def which(n):
    def inner():
        return queue_ask("Which account for " + str(n) + "?", ["5010", "5060"])
    return inner()

found = []
for n in [1, 2]:
    choice = which(n)
    {POST.format(n="n", what='"number " + str(n)', account="int(choice)")}
    found.append(choice)
found.append(script_run("shared", n=3))
git_commit("agent: asked")
found
"""
SHARED = f"""
choice = queue_ask("And shared?", ["yes", "no"])
if choice == "yes":
    {POST.format(n="n", what='"shared"', account="5010")}
choice
"""


def waiting(ws: Workspace, body: str = ONE, **more: Any) -> dict[str, Any]:
    """Run it up to its question: the card."""
    before = ws.entries()
    found = ws.script(body, name="asker", **more)
    assert found["status"] == "waiting" and found["entries"] == [] and found["error"] is None
    assert ws.entries() == before
    (card,) = found["cards"]
    return dict(card)


def question(ws: Workspace) -> dict[str, Any]:
    (card,) = [c for c in ws.cards() if c["kind"] == "question"]
    return dict(card)


def answer(ws: Workspace, choice: str) -> dict[str, Any]:
    found = ws.json("queue", "answer", question(ws)["id"], choice)["run"]
    assert isinstance(found, dict)
    return found


def journal(ws: Workspace) -> list[tuple[Any, ...]]:
    return [(e["entry_id"], e["date"], e["description"], e["status"], e["lines"]) for e in ws.entries()]


def at(monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    monkeypatch.setenv("CLEARED_CLOCK", when)


def test_waits_and_goes_on(ws: Workspace) -> None:
    card = waiting(ws)
    assert ws.git("log", "-1", "--format=%s").strip() == "log: asker asks: Which account?"
    assert card["details"]["choices"] == ["5010", "5060"] and card["details"]["due"] == "2025-02-17T06:00:00Z"
    ws.in_order()
    found = answer(ws, "5010")
    assert found["status"] == "succeeded" and found["result"] == "5010" and found["run_id"] == card["run_id"]
    assert ws.trailers()["Run"] == card["run_id"] and ws.cards() == []
    ws.in_order()


def test_the_card_shows_both_futures(ws: Workspace) -> None:
    """N4: what would happen for each choice; the chosen one's entries are those of the commit."""
    futures = waiting(ws)["details"]["futures"]
    assert [f["entries"][0]["description"] for f in futures.values()] == ["for 5010", "for 5060"]
    assert answer(ws, "5060")["entries"] == futures["5060"]["entries"]
    assert ws.entries() == futures["5060"]["entries"]


def test_more_than_four_choices_are_not_rehearsed(ws: Workspace) -> None:
    assert waiting(ws, 'queue_ask("Which?", ["1", "2", "3", "4", "5"])')["details"]["futures"] == {}


def test_a_future_that_fails_says_so(ws: Workspace) -> None:
    card = waiting(ws, 'x = queue_ask("Which?", ["a", "b"])\nif x == "b":\n    1 / 0')
    assert "ZeroDivisionError" in card["details"]["futures"]["b"]["error"]


@pytest.mark.parametrize("transport", ["in_process", "bridge"])
def test_answered_next_week(ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str) -> None:
    """N1: in nested functions, a loop and a shared script, with every process gone and ``.cleared/`` deleted between:
    the same journal as when all is answered at once."""
    if transport == "bridge":
        ws.config("sandbox.transport=bridge")
    ws.shared("shared", SHARED)
    ws.agent("asker", NESTED)
    other = Workspace(copy_books(ws.root, tmp_path / "other"))
    for each, days in ((ws, 0), (other, 7)):
        found = each.process("agent", "run", "asker", "--json").json
        for n, choice in enumerate(["5010", "5060", "yes"], 1):
            assert found["status"] == "waiting", found
            at(monkeypatch, f"2025-02-{10 + days * n // 3}T06:00:00Z")
            if days:
                shutil.rmtree(each.root / ".cleared")
            done = each.process("queue", "answer", question(each)["id"], choice, "--json")
            assert done.code == 0, done
            found = done.json["run"]
        assert found["status"] == "succeeded" and found["result"] == ["5010", "5060", "yes"]
        each.in_order()
        at(monkeypatch, "2025-02-10T06:00:00Z")
    assert journal(ws) == journal(other) and len(journal(ws)) == 3


def test_another_version_is_live(ws: Workspace) -> None:
    """D19: what asked goes on as long as it is live; else it is asked again, by what is, for the same event."""
    waiting(ws)
    ws.agent("asker", ONE.replace("for ", "newer, for "))
    card = question(ws)
    with unchanged(ws):
        refused(ws("queue", "answer", card["id"], "5010"), 3, f"cleared agent run asker --again {card['id']}")
    found = ws.run("asker", "--again", card["id"])
    assert found["status"] == "waiting" and question(ws)["id"] != card["id"]
    assert ws.trailers()["Attempt"].endswith(card["run_id"]) and ws.trailers()["Went-On"] == card["id"]
    assert answer(ws, "5010")["entries"][0]["description"] == "newer, for 5010"
    refused(ws("agent", "run", "asker", "--again", card["id"]), 2, "is settled")
    ws.in_order()


def test_brought_back_it_can_be_answered_again(ws: Workspace) -> None:
    waiting(ws)
    old = ws.read("agents/asker.py")
    ws.agent("asker", ONE.replace("for ", "newer, for "))
    assert question(ws)["held"]
    ws.put("agents/asker.py", old)
    ws.commit("agents/asker.py")
    assert question(ws)["held"] is None and answer(ws, "5010")["status"] == "succeeded"


def test_rolled_back_meanwhile(ws: Workspace) -> None:
    from cleared.trust.approval_record import digest_of, record_path

    waiting(ws)
    path, old = "agents/asker.py", ws.read("agents/asker.py")
    record = record_path(path, digest_of(old.encode()))
    ws.agent("asker", "1")
    ws.git("rm", "-q", record)
    ws.git("commit", "-qm", "withdrawn")
    with unchanged(ws):
        refused(ws("queue", "answer", question(ws)["id"], "5010"), 3, "asker")
    assert ws.entries() == []
    found = ws.json("queue", "expire")
    assert found["runs"] == [] and len(found["said"]) == 1


def test_the_books_have_moved(ws: Workspace) -> None:
    """It asks something else now: another card, that says so, and the run waits on."""
    body = f"""
n = len(journal_query())
choice = queue_ask("Of " + str(n) + " entries?", ["5010", "5060"])
{POST.format(n=1, what='"A"', account="int(choice)")}
git_commit("agent: asked")
"""
    first = waiting(ws, body)
    ws.drop("january.csv")
    ws.run("ingest")
    done = ws("queue", "answer", first["id"], "5010", "--json")
    assert done.code == 0 and done.json["run"]["status"] == "waiting"
    second = question(ws)
    assert second["id"] != first["id"] and second["title"] == "asker asks: Of 4 entries?"
    assert second["details"]["instead_of"] == "Of 0 entries?"
    assert answer(ws, "5060")["status"] == "succeeded"
    ws.in_order()


def test_what_is_no_answer(ws: Workspace) -> None:
    card = waiting(ws)
    with unchanged(ws):
        refused(ws("queue", "answer", card["id"], "5020"), 2, f"cleared queue answer {card['id']} 5010|5060")
        refused(ws("queue", "approve", card["id"]), 2, "not about an entry")
    answer(ws, "5010")
    with unchanged(ws):
        refused(ws("queue", "answer", card["id"], "5060"), 3, "is settled: 5010", f"cleared queue show {card['id']}")
        refused(ws("queue", "answer", card["id"], "5010"), 3, "is settled: 5010")
        refused(ws("queue", "undo"), 3, "has gone on with the answer")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ('["a"]', "two to twenty choices"),
        ('["a", "a"]', "none twice"),
        ('["a", " "]', "none empty"),
        ('["a", "b"], default="c"', "is not one of the choices"),
        ('["a", "b"], on_timeout="default"', "on_timeout"),
        ('["a", "b"], on_timeout="maybe"', "on_timeout"),
        ('["a", "b"], timeout="1 week"', "is no time"),
        ('["a", "b"], timeout="0d"', "is no time"),
        ("[str(n) for n in range(21)]", "two to twenty"),
    ],
)
def test_bad_questions(ws: Workspace, words: str, said: str) -> None:
    found = ws.script(f'queue_ask("Which?", {words})', name="asker", code=1)
    assert said in found["error"]["message"] and found["error"]["remedy"]


def test_a_dry_run_takes_the_default(ws: Workspace) -> None:
    ws.agent("asker", ONE)
    with unchanged(ws):
        assert ws.run("asker", "--dry-run")["result"] == "5060"
    ws.agent("asker", 'queue_ask("Which?", ["first", "second"])')
    assert ws.run("asker", "--dry-run")["result"] == "first"


def test_the_gate_takes_the_default(ws: Workspace) -> None:
    """A rehearsal asks nobody."""
    ws.put("agents/asker.py", f'"""\nname: Asker\ntrigger: on_demand\n"""\n{ONE}')
    found = ws("agent", "check", "asker", "--json")
    assert found.code == 0, found
    assert [c for c in ws.cards() if c["kind"] == "question"] == []


def test_the_headers_budget_still_holds(ws: Workspace) -> None:
    body = ONE.replace('git_commit("agent: asked")', POST.format(n=2, what='"B"', account=5010) + '\ngit_commit("x")')
    card = waiting(ws, body, header="max_entries: 1\n")
    assert "error" in card["details"]["futures"]["5010"]
    done = ws("queue", "answer", card["id"], "5010", "--json")
    assert done.code == 1 and done.json["run"]["status"] == "failed", done
    assert ws.entries() == []


def test_a_secret_in_a_question_is_not_kept_and_holds_nothing(ws: Workspace) -> None:
    """I1: what is signed is what is kept, so the card is as it was made."""
    secret = "sk-" + "a1B2c3D4" * 4
    waiting(ws, f'choice = queue_ask("Use {secret}?", ["yes", "no"])\nchoice')
    assert secret not in ws.read("queue/2025-02.jsonl") and question(ws)["held"] is None
    ws.ok("queue", "reject", question(ws)["id"], "--reason", f"not {secret}")
    assert secret not in ws.read("queue/2025-02.jsonl") and ws.json("queue", "expire")["said"] == []
    ws.ok("queue", "undo")
    assert answer(ws, "yes")["result"] == "yes"


# -- nobody answers ---------------------------------------------------------------------------------------------------

TIMED = 'queue_ask("Which account?", ["5010", "5060"], default="5060", on_timeout="{}", timeout="12h")'


def timed(how: str) -> str:
    return ONE.replace('queue_ask("Which account?", ["5010", "5060"], default="5060")', TIMED.format(how))


def test_takes_the_default_in_time(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a second early; the run goes on, and it says who answered."""
    card = waiting(ws, timed("default"))
    at(monkeypatch, "2025-02-10T17:59:59Z")
    with unchanged(ws):
        assert ws.json("queue", "expire")["answered"] == {}
    at(monkeypatch, "2025-02-10T18:00:00Z")
    found = ws.json("queue", "expire")
    assert found["answered"] == {card["id"]: "5060"} and found["runs"][0]["status"] == "succeeded"
    (settled,) = ws.cards("--status", "resolved")
    assert (settled["resolved_by"], settled["resolution"]) == ("timeout", "5060")
    assert [e["description"] for e in ws.entries()] == ["for 5060"]
    with unchanged(ws):
        assert ws.ok("queue", "expire").out == "No question's time has come.\n"
        refused(ws("queue", "undo"), 3, "no decision to take back")
    ws.in_order()


def test_is_rejected_in_time(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    card = waiting(ws, timed("reject"))
    at(monkeypatch, "2025-02-11T06:00:00Z")
    found = ws.json("queue", "expire")
    assert found["rejected"] == [card["id"]] and found["runs"] == [] and ws.cards() == []
    assert ws.json("queue", "expire")["runs"] == [] and ws.entries() == []
    refused(ws("queue", "answer", card["id"], "5010"), 3, "is settled: rejected")


def test_goes_on_asking(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noted once; it can still be answered."""
    card = waiting(ws, timed("escalate"))
    at(monkeypatch, "2025-02-11T06:00:00Z")
    assert ws.json("queue", "expire")["escalated"] == [card["id"]]
    with unchanged(ws):
        assert ws.json("queue", "expire")["escalated"] == []
    assert answer(ws, "5010")["status"] == "succeeded"


def test_a_person_ends_it(ws: Workspace) -> None:
    card = waiting(ws)
    ws.ok("queue", "reject", card["id"], "--reason", "not now")
    assert ws.cards() == [] and ws.json("queue", "expire")["runs"] == [] and ws.entries() == []
    ws.ok("queue", "undo")
    assert answer(ws, "5010")["status"] == "succeeded"


# -- killed -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["again", "expire"])
def test_killed_between_the_answer_and_the_run(ws: Workspace, how: str) -> None:
    """The same answer again, or the next look at what is due, goes on; twice is once."""
    from cleared.changes.workspace_opening import open_workspace
    from cleared.review.card_decisions import answer_card as only_answer

    card = waiting(ws)
    only_answer(open_workspace(ws.root), card["id"], "5010")
    assert ws.entries() == []
    if how == "again":
        processes = [ws.start("queue", "answer", card["id"], "5010") for _ in range(2)]
        codes = []
        for process in processes:
            process.communicate(timeout=PATIENCE)
            codes.append(process.returncode)
        assert codes[0] in (0, 3) and 0 in codes
    else:
        assert ws.json("queue", "expire")["runs"][0]["status"] == "succeeded"
    assert [e["description"] for e in ws.entries()] == ["for 5010"]
    assert ws.json("queue", "expire")["runs"] == []
    ws.in_order()


def test_every_process_is_killed(ws: Workspace) -> None:
    """N1: while it asks, and while it goes on: nothing is half done, and the answer is taken up."""
    ws.agent("asker", ONE)
    process = ws.start("agent", "run", "asker", start_new_session=True)
    time.sleep(0.15)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    if not ws.cards():
        ws.run("asker")
    card = question(ws)
    process = ws.start("queue", "answer", card["id"], "5010", start_new_session=True)
    time.sleep(0.4)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    ws("queue", "answer", card["id"], "5010")
    assert [e["description"] for e in ws.entries()] == ["for 5010"]
    ws.in_order()
