"""Qwen Code: ``qwen --yolo``. Output: JSON lines, the last of type ``result``."""

from __future__ import annotations

from cleared.cycles.engines.engine import Engine, EngineReport, LaunchOptions, read_cost, read_json_lines, text_of
from cleared.cycles.usage_limit import names_limit


def build_arguments(options: LaunchOptions) -> tuple[str, ...]:
    """Without a positional prompt it reads the prompt from standard input."""
    model = ("--model", options.model) if options.model else ()
    return ("--yolo", "--output-format", "stream-json", *model)


def read_output(output: str) -> EngineReport:
    """The ``result`` event has ``is_error``, and ``result`` or ``error`` as text."""
    report = EngineReport()
    for event in read_json_lines(output):
        if event.get("type") == "result":
            error = event.get("error")
            message = text_of(error.get("message") if isinstance(error, dict) else error)
            text = text_of(event.get("result")) or message
            failed = event.get("is_error") is True
            limit = text if failed and names_limit(text) else ""
            denied = event.get("permission_denials")
            question = f"it was not allowed to use a tool: {denied}"[:400] if denied else ""
            report = EngineReport(text, read_cost(event.get("total_cost_usd")), failed, limit, question)
    return report


ENGINE = Engine(
    name="qwen",
    title="Qwen Code",
    binary="qwen",
    binary_variable="QWEN_BIN",
    verified="0.24.4, 2026-11-22",
    install_hint="npm install -g @qwen-code/qwen-code",
    arguments=build_arguments,
    read_output=read_output,
    variables=("DASHSCOPE_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"),
    credential_paths=(".qwen",),
    file_suffix="-qwen",
)
