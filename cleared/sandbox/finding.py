"""One thing wrong with a script, found without running it, and the rule that found it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cleared.errors import Place


@dataclass(frozen=True, slots=True)
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
