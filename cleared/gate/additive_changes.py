"""Whether a change only confirms what persons decided: then nothing in it is left for a person to judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import load_comparisons
from cleared.gate.check_result import Subject
from cleared.gate.examination import Report
from cleared.gate.impact import describe_not_comparable

_COUNTING_OUTPUTS: Final = frozenset({"result", "log"})
"""What a script says of its own counts: it differs where records do. A message, a question, a job or an event would be
an act."""

Confirmed = Mapping[str, frozenset[str]]
"""Record → what persons decided that it goes to."""


def find_reason_to_ask(report: Report, path: str, confirmed: Confirmed) -> str:
    """Why a person must look at the change of the agent at ``path``; empty where it only confirms ``confirmed``."""
    changes = report.candidate.changes
    if [(change.path, change.kind) for change in changes] != [(path, "agent")] or set(report.subjects) != {path}:
        return "it is more than a change of one agent"
    if changes[0].old is None or changes[0].new is None:
        return "the agent is new, or removed"
    results = [result for each in report.results.values() for result in each]
    as_before = {file for result in results for file in result.details.get("as_before", ())}
    for finding in (*report.findings, *report.warnings):
        # What was corrected and is not learned yet is a test that no version passes: this one changes nothing of that.
        if finding.rule != "regression" or finding.place.file not in as_before:
            return finding.message
    for latent in report.latent.values():
        return latent.describe()[0]
    subject = report.subjects[path]
    return _find_other_effect(subject) or _find_unconfirmed(subject, confirmed)


def _find_other_effect(subject: Subject) -> str:
    impact, sample = subject.impact, subject.sample_impact
    if impact is None or sample is None or not impact.runs:
        return "no past run shows what it does"
    if impact.not_comparable:
        return describe_not_comparable(impact.not_comparable)
    if sample.entries or sample.outputs or sample.failed:
        return "it makes a difference over sample data"
    others = {str(each["kind"]) for each in impact.outputs} - _COUNTING_OUTPUTS
    return f"it makes another {min(others)}" if others else ""


def _find_unconfirmed(subject: Subject, confirmed: Confirmed) -> str:
    """The first record that would differ otherwise than by becoming what a person decided."""
    assert subject.impact is not None
    after = dict(_list_new_records(subject))
    if not subject.impact.entries:
        return "no past run shows what it does"
    for each in subject.impact.entries:
        record_id = str(each["entry_id"])
        then, now = ((each[side] or {}).get("status") for side in ("before", "after"))
        is_asked_no_more = (each["change"], then, now) == ("changed", "pending-review", "auto-confirmed")
        goes_to = after.get(record_id)
        if not is_asked_no_more or goes_to is None or confirmed.get(record_id) != goes_to:
            return f"{record_id} would differ, and no person decided it so: {each['group']}"
    return ""


def _list_new_records(subject: Subject) -> Iterator[tuple[str, frozenset[str]]]:
    """Each record that the new version makes in a past run: the id that it really got, and what it goes to."""
    layout = subject.proposed_setup.host.layout
    for occasion, run in subject.past_runs:
        for noun, comparison in load_comparisons().items():
            ids = comparison.find_ids(layout, CommittedSource(occasion.after)) if occasion.after is not None else {}
            for record in run.records.get(noun, ()):
                record_id = ids.get(comparison.summarise(record).key)
                if record_id is not None:
                    yield record_id, frozenset(comparison.list_references(record))
