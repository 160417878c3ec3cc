"""CARD 1: what makes no difference is named also where it rides beside a change that shows. Row D22."""

from __future__ import annotations

import pytest
from harness import Workspace
from proposing import edit, history, live, propose, write

from cleared.gate import silent_changes

SHOWN = ("VENDORS = [\n", 'VENDORS = [\n    ("COFFEE", "Coffee", 5020, 0.99),\n')
NEW = "What is new made no difference in any dry run: read it (agents/ingest.py:"
GONE = "What is gone made no difference in any dry run (agents/probe.py: 7, as approved)"
FILLS = 'def tidy(rows):\n    rows.append((chr(90) + chr(90), "Z", UNKNOWN_EXPENSE, 0.99))\n\n\ntidy(VENDORS)\n\n\n'
AWS = '    ("AWS", "Amazon Web Services", 5020, 0.96),\n'
DESCRIBED = 'description=txn["description"],\n                    debit'

RIDING = {
    "a list that a function fills": ("def counted(", f"{FILLS}def counted("),
    "words of the commit": ('git_commit("import: " + ', 'git_commit("import, all in order: " + '),
    "a text that is cut": (DESCRIBED, DESCRIBED.replace("],", "][:90],")),
    "a row that another hides": (AWS, f'{AWS}    ("AWS EMEA", "A", 5030, 0.99),\n'),
}


@pytest.mark.parametrize("name", RIDING)
def test_what_rides_beside_a_change_that_shows_is_named(ws: Workspace, name: str) -> None:
    history(ws)
    edit(ws, "agents/ingest.py", *SHOWN)
    edit(ws, "agents/ingest.py", *RIDING[name])
    card = propose(ws, "ingest", "--author", "some-model")["card"]
    assert NEW in card[0], card


def test_a_line_that_is_gone_beside_a_change_that_shows(ws: Workspace) -> None:
    live(ws, 'text = "A note"\ntext = text.strip()\nctx_log(text)')
    write(ws, 'text = "A note"\nctx_log(text + "!")')
    card = propose(ws, "probe")["card"]
    assert GONE in card[0], card


def test_where_each_line_shows_none_is_named(ws: Workspace) -> None:
    live(ws, 'ctx_log("one")\nctx_log("two")')
    write(ws, 'word = "once"\nctx_log(word)\nctx_log("two")\nctx_log("three")')
    assert "difference" not in "\n".join(propose(ws, "probe")["card"])


def test_where_too_much_is_new_it_is_said(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silent_changes, "_MOST_RUNS", 2)
    live(ws, 'ctx_log("one")')
    write(ws, "\n".join(f'ctx_log("number {n}")' for n in range(5)))
    card = propose(ws, "probe")["card"]
    assert "Too much is new to try each line by itself: read it (agents/probe.py:" in card[0], card


SHARED = '''"""
name: Account
args: [text]
"""
note = text.strip()
5030
'''


def test_a_new_shared_script_of_an_approved_agent_is_looked_at_line_by_line(ws: Workspace) -> None:
    live(ws, 'ctx_log("5030")')
    ws.put("scripts/account.py", SHARED)
    write(ws, 'ctx_log(str(script_run("account", text="A")))\nctx_log("b")')
    card = propose(ws, "probe", "scripts/account.py")["card"]
    assert "made no difference in any dry run: read it (scripts/account.py: 5)" in card[1], card[1]
