"""OpenCode: ``opencode run``. Output: JSON lines (``text``, ``step_finish`` with its cost, ``error``)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from cleared.work.cycles.engines.engine import (
    Engine,
    EngineReport,
    LaunchOptions,
    describe_use,
    read_cost,
    read_json_lines,
    read_tokens,
    text_of,
)
from cleared.work.cycles.usage_limit import names_limit


def build_arguments(options: LaunchOptions) -> tuple[str, ...]:
    """What is piped in is its message. ``--auto`` answers questions for permission with yes."""
    model = ("--model", options.model) if options.model else ()
    return ("run", "--format", "json", "--auto", *model)


def read_output(output: str) -> EngineReport:
    """Each ``step_finish`` has the cost of its step."""
    text = limit = question = ""
    cost: Decimal | None = None
    failed, tokens = False, 0
    for event in read_json_lines(output):
        part = event.get("part")
        part = part if isinstance(part, dict) else {}
        if event.get("type") == "text":
            text = text_of(part.get("text"))
        elif event.get("type") == "step_finish":
            step = read_cost(part.get("cost"))
            used = part.get("tokens")
            tokens += read_tokens(used, ("input", "output", "reasoning"))
            tokens += read_tokens(used.get("cache") if isinstance(used, dict) else None, ("read", "write"))
            cost = (cost or Decimal(0)) + step if step is not None else cost
        elif event.get("type") == "error":
            failed = True
            error = event.get("error")
            data = error.get("data") if isinstance(error, dict) else None
            message = text_of(data.get("message") if isinstance(data, dict) else error)
            limit = message if names_limit(message) else limit
            question = message if "permission" in message.lower() else question
    return EngineReport(text, cost, failed, limit, question, tokens=tokens)


def describe_event(event: Mapping[str, Any]) -> str:
    """What it says, and the tools that it has used."""
    part = event.get("part")
    if not isinstance(part, dict):
        return ""
    if event.get("type") == "tool_use":
        state = part.get("state")
        return f"{text_of(part.get('tool'))}: {describe_use(state.get('input') if isinstance(state, dict) else None)}"
    return text_of(part.get("text")) if event.get("type") == "text" else ""


ENGINE = Engine(
    name="opencode",
    title="OpenCode",
    binary="opencode",
    binary_variable="OPENCODE_BIN",
    verified="1.18.33, 2026-11-22",
    install_hint="npm install -g opencode-ai",
    arguments=build_arguments,
    read_output=read_output,
    describe_event=describe_event,
    variables=("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "OPENCODE_CONFIG"),
    credential_paths=(".local/share/opencode", ".config/opencode", ".cache/opencode", ".local/state/opencode"),
    folder_variables=tuple((f"XDG_{name}_HOME", "opencode") for name in ("DATA", "CONFIG", "CACHE", "STATE")),
    file_suffix="-opencode",
)
