"""Claude Code: ``claude -p``. Output: one JSON object of type ``result``."""

from __future__ import annotations

from cleared.cycles.engines.engine import Engine, EngineReport, LaunchOptions, read_cost, read_json_lines, text_of
from cleared.cycles.usage_limit import names_limit


def build_arguments(options: LaunchOptions) -> tuple[str, ...]:
    """``-p`` without a prompt reads it from standard input."""
    model = ("--model", options.model) if options.model else ()
    return ("-p", "--output-format", "json", "--dangerously-skip-permissions", "--no-session-persistence", *model)


def read_output(output: str) -> EngineReport:
    """``is_error``, ``result``, ``total_cost_usd`` and ``permission_denials`` of the last result."""
    report = EngineReport()
    for event in read_json_lines(output):
        if event.get("type") == "result":
            text, failed = text_of(event.get("result")), event.get("is_error") is True
            limit = text if failed and names_limit(text) else ""
            denied = event.get("permission_denials")
            question = f"it was not allowed to use a tool: {denied}"[:400] if denied else ""
            report = EngineReport(text, read_cost(event.get("total_cost_usd")), failed, limit, question)
    return report


ENGINE = Engine(
    name="claude",
    title="Claude Code",
    binary="claude",
    binary_variable="CLAUDE_BIN",
    verified="2.1.330, 2026-11-22",
    install_hint="npm install -g @anthropic-ai/claude-code",
    arguments=build_arguments,
    read_output=read_output,
    variables=("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"),
    credential_paths=(".claude", ".claude.json"),
    file_suffix="-claude",
)
