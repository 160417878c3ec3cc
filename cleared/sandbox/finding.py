"""One thing wrong with a script, found without running it, and the rule that found it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from cleared.errors import Place

NOT_SWITCHED: Final = (
    "header", "syntax", "nesting", "character", "bidi", "invisible", "ascii-name",
    "rehearsal", "invariants", "regression", "policy",
)  # fmt: skip
"""What no setting turns off, nor what begins with it and a dash."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rule:
    """What a finding's ``rule`` names. Every module that finds things lists its rules in a ``RULES``."""

    id: str
    stage: str
    """``lint``, ``traps``, ``types``, or a stage that runs the script."""
    finds: str
    why: str
    """Why the rule exists."""
    remedy: str
    """What to do in general; a finding may know better."""
    blocks: bool = True
    """Whether a finding keeps the script from being run or proposed."""
    since: str = ""
    """The release that the rule came with, where it is not the first. It binds what is proposed: a version that was
    approved before runs on, with a warning, so that an upgrade stops nobody's books."""


def make_rules(stage: str, told: Mapping[str, tuple[str, str, str]], since: str = "") -> dict[str, Rule]:
    """The rules of one stage from id → what it finds, why, remedy; all of the same release."""
    return {id_: Rule(id_, stage, *texts, since=since) for id_, texts in told.items()}


@dataclass(frozen=True, slots=True)
class Finding:
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
    findings: Iterable[Finding], known: Mapping[str, Rule], switched: Mapping[str, str]
) -> tuple[list[Finding], list[Finding]]:
    """Findings in a version that is approved: what binds it all the same, and what rules say that came later."""
    binding: list[Finding] = []
    later: list[Finding] = []
    for finding in findings:
        rule = known.get(finding.rule)
        what = switched.get(finding.rule) if is_switchable(finding.rule) else None
        if rule is None or not rule.since or what == "block":
            binding.append(finding)
        elif what != "off":
            later.append(finding)
    return binding, later


def blocking_findings(findings: list[Finding], switched: Mapping[str, str]) -> list[Finding]:
    """The findings that ``gate.rules`` leaves as they are."""
    return [f for f in findings if not is_switchable(f.rule) or switched.get(f.rule, "block") == "block"]
