"""``cleared agent certify``: a run is killed at each of its points, and what came of it is signed. Row N11."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from harness import Workspace, refused, unchanged
from reviewers import People

from cleared.gate.proposals import certification
from cleared.workspace.location import APPROVED_CONFIG

POST = (
    'journal_add_double(date="2025-01-03", description="coffee", debit_account=5020, credit_account=1010, amount="1", '
    'status="auto-confirmed")\ngit_commit("post: coffee")\n'
)
IMPORT = """
for file in importer_scan():
    bank = file["ledger_account"]
    journal_add_many([
        {
            "date": row["date"], "description": row["description"], "amount": abs(row["amount"]),
            "debit_account": 5030 if row["amount"] < 0 else bank, "reference": row["reference"],
            "credit_account": bank if row["amount"] < 0 else 4010, "status": "auto-confirmed",
            "confidence": 1, "evidence": "all of it",
        }
        for row in importer_parse(file["name"])
    ])
    importer_mark_processed(file["name"])
git_commit("import: all of it")
"""
NEVER_AGAIN = """
import cleared.gate.crash_sweep as sweep
sweep._recover = lambda order, card, base: sweep._describe(sweep._open(order))
sweep.main()
"""
"""A next command that mends what was begun, and leaves it at that."""


def test_n11_every_point_was_killed_once_and_the_tree_was_the_same(ws: Workspace) -> None:
    ws.agent("probe", IMPORT)
    before = ws.head()
    done = ws.json("agent", "certify", "probe")
    assert (done["agent"], done["calls"]) == ("probe", 5) and done["points"] > 12, "the steps of a commit among them"
    changed = ws.git("diff", "--name-only", before, "HEAD").split()
    record = f"agents/approvals/certificates/agents/probe/{done['digest'][7:19]}.json"
    assert [path for path in changed if not path.startswith("logs/")] == [record], "and the books are as they were"
    assert json.loads(ws.read(record))["policy"]["points"] == done["points"]
    says = f"Killed at {done['points']} points, 5 of them calls: each time the same came of it"
    assert says in ws.ok("agent", "show", "probe").out
    ws.in_order()
    ws.agent("probe", POST)
    assert says not in ws.ok("agent", "show", "probe").out, "it is of that version"
    ws.put(record, ws.read(record).replace('"points": ', '"points": 9'))
    ws.commit(record)
    ws.agent("probe", IMPORT)
    assert "points" not in ws.ok("agent", "show", "probe").out, "what nobody signed says nothing"


def test_n11_a_proposal_has_its_certificate_on_its_card(ws: Workspace) -> None:
    ws.agent("probe", POST)
    ws.put("agents/probe.py", ws.read("agents/probe.py").replace('"1"', '"2"'))
    proposed = ws.json("agent", "propose", "probe")
    done = ws.json("agent", "certify", proposed["id"])
    assert f"Killed at {done['points']} points" in ws.ok("queue", "show", proposed["card_id"]).out
    assert '"1"' in ws.git("show", "HEAD:agents/probe.py"), "which makes nothing live"


ASKS = """
choice = queue_ask("Which?", ["5010", "5060"], timeout="1h", on_timeout="reject")
journal_add_double(date="2025-01-03", description="asked", debit_account=int(choice), credit_account=1010, amount="1",
    status="auto-confirmed")
git_commit("post: asked")
"""


def test_n11_a_run_that_asks_is_killed_with_each_of_its_answers(ws: Workspace) -> None:
    ws.agent("asker", ASKS)
    done = ws.json("agent", "certify", "asker")
    rehearsed = 3 + 3  # the card shows what either answer would do
    assert (done["calls"], done["answers"]) == (1 + rehearsed + 3 + 3, 2), "to its question, and on with each answer"
    assert done["points"] > done["calls"] + 3 * 9, "the steps of three commits among them"
    assert f"{done['calls']} of them calls, with 2 answers to what it asks" in ws.ok("agent", "show", "asker").out
    ws.in_order()


def test_n11_where_reviewers_are_named_its_questions_are_answered_too(ws: Workspace, tmp_path: Path) -> None:
    """The copy has a reviewer of its own, whose answers count there alone."""
    ws.agent("asker", ASKS)
    people = People(ws, tmp_path)
    rules = ws.read(APPROVED_CONFIG)
    done = people.json("ana", "agent", "certify", "asker")
    assert (done["calls"], done["answers"]) == (1 + 2 * 3 + 2 * 3, 2), done
    assert "with 2 answers to what it asks: each time" in people.ok("ana", "agent", "show", "asker").out
    assert ws.read(APPROVED_CONFIG) == rules and ws.json("queue", "list") == []
    ws.in_order()


def test_n11_a_run_that_comes_out_otherwise_is_not_certified(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    ws.agent("probe", POST)
    monkeypatch.setattr(certification, "_COMMAND", (sys.executable, "-c", NEVER_AGAIN))
    with unchanged(ws):
        refused(
            ws("agent", "certify", "probe"), 1, "killed at begun (1 of ", "books/2025/01/journal.csv and 2 more differ"
        )


def test_n11_a_run_that_does_nothing_cannot_be_certified(ws: Workspace) -> None:
    ws.agent("probe", "None\n")
    with unchanged(ws):
        refused(ws("agent", "certify", "probe"), 1, "it commits nothing over sample data")
