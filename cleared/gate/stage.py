"""A stage: subject → result. Results are values; a stage that is refused never raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cleared.runs.host import Host
from cleared.sandbox.finding import Finding
from cleared.sandbox.header import Header
from cleared.vcs import Repository, Snapshot

Status = Literal["passed", "failed", "skipped"]


@dataclass(slots=True)
class Subject:
    """The script under examination, and what the stages have learnt of it."""

    host: Host
    repo: Repository
    snapshot: Snapshot
    name: str
    file: str
    source: str
    header: Header | None = None
    grants: frozenset[str] = frozenset()
    """The primitives the script names, and those of the shared scripts it runs."""


@dataclass(frozen=True, slots=True)
class StageResult:
    """How one stage ended. A blocker stops what comes after the static stages."""

    stage: str
    status: Status
    findings: tuple[Finding, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    """Why it was skipped."""

    def data(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "status": self.status,
            "reason": self.reason or None,
            "findings": [finding_data(f) for f in self.findings],
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
        "rule": finding.rule, "message": finding.message, "file": finding.place.file, "line": finding.place.line,
        "column": finding.place.column, "field": finding.place.field, "remedy": finding.remedy,
    }  # fmt: skip


def result_of(stage: str, findings: list[Finding], **details: Any) -> StageResult:
    """Passed without findings, failed with them."""
    return StageResult(stage, "failed" if findings else "passed", tuple(findings), details)
