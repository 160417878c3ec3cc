"""Propose, approve, reject, roll back, run, commit by hand, tamper, clone, kill, in any order: nothing unapproved runs.

``python -m tests.properties.gate_campaign --examples 500`` goes on for longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from forked import Forks
from gate_world import GateMachine
from harness import Workspace, take_ok, trust_books
from machine_runs import run_machine

pytestmark = pytest.mark.slow

EXAMPLES = 3
STEPS = 25


@pytest.fixture
def machine(
    starting_point: Path, plain_environment: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[type[GateMachine]]:
    monkeypatch.setenv("CLEARED_HOME", "")  # the machine sets it; this puts it back afterwards
    with Forks() as forks:
        monkeypatch.setattr(GateMachine, "template", starting_point, raising=False)
        monkeypatch.setattr(GateMachine, "forks", forks, raising=False)
        yield GateMachine


def test_nothing_unapproved_runs(machine: type[GateMachine]) -> None:
    run_machine(machine, EXAMPLES, STEPS)


def edited_after_it_was_proposed(m: GateMachine) -> None:
    m.propose("alpha", 2, False)
    m.edit_a_proposal(1, 3, "text")
    m.make_live("alpha", 2)


def edited_with_the_digest_it_says(m: GateMachine) -> None:
    m.propose("alpha", 2, False)
    m.edit_a_proposal(1, 3, "both")
    m.make_live("alpha", 2)
    m.make_live("alpha", 3)


def rolled_back_and_reverted_by_hand(m: GateMachine) -> None:
    m.make_live("alpha", 2)
    m.rollback("alpha")
    m.revert_the_last()
    m.run("alpha")
    m.rollback("alpha")
    m.run("alpha")
    m.make_live("alpha", 2)


def rolled_back_after_a_second_approval(m: GateMachine) -> None:
    """The first approval of the same text does not stand in for the second."""
    m.make_live("alpha", 2)
    m.make_live("alpha", 1)
    m.rollback("alpha")
    m.run("alpha")
    m.bring_back_a_record(0)
    assert m.verdict("agents/alpha.py") is False
    m.run("alpha")
    m.make_live("alpha", 1)


def rolled_back_twice_and_approved_again(m: GateMachine) -> None:
    m.make_live("alpha", 2)
    m.rollback("alpha")
    m.rollback("alpha")
    m.make_live("alpha", 2)
    m.rollback("alpha")
    m.make_live("alpha", 1)


def approved_and_not_committed(m: GateMachine) -> None:
    m.commit_removal("alpha")
    m.edit("alpha", 1)
    m.run("alpha")
    assert "git add agents/alpha.py" in m.do("agent", "run", "alpha").err
    m.make_live("alpha", 1)


def decided_by_an_editor(m: GateMachine) -> None:
    m.propose("alpha", 2, False)
    m.edit_a_decision(1, "approved")
    m.commit_by_hand("alpha", 2)
    m.run("alpha")
    m.approve(1)
    m.make_live("alpha", 2)


def rolled_back_under_a_forged_record(m: GateMachine) -> None:
    """It names the record of another version, which the rollback must not take back along."""
    m.make_live("alpha", 2)
    m.forge_a_record(1, "alpha", 2, "all")
    m.rollback("alpha")
    m.run("alpha")


def approved_again_after_the_clock_went_back(m: GateMachine) -> None:
    m.make_live("alpha", 2)
    m.rollback("alpha")
    m.now -= timedelta(days=2)
    m.make_live("alpha", 2)


STORIES = (
    edited_after_it_was_proposed,
    edited_with_the_digest_it_says,
    rolled_back_and_reverted_by_hand,
    rolled_back_after_a_second_approval,
    rolled_back_twice_and_approved_again,
    approved_and_not_committed,
    decided_by_an_editor,
    rolled_back_under_a_forged_record,
    approved_again_after_the_clock_went_back,
)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_what_went_wrong_or_might(machine: type[GateMachine], story: Callable[[GateMachine], None]) -> None:
    m = machine()
    try:
        m.make_live("alpha", 1)
        story(m)
        for check in (m.books_untouched, m.in_order, m.history_is_what_happened, m.history_is_what_happened):
            check()
    finally:
        m.teardown()


def test_a_starter_taken_back_stays_so(ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it is the installed package's: not by a revert by hand, only by an approval."""
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "cleared-home"))
    trust_books(ws.root)
    ws.put("agents/other.py", '"""\nname: Other\ntrigger: on_demand\n"""\n1\n')
    ws.ok("agent", "propose", "other")
    take_ok(ws, "agent", "approve", "P1")
    ws.run("review_reminder")
    ws.ok("agent", "rollback", "review_reminder")
    ws.git("revert", "--no-edit", "HEAD")
    monkeypatch.setenv("CLEARED_CLOCK", "2025-02-10T07:00:00Z")
    refused = ws("agent", "run", "review_reminder")
    assert refused.code == 3 and "rolled back" in refused.err and "cleared agent propose" in refused.err
    ws.ok("agent", "propose", "review_reminder")
    take_ok(ws, "agent", "approve", "P2")
    ws.run("review_reminder")
