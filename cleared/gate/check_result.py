"""A stage: subject → result. Results are values; a stage that is refused never raises."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cleared.gate.dry_run import DryRun, Setup
from cleared.gate.impact import Impact
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
    approved_setup: Setup
    proposed_setup: Setup
    grants: frozenset[str]
    approved: bool = False
    """Whether it is the approved version itself, looked at because something that it depends on changes."""
    header: Header | None = None
    script: Script | None = None
    """The new version, once it passed the static stages."""
    old: Script | None = None
    """The version approved last."""
    dry_runs: list[DryRun] = field(default_factory=list)
    flagged_dry_runs: list[DryRun] = field(default_factory=list)
    history: Impact | None = None
    synthetic: Impact | None = None


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How one stage ended. A blocker stops what comes after the static stages; ``warnings`` stop nothing."""

    check: str
    status: Status
    findings: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    """Why it was skipped."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "stage": self.check,
            "status": self.status,
            "reason": self.reason or None,
            "findings": [finding_to_dict(f) for f in self.findings],
            "warnings": [finding_to_dict(f) for f in self.warnings],
            **({"details": dict(self.details)} if self.details else {}),
        }


@dataclass(frozen=True, slots=True)
class Check:
    """A named step. Static stages read the text only; all of them run even when an earlier one failed."""

    name: str
    description: str
    reads_text_only: bool
    run: Callable[[Subject], CheckResult]


def finding_to_dict(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule, "message": finding.message, "why": rule_of(finding.rule).why,
        "file": finding.place.file, "line": finding.place.line, "column": finding.place.column,
        "field": finding.place.field, "remedy": finding.remedy,
    }  # fmt: skip


def make_result(
    stage: str, findings: Iterable[Finding], rules: Mapping[str, str], warnings: Iterable[Finding] = (), *,
    approved: bool = False, **details: Any,
) -> CheckResult:  # fmt: skip
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
    return CheckResult(stage, "failed" if blocking else "passed", tuple(blocking), tuple(warned), details)
