"""One thing wrong with a script, found without running it, and the rule that found it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cleared.errors import Place

NOT_SWITCHED: Final = (
    "header", "syntax", "nesting", "character", "bidi", "rehearsal", "invariants", "regression", "policy",
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


def rules(stage: str, told: Mapping[str, tuple[str, str, str]]) -> dict[str, Rule]:
    """The rules of one stage from id → what it finds, why, remedy."""
    return {id_: Rule(id_, stage, *texts) for id_, texts in told.items()}


@dataclass(frozen=True, slots=True)
class Finding:
    """``rule`` is a stable id (``import``, ``header-cron`` …); ``place`` has a 1-based line and column."""

    rule: str
    message: str
    place: Place
    remedy: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message} [{self.rule}]. {self.remedy}"


def switchable(rule: str) -> bool:
    """Whether ``gate.rules`` can turn a rule off or down."""
    return not any(rule == name or rule.startswith(f"{name}-") for name in NOT_SWITCHED)


def blocking(findings: list[Finding], switched: Mapping[str, str]) -> list[Finding]:
    """The findings that ``gate.rules`` leaves as they are."""
    return [f for f in findings if not switchable(f.rule) or switched.get(f.rule, "block") == "block"]
