"""Who may decide: reviewers in the approved settings, their signatures, and amounts that take two of them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from harness import IDENTITY, Workspace, chase, refused, take_ok, unchanged
from reviewers import People

INVOICE = "2025-01-002"
"""1500.00, waits for review; all other entries are below 50."""
COFFEE = "2025-01-004"


@pytest.fixture
def people(posted: Workspace, tmp_path: Path) -> People:
    """Ana and Ben decide; from 500 on it takes both."""
    return People(posted, tmp_path, two="500")


def entry(ws: Workspace, name: str) -> dict[str, Any]:
    return next(e for e in ws.entries() if e["entry_id"] == name)


def card(ws: Workspace, name: str) -> dict[str, Any]:
    return next(c for c in ws.cards() if c["entry_id"] == name)


def damage(ws: Workspace) -> list[str]:
    return [f"{v['check']}: {v['message']}" for v in ws("check", "--json").json["violations"]]


def signed(ws: Workspace) -> bool:
    return {"Key", "Signature"} <= set(ws.trailers())


# -- who may ----------------------------------------------------------------------------------------------------------


def test_as_long_as_nobody_is_named_everybody_may_and_nothing_is_signed(posted: Workspace) -> None:
    posted.ok("queue", "approve", COFFEE)
    assert not signed(posted)
    assert posted.json("queue", "reviewers")["reviewers"] == []


@pytest.mark.parametrize(
    "words",
    [
        ["queue", "approve", COFFEE],
        ["queue", "correct", COFFEE, "--account", "5060"],
        ["queue", "reject", COFFEE, "--reason", "no", "--outcome", "suspense"],
        ["queue", "undo"],
        ["journal", "void", COFFEE, "--reason", "no"],
        ["period", "close", "2025-01", "--with-pending"],
        ["config", "set", "thresholds.auto_confirm", "0.5"],
        ["config", "set", "thresholds.two_person", "5"],
    ],
)
def test_others_are_refused_whatever_they_decide(posted: Workspace, tmp_path: Path, words: list[str]) -> None:
    people = People(posted, tmp_path)
    people.ok("ana", "queue", "approve", "2025-01-001")
    people.key("cleo")
    people.ok("cleo", "trust", "--yes")
    with unchanged(posted):
        refused(people("cleo", *words), 3, "only reviewers may decide here: ana, ben", "your key is none of theirs")


def test_others_are_told_how_to_become_one(posted: Workspace, tmp_path: Path) -> None:
    people = People(posted, tmp_path)
    refused(people("cleo", "queue", "approve", COFFEE), 3, "you have no key on this machine", "cleared queue reviewers")
    found = people.json("cleo", "queue", "reviewers")
    assert [r["name"] for r in found["reviewers"]] == ["ana", "ben"] and not found["may_decide"]
    text = posted.read("config.yaml")
    posted.put("config.yaml", text.replace("reviewers:\n", f"reviewers:\n  - {{name: cleo, key: {found['key']!r}}}\n"))
    refused(people("cleo", "config", "approve"), 3, "only reviewers may decide")
    people.ok("ana", "config", "approve")
    people.ok("cleo", "queue", "approve", COFFEE)
    assert damage(posted) == []


def test_others_may_not_answer_or_approve_scripts(posted: Workspace, tmp_path: Path) -> None:
    people = People(posted, tmp_path)
    people.ok("ana", "queue", "reject", COFFEE, "--reason", "no", "--outcome", "suspense")
    (held,) = [c["id"] for c in posted.cards() if c["kind"] == "line"]
    posted.put("agents/hello.py", '"""\nname: hello\ntrigger: on_demand\n"""\nctx_log("hello")\n')
    people.ok("cleo", "agent", "propose", "hello")  # proposing is not deciding
    with unchanged(posted):
        refused(people("cleo", "queue", "answer", held, "ignore"), 3, "only reviewers may decide")
        refused(people("cleo", "agent", "approve", "P1"), 3, "only reviewers may decide")
        refused(people("cleo", "agent", "reject", "P1", "--reason", "no"), 3, "only reviewers may decide")
    people.ok("ben", "agent", "approve", "P1")
    people.ok("ana", "agent", "run", "hello")  # she has named him: his approvals count on her machine
    people.ok("ben", "queue", "answer", held, "ignore")
    assert damage(posted) == []


def test_settings_that_are_not_policy_are_for_everybody(posted: Workspace, tmp_path: Path) -> None:
    people = People(posted, tmp_path)
    people.key("cleo")
    people.ok("cleo", "trust", "--yes")
    people.ok("cleo", "config", "set", "review.remind_after", "5d")
    assert not signed(posted) and damage(posted) == []


def test_the_screen_and_the_prompts_decide_no_more_than_that(people: People) -> None:
    from cleared.changes.workspace_opening import open_workspace
    from cleared.review.action_request import UNDO, ActionRequest
    from cleared.review.card_actions import ActionExecutor
    from cleared.review.card_facts import CardChoice

    acts = ActionExecutor(lambda: open_workspace(people.ws.root))
    wish = ActionRequest(CardChoice("confirm", "Confirm"), (card(people.ws, COFFEE)["id"],), "coffee")
    big = ActionRequest(CardChoice("confirm", "Confirm"), (card(people.ws, INVOICE)["id"],), "invoice")
    with people.at_the_keyboard("cleo"):
        assert not acts.execute_request(wish).ok and not acts.execute_request(UNDO).ok
    with people.at_the_keyboard("ana"):
        assert acts.execute_request(wish).cards == wish.cards
        said = acts.execute_request(big)
        assert said.ok and said.cards == () and "you are the first" in said.text
    assert entry(people.ws, INVOICE)["status"] == "pending-review"
    with people.at_the_keyboard("ben"):
        assert (
            acts.execute_request(ActionRequest(CardChoice("agree", "Agree"), big.cards, "invoice")).cards == big.cards
        )
    assert entry(people.ws, INVOICE)["status"] == "user-confirmed"


def test_at_the_prompts_what_waits_for_another_is_passed_over(people: People) -> None:
    from cleared.changes.workspace_opening import open_workspace
    from cleared.cli.tui.plain_prompts import PlainReview
    from cleared.review.card_actions import ActionExecutor

    def sitting(name: str, *typed: str) -> str:
        told: list[str] = []
        keys = iter(typed)

        def ask(prompt: str) -> str | None:
            told.append(prompt)
            return next(keys, None)

        with people.at_the_keyboard(name):
            acts = ActionExecutor(lambda: open_workspace(people.ws.root))
            PlainReview(acts, ask, told.append).run_prompts()
        return "\n".join(told)

    said = sitting("ana", "a", "a", "q")  # the invoice, the coffee
    assert "It takes two: you are the first" in said and "1 decision made. 1 card left." in said
    said = sitting("ana", "q")
    assert "ana decided: confirm: 2025-01-002 ACME INVOICE 12" in said and "Agree with" not in said
    said = sitting("ben", "w")
    assert "w Agree with ana" in said and "ana decided: confirm: 2025-01-002 ACME INVOICE 12" in said
    assert "1 decision made. 0 cards left." in said and damage(people.ws) == []


def test_nobody_locks_themselves_out(posted: Workspace, tmp_path: Path) -> None:
    people = People(posted, tmp_path)
    text = posted.read("config.yaml")
    posted.put("config.yaml", text.replace(people.key("ana"), people.key("cleo")))
    refused(people("ana", "config", "approve"), 3, "you would not be among the reviewers yourself")
    people.ok("ben", "config", "approve")
    refused(people("ana", "queue", "approve", COFFEE), 3, "only reviewers may decide here")


def test_two_people_need_to_be_two(posted: Workspace, tmp_path: Path) -> None:
    done = posted("config", "set", "thresholds.two_person", "500")
    assert done.code != 0 and "needs two people who may decide" in done.err


def test_a_fresh_clone_knows_who_decided(people: People, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people.ok("ana", "queue", "approve", COFFEE)
    assert signed(people.ws) and people.ws.trailers()["By"] == "ana"
    subprocess.run(["git", "clone", "-q", str(people.ws.root), str(tmp_path / "clone")], check=True)
    clone = Workspace(tmp_path / "clone")
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "nobody"))
    (decided,) = clone.json("why", COFFEE)["decisions"]
    assert (decided["by"], decided["signed"]) == ("ana", "ana")
    assert "(signed by ana)" in clone.ok("why", COFFEE).out
    assert clone.json("check") == {"ok": True, "violations": []}


def test_timeouts_need_nobody(posted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people = People(posted, tmp_path)
    with people.at_the_keyboard("ana"):
        posted.script('queue_ask("Which?", ["a", "b"], default="b", on_timeout="default", timeout="1h")', name="asker")
        monkeypatch.setenv("CLEARED_CLOCK", "2025-02-11T06:00:00Z")
    with people.at_the_keyboard("cleo"):
        assert posted.json("queue", "expire")["answered"] == {}, "ana's machine is not trusted there yet"
        take_ok(posted, "trust", "--yes")
        assert list(posted.json("queue", "expire")["answered"].values()) == ["b"]
    assert [d for d in damage(posted) if "asker" not in d] == []


# -- two of them ------------------------------------------------------------------------------------------------------


def test_the_first_is_recorded_the_second_makes_it_so(people: People) -> None:
    ws = people.ws
    books = ws.entries()
    first = people.json("ana", "queue", "approve", INVOICE)
    assert first["agreed"] == [card(ws, INVOICE)["id"]] and first["entries"] == [] and first["commit"]
    assert ws.entries() == books and signed(ws)
    (agreed,) = card(ws, INVOICE)["agreed"]
    assert agreed["by"] == "ana" and agreed["says"] == f"confirm: {INVOICE} ACME INVOICE 12"
    assert "(the first of two: ana)" in ws.ok("queue", "list").out
    people.ok("ana", "queue", "approve", INVOICE)  # the same key twice does not count
    refused(people("ana", "queue", "agree", INVOICE), 3, "you are the first of two")
    refused(people("cleo", "queue", "approve", INVOICE), 3, "only reviewers")
    assert ws.entries() == books
    assert people.json("ben", "queue", "approve", INVOICE)["entries"] == [INVOICE]
    assert entry(ws, INVOICE)["status"] == "user-confirmed" and damage(ws) == []


def test_a_card_is_made_where_there_was_none(people: People) -> None:
    people.both("queue", "approve", INVOICE)
    (waiting,) = people.json("ana", "queue", "correct", INVOICE, "--account", "4020")["agreed"]
    assert card(people.ws, INVOICE)["id"] == waiting
    people.ok("ben", "queue", "agree", waiting)
    assert entry(people.ws, INVOICE)["status"] == "user-corrected" and damage(people.ws) == []


def test_another_second_decision_is_a_first_one(people: People) -> None:
    ws = people.ws
    people.ok("ana", "queue", "correct", INVOICE, "--account", "4020", "--note", "why")
    assert people.json("ben", "queue", "correct", INVOICE, "--account", "3200", "--note", "why")["entries"] == []
    people.ok("ben", "queue", "correct", INVOICE, "--account", "3200", "--note", "why")
    assert entry(ws, INVOICE)["status"] == "pending-review"
    refused(people("ben", "queue", "agree", INVOICE), 3, "yourself")
    done = people.json("ana", "queue", "agree", INVOICE)
    (posted,) = done["posted"]
    assert {x["account_id"] for x in entry(ws, posted)["lines"]} == {4010, 3200}
    assert entry(ws, posted)["notes"] == "why" and damage(ws) == []


def test_what_the_first_agreed_to_is_exactly_that(people: People) -> None:
    """Closed in between, the correction would be dated otherwise: it is asked for again."""
    people.ok("ana", "queue", "reject", INVOICE, "--reason", "no", "--outcome", "suspense")
    people.ok("ana", "period", "close", "2025-01", "--with-pending")
    assert people.json("ben", "queue", "agree", INVOICE)["entries"] == []
    assert people.json("ana", "queue", "agree", INVOICE)["entries"] == [INVOICE]
    assert damage(people.ws) == []


def test_of_a_batch_the_small_take_effect_and_the_large_are_begun(people: People) -> None:
    done = people.ok("ana", "queue", "approve", INVOICE, COFFEE)
    assert f"Confirmed: {COFFEE}" in done.out and "It takes two: you are the first for 2025-01-002" in done.err
    assert [entry(people.ws, e)["status"] for e in (INVOICE, COFFEE)] == ["pending-review", "user-confirmed"]
    people.ok("ben", "queue", "undo")  # takes back the one, and what the first had agreed to of the other
    assert card(people.ws, INVOICE)["agreed"] == []
    assert people.json("ben", "queue", "approve", INVOICE)["entries"] == []
    assert damage(people.ws) == []


def test_taking_it_back_takes_two_as_well(people: People) -> None:
    ws = people.ws
    people.both("queue", "approve", INVOICE)
    (asked,) = people.json("ben", "queue", "undo")["agreed"]
    assert entry(ws, INVOICE)["status"] == "user-confirmed"
    assert people.json("ben", "queue", "undo")["entries"] == []
    assert people.json("ana", "queue", "undo")["entries"] == [INVOICE]
    assert entry(ws, INVOICE)["status"] == "voided" and asked not in [c["id"] for c in ws.cards()]
    assert damage(ws) == []


def test_what_one_has_begun_can_be_withdrawn(people: People) -> None:
    people.both("queue", "approve", INVOICE)
    (asked,) = people.json("ben", "queue", "undo")["agreed"]
    people.ok("ben", "queue", "answer", asked, "withdraw")
    assert people.json("ana", "queue", "undo")["agreed"] != [asked]
    assert entry(people.ws, INVOICE)["status"] == "user-confirmed" and damage(people.ws) == []


def test_voiding_takes_two(people: People) -> None:
    words = ["journal", "void", INVOICE, "--reason", "no"]
    refused(people("ana", *words), 3, "it takes two reviewers; you are the first")
    refused(people("ana", *words), 3, "you are the first")
    assert entry(people.ws, INVOICE)["status"] == "pending-review"
    people.ok("ben", *words)
    assert entry(people.ws, INVOICE)["status"] == "voided" and damage(people.ws) == []


def test_a_held_line_takes_two_to_be_posted_or_ignored(people: People) -> None:
    people.both("queue", "reject", INVOICE, "--reason", "no", "--outcome", "suspense")
    (held,) = [c["id"] for c in people.ws.cards() if c["kind"] == "line"]
    assert people.json("ana", "queue", "answer", held, "ignore")["cards"] == []
    assert people.json("ben", "queue", "correct", held, "--account", "4010")["posted"] == []
    assert people.json("ana", "queue", "agree", held)["posted"] != []
    assert damage(people.ws) == []


def test_a_small_change_of_a_large_correction_takes_two(people: People) -> None:
    lines = ["--line", "4010=-1000", "--line", "4020=-500"]
    people.both("queue", "correct", INVOICE, *lines)
    assert entry(people.ws, INVOICE)["status"] == "user-corrected"
    again = ["--line", "4010=-1001", "--line", "4020=-499"]
    assert people.json("ana", "queue", "correct", INVOICE, *again)["entries"] == []
    assert people.json("ben", "queue", "correct", INVOICE, *again)["entries"] == [INVOICE]
    assert damage(people.ws) == []


def test_the_rules_themselves_take_two(people: People) -> None:
    people.ok("ben", "trust", "--yes")
    words = ["config", "set", "thresholds.two_person", "5000"]
    config = people.ws.read("config.yaml")
    refused(people("ana", *words), 3, "it takes two reviewers; you are the first")
    refused(people("ana", *words), 3, "it takes two reviewers")
    assert people.ws.read("config.yaml") == config
    people.ok("ben", *words)
    people.ok("ana", "queue", "approve", INVOICE)
    assert entry(people.ws, INVOICE)["status"] == "user-confirmed" and damage(people.ws) == []
    other = ["config", "set", "thresholds.two_person", "500"]
    people("ben", *other)
    people.ok("ana", *other)
    refused(people("ana", *words), 3, "you are the first")  # what ben agreed to then counted once
    people.ok("ana", "config", "set", "thresholds.auto_confirm", "0.6")  # other policy takes one
    assert damage(people.ws) == []


def test_a_correction_that_makes_a_small_one_large_takes_two(people: People) -> None:
    lines = ["--mixed", "--line", "5010=600", "--line", "5020=-595.50"]
    assert people.json("ana", "queue", "correct", COFFEE, *lines)["entries"] == []
    assert people.json("ben", "queue", "correct", COFFEE, *lines)["entries"] == [COFFEE]
    assert people.json("ana", "queue", "reject", COFFEE, "--reason", "no", "--outcome", "suspense")["entries"] == []


@pytest.mark.parametrize("amount", ["NaN", "sNaN", "Infinity", "1E+400000", "-0", "600.001"])
def test_what_is_no_amount_is_refused_as_ever(people: People, amount: str) -> None:
    with unchanged(people.ws):
        done = people("ana", "queue", "correct", INVOICE, "--line", f"4010={amount}", "--line", "4020=1")
        refused(done, 2, "is not ACCOUNT=AMOUNT" if "E+" in amount else "is no amount of money")


@pytest.mark.slow
def test_other_rules_are_not_for_a_proposal(people: People) -> None:
    """One person approves it; they are set by two, each for themselves."""
    ws = people.ws
    people.ok("ben", "trust", "--yes")
    ws.put("config.yaml", ws.read("config.yaml").replace("two_person: 500", "two_person: 9000"))
    people.ok("ana", "agent", "propose", "config.yaml")
    head = ws.head()
    refused(people("ana", "agent", "approve", "P1"), 3, "take two; a proposal is approved by one")
    assert ws.head() == head
    refused(people("ana", "config", "approve"), 3, "it takes two reviewers; you are the first")
    assert people.json("ana", "queue", "reviewers")["two_person"] == "500"
    people.ok("ben", "config", "approve")
    assert people.json("ana", "queue", "reviewers")["two_person"] == "9000"
    assert damage(ws) == []


def test_opening_balances_take_two(people: People) -> None:
    ws = people.ws
    text = ws.read("config.yaml")
    assert "  - id: checking\n" in text
    opening = "  - id: checking\n    opening: {date: 2025-01-01, balance: 900}\n"
    ws.put("config.yaml", text.replace("  - id: checking\n", opening))
    people.ok("ana", "config", "approve")
    people.ok("ben", "trust", "--yes")
    refused(people("ana", "journal", "open"), 3, "it takes two reviewers; you are the first")
    people.ok("ben", "journal", "open")
    assert damage(ws) == []


# -- scripts ----------------------------------------------------------------------------------------------------------

POST = """
e = journal_add_double(date="2025-02-01", description="rent", debit_account=5040, credit_account=2100, amount={amount},
                       confidence=0.99, status="auto-confirmed", evidence="sure")
git_commit("agent: rent")
e["status"]
"""


def test_no_script_confirms_what_takes_two(people: People) -> None:
    with people.at_the_keyboard("ana"):
        small = people.ws.script(POST.format(amount="499.99"), name="small")
        large = people.ws.script(POST.format(amount="500"), name="large")
    assert (small["result"], large["result"]) == ("auto-confirmed", "pending-review")
    (made,) = large["entries"]
    asked = card(people.ws, made["entry_id"])
    assert "it takes two reviewers" in asked["details"]["description"]
    body = f'journal_update_status("{made["entry_id"]}", "auto-confirmed")\ngit_commit("agent: sure")'
    with people.at_the_keyboard("ana"):
        people.ws.script(body, name="surer")
        found = people.ws.script(f'journal_void("{made["entry_id"]}", "no")', name="voider", code=1)
    assert "only two reviewers void" in found["error"]["message"]
    assert entry(people.ws, made["entry_id"])["status"] == "pending-review"
    assert [d for d in damage(people.ws) if d.startswith("authority")] == []


def test_a_part_of_a_large_line_takes_two(people: People) -> None:
    ws = people.ws
    ws.drop("more.csv", chase(("02/03/2025", "BIG", "-600.00")))
    body = """
for t in importer_parse("more.csv"):
    for part in (300, 300):
        e = journal_add_double(date=t["date"], description="part", debit_account=5040, credit_account=1010, amount=part,
                               reference=t["reference"], confidence=1, status="auto-confirmed", evidence="sure")
        ctx_log(e["status"])
importer_mark_processed("more.csv")
git_commit("agent: parts")
"""
    with people.at_the_keyboard("ana"):
        found = ws.script(body, name="parts")
    assert [e["status"] for e in found["entries"]] == ["pending-review", "pending-review"]


# -- what is forged ---------------------------------------------------------------------------------------------------


def forge(ws: Workspace, replaced: tuple[str, str], message: str, path: str = "books/2025/01/journal.csv") -> str:
    """A commit made with plain git."""
    text = ws.read(path)
    assert replaced[0] in text
    ws.put(path, text.replace(*replaced))
    ws.git("add", path)
    ws.git("commit", "-q", "-m", message)
    return ws.head()


def confirmed(ws: Workspace, name: str) -> tuple[str, str]:
    """Its rows in the journal, and the same confirmed."""
    rows = "".join(line for line in ws.read("books/2025/01/journal.csv").splitlines(True) if line.startswith(name))
    return rows, rows.replace("pending-review", "user-confirmed")


FALSE = "confirm: it\n\nDecision: 20250210T060000Z-abcdef\nBy: ana\nClock: 2025-02-10T06:00:00Z"


def test_a_forged_decision_is_found(people: People) -> None:
    ws = people.ws
    made = forge(ws, confirmed(ws, COFFEE), FALSE)
    (found,) = damage(ws)
    assert made[:10] in found and f"it decided {COFFEE}, without a reviewer's signature" in found
    rows, path = ws.read("logs/agent-log-2025-02.csv"), "logs/agent-log-2025-02.csv"
    forge(ws, (rows, f"{rows}x,x,x,x\n"), f"{FALSE.replace('abcdef', 'abcde1')}\nAccepts: {made}", path)
    assert len(damage(ws)) == 2  # and an answer that is forged answers nothing


def test_a_forged_decision_of_a_large_one_is_found_twice(people: People) -> None:
    forge(people.ws, confirmed(people.ws, INVOICE), FALSE)
    found = damage(people.ws)
    assert len(found) == 2 and any("which takes two reviewers" in f for f in found)
    assert any("without a reviewer's signature" in f for f in found)


@pytest.mark.parametrize(
    "trailers",
    ["Run: 20250210T060000Z-abcdef\nAgent: ingest\nEvent: x", "Proposed: P1\nBy: ana", "Decision: d\nBy: timeout"],
)
def test_so_it_is_under_other_flags(people: People, trailers: str) -> None:
    forge(people.ws, confirmed(people.ws, COFFEE), f"import: it\n\n{trailers}")
    assert any("without a reviewer's signature" in f for f in damage(people.ws))


def test_a_signature_is_of_one_commit(people: People) -> None:
    """Neither another's key nor a signature from elsewhere makes it theirs."""
    ws = people.ws
    people.ok("ana", "queue", "approve", COFFEE)
    real = ws.trailers()
    rows = confirmed(ws, INVOICE)
    forge(ws, rows, f"{FALSE}\nKey: {real['Key']}\nSignature: {real['Signature']}")
    assert any("without a reviewer's signature" in f for f in damage(ws))


def test_a_decision_that_was_altered_is_found(people: People) -> None:
    ws = people.ws
    people.ok("ana", "queue", "approve", COFFEE)
    assert damage(ws) == []
    ws.git("commit", "-q", "--amend", "-m", ws.git("log", "-1", "--format=%B").replace("By: ana", "By: ben"))
    (found,) = damage(ws)
    assert COFFEE in found
    (decided,) = ws.json("why", COFFEE)["decisions"]
    assert decided["signed"] == ""


def test_an_answer_that_was_forged_is_found(people: People) -> None:
    ws = people.ws
    found = card(ws, COFFEE)["id"]
    path = "queue/2025-02.jsonl"
    line = json.dumps({"event": "resolve", "id": found, "at": "2025-02-10T06:00:00Z", "by": "ana", "resolution": "x"})
    forge(ws, (ws.read(path), ws.read(path) + line + "\n"), FALSE, path)
    assert any(f"it answered the card {found}" in f for f in damage(ws))


def test_rules_that_were_forged_are_found(people: People) -> None:
    ws = people.ws
    (ws.root / "agents/approvals/config.json").unlink()
    ws.git("add", "-A", "agents")
    ws.git("commit", "-q", "-m", "config: nobody")
    assert any("it changed the approved settings, which no reviewer has approved" in f for f in damage(ws))
    done = people("cleo", "queue", "approve", COFFEE)  # here it is remembered nowhere; but it is told
    assert done.code in (0, 3)
    assert any("it changed the approved settings" in f for f in damage(ws))


def test_older_rules_brought_back_are_found(people: People) -> None:
    """By a commit, or by a merge with a branch from before."""
    ws, record = people.ws, "agents/approvals/config.json"
    before = ws.head()
    people.ok("ana", "config", "set", "thresholds.auto_confirm", "0.6")
    people.ok("ana", "queue", "approve", COFFEE)
    now = ws.head()
    ws.git("checkout", "-q", before, "--", record)
    ws.git("commit", "-q", "-m", "config: as before")
    assert any("it changed the approved settings" in f for f in damage(ws))
    ws.git("reset", "-q", "--hard", now)
    assert damage(ws) == []
    ws.git("checkout", "-q", "-b", "side", f"{before}~2")
    ws.git("commit", "-q", "--allow-empty", "-m", "side")
    ws.git("checkout", "-q", "main")
    ws.git("merge", "-q", "--no-commit", "--no-ff", "side", check=False)
    ws.git("checkout", "-q", before, "--", record)
    ws.git("commit", "-q", "--allow-empty", "-m", "merge")
    assert any("it changed the approved settings" in f for f in damage(ws))


def test_when_there_are_no_reviewers_any_more_everybody_decides_again(posted: Workspace, tmp_path: Path) -> None:
    before = posted.read("config.yaml")
    people = People(posted, tmp_path)
    people.ok("ana", "queue", "approve", INVOICE)
    posted.put("config.yaml", before)
    people.ok("ana", "config", "approve")
    posted.ok("queue", "approve", COFFEE)
    posted.ok("config", "set", "thresholds.auto_confirm", "0.8")
    posted.ok("journal", "void", COFFEE, "--reason", "no")
    posted.in_order()


def test_a_branch_from_before_the_rules_is_judged_by_them(people: People) -> None:
    """As soon as it is merged."""
    ws = people.ws
    ws.git("checkout", "-q", "-b", "side", "HEAD~2")
    made = forge(ws, confirmed(ws, COFFEE), FALSE)
    ws.git("checkout", "-q", "main")
    ws.git("merge", "-q", "--no-edit", "side")
    assert any(made[:10] in f and "without a reviewer's signature" in f for f in damage(ws))


def test_one_reviewer_alone_with_a_program_of_their_own_is_found(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signature is good; that it took two is seen all the same."""
    from cleared.changes.decisions.authorization import Authorization

    with monkeypatch.context() as patch:
        patch.setattr(Authorization, "effects_of_one", lambda self, effects: [])
        people.ok("ana", "queue", "approve", INVOICE)
    assert entry(people.ws, INVOICE)["status"] == "user-confirmed"
    (found,) = damage(people.ws)
    assert f"it decided {INVOICE}, which takes two reviewers" in found


def test_what_another_agreed_to_covers_nothing_else(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    from cleared.changes.decisions.authorization import Authorization

    people.ok("ben", "queue", "approve", INVOICE)
    with monkeypatch.context() as patch:
        patch.setattr(Authorization, "effects_of_one", lambda self, effects: [])
        people.ok("ana", "queue", "correct", INVOICE, "--account", "3200")
    assert any("which takes two reviewers" in f for f in damage(people.ws))


def test_a_reviewer_can_answer_for_a_commit(people: People) -> None:
    ws = people.ws
    path = "books/2025/01/journal.csv"
    made = forge(ws, confirmed(ws, COFFEE), "by hand", path)
    assert len(damage(ws)) == 2  # of unknown origin, and not signed
    refused(people("cleo", "accept", made, "--reason", "right"), 3, "only reviewers")
    people.ok("ana", "accept", made, "--reason", "right")
    assert damage(ws) == []


def test_for_what_takes_two_two_answer(people: People) -> None:
    ws = people.ws
    made = forge(ws, confirmed(ws, INVOICE), FALSE)
    for _ in range(2):
        people.ok("ana", "accept", made, "--reason", "it is right")
    (left,) = damage(ws)
    assert "which takes two reviewers" in left
    people.ok("ben", "accept", made, "--reason", "it is right")
    assert damage(ws) == []
    refused(people("ben", "accept", made, "--reason", "again"), 3, "came from a run or a decision")


def test_an_answer_that_git_took_back_is_none(people: People) -> None:
    ws = people.ws
    made = forge(ws, confirmed(ws, INVOICE), FALSE)
    for name in ("ana", "ben"):
        people.ok(name, "accept", made, "--reason", "it is right")
    assert damage(ws) == []
    ws.git("revert", "--no-edit", "HEAD")
    people.ok("ana", "accept", ws.head(), "--reason", "ben was not asked")
    assert any("which takes two reviewers" in each for each in damage(ws))
    people.ok("ben", "accept", made, "--reason", "now he was")
    assert damage(ws) == []


def test_clones_that_are_merged_are_in_order(people: People, tmp_path: Path) -> None:
    """Each decided on their own machine; the one merges what the other pushed."""
    ws = people.ws
    subprocess.run(["git", "clone", "-q", str(ws.root), str(tmp_path / "ben")], check=True)
    theirs = Workspace(tmp_path / "ben")
    people.ok("ana", "queue", "approve", COFFEE)
    with people.at_the_keyboard("ben"):
        refused(theirs("queue", "approve", INVOICE), 3, "not trusted on this machine", "cleared trust")
        take_ok(theirs, "trust", "--yes")
        theirs.ok("queue", "approve", INVOICE)
    subprocess.run(
        ["git", "pull", "-q", "--no-rebase", "--no-edit", str(tmp_path / "ben"), "main"],
        cwd=ws.root,
        env=os.environ | IDENTITY,
        check=True,
    )
    assert [d for d in damage(ws) if d.startswith("authority")] == []
    people.ok("ana", "queue", "agree", INVOICE)
    assert [d for d in damage(ws) if d.startswith("authority")] == []
    assert [entry(ws, e)["status"] for e in (INVOICE, COFFEE)] == ["user-confirmed", "user-confirmed"]
