"""The subjects of commits: all from one module, and one of each domain, each of a known kind, none too long."""

from __future__ import annotations

import ast
from datetime import date
from pathlib import Path

import cleared
from cleared.books.decisions import book_subjects
from cleared.changes import commit_messages

PACKAGE = Path(cleared.__file__).parent
HOME = PACKAGE / "changes/commit_messages.py"
OF_DOMAINS = frozenset({"book_subjects.py"})
LONG = "much text\n" * 100


def names_in(path: Path, name: str) -> int:
    """How often code (not an import, not an annotation) calls ``name`` or hands it to ``cast``."""
    text = path.read_text("utf-8")
    if name not in text:
        return 0
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return sum(name in ast.unparse(node.func) or "cast(" + name in ast.unparse(node).replace("'", "") for node in calls)


def test_a_subject_is_made_nowhere_else() -> None:
    modules = [path for path in PACKAGE.rglob("*.py") if path != HOME]
    assert [path.name for path in modules if names_in(path, "CommitSubject")] == []
    assert {path.name for path in modules if names_in(path, "compose_subject")} == OF_DOMAINS


def test_all_commits_are_made_where_a_subject_is_required() -> None:
    """``commit_draft`` takes a ``CommitSubject``, which mypy checks; besides it only a new workspace commits, and a
    sync moves the branch to commits that it has made by way of a draft, too."""
    callers = {path.name for path in PACKAGE.rglob("*.py") if names_in(path, "commit_changes")}
    assert callers == {"draft.py", "workspace_creation.py", "branch_move.py"}


def test_the_wordings() -> None:
    day = date(2025, 1, 31)
    m, b = commit_messages, book_subjects
    assert [
        m.workspace_created("My  firm"),
        m.run_succeeded("ingest", []),
        m.run_succeeded("ingest", ["a", "b"]),
        m.run_changed_nothing("ingest"),
        m.run_failed("ingest", "why"),
        m.run_waits("ingest", "Pay\nit?"),
        b.entry_voided("20250131-001", "twice"),
        b.opening_balances_posted(1),
        b.opening_balances_posted(2),
        b.period_closed(day, 0, ""),
        b.period_closed(day, 2, "small"),
        b.period_reopened(day, "late bill"),
        m.commit_accepted("abc", "mine"),
        m.lost_rows_recovered(["1 entry", "2 bank lines", "3 cards"]),
        m.first_of_two_decided("void: x: y"),
        m.entries_decided("confirm", "x"),
        m.second_needed(["a", "b"]),
        m.cards_skipped(["a", "b"]),
        m.decision_undone("confirm: x"),
        m.questions_timed_out(["a"], only_escalated=True),
        m.questions_timed_out(["a", "b"], only_escalated=False),
        m.damage_found(1),
        m.damage_found(2),
        m.cards_opened(["a"]),
        m.cards_opened(["a", "b"]),
        m.event_emitted("x.y"),
        m.proposal_made("P1", "new agent"),
        m.proposal_approved("P1", "new agent", is_config=False),
        m.proposal_approved("P1", "limits", is_config=True),
        m.proposal_rejected("P1", "no"),
        m.proposal_outdated("P1", None),
        m.proposal_outdated("P1", "P2"),
        m.agent_rolled_back("ingest", "abc"),
        m.agent_rolled_back("ingest", None),
        m.regression_test_added("t"),
        b.entry_written("2025-01-001", "a\nb"),
        m.new_workspace_id_given(),
        m.setting_changed("a.b", "1"),
        m.settings_approved(),
        b.bank_added(["a", "b"], "ofx"),
    ] == [
        "init: My firm",
        "agent: ingest",
        "a; b",
        "log: ingest went on, and changed nothing",
        "log: ingest failed: why",
        "log: ingest asks: Pay it?",
        "void: 20250131-001: twice",
        "bootstrap: opening balances of 1 account",
        "bootstrap: opening balances of 2 accounts",
        "close: through 2025-01-31",
        "close: through 2025-01-31, despite 2 open matters: small",
        "close: reopened from 2025-01-31: late bill",
        "confirm: commit abc: mine",
        "recover: 1 entry, 2 bank lines, 3 cards",
        "agree: void: x: y",
        "confirm: x",
        "agree: a, b",
        "log: skipped a, b",
        "correct: undo: confirm: x",
        "log: no answer in time: a",
        "confirm: no answer in time: 2 questions",
        "log: a check found 1 thing wrong with the books",
        "log: a check found 2 things wrong with the books",
        "log: a",
        "log: a and 1 more",
        "event: x.y",
        "agent: P1 proposed: new agent",
        "agent: P1 approved: new agent",
        "config: P1 approved: limits",
        "agent: P1 rejected: no",
        "agent: P1 is stale",
        "agent: P1 is stale, P2 takes its place",
        "agent: ingest rolled back to abc",
        "agent: ingest rolled back to nothing: there was no version before",
        "test: t is a regression case",
        "post: 2025-01-001 a b",
        "agent: these books have an id of their own",
        "config: a.b = 1",
        "config: approved as edited",
        "config: bank account a, b (ofx)",
    ]


def test_each_has_a_known_kind_and_is_one_line_of_bounded_length() -> None:
    m, b = commit_messages, book_subjects
    for subject in (
        m.workspace_created(LONG),
        m.run_waits("a", LONG),
        b.entry_voided("x", LONG),
        b.period_reopened(date(2025, 1, 1), LONG),
        m.commit_accepted("abc", LONG),
        m.entries_decided("void", LONG),
        m.second_needed([LONG]),
        m.setting_changed("a", LONG),
        b.account_added(4711, "Postage"),
    ):
        assert subject.partition(":")[0] in m.KINDS
        assert "\n" not in subject and len(subject) <= m.MAX_SUBJECT
