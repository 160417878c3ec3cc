"""What JSON Schemas of results are put together from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Schema = Mapping[str, Any]


def nullable(schema: Schema) -> dict[str, Any]:
    """The schema, or null."""
    return {**schema, "type": [schema["type"], "null"]}


def list_of(items: Schema) -> dict[str, Any]:
    """A list of these."""
    return {"type": "array", "items": dict(items)}


def object_of(**properties: Any) -> dict[str, Any]:
    """An object that has all of these, and perhaps more."""
    return {"type": "object", "properties": properties, "required": list(properties)}


TEXT: Final = {"type": "string"}
INTEGER: Final = {"type": "integer"}
FLAG: Final = {"type": "boolean"}
OBJECT: Final = {"type": "object"}
TEXTS: Final = list_of(TEXT)
MAYBE_TEXT: Final = nullable(TEXT)
MAYBE_INTEGER: Final = nullable(INTEGER)
COUNTS: Final = {"type": "object", "additionalProperties": INTEGER}
