"""Answers as a client gets them: without secrets, valid Unicode, never larger than it can be used."""

from __future__ import annotations

import json
from typing import Any, Final

from cleared.base.errors import CheckFailed
from cleared.changes.host import Host

MAX_ANSWER_BYTES: Final = 256 * 1024
"""Of an answer as JSON. What is left out is counted in it."""
ITEMS: Final = "items"
LEFT_OUT: Final = "left_out"


def make_answer(host: Host, value: Any, most: int = MAX_ANSWER_BYTES) -> dict[str, Any]:
    """``value`` as one object: a list becomes ``{items, left_out}``. Where it is too large, the end of its longest list
    is left out, and ``left_out`` says how much of it. Raises ``CheckFailed`` where that is not enough."""
    value = host.redactor.redact_data(_to_unicode(value))
    if isinstance(value, list):
        kept = _fit_items(value, most)
        return {ITEMS: value[:kept], LEFT_OUT: len(value) - kept}
    answer = value if isinstance(value, dict) else {"value": value}
    size = encoded_size(answer)
    if size <= most:
        return answer
    lists = {key: encoded_size(item) for key, item in answer.items() if isinstance(item, list)}
    longest = max(lists, key=lists.__getitem__, default="")
    room = most - (size - lists.get(longest, 0)) - 100
    if room <= 0:
        raise CheckFailed(
            f"the answer has {size} bytes; the most that is given is {most}",
            remedy="Ask for less of it; the command line shows all: see cleared --help.",
        )
    kept = _fit_items(answer[longest], room)
    return {**answer, longest: answer[longest][:kept], LEFT_OUT: {longest: len(answer[longest]) - kept}}


def wrap_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of ``make_answer`` of a value of this schema."""
    if schema.get("type") != "array":
        return {"type": "object"} if "type" not in schema else schema
    return {
        "type": "object",
        "properties": {ITEMS: schema, LEFT_OUT: {"type": "integer", "description": "How many more there are."}},
        "required": [ITEMS, LEFT_OUT],
    }


def clean_text(host: Host, text: str) -> str:
    """A message without secrets, valid Unicode."""
    return host.redactor.redact_text(str(_to_unicode(text)))


def to_json_text(value: Any) -> str:
    """Compact JSON, as people can read it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def encoded_size(value: Any) -> int:
    """Bytes of it as JSON."""
    return len(to_json_text(value).encode("utf-8"))


def _fit_items(items: list[Any], most: int) -> int:
    """How many of the first items have at most so many bytes."""
    used = 0
    for number, item in enumerate(items):
        used += encoded_size(item) + 1
        if used > most:
            return number
    return len(items)


def _to_unicode(value: Any) -> Any:
    """Names of files may hold bytes that are not UTF-8; no JSON could carry them."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (UnicodeEncodeError, ValueError):
        return _replace_surrogates(value)
    return value


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_replace_surrogates(k): _replace_surrogates(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_replace_surrogates(v) for v in value]
    if isinstance(value, float) and value - value != 0:  # infinite, or no number
        return str(value)
    return value
