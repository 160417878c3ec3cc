"""A model's reply as it is kept: bounded, with ids that no other call has, and never empty."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from cleared.base.json_values import refuse_unstorable
from cleared.base.short_text import clip_middle, replace_surrogates
from cleared.llm.prices import count_tokens

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

MAX_TEXT_CHARACTERS: Final = 100_000
MAX_ARGUMENT_CHARACTERS: Final = 400_000
MAX_NAME_CHARACTERS: Final = 64
_MAX_DROPPED: Final = 2_000
EMPTY_TEXT: Final = "(empty reply)"
TOO_LONG: Final = "arguments_left_out"
"""The one argument of a call whose arguments were too long to keep."""
NOT_JSON: Final = "arguments_not_json"
"""The one argument of a call whose arguments were no JSON object."""
NOT_KEPT: Final = "arguments_not_kept"
"""The one argument of a call whose arguments no record takes: why."""


def clean_reply(reply: ModelResponse, choose_id: Callable[[str], str]) -> ModelResponse:
    """The reply without what no later request could carry: arguments that are no JSON object (providers refuse a
    history with them), texts without end, ids that stand twice, counts that cannot be."""
    from pydantic_ai.messages import TextPart
    from pydantic_ai.usage import RequestUsage

    parts = [cleaned for part in reply.parts if (cleaned := _clean_part(part, choose_id)) is not None]
    if not any(part.part_kind in ("text", "tool-call") for part in parts):
        parts.append(TextPart(EMPTY_TEXT))
    return dataclasses.replace(reply, parts=parts, usage=RequestUsage(**asdict(count_tokens(reply.usage))))


def drop_calls(reply: ModelResponse) -> ModelResponse:
    """A reply without an end, as it is kept: the beginning of its text. A call of it may be half of one."""
    from pydantic_ai.messages import TextPart

    return dataclasses.replace(reply, parts=[TextPart(f"{join_text(reply)[:_MAX_DROPPED]} […]")])


def _clean_part(part: Any, choose_id: Callable[[str], str]) -> Any:
    """``None`` where it is not kept."""
    if part.part_kind == "tool-call":
        name = "".join(c for c in part.tool_name if c.isascii() and (c.isalnum() or c in "_-"))[:MAX_NAME_CHARACTERS]
        call_id, arguments = choose_id(part.tool_call_id), _read_arguments(part.args)
        return dataclasses.replace(part, tool_name=name or "unnamed", args=arguments, tool_call_id=call_id)
    if part.part_kind == "text":
        return dataclasses.replace(part, content=_clip_text(part.content)) if part.content else None
    if part.part_kind == "thinking" and len(part.content) <= MAX_TEXT_CHARACTERS:
        return part  # signed by the provider: whole, or not at all
    return None


def join_text(reply: Any) -> str:
    """The reply's text."""
    text = "\n".join(part.content for part in reply.parts if part.part_kind == "text")
    return "" if text == EMPTY_TEXT else text


def _read_arguments(arguments: Any) -> dict[str, Any]:
    if arguments is None or arguments == "":
        return {}
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, default=str)
    if len(text) > MAX_ARGUMENT_CHARACTERS:
        return {TOO_LONG: f"{len(text):,} characters; at most {MAX_ARGUMENT_CHARACTERS:,} are taken"}
    try:
        values = json.loads(text) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        return {NOT_JSON: _clip_text(text[:2_000])}
    try:
        refuse_unstorable(values)  # parsers take NaN, halves of characters and any depth
    except ValueError as error:
        return {NOT_KEPT: str(error)}
    return values


def _clip_text(text: str) -> str:
    return clip_middle(replace_surrogates(text), MAX_TEXT_CHARACTERS)
