"""A check: the script under examination in, a result out. What a check finds wrong is a value, never an exception."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

from cleared.gate.dry_run import DryRun, Setup
from cleared.gate.impact import Impact
from cleared.gate.past_runs import DryRunInput
from cleared.runs.approved_scripts import Script
from cleared.sandbox.finding import Finding, Rule, is_switchable, split_findings
from cleared.sandbox.header import Header

Status = Literal["passed", "failed", "skipped"]


class Subject(Struct):
    """The script under examination, and what the checks so far have learnt about it."""

    kind: Literal["agent", "script"]
    name: str
    file: str
    source: str
    approved_setup: Setup
    proposed_setup: Setup
    grants: frozenset[str]
    approved: bool = False
    """Whether it is the approved version itself, examined because something that it depends on changes."""
    header: Header | None = None
    script: Script | None = None
    """The new version, once it passed the checks that read its text."""
    old: Script | None = None
    """The version approved last."""
    dry_runs: list[DryRun] = []
    """With ``ctx_dry_run()`` false, as in a real run."""
    flagged_dry_runs: list[DryRun] = []
    """The same with ``ctx_dry_run()`` true."""
    impact: Impact | None = None
    """On the agent's past runs, against the approved version."""
    sample_impact: Impact | None = None
    """On the sample data, likewise."""
    past_runs: list[tuple[DryRunInput, DryRun]] = []
    """The agent's past runs, and what the new version would have done then."""
    woken: dict[str, Any] = {}
    """Agent → a ``Woken``: what it would do with the events that the new version emits otherwise."""
    latent: Any = None
    """A ``Latent``: what it could do that no dry run showed; None where nobody looked."""


class CheckResult(Struct, frozen=True):
    """How one check ended. ``findings`` stop the change; ``warnings`` stop nothing."""

    check: str
    status: Status
    findings: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    details: Mapping[str, Any] = {}
    reason: str = ""
    """Why it was skipped."""


Means = TypeVar("Means")


class Check(Struct, Generic[Means], frozen=True):
    """One check, declared beside the function that makes it.

    ``id`` stands in JSON and rule lists, ``title`` in what people read. ``run`` gets what checks of its kind work with,
    and the script. Checks that only read the text all run, even when an earlier one failed.
    """

    id: str
    title: str
    description: str
    run: Callable[[Means, Subject], CheckResult]
    rules: Mapping[str, Rule]


def make_result(
    check: str,
    findings: Iterable[Finding],
    switched: Mapping[str, str],
    warnings: Iterable[Finding] = (),
    *,
    approved_under: Mapping[str, Rule] | None = None,
    **details: Any,
) -> CheckResult:
    """Passed without findings, failed with them. ``switched`` is ``gate.rules``: the rules that are not as shipped.

    ``approved_under``: the rules by their id, where this is an approved version; of these, what came later warns.
    """
    if approved_under is not None:
        findings, later = split_findings(findings, approved_under, switched)
        warnings = [*warnings, *later]
    blocking: list[Finding] = []
    warned: list[Finding] = []
    for each, usual in ((findings, "block"), (warnings, "warn")):
        for finding in each:
            level = switched.get(finding.rule, usual) if is_switchable(finding.rule) else usual
            if level != "off":
                (blocking if level == "block" else warned).append(finding)
    return CheckResult(check, "failed" if blocking else "passed", tuple(blocking), tuple(warned), details)
