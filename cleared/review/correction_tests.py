"""Corrections become tests: each is recorded as a test of the agent that made the record, or joins one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from cleared.base.errors import ClearedError, Place, PolicyError
from cleared.changes.decisions.decision_context import DecisionContext
from cleared.changes.host import Host
from cleared.gate.approved_tests import is_approved_test, require_verifiable
from cleared.gate.examination import Gate
from cleared.gate.proposals.record_signing import Signer, sign_tests
from cleared.gate.proposals.recorded_tests import corrected_test, corrected_test_name, record_test
from cleared.gate.regression_tests import RegressionTest, find_corrected, parse_test, path_of_test
from cleared.review.action_request import CorrectionWish
from cleared.review.card_decisions import RecordTests, agree_with_first, correct_records
from cleared.review.explanation import find_making_commit
from cleared.review.record_review import DecisionResult


class _Lesson(NamedTuple):
    """One test: of an agent's run, for the records of one month."""

    agent: str
    run: str
    month: str


_Expected: TypeAlias = dict[str, dict[str, Any]]
"""``RecordComparison.correction_key`` → what records should have been."""


def correct_and_record(host: Host, ids: list[str], correction: CorrectionWish) -> DecisionResult:
    """Correct records, and keep the correction as a regression test (see ``correct_records``)."""
    return correct_records(host, ids, lambda _: correction, correction_recorder(host))


def take_suggestion(host: Host, ids: list[str], value: str) -> DecisionResult:
    """The same, with what is suggested for them all: ``CardChoice.value``."""
    return correct_records(host, ids, lambda target: target.review.read_suggestion(value), correction_recorder(host))


def agree_and_record(host: Host, ids: list[str]) -> DecisionResult:
    """Decide as the first of two reviewers has, and keep a correction as a test (see ``agree_with_first``)."""
    return agree_with_first(host, ids, correction_recorder(host))


def correction_recorder(host: Host) -> RecordTests:
    """For ``correct_records``: makes the files of the tests. What cannot be replayed becomes a message, and no test."""

    def record_corrections(decision_context: DecisionContext, result: DecisionResult) -> dict[str, bytes | None]:
        lessons: dict[_Lesson, _Expected] = {}
        for corrected in result.corrected.values():
            place = corrected.review.locate_record(host.layout, corrected.record)
            commit = find_making_commit(host, decision_context.repo, place)
            if commit is None or "Run" not in commit.trailers or "Agent" not in commit.trailers:
                continue  # a person made it
            lesson = _Lesson(commit.trailers["Agent"], commit.trailers["Run"], corrected.month)
            _add_expected(lessons.setdefault(lesson, {}), {corrected.correction_key: corrected.expected})
        if not lessons:
            return {}
        if not decision_context.authorization.may_approve:
            result.messages.append("Not remembered as a test: a bookkeeper approves none.")
            return {}
        with Gate(host, decision_context.repo) as gate:
            return _test_files(host, gate, decision_context, lessons, result)

    return record_corrections


def _test_files(
    host: Host,
    gate: Gate,
    decision_context: DecisionContext,
    lessons: dict[_Lesson, _Expected],
    result: DecisionResult,
) -> dict[str, bytes | None]:
    approvals = gate.scripts.approvals
    texts: dict[str, bytes | None] = {}
    for lesson, expected in lessons.items():
        try:
            case = _corrected_test(host, gate, decision_context, lesson, expected)
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
    host: Host, gate: Gate, decision_context: DecisionContext, lesson: _Lesson, expected: _Expected
) -> RegressionTest:
    """The test of the corrections of this agent, run and month, with these among them. Raises ``PolicyError`` where the
    one that is there is not as it was approved."""
    path = path_of_test(corrected_test_name(lesson.agent, lesson.run, lesson.month))
    committed = decision_context.snapshot.read_file(path)
    if committed is not None:
        require_verifiable(gate.scripts.approvals, path)
        if not is_approved_test(gate.scripts.approvals, path, committed):
            raise PolicyError("it is not as it was approved", place=Place(path), remedy=f"See: git log -- {path}.")
        old = parse_test(committed, path)
        if find_corrected(old.expected):
            return replace(old, expected=_add_expected({**old.expected}, expected))
    about = {name for records in expected.values() for name in records}
    case, _ = record_test(host, gate, lesson.agent, lesson.run, "corrected by a person", about=about)
    return corrected_test(case, lesson.month, expected)


def _add_expected(known: _Expected, more: Mapping[str, Mapping[str, Any]]) -> _Expected:
    for key, records in more.items():
        known[key] = {**known.get(key, {}), **records}
    return known
