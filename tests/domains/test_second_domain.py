"""What runs and decisions commit of another domain is guarded as the books are; no part of the runtime names either.

Row A19.
"""

from __future__ import annotations

import pytest
from harness import Workspace, refused
from notes_domain import HEADER, PATH

from cleared.base.effects import Effect
from cleared.changes.commit_messages import cards_opened
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.changes.workspace_opening import open_workspace
from cleared.domains.record_audit import RecordsViolated


def write_note(ws: Workspace, name: str, text: str) -> list[Effect]:
    """A person writes a note; what that does."""
    effects: list[Effect] = []

    def stage(decision_context: DecisionContext) -> Decision:
        context = decision_context.context
        context.parts["notes"].added[name] = text  # type: ignore[attr-defined]
        effects.extend(decision_context.authorization.find_effects(context))
        return Decision(cards_opened([text]))

    commit_decision(open_workspace(ws.root), "note", stage)
    return effects


def checks(ws: Workspace) -> list[tuple[str, str]]:
    return [(v["check"], v["message"]) for v in ws("check", "--json").json["violations"]]


def test_a_decision_commits_its_records(noted: Workspace) -> None:
    """Row A19."""
    (effect,) = write_note(noted, "N1", "buy milk")
    assert (effect.record, effect.weight) == ("N1", None)
    write_note(noted, "N2", "sell milk")
    assert noted.git("show", f"HEAD:{PATH}") == f"{HEADER}N1,buy milk\nN2,sell milk\n"
    assert checks(noted) == []


def test_a_draft_that_breaks_its_rules_is_not_committed(noted: Workspace) -> None:
    head = noted.head()
    with pytest.raises(RecordsViolated, match="the note N1 says nothing"):
        write_note(noted, "N1", "")
    assert noted.head() == head


def test_what_somebody_edits_is_named(noted: Workspace) -> None:
    write_note(noted, "N1", "buy milk")
    noted.put(PATH, f"{HEADER}N1,\n")
    refused(noted("agent", "run", "ingest"), 4, PATH)
    assert ("note", "the note N1 says nothing") in checks(noted)
    noted.commit(PATH)
    found = checks(noted)
    assert ("note", "the note N1 says nothing") in found
    assert any(check == "provenance" and "without a run or a decision" in message for check, message in found)


def test_what_the_branch_lost_is_told_and_brought_back(noted: Workspace) -> None:
    write_note(noted, "N1", "buy milk")
    noted.git("reset", "-q", "--hard", "HEAD~1")
    (lost,) = checks(noted)
    assert "1 note (N1)" in lost[1]
    done = noted.json("recover")
    assert done["lost"]["notes"] == ["N1"] and PATH in done["files"]
    assert noted.read(PATH) == f"{HEADER}N1,buy milk\n"
    assert checks(noted) == []
