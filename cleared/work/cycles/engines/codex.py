"""Codex CLI: ``codex exec``. Output: JSON lines (``thread.started``, ``item.completed``, ``turn.completed`` …)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cleared.work.cycles.engines.engine import (
    Engine,
    EngineReport,
    LaunchOptions,
    read_json_lines,
    read_tokens,
    text_of,
)
from cleared.work.cycles.usage_limit import names_limit


def build_arguments(options: LaunchOptions) -> tuple[str, ...]:
    """``-`` has it read the prompt from standard input."""
    model = ("--model", options.model) if options.model else ()
    return (
        "exec",
        "--json",
        "--color",
        "never",
        "--skip-git-repo-check",
        "--sandbox",
        options.sandbox_mode,
        *model,
        "-",
    )


def read_output(output: str) -> EngineReport:
    """Codex tells tokens, not dollars. A limit comes as an ``error`` or ``turn.failed`` event. An ``error`` is also
    what it says while it connects again; where the turn is completed after it, it did."""
    text = limit = question = ""
    failed, tokens = False, 0
    for event in read_json_lines(output):
        kind, item = event.get("type"), event.get("item")
        if kind == "item.completed" and isinstance(item, dict) and item.get("type") == "agent_message":
            text = text_of(item.get("text"))
        elif kind == "turn.completed":
            failed, limit, question = False, "", ""
            tokens += read_tokens(event.get("usage"))
        elif kind in ("error", "turn.failed"):
            failed = True
            error = event.get("error")
            message = text_of(error.get("message") if isinstance(error, dict) else event.get("message"))
            limit = message if names_limit(message) else limit
            question = message if "approval" in message.lower() else question
    return EngineReport(text, None, failed, limit, question, tokens=tokens)


def describe_event(event: Mapping[str, Any]) -> str:
    """What it says, and the commands that it begins."""
    item = event.get("item")
    if not isinstance(item, dict) or event.get("type") not in ("item.started", "item.completed"):
        return text_of(event.get("message")) if event.get("type") == "error" else ""
    if event["type"] == "item.started":
        return text_of(item.get("command"))
    if item.get("type") == "file_change" and isinstance(item.get("changes"), list):
        return ", ".join(f"{each.get('kind')} {each.get('path')}" for each in item["changes"] if isinstance(each, dict))
    return text_of(item.get("text")) if item.get("type") == "agent_message" else ""


ENGINE = Engine(
    name="codex",
    title="Codex CLI",
    binary="codex",
    binary_variable="CODEX_BIN",
    verified="0.169.0, 2026-11-22",
    install_hint="npm install -g @openai/codex",
    arguments=build_arguments,
    read_output=read_output,
    describe_event=describe_event,
    variables=("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME", "OPENAI_BASE_URL"),
    credential_paths=(".codex",),
    folder_variables=(("CODEX_HOME", ""),),
    names_cost=False,
)
