"""An entry as plain data, as a JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cleared.base.schema_parts import INTEGER, TEXT, TEXTS, list_of, object_of
from cleared.books.ledger.entry import STATUSES

ENTRY: Final = object_of(
    entry_id=TEXT,
    date=TEXT,
    description=TEXT,
    amount=TEXT,
    status={"enum": list(STATUSES)},
    counterparty=TEXT,
    reference=TEXT,
    confidence=TEXT,
    evidence=TEXT,
    tags=TEXTS,
    notes=TEXT,
    lines=list_of(object_of(leg_id=TEXT, account_id=INTEGER, debit=TEXT, credit=TEXT)),
)


def describe_entry_schema() -> Mapping[str, Any]:
    """What ``entry_to_json`` gives."""
    return ENTRY
