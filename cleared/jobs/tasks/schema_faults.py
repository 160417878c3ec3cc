"""What a JSON value lacks by a JSON Schema: every fault at once, each with its field.

Knows the keywords that the schemas of tasks use; a test compares it with a complete implementation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

SCHEMA_FOLDER: Final = Path(__file__).parent / "schemas"
_TYPES: Final[Mapping[str, tuple[type, str]]] = {
    "object": (dict, "an object"),
    "array": (list, "a list"),
    "string": (str, "a text"),
}


@cache
def load_task_schema(name: Literal["task", "task_status"]) -> dict[str, Any]:
    """A schema as shipped."""
    schema: dict[str, Any] = json.loads((SCHEMA_FOLDER / f"{name}.json").read_bytes())
    return schema


def list_faults(schema: Mapping[str, Any], value: Any, field: str = "") -> Iterator[tuple[str, str]]:
    """Each fault as its field (empty: the value itself) and what is wrong with it."""
    if "type" in schema:
        wanted, noun = _TYPES[schema["type"]]
        if not isinstance(value, wanted):
            yield field, f"is no {noun.split(' ', 1)[1]} but {_describe_type(value)}"
            return
    if "enum" in schema and value not in schema["enum"]:
        yield field, f"is none of {', '.join(schema['enum'])}"
    if isinstance(value, dict):
        yield from _list_object_faults(schema, value, field)
    elif isinstance(value, list):
        yield from _list_array_faults(schema, value, field)
    elif isinstance(value, str):
        yield from _list_text_faults(schema, value, field)


def _list_object_faults(schema: Mapping[str, Any], value: dict[str, Any], field: str) -> Iterator[tuple[str, str]]:
    properties = schema.get("properties", {})
    lead = f"{field}." if field else ""
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{lead}{name}", "is missing"
    for name, inner in value.items():
        if name in properties:
            yield from list_faults(properties[name], inner, f"{lead}{name}")
        elif schema.get("additionalProperties") is False:
            yield f"{lead}{name[:60]}", f"is no field of a task; there are {', '.join(properties)}"


def _list_array_faults(schema: Mapping[str, Any], value: list[Any], field: str) -> Iterator[tuple[str, str]]:
    if len(value) < schema.get("minItems", 0):
        yield field, "is empty"
    if len(value) > schema.get("maxItems", len(value)):
        yield field, f"has {len(value)} items; at most {schema['maxItems']} are taken"
        return
    if schema.get("uniqueItems") and len({json.dumps(item, sort_keys=True) for item in value}) < len(value):
        yield field, "names something twice"
    for number, item in enumerate(value):
        yield from list_faults(schema.get("items", {}), item, f"{field}[{number}]")


def _list_text_faults(schema: Mapping[str, Any], value: str, field: str) -> Iterator[tuple[str, str]]:
    if len(value) < schema.get("minLength", 0):
        yield field, "is empty"
    if len(value) > schema.get("maxLength", len(value)):
        yield field, f"has {len(value):,} characters; at most {schema['maxLength']:,} are taken"
    elif "pattern" in schema and not re.search(schema["pattern"].replace("$", r"\Z"), value):
        yield field, f"is not as {schema['pattern']} says: {value[:60]!r}"


def _describe_type(value: object) -> str:
    if value is None:
        return "null"
    names = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "a text",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), type(value).__name__)
