"""The chart of accounts a workspace begins with, one per kind of business (``charts/*.csv``)."""

from __future__ import annotations

from pathlib import Path

from cleared.base.errors import UsageError

ENTITY_TYPES = ("llc_single_member", "s_corp", "sole_proprietor", "generic")
_FOLDER = Path(__file__).parent / "charts"


def read_starter_chart(entity_type: str) -> bytes:
    """``accounts/chart-of-accounts.csv`` for a kind of business. Raises ``UsageError`` for an unknown one."""
    if entity_type not in ENTITY_TYPES:
        raise UsageError(f"{entity_type!r} is not a kind of business", remedy=f"Use {', '.join(ENTITY_TYPES)}.")
    return (_FOLDER / f"{entity_type}.csv").read_bytes()
