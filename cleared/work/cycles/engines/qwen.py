"""Qwen Code: ``qwen --yolo``. Output: JSON lines, the last of type ``result``."""

from __future__ import annotations

from cleared.work.cycles.engines.engine import Engine, EngineReport, LaunchOptions, describe_message, read_result_events
from cleared.work.cycles.usage_limit import names_limit


def build_arguments(options: LaunchOptions) -> tuple[str, ...]:
    """Without a positional prompt it reads the prompt from standard input."""
    model = ("--model", options.model) if options.model else ()
    return ("--yolo", "--output-format", "stream-json", *model)


def read_output(output: str) -> EngineReport:
    """See ``read_result_events``."""
    return read_result_events(output, names_limit)


ENGINE = Engine(
    name="qwen",
    title="Qwen Code",
    binary="qwen",
    binary_variable="QWEN_BIN",
    verified="0.24.4, 2026-11-22",
    install_hint="npm install -g @qwen-code/qwen-code",
    arguments=build_arguments,
    read_output=read_output,
    describe_event=describe_message,
    variables=("DASHSCOPE_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"),
    credential_paths=(".qwen",),
    names_cost=False,
    file_suffix="-qwen",
)
