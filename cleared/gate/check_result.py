"""A stage: subject → result. Results are values; a stage that is refused never raises."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cleared.gate.dry_run import Rehearsal, World
from cleared.gate.impact import HistoryDiff
from cleared.gate.lint_rules import RULES, rule_of
from cleared.runs.approved_scripts import Script
from cleared.sandbox.finding import Finding, is_switchable, split_findings
from cleared.sandbox.header import Header

Status = Literal["passed", "failed", "skipped"]


@dataclass(slots=True)
class Subject:
    """The script under examination, and what the stages have learnt of it."""

    kind: Literal["agent", "script"]
    name: str
    file: str
    source: str
    now: World
    then: World
    grants: frozenset[str]
    approved: bool = False
    """Whether it is the approved version itself, looked at because something that it depends on changes."""
    header: Header | None = None
    script: Script | None = None
    """The new version, once it passed the static stages."""
    old: Script | None = None
    """The version approved last."""
    rehearsals: list[Rehearsal] = field(default_factory=list)
    watched: list[Rehearsal] = field(default_factory=list)
    history: HistoryDiff | None = None
    synthetic: HistoryDiff | None = None


@dataclass(frozen=True, slots=True)
class StageResult:
    """How one stage ended. A blocker stops what comes after the static stages; ``warnings`` stop nothing."""

    stage: str
    status: Status
    findings: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    """Why it was skipped."""

    def data(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "status": self.status,
            "reason": self.reason or None,
            "findings": [finding_data(f) for f in self.findings],
            "warnings": [finding_data(f) for f in self.warnings],
            **({"details": dict(self.details)} if self.details else {}),
        }


@dataclass(frozen=True, slots=True)
class Stage:
    """A named step. Static stages read the text only; all of them run even when an earlier one failed."""

    name: str
    what: str
    static: bool
    run: Callable[[Subject], StageResult]


def finding_data(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule, "message": finding.message, "why": rule_of(finding.rule).why,
        "file": finding.place.file, "line": finding.place.line, "column": finding.place.column,
        "field": finding.place.field, "remedy": finding.remedy,
    }  # fmt: skip


def result_of(
    stage: str, findings: Iterable[Finding], rules: Mapping[str, str], warnings: Iterable[Finding] = (), *,
    approved: bool = False, **details: Any,
) -> StageResult:  # fmt: skip
    """Passed without findings, failed with them; ``rules`` is ``gate.rules``: which are not as shipped.

    ``approved``: it is an approved version, for which rules that came later are warnings.
    """
    if approved:
        findings, later = split_findings(findings, RULES, rules)
        warnings = [*warnings, *later]
    blocking: list[Finding] = []
    warned: list[Finding] = []
    for found, usual in ((findings, "block"), (warnings, "warn")):
        for finding in found:
            what = rules.get(finding.rule, usual) if is_switchable(finding.rule) else usual
            if what != "off":
                (blocking if what == "block" else warned).append(finding)
    return StageResult(stage, "failed" if blocking else "passed", tuple(blocking), tuple(warned), details)
