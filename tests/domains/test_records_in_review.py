"""What runs made of another domain is confirmed, corrected, taken back and explained as entries are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import Workspace, chase, refused
from modelled import open_host
from notes_domain import HEADER, PATH, notes_of
from notes_review import NewText
from reviewers import People

from cleared.base.errors import UsageError
from cleared.changes.commit_messages import cards_opened
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.review.action_request import UNDO, ActionResult
from cleared.review.card_actions import ActionExecutor, card_code, request_decision
from cleared.review.card_decisions import reject_cards
from cleared.review.card_facts import CardChoice
from cleared.review.card_groups import card_group
from cleared.review.card_view import CardView, show_card
from cleared.review.correction_tests import correct_and_record
from cleared.review.explanation import explain_record
from cleared.review.queue_snapshot import read_queue
from cleared.runs.execution import run_agent


def show_first(ws: Workspace) -> CardView:
    queue = read_queue(open_host(ws.root))
    return show_card(queue, next(iter(queue.cards)))


def choose(ws: Workspace, verb: str) -> ActionResult:
    """What comes of a choice about the first card, as the screen makes it."""
    host = open_host(ws.root)
    queue = read_queue(host)
    row = queue.rows[0]
    choice = next(each for each in show_card(queue, row.id).choices if each.verb == verb)
    return ActionExecutor(lambda: host).execute_request(request_decision(queue, choice, [row]))


def test_a_card_is_shown_in_the_words_of_its_domain(asked: Workspace) -> None:
    shown = show_first(asked)
    assert (shown.heading, shown.title, shown.amount) == ("Note to confirm", "buy milk", "")
    assert [(each.title, each.lines) for each in shown.sections] == [("It says", ("buy milk",))]
    assert [each.verb for each in shown.choices] == ["confirm", "suggested"]
    group = card_group(read_queue(open_host(asked.root)), shown.id)
    assert group is not None and (group.name, len(group.rows), group.total) == ("buy", 2, "")


def test_it_is_confirmed_by_the_command(asked: Workspace) -> None:
    done = asked.json("queue", "approve", "N1")
    assert done["entries"] == ["N1"] and len(done["cards"]) == 1
    assert [each["entry_id"] for each in asked.json("queue", "list")] == ["N2"]
    refused(asked("queue", "approve", done["cards"][0]), 3, "is settled: confirmed")


def test_several_are_called_what_they_are(asked: Workspace) -> None:
    asked.ok("queue", "approve", "N1", "N2")
    assert asked.git("log", "-1", "--format=%s").strip() == "confirm: 2 notes"


def test_what_the_domain_does_not_do_is_refused(asked: Workspace) -> None:
    with pytest.raises(UsageError, match="N1 cannot be rejected"):
        reject_cards(open_host(asked.root), ["N1"], "no")


def test_a_correction_becomes_a_test_of_its_agent(asked: Workspace) -> None:
    done = choose(asked, "suggested")
    assert done.ok and asked.read(PATH) == f"{HEADER}N1,buy milk\nN2,buy bread\nN1,BUY MILK\n"
    (case,) = asked.root.glob("tests/cases/*-corrected.json")
    assert '"texts"' in case.read_text()
    correct_and_record(open_host(asked.root), ["N2"], NewText("buy rye"))
    assert '"buy bread": "buy rye"' in case.read_text() and '"buy milk": "BUY MILK"' in case.read_text()


BOTH = """
for file in importer_scan():
    for line in importer_parse(file["name"]):
        if line["amount"] < 0:
            paid = -line["amount"]
            journal_add_double(line["date"], line["description"], 5030, 1010, paid, reference=line["reference"])
    importer_mark_processed(file["name"])
note_put("buy milk")
"""


def test_one_test_holds_the_corrections_of_two_domains(noted: Workspace) -> None:
    noted.drop("february.csv", chase(("02/03/2025", "COFFEE", "-4.80")))
    noted.agent("probe", BOTH, "grants: [notes.write, journal.write, importer.read, importer.write]\n")
    host = open_host(noted.root)
    assert run_agent(host, "probe").error is None
    noted.ok("queue", "correct", "2025-02-001", "--account", "5070")
    correct_and_record(host, ["N1"], NewText("buy rye"))
    (case,) = noted.root.glob("tests/cases/*-corrected.json")
    assert set(json.loads(case.read_text())["expected"]) == {"legs", "texts"}
    wrong = noted("agent", "check", "probe").out
    assert "5070 +, but it is 5030 +" in wrong and "buy milk should be buy rye" in wrong


def test_what_is_no_correction_of_it_is_refused(asked: Workspace) -> None:
    refused(asked("queue", "correct", "N1", "--account", "5070"), 2, "no text for a note")


def test_a_card_whose_record_changed_since_it_was_shown_is_not_decided(asked: Workspace) -> None:
    host = open_host(asked.root)
    queue = read_queue(host)
    request = request_decision(queue, CardChoice("confirm", "Confirm"), queue.rows[:1])

    def stage(decision_context: DecisionContext) -> Decision:
        notes_of(decision_context.context).added["N1"] = "buy tea"
        return Decision(cards_opened(["tea"]))

    commit_decision(host, "note", stage)
    done = ActionExecutor(lambda: host).execute_request(request)
    assert not done.ok and "has changed since it was shown" in done.text


def test_what_takes_two_is_done_by_the_second(asked: Workspace, tmp_path: Path) -> None:
    people = People(asked, tmp_path, two="500")
    with people.at_the_keyboard("ana"):
        first = choose(asked, "suggested")
    assert first.ok and not first.cards and "It takes two: you are the first for N1" in first.text
    assert "MILK" not in asked.read(PATH)
    assert people.json("ben", "queue", "agree", "N1")["entries"] == ["N1"]
    assert asked.read(PATH).endswith("N1,BUY MILK\n")


def test_a_correction_is_taken_back(asked: Workspace) -> None:
    choose(asked, "suggested")
    undone = ActionExecutor(lambda: open_host(asked.root)).execute_request(UNDO)
    assert undone.text == "Taken back: N1" and asked.read(PATH).endswith("N1,BUY MILK\nN1,buy milk\n")
    assert not list(asked.root.glob("tests/cases/*-corrected.json"))
    assert {each["entry_id"] for each in asked.json("queue", "list")} == {"N1", "N2"}


def test_it_is_explained(asked: Workspace) -> None:
    choose(asked, "suggested")
    host = open_host(asked.root)
    why = explain_record(host, "N1").data
    assert why["note"] == {"note_id": "N1", "text": "BUY MILK"} and why["agent"] == "probe"
    assert (why["call"]["primitive"], why["call"]["from"]) == ("note_put", "replay")
    assert why["decisions"][0]["changed"] == [{"field": "text", "old": "buy milk", "new": "BUY MILK"}]
    said = asked.ok("why", "N1").out
    assert "N1  BUY MILK" in said and "note_put" in said and "text: buy milk → BUY MILK" in said
    (code,) = card_code(host, read_queue(host), next(iter(read_queue(host).cards)))
    assert code.name == "agents/probe.py"
    refused(asked("why", "N9"), 2, "there is no entry, row or note 'N9'")
