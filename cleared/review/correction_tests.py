"""Corrections become tests: each is recorded as a test of the agent that made the entry, or joins one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cleared.base import money
from cleared.base.errors import ClearedError, Place, PolicyError
from cleared.books.decisions.entry_correction import Correction
from cleared.books.ledger.entry import Leg
from cleared.books.staged_books import books_of
from cleared.changes.decisions.decision_context import DecisionContext
from cleared.changes.host import Host
from cleared.gate.approved_tests import is_approved_test, require_verifiable
from cleared.gate.examination import Gate
from cleared.gate.proposals.approval import Signer, sign_tests
from cleared.gate.proposals.recorded_tests import corrected_test, corrected_test_name, record_test
from cleared.gate.regression_tests import RegressionTest, parse_test, path_of_test
from cleared.review.card_decisions import RecordTests, agree_with_first, correct_entries
from cleared.review.decision_staging import DecisionResult
from cleared.review.explanation import posting_commit


def correct_and_record(host: Host, ids: list[str], correction: Correction) -> DecisionResult:
    """Correct entries, and keep the correction as a regression test (see ``correct_entries``)."""
    return correct_entries(host, ids, correction, correction_recorder(host))


def agree_and_record(host: Host, ids: list[str]) -> DecisionResult:
    """Decide as the first of two reviewers has, and keep a correction as a test (see ``agree_with_first``)."""
    return agree_with_first(host, ids, correction_recorder(host))


def correction_recorder(host: Host) -> RecordTests:
    """For ``correct_entries``: makes the files of the tests. What cannot be replayed becomes a message, and no test."""

    def record_corrections(
        decision_context: DecisionContext, lessons: dict[str, tuple[Leg, ...]], result: DecisionResult
    ) -> dict[str, bytes | None]:
        by_run: dict[tuple[str, str, str], dict[str, Any]] = {}
        for entry_id, legs in lessons.items():
            entry = books_of(decision_context.context).books.get_entry(entry_id)
            commit = posting_commit(host, decision_context.repo, entry)
            if commit is None or "Run" not in commit.trailers or "Agent" not in commit.trailers:
                continue  # a person posted it
            found = books_of(decision_context.context).bank.find_line(entry.reference)
            month = f"{found[1].posted_date if found is not None else entry.date:%Y-%m}"
            key = commit.trailers["Agent"], commit.trailers["Run"], month
            by_run.setdefault(key, {})[entry.reference] = [_leg_data(leg) for leg in legs]
        if not by_run:
            return {}
        with Gate(host, decision_context.repo) as gate:
            return _test_files(host, gate, decision_context, by_run, result)

    return record_corrections


def _test_files(
    host: Host,
    gate: Gate,
    decision_context: DecisionContext,
    by_run: dict[tuple[str, str, str], dict[str, Any]],
    result: DecisionResult,
) -> dict[str, bytes | None]:
    approvals = gate.scripts.approvals
    texts: dict[str, bytes | None] = {}
    for (agent, run, month), legs in by_run.items():
        try:
            case = _corrected_test(host, gate, decision_context, (agent, run, month), legs)
        except ClearedError as error:
            result.messages.append(f"Not remembered as a test: {error}")
            continue
        texts[case.path] = case.render()
        result.test_path = case.path
    if not texts:
        return {}
    signer = Signer(host, approvals, decision_context)
    sign_tests(signer, texts)
    return signer.files


def _corrected_test(
    host: Host, gate: Gate, decision_context: DecisionContext, of: tuple[str, str, str], legs: dict[str, Any]
) -> RegressionTest:
    """The test of the corrections of this agent, run and month, with these among them. Raises ``PolicyError`` where the
    one that is there is not as it was approved."""
    agent, run, month = of
    path = path_of_test(corrected_test_name(agent, run, month))
    committed = decision_context.snapshot.read_file(path)
    if committed is not None:
        require_verifiable(gate.scripts.approvals, path)
        if not is_approved_test(gate.scripts.approvals, path, committed):
            raise PolicyError("it is not as it was approved", place=Place(path), remedy=f"See: git log -- {path}.")
        old = parse_test(committed, path)
        if "legs" in old.expected:
            return replace(old, expected={"legs": {**old.expected["legs"], **legs}})
    case, _ = record_test(host, gate, agent, run, "corrected by a person", about=legs)
    return corrected_test(case, month, legs)


def _leg_data(leg: Leg) -> list[Any]:
    return [leg.account_id, money.format_amount(leg.debit), money.format_amount(leg.credit)]
