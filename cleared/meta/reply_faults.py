"""Replies that are not taken: empty ones, and those without an end. The model is told, and after a few it ends."""

from __future__ import annotations

from typing import Final

from cleared.meta.completion_check import Ending

MAX_FAULTS: Final = 3
"""So many one after the other end the session."""
_NOTICES: Final = {
    "empty": "Your reply was empty. Go on with the user's request: call a tool, or reply in words.",
    "cut_off": "Your last reply was cut off at its greatest length, {most_tokens} tokens. It was not taken: it is no "
    "answer, and no call of it was made. Say it again, shorter; write long files in several parts.",
    "barred": "The provider broke off your last reply. It was not taken: it is no answer, and no call of it was made. "
    "Go on in another way.",
}
_ENDINGS: Final = {
    "empty": ("empty_replies", "the model gave {count} empty replies one after the other"),
    "cut_off": (
        "cut_off",
        "{count} replies one after the other were cut off at {most_tokens} tokens (llm.max_tokens); none was taken",
    ),
    "barred": ("barred", "the provider broke off {count} replies one after the other; none was taken"),
}


def judge_fault(fault: str, count: int, most_tokens: int) -> str | Ending:
    """What the model is told of a reply that was not taken; after too many, how the session ends."""
    words = {"count": count, "most_tokens": f"{most_tokens:,}"}
    if count < MAX_FAULTS:
        return _NOTICES[fault].format(**words)
    reason, message = _ENDINGS[fault]
    return Ending("stopped", reason, message.format(**words))
