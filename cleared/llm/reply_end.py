"""Whether an answer of a model came to its end. Every provider has words of its own for one that did not."""

from __future__ import annotations

from typing import Any, Final, Literal

MissingEnd = Literal["cut_off", "barred"]
"""``cut_off``: it was longer than it may be. ``barred``: the provider broke it off for what it says."""

_CUT_OFF: Final = frozenset(
    {
        "length",  # OpenAI, OpenRouter, Ollama's done_reason
        "max_tokens",  # Anthropic, Gemini
        "max_output_tokens",  # OpenAI's other interface
        "model_context_window_exceeded",  # Anthropic
        "model_length",  # Mistral
        "token_limit",
    }
)
_BARRED: Final = frozenset(
    {"content_filter", "refusal", "safety", "recitation", "blocklist", "prohibited_content", "spii", "error"}
)
_NAMED_IN: Final = ("finish_reason", "native_finish_reason", "stop_reason", "done_reason")


def find_missing_end(reply: Any) -> MissingEnd | None:
    """Why this ``ModelResponse`` has no end, however its provider says so; None where it has one."""
    details = reply.provider_details or {}
    words = {str(word).lower() for word in (reply.finish_reason, *(details.get(name) for name in _NAMED_IN))}
    if words & _CUT_OFF:
        return "cut_off"
    return "barred" if words & _BARRED else None
