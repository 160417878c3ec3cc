"""The types of values that primitives about the books take beside the runtime's."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated, Final

from cleared.books.ledger.entry import STATUSES, parse_entry_id
from cleared.primitives.registry.vocabulary import DecodingContext, ValueType, decode_line, quote_value


def _decode_status(value: object, env: DecodingContext) -> str:
    if value not in STATUSES:
        near = get_close_matches(value[:40], STATUSES, n=1) if isinstance(value, str) else []
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"{quote_value(value)} is not a status ({', '.join(STATUSES)}){hint}")
    return str(value)


def _decode_entry_id(value: object, env: DecodingContext) -> str:
    text = decode_line(value, env)
    if parse_entry_id(text) is None:
        raise ValueError(f"{text[:40]!r} is not an entry id such as 2025-01-001")
    return text


STATUS: Final = ValueType(
    "Status",
    "Status",
    {"enum": list(STATUSES)},
    _decode_status,
    gives="Status",
    definition=f"Status = Literal[{', '.join(map(repr, STATUSES))}]",
)
ENTRY_ID: Final = ValueType("EntryId", "str", {"type": "string"}, _decode_entry_id)

Status = Annotated[str, STATUS]
EntryId = Annotated[str, ENTRY_ID]
"""``YYYY-MM-NNN``, or the id of one of its legs."""
