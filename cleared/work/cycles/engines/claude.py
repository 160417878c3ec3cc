"""Claude Code: ``claude -p``. Output: JSON lines as it works, the last of type ``result``."""

from __future__ import annotations

from cleared.work.cycles.engines.engine import Engine, EngineReport, LaunchOptions, describe_message, read_result_events
from cleared.work.cycles.usage_limit import names_limit


def build_arguments(options: LaunchOptions) -> tuple[str, ...]:
    """``-p`` without a prompt reads it from standard input."""
    model = ("--model", options.model) if options.model else ()
    fixed = ("-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions")
    return (*fixed, "--no-session-persistence", *model)


def read_output(output: str) -> EngineReport:
    """See ``read_result_events``."""
    return read_result_events(output, names_limit)


ENGINE = Engine(
    name="claude",
    title="Claude Code",
    binary="claude",
    binary_variable="CLAUDE_BIN",
    verified="2.1.332, 2026-11-27",
    install_hint="npm install -g @anthropic-ai/claude-code",
    arguments=build_arguments,
    read_output=read_output,
    describe_event=describe_message,
    variables=("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"),
    credential_paths=(".claude", ".claude.json"),
    folder_variables=(("CLAUDE_CONFIG_DIR", ""),),
    fenced_variables={"IS_SANDBOX": "1"},  # without it, it takes no permissions from root
    file_suffix="-claude",
)
