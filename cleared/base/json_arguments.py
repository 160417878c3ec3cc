"""Checks a call's arguments against the JSON Schema that the caller was shown, in the words of that schema."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from cleared.base.json_values import refuse_unstorable

MAX_ARGUMENT_BYTES: Final = 8 << 20
"""Of all arguments of a call, as JSON."""
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}


class ArgumentFault(ValueError):
    """The arguments of a call are not those that it takes. ``name``: of the one that is wrong; empty: of none alone."""

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message)
        self.name = name


def read_arguments(arguments: object, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, checked, with defaults filled in. A text is read as JSON. Raises ``ArgumentFault``."""
    if arguments is None or arguments == "":
        arguments = {}
    if isinstance(arguments, str | bytes):
        if len(arguments) > MAX_ARGUMENT_BYTES:
            raise ArgumentFault(f"the arguments have more than {MAX_ARGUMENT_BYTES:,} bytes")
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError) as error:
            raise ArgumentFault(f"the arguments are not JSON: {str(error)[:200]}") from None
    if not isinstance(arguments, Mapping):
        raise ArgumentFault(f"the arguments must be a JSON object, not {_type_name(arguments)}")
    properties: Mapping[str, Mapping[str, Any]] = schema["properties"]
    for name in arguments:
        if name not in properties:
            near = get_close_matches(str(name), list(properties), n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; it takes {', '.join(properties) or 'none'}"
            raise ArgumentFault(f"there is no argument {str(name)[:60]!r}{hint}", str(name)[:60])
    values = {}
    for name, rules in properties.items():
        value = arguments.get(name)
        if value is None and "null" not in _allowed_types(rules):
            if name in schema["required"]:
                raise ArgumentFault(f"{name} is missing", name)
            value = rules.get("default")
        else:
            try:
                _check_value(name, value, rules)
            except ValueError as error:
                raise ArgumentFault(str(error), name) from None
        values[name] = value
    return values


def describe_parameters(schema: Mapping[str, Any]) -> str:
    """The parameters in one line, for a model that got them wrong."""
    parts = []
    for name, rules in schema["properties"].items():
        optional = "" if name in schema["required"] else "?"
        parts.append(f"{name}{optional}: {' | '.join(_allowed_types(rules)) or 'any'}")
    return ", ".join(parts) or "none"


def _allowed_types(rules: Mapping[str, Any]) -> list[str]:
    kind = rules.get("type", [])
    return [kind] if isinstance(kind, str) else list(kind)


def _check_value(name: str, value: object, rules: Mapping[str, Any]) -> None:
    """Raises ``ValueError`` where a value is not as its rules say."""
    kinds = _allowed_types(rules)
    if kinds and not any(_is_of_type(value, kind) for kind in kinds):
        raise ValueError(f"{name} must be of type {' or '.join(kinds)}, not {_type_name(value)}")
    if not kinds:
        try:
            refuse_unstorable(value)  # parsers take NaN and halves of characters, which nothing can keep
        except ValueError as error:
            raise ValueError(f"{name} cannot be taken: {error}") from None
    if "enum" in rules and value not in rules["enum"]:
        raise ValueError(f"{name} must be one of {', '.join(str(v) for v in rules['enum'] if v is not None)}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        least, most = rules.get("minimum", -math.inf), rules.get("maximum", math.inf)
        if not least <= value <= most:
            raise ValueError(f"{name} must lie between {least} and {most}")
    if isinstance(value, str):
        if not rules.get("minLength", 0) <= len(value) <= rules.get("maxLength", MAX_ARGUMENT_BYTES):
            bounds = f"{rules.get('minLength', 0)} to {rules.get('maxLength', MAX_ARGUMENT_BYTES)}"
            raise ValueError(f"{name} must have {bounds} characters, not {len(value)}")
        if any("\ud800" <= c <= "\udfff" for c in value):
            raise ValueError(f"{name} holds half of a surrogate pair, which is no text")
    if isinstance(value, list) and "items" in rules:
        if len(value) > rules.get("maxItems", 1_000):
            raise ValueError(f"{name} may have {rules.get('maxItems', 1_000)} items at most")
        for at, item in enumerate(value):
            _check_value(f"{name}[{at}]", item, rules["items"])
    if isinstance(value, dict) and "properties" in rules:
        for key in rules.get("required", ()):
            if key not in value:
                raise ValueError(f"{name}.{key} is missing")
        for key, item in value.items():
            if key in rules["properties"]:
                _check_value(f"{name}.{key}", item, rules["properties"][key])


def _is_of_type(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return isinstance(value, _TYPES[kind])


def _type_name(value: object) -> str:
    return next((kind for kind in _TYPES if _is_of_type(value, kind)), type(value).__name__)
