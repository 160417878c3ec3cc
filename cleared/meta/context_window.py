"""How much of a session a model still sees: estimates of tokens, and what is left out when the window fills up.

Above ``max_images`` the oldest images go. Above the threshold the text of old tool results goes; the newest
``prune_protect`` tokens stay as they are. Where that is not enough, the middle of the session is replaced by a summary.
The system prompt and what the user asked stay word for word. A tool's call and its result stay or go together.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

from cleared.base.short_text import clip_middle

Purpose = Literal["instruction", "notice", "verify", "confirm", "summary", "reply", "results"]
"""What a message is for. ``instruction``: the user's own words. ``notice``: a word of the host between steps."""

BYTES_PER_TOKEN: Final = 4
IMAGE_TOKENS: Final = 1_600
MESSAGE_TOKENS: Final = 4
PRUNED_TEXT: Final = "[left out to save room; call the tool again if you need it]"
IMAGE_TEXT: Final = "[an older image, left out to save room]"
LEAST_FREED: Final = 0.1
"""A compaction that frees a smaller share of the context freed too little."""
_LEAST_PRUNED_TOKENS: Final = 50
_INSTRUCTION_SHARE: Final = 0.1
_CLIPPED_RESULT: Final = 2_000
_CLIPPED_TEXT: Final = 8_000


class Limits(Struct, frozen=True):
    """``window``: tokens that the model takes. ``threshold``: the share of it from which on room is made."""

    window: int
    threshold: float = 0.6
    prune_protect: int = 40_000
    max_images: int = 10

    @property
    def allowed(self) -> int:
        """Tokens from which on room is made."""
        return int(self.window * self.threshold)


class Item(Struct, frozen=True):
    """One message of the context. ``number``: its place in the whole session. ``tokens``: estimated."""

    number: int
    purpose: Purpose
    message: ModelMessage
    tokens: int


def make_item(number: int, purpose: Purpose, message: ModelMessage) -> Item:
    return Item(number, purpose, message, estimate_message(message))


def estimate_text(text: str) -> int:
    """Tokens of a text, roughly: a quarter of its UTF-8 bytes."""
    return (len(text) if text.isascii() else len(text.encode("utf-8", "replace"))) // BYTES_PER_TOKEN + 1


def estimate_message(message: ModelMessage) -> int:
    return MESSAGE_TOKENS + sum(estimate_part(part) for part in message.parts)


def estimate_part(part: Any) -> int:
    """Tokens of a part of a message, roughly."""
    if part.part_kind == "tool-call":
        arguments = part.args if isinstance(part.args, str) else json.dumps(part.args)
        return 8 + estimate_text(part.tool_name + arguments)
    return _estimate_content(getattr(part, "content", ""))


def count_protected(limits: Limits, fixed: int, scale: float) -> int:
    """Tokens at the end that stay as they are: ``prune_protect``, less where the window is too small for that."""
    return max(0, min(limits.prune_protect, (limits.allowed - int(fixed * scale)) // 2))


def find_prunable(items: Sequence[Item], protected: int, scale: float = 1.0) -> list[str]:
    """The ids of the calls whose results may go: they lie before the last ``protected`` tokens."""
    behind, calls = 0.0, []
    for item in reversed(items):
        for part in reversed(item.message.parts):
            tokens = estimate_part(part)
            if part.part_kind == "tool-return" and behind >= protected and tokens > _LEAST_PRUNED_TOKENS:
                calls.append(part.tool_call_id)
            behind += tokens * scale
    return calls[::-1]


def prune_results(items: Iterable[Item], calls: Iterable[str]) -> list[Item]:
    """The same items with the results of these calls left out. The calls themselves stay, and are answered."""
    gone = frozenset(calls)
    pruned = []
    for item in items:
        if any(_is_result_of(part, gone) for part in item.message.parts):
            parts = [
                dataclasses.replace(part, content=PRUNED_TEXT) if _is_result_of(part, gone) else part
                for part in _list_parts(item.message)
            ]
            item = make_item(item.number, item.purpose, dataclasses.replace(item.message, parts=parts))  # type: ignore[arg-type]
        pruned.append(item)
    return pruned


def choose_cut(items: Sequence[Item], protected: int, scale: float = 1.0) -> int:
    """The index of the first item that stays after a compaction; results never stay without their calls."""
    behind, cut = 0.0, len(items)
    while cut > 0 and (behind < protected or cut == len(items)):  # the newest request stays in any case
        cut -= 1
        behind += (items[cut].tokens - MESSAGE_TOKENS) * scale
    while 0 < cut < len(items) and items[cut].purpose == "results":
        cut -= 1
    return cut


def choose_instructions(items: Sequence[Item], cut: int, limits: Limits) -> list[int]:
    """The numbers of what the user asked before ``cut`` and stays word for word: the first; of the others the newest,
    up to a tenth of the window."""
    asked = [item for item in items[:cut] if item.purpose == "instruction"]
    chosen, room = [item.number for item in asked[:1]], limits.window * _INSTRUCTION_SHARE
    for item in reversed(asked[1:]):
        room -= item.tokens
        if room < 0:
            break
        chosen.append(item.number)
    return sorted(chosen)


def compact_items(items: Sequence[Item], keep_from: int, instructions: Iterable[int], summary: Item) -> list[Item]:
    """The instructions of these numbers, the summary, and what has number ``keep_from`` or a later one."""
    chosen = frozenset(instructions)
    before = [
        item for item in items if item.purpose == "instruction" and item.number in chosen and item.number < keep_from
    ]
    return [*before, summary, *(item for item in items if item.number >= keep_from)]


def limit_images(messages: Sequence[ModelMessage], most: int) -> tuple[list[ModelMessage], int]:
    """The same messages with all but the newest ``most`` images left out, and how many that are."""
    total = sum(_count_images(part) for message in messages for part in message.parts)
    surplus = left = max(0, total - most)
    if not surplus:
        return list(messages), 0
    limited: list[ModelMessage] = []
    for message in messages:
        if left and any(_count_images(part) for part in message.parts):
            parts = []
            for part in message.parts:
                images = min(left, _count_images(part))
                left -= images
                parts.append(_drop_images(part, images) if images else part)
            message = dataclasses.replace(message, parts=parts)  # type: ignore[arg-type]
        limited.append(message)
    return limited, surplus


def render_transcript(items: Iterable[Item], max_tokens: int) -> str:
    """What happened, as text for a summary; of a long one, the beginning and the end."""
    lines = []
    for item in items:
        for part in item.message.parts:
            if part.part_kind == "tool-call":
                arguments = part.args if isinstance(part.args, str) else json.dumps(part.args)
                lines.append(f"[call] {part.tool_name} {clip_middle(arguments or '', _CLIPPED_RESULT)}")
            elif part.part_kind == "tool-return":
                lines.append(f"[result of {part.tool_name}] {clip_middle(_flatten(part.content), _CLIPPED_RESULT)}")
            elif part.part_kind in ("text", "user-prompt"):
                who = "assistant" if item.purpose == "reply" else "user" if item.purpose == "instruction" else "host"
                lines.append(f"[{who}] {clip_middle(_flatten(part.content), _CLIPPED_TEXT)}")
    return clip_middle("\n".join(lines), max(400, max_tokens * BYTES_PER_TOKEN))


def _estimate_content(content: Any) -> int:
    if isinstance(content, str):
        return estimate_text(content)
    if isinstance(content, list | tuple):
        return sum(_estimate_content(piece) for piece in content)
    if content is None or getattr(content, "kind", "") == "cache-point":
        return 0
    return IMAGE_TOKENS if _is_image(content) else estimate_text(str(content))


def _list_parts(message: ModelMessage) -> list[Any]:
    return list(message.parts)


def _is_result_of(part: Any, calls: frozenset[str]) -> bool:
    return part.part_kind == "tool-return" and part.tool_call_id in calls


def _is_image(content: object) -> bool:
    return getattr(content, "kind", "") in ("binary", "image-url")


def _count_images(part: Any) -> int:
    content = getattr(part, "content", None)
    if isinstance(content, list | tuple):
        return sum(_is_image(piece) for piece in content)
    return int(_is_image(content))


def _drop_images(part: Any, most: int) -> Any:
    """The part with its first ``most`` images replaced by a word about it."""
    if not isinstance(part.content, list | tuple):
        return dataclasses.replace(part, content=IMAGE_TEXT)
    pieces: list[Any] = []
    for piece in part.content:
        if most and _is_image(piece):
            most -= 1
            piece = IMAGE_TEXT
        pieces.append(piece)
    return dataclasses.replace(part, content=pieces)


def _flatten(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        return " ".join(piece if isinstance(piece, str) else "[image]" for piece in content)
    return "" if content is None else str(content)
