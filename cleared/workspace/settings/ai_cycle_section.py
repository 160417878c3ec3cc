"""The sections of coding engines: ``loop.ai``, AI cycles, and ``tasks``, who works on tasks and for how long."""

# Without annotations from __future__: each would be a text, to be compiled by every command that reads its settings.

from decimal import Decimal
from typing import Final, Literal, get_args

from cleared.workspace.settings.section import Section, config_section, program, protected

EngineName = Literal["codex", "qwen", "opencode", "claude"]
ENGINE_NAMES: Final[tuple[str, ...]] = get_args(EngineName)
ONE_LINE_TEXTS: Final = ("model", *map("{}_bin".format, ENGINE_NAMES), "codex_sandbox_mode")
"""Settings that are handed to another program as one argument."""


@config_section
class LoopAi(Section):
    """AI cycles (``cleared cycle``), and tasks that an engine works on: it does so in a private clone. Flags and the
    environment variables named here take precedence."""

    enabled: bool = program(default=False)
    """Whether AI cycles may run at all. A start needs ``--allow-ai`` (or CLEARED_ALLOW_AI=1) besides."""
    engine: EngineName = program(default="codex")
    model: str | None = protected(default=None)
    """None: the engine's own choice. MODEL."""
    codex_bin: str | None = program(default=None)
    """None: ``codex`` on the path. CODEX_BIN."""
    qwen_bin: str | None = program(default=None)
    """QWEN_BIN."""
    opencode_bin: str | None = program(default=None)
    """OPENCODE_BIN."""
    claude_bin: str | None = program(default=None)
    """CLAUDE_BIN."""
    codex_sandbox_mode: str = protected(default="danger-full-access")
    """Codex's own sandbox. CODEX_SANDBOX_MODE."""
    interval_seconds: float = protected(default=30.0)
    """Between two cycles. LOOP_INTERVAL."""
    cycle_timeout_seconds: float = protected(default=1800.0)
    """The most one cycle may take. CYCLE_TIMEOUT_SECONDS."""
    max_consecutive_errors: int = protected(default=5)
    """Failures in a row after which it cools down. MAX_CONSECUTIVE_ERRORS."""
    max_no_progress: int = protected(default=3)
    """Cycles in a row that leave the consensus as it was, after which it ends; 0: it goes on. MAX_NO_PROGRESS."""
    cooldown_seconds: float = protected(default=300.0)
    """How long that takes. COOLDOWN_SECONDS."""
    limit_wait_seconds: float = protected(default=3600.0)
    """How long to wait where a usage limit names no time. LIMIT_WAIT_SECONDS."""
    max_logs: int = protected(default=200)
    """So many of the newest cycles' logs are kept. MAX_LOGS."""
    max_output_mb: int = protected(default=64)
    """So much of what an engine prints in one cycle is kept in its log."""
    max_cycles: int | None = protected(default=None)
    """After how many cycles it ends; None: it goes on. --max-cycles."""
    cost_cap: Decimal = protected(default=Decimal(0))
    """US dollars of all cycles and tasks since the last reset of the consensus, at which it stops; 0: none. Only what
    engines report can be counted."""
    max_tokens: int = protected(default=0)
    """Tokens of all of them since then, read and written, at which it stops; 0: no cap."""
    max_minutes: int = protected(default=0)
    """Minutes of work of all of them since then, at which it stops; 0: no cap. No engine names what a plan pays for."""
    program_folders: tuple[str, ...] = program(default=())
    """Folders that the engine may read and run programs from, beside the system's and its own."""
    environment: tuple[str, ...] = program(default=())
    """Environment variables that the engine gets beside its own, such as ANTHROPIC_AUTH_TOKEN, or AWS_* for all that
    begin so."""


@config_section
class Tasks(Section):
    """Tasks (``cleared task``): who works on them where no person does. Flags take precedence."""

    command: str | None = program(default=None)
    """A shell command that works on a task: in a private clone, without network, the briefing as its input."""
    agent: str | None = program(default=None)
    """Or an agent whose result is the changed files."""
    engine: EngineName | None = program(default=None)
    """Or a coding engine, with the opt-in of AI cycles."""
    workers: int = protected(default=1)
    """So many tasks are done at once, where their files do not meet."""
    work_seconds: float = protected(default=1800.0)
    """The most that a worker may take for one task."""
    verify_seconds: float = protected(default=600.0)
    """The most that a verification command may take."""
    read_only_folders: tuple[str, ...] = program(default=())
    """Folders that a verification command may read and run programs from, but not change: of the workspace what git
    ignores, such as node_modules or .venv; with a / or ~ in front others, such as the interpreter of a .venv."""
