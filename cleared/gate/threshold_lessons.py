"""Whether scripts are as right as they are sure: how often was wrong what they booked without asking, and from when on
it would not have been.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from msgspec import Struct

from cleared.domains.domain import RecordOutcome

_LEAST_RECORDS: Final = 20
_LEAST_WRONG: Final = 3


class Overconfidence(Struct, frozen=True):
    """Scripts were wrong more often than ``threshold`` says. Counts are of what was booked as sure."""

    threshold: Decimal
    wrong: int
    records: int
    better: Decimal | None
    """From when on they were as right as they were sure; None where they never were."""
    wrong_above: int = 0
    records_above: int = 0


def find_overconfidence(outcomes: Sequence[RecordOutcome], threshold: Decimal) -> Overconfidence | None:
    """What persons corrected, of what was booked without asking, says of the threshold; None where it is right, or too
    little is known. What a person confirmed was asked about, and says nothing of it."""
    sure = [each for each in outcomes if each.confidence >= threshold and each.agreed is not True]
    wrong, records = _count(sure, threshold)
    if records < _LEAST_RECORDS or wrong < _LEAST_WRONG or wrong <= (1 - threshold) * records:
        return None
    for better in sorted({each.confidence for each in sure if each.confidence > threshold}):
        above = _count(sure, better)
        if above[0] <= (1 - better) * above[1]:
            return Overconfidence(threshold, wrong, records, better, *above)
    return Overconfidence(threshold, wrong, records, None)


def _count(outcomes: Sequence[RecordOutcome], least: Decimal) -> tuple[int, int]:
    """How many were wrong, and how many there are, that were as sure as that."""
    those = [each for each in outcomes if each.confidence >= least]
    return sum(1 for each in those if each.agreed is False), len(those)
