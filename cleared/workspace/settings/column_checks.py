"""What makes the columns of a CSV profile wrong, and which known word was meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

_REQUIRED_COLUMNS: Final = ("date", "description")
CSV_COLUMNS: Final = (
    *_REQUIRED_COLUMNS,
    "amount",
    "debit",
    "credit",
    "transaction_date",
    "balance",
    "id",
    "type",
    "currency",
    "state",
    "fee",
    "direction",
    "account",
)


def nearest_names(written: str, known: Iterable[str], most: int = 1) -> list[str]:
    """The known words most like what was written, best first."""
    import difflib  # only ever wanted for a mistake

    return difflib.get_close_matches(written, list(known), n=most, cutoff=0.6 if most == 1 else 0.5)


def check_columns(value: Mapping[str, str]) -> str | None:
    for key in value:
        if key not in CSV_COLUMNS:
            near = nearest_names(key, CSV_COLUMNS)
            hint = f"did you mean {near[0]}?" if near else f"use {', '.join(CSV_COLUMNS)}"
            return f"{key!r} is not a field; {hint}"
    for key, header in value.items():
        if not header.strip():
            return f"{key} names no column"
    for key in _REQUIRED_COLUMNS:
        if key not in value:
            return f"no column for {key}"
    both = "debit" in value and "credit" in value
    one = "debit" in value or "credit" in value
    if "amount" in value:
        return "amount, or debit and credit, but not all of them" if one else None
    return None if both else "no column for amount, nor both of debit and credit"
