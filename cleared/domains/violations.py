"""What a check finds. Violations are values, listed all together; faults are exceptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cleared.base.errors import CheckFailed, Place
from cleared.base.terminal import count_noun

CHECKS: Final = {
    "format": "The file is the CSV that cleared writes.",
    "unchanged": "What was committed does not change, but for a status, that one way only, and for the payee, tags and "
    "notes that a decision amends.",
    "provenance": "Every commit that touches records came through a run or a decision, or merges such and no more; "
    "every settled card was settled by one.",
    "definition": "What says what records are, such as the columns of a table, is as a person approved it.",
    "lost": "Nothing that was committed here has been taken out of the branch since.",
    "authority": "Since there are reviewers, every decision is one of theirs, and of two of them where it takes two.",
}
"""What holds of the records of every domain, by the names of the checks; each domain has more."""
TWO_CLONES_PAGE: Final = "docs/howto/two-clones.md"
"""The page that says what to do where two clones have written the same thing."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing wrong with the records."""

    check: str
    message: str
    remedy: str
    place: Place | None = None
    record_id: str | None = None

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place and str(self.place) else ""
        record = f"{self.record_id}: " if self.record_id else ""
        return f"{where}{record}{self.message}. {self.remedy}"


class RecordsViolated(CheckFailed):
    """What was to be committed breaks invariants of the records; nothing was."""

    def __init__(self, violations: list[Violation]) -> None:
        shown = "\n".join(f"  - [{v.check}] {v}" for v in violations[:20])
        more = f"\n  … and {len(violations) - 20} more" if len(violations) > 20 else ""
        count = count_noun(len(violations), "invariant is", "invariants are")
        super().__init__(f"{count} violated; nothing was committed:\n{shown}{more}")
        self.violations = violations
