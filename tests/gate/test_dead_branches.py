"""``cleared improve`` proposes to take out branches to which nothing can come; every other byte stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Workspace, chase, take_ok

HEAD = 'today = ctx_today()\nday = int(today.split("-")[2])\nfile = {"name": "a", "size": 3}\nkind = "none"\n'
POST = (
    'journal_add_double(date="2025-01-03", description=kind, debit_account=5020, credit_account=1010, amount="1", '
    'status="auto-confirmed")\ngit_commit("post: it")\n'
)
BEFORE = """
# Which kind it is.
if False:  # the old way
    kind = "ä first"
elif file["size"] > 5 and day > 40:
    kind = "large"
    # of the next one
elif file["size"] > 5 and day > 40 and today != "":   # again
    kind = "never"
elif file["size"] > 2:
    kind = "middle"  # stays
else:
    kind = "small"
for number in range(2):
    if not True:
        kind = (
            "none"
        )
    else:
        kind = kind + "."

        kind = kind + "!"  # both
if 1:
    kind = kind + "?"
else:
    kind = "no"
if day > 40:
    kind = "late"
elif True:  # always
    kind = kind + "-"
elif day > 30:
    kind = "nearly"
"""
AFTER = """
# Which kind it is.
if file["size"] > 5 and day > 40:
    kind = "large"
    # of the next one
elif file["size"] > 2:
    kind = "middle"  # stays
else:
    kind = "small"
for number in range(2):
    kind = kind + "."

    kind = kind + "!"  # both
kind = kind + "?"
if day > 40:
    kind = "late"
else:  # always
    kind = kind + "-"
"""
LEFT = """
if len(importer_scan()) > 5:  # a call may answer otherwise the second time
    other = "many"
elif len(importer_scan()) > 5:
    other = "more"
if file["size"] > 1 or day > 40:
    other = "one"
elif file["size"] > 1 and day > 50:  # not the same
    other = "two"
"""
INGEST = "agents/ingest.py"
GITHUB = """            if "GITHUB" in desc:
                account_id = 5020
                confidence = 0.98
                vendor = "GitHub"
"""


def test_each_is_taken_out_and_the_run_is_the_same(ws: Workspace) -> None:
    ws.agent("probe", HEAD + BEFORE + LEFT + POST)
    text = ws.read("agents/probe.py")
    ws.run("probe")
    done = ws.json("improve")
    changes = {each["change"]: each["says"] for each in done["proposed"]}
    assert list(changes) == [  # the order is that of the syntax tree
        "No branch any more: False.",
        "No branch any more: file['size'] > 5 and day > 40 and (today != '').",
        "No branch any more: else of 1.",
        "No branch any more: else of True.",
        "No branch any more: not True.",
    ]
    assert "asks for that before it, and takes all that comes." in changes[list(changes)[1]]
    assert ws.read("agents/probe.py") == text, "it is proposed"
    take_ok(ws, "agent", "approve", done["proposals"][0])
    assert ws.read("agents/probe.py") == text.replace(BEFORE, AFTER)
    ws.run("probe")
    first, second = (entry["description"] for entry in ws.entries())
    assert first == second == "middle.!.!?-"
    assert ws.json("improve")["proposed"] == []
    ws.in_order()


def test_what_was_rejected_is_not_proposed_again(ws: Workspace) -> None:
    ws.agent("probe", f'{HEAD}if False:\n    kind = "later"\n{POST}')
    ws.ok("agent", "reject", ws.json("improve")["proposals"][0], "--reason", "I shall want it")
    assert ws.json("improve")["proposed"] == []


def test_the_result_of_a_script_stays_what_it_is(ws: Workspace) -> None:
    """The last expression counts: without the dead branch behind it, another one would."""
    ws.agent("probe", f"{HEAD}{POST}day\nif False:\n    kind\n")
    assert ws.json("improve")["proposed"] == []


def test_a_shared_script_is_looked_at_too(ws: Workspace) -> None:
    ws.shared("helper", "found = 1\nif found > 2:\n    found = 3\nelif found > 2:\n    found = 4\nfound\n")
    ws.agent("probe", f'{HEAD}script_run("helper")\n{POST}')
    (found,) = ws.json("improve")["proposed"]
    assert (found["file"], found["change"]) == ("scripts/helper.py", "No branch any more: found > 2.")


def test_document_003s_branches_go_as_rows_of_a_table_do(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose lines an earlier one takes; and one whose words no line has had for 400 days."""
    text = (Path(__file__).parents[1] / "sandbox/document_003_ingest.txt").read_text()
    dead = (
        '            elif "AWS EMEA" in desc:\n                account_id = 5030\n                confidence = 0.97\n'
    )
    dead += '                vendor = "Amazon"\n'
    behind = text.index("\n            if confidence")
    ws.put(INGEST, text[:behind] + dead + text[behind:])
    ws.commit(INGEST, *ws.approve(INGEST))
    ws.drop("a.csv", chase(("01/03/2025", "AWS EMEA 1", "-5.00")))
    ws.run("ingest")
    done = ws.json("improve")
    assert [each["says"] for each in done["proposed"]] == [
        "No branch any more: AWS EMEA → 5030. The branch AWS → 5020 stands before it and takes all its lines."
    ]
    take_ok(ws, "agent", "approve", done["proposals"][0])
    assert ws.read(INGEST) == text
    monkeypatch.setenv("CLEARED_CLOCK", "2026-02-10T06:00:00Z")
    assert ws.json("improve")["proposed"] == []
    monkeypatch.setenv("CLEARED_CLOCK", "2026-06-10T06:00:00Z")
    done = ws.json("improve")
    assert [each["says"] for each in done["proposed"]] == [
        "No branch any more: GITHUB → 5020. No line has had its words since 2025-01-03."
    ]
    take_ok(ws, "agent", "approve", done["proposals"][0])
    assert ws.read(INGEST) == text.replace(GITHUB, "").replace('elif "AWS"', 'if "AWS"')
    ws.in_order()
