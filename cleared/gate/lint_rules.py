"""All checks and rules of the gate in one list, put together from the modules that declare them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cleared.domains.installed_domains import DomainTable
from cleared.gate import candidate_checks, dry_run_checks, static_checks
from cleared.gate.check_result import Check, CheckResult
from cleared.sandbox.finding import Finding, Rule

_CHECKS: Final[tuple[Check[Any], ...]] = (*static_checks.CHECKS, *dry_run_checks.CHECKS)
CHECKS: Final = {check.id: check.description for check in _CHECKS}
"""Id → what the check looks at, in order. The first three read the text only."""
TITLES: Final = {check.id: check.title for check in _CHECKS}
"""Id → what the check is called in what people read."""
RULES: Final[Mapping[str, Rule]] = DomainTable(
    lambda: {id_: rule for check in _CHECKS for id_, rule in check.rules.items()} | candidate_checks.RULES
)
"""Id → rule."""


def rule_of(rule: str) -> Rule:
    """The rule of a finding. The type checker knows more rules than are listed: they share ``type:*``."""
    return RULES[rule] if rule in RULES or not rule.startswith("type:") else RULES["type:*"]


def finding_to_dict(finding: Finding) -> dict[str, Any]:
    """A finding as ``--json`` prints it, with why its rule exists."""
    return {
        "rule": finding.rule,
        "message": finding.message,
        "why": rule_of(finding.rule).why,
        "file": finding.place.file,
        "line": finding.place.line,
        "column": finding.place.column,
        "field": finding.place.field,
        "remedy": finding.remedy,
    }


def result_to_dict(result: CheckResult) -> dict[str, Any]:
    """The result of a check as ``--json`` prints it and a proposal keeps it."""
    return {
        "stage": result.check,
        "status": result.status,
        "reason": result.reason or None,
        "findings": [finding_to_dict(f) for f in result.findings],
        "warnings": [finding_to_dict(f) for f in result.warnings],
        **({"details": dict(result.details)} if result.details else {}),
    }
