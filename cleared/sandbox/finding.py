"""Findings: what is wrong with a script, and the rules that find it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from cleared.base.errors import Place

NOT_SWITCHED: Final = (
    "header",
    "syntax",
    "nesting",
    "character",
    "bidi",
    "invisible",
    "ascii-name",
    "rehearsal",
    "invariants",
    "regression",
    "policy",
    "shared-script",
)
"""Rules that no setting can turn off; also those whose id begins with one of these and a dash."""


class Rule(Struct, frozen=True, eq=False):
    """A rule. Every module that makes findings declares its rules in ``RULES``."""

    id: str
    stage: str
    """``lint``, ``traps``, ``types``, or a stage that runs the script."""
    finds: str
    why: str
    """Why the rule exists."""
    remedy: str
    """What to do in general; a finding may say it more exactly."""
    blocks: bool = True
    """Whether a finding keeps the script from being run or proposed."""
    since: str = ""
    """The release that added the rule; empty for the first. A later rule binds proposals only: an approved script runs
    on, with a warning."""


def make_rules(stage: str, texts: Mapping[str, tuple[str, str, str]], since: str = "") -> dict[str, Rule]:
    """The rules of one stage and one release, from id → what it finds, why, remedy."""
    return {rule: Rule(rule, stage, *parts, since=since) for rule, parts in texts.items()}


class Finding(Struct, frozen=True):
    """``rule`` is a stable id (``import``, ``header-cron`` …); ``place`` has a 1-based line and column."""

    rule: str
    message: str
    place: Place
    remedy: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message} [{self.rule}]. {self.remedy}"


def is_switchable(rule: str) -> bool:
    """Whether ``gate.rules`` can turn a rule off or down."""
    return not any(rule == name or rule.startswith(f"{name}-") for name in NOT_SWITCHED)


def split_findings(
    findings: Iterable[Finding], rules: Mapping[str, Rule], switched: Mapping[str, str]
) -> tuple[list[Finding], list[Finding]]:
    """The findings in an approved script: those that bind it all the same, and those of rules that came later."""
    binding: list[Finding] = []
    later: list[Finding] = []
    for finding in findings:
        rule = rules.get(finding.rule)
        setting = switched.get(finding.rule) if is_switchable(finding.rule) else None
        if rule is None or not rule.since or setting == "block":
            binding.append(finding)
        elif setting != "off":
            later.append(finding)
    return binding, later


def blocking_findings(findings: list[Finding], switched: Mapping[str, str]) -> list[Finding]:
    """The findings that ``gate.rules`` does not turn off or into warnings."""
    return [f for f in findings if not is_switchable(f.rule) or switched.get(f.rule, "block") == "block"]
