"""The sections of coding engines: ``loop.ai``, AI cycles, and ``tasks``, who works on tasks and for how long."""

# Without annotations from __future__: each would be a text, to be compiled by every command that reads its settings.

from decimal import Decimal
from typing import Final, Literal, get_args

from cleared.workspace.settings.section import Program, Protected, Section

EngineName = Literal["codex", "qwen", "opencode", "claude"]
ENGINE_NAMES: Final[tuple[str, ...]] = get_args(EngineName)
ONE_LINE_TEXTS: Final = ("model", *map("{}_bin".format, ENGINE_NAMES), "codex_sandbox_mode")
"""Settings that are handed to another program as one argument."""


class LoopAi(Section, frozen=True, kw_only=True):
    """AI cycles (``cleared cycle``), and tasks that an engine works on: it does so in a private clone. Flags and the
    environment variables named here take precedence."""

    enabled: Program[bool] = False
    """Whether AI cycles may run at all. A start needs ``--allow-ai`` (or CLEARED_ALLOW_AI=1) besides."""
    engine: Program[EngineName] = "codex"
    model: Protected[str | None] = None
    """None: the engine's own choice. MODEL."""
    codex_bin: Program[str | None] = None
    """None: ``codex`` on the path. CODEX_BIN."""
    qwen_bin: Program[str | None] = None
    """QWEN_BIN."""
    opencode_bin: Program[str | None] = None
    """OPENCODE_BIN."""
    claude_bin: Program[str | None] = None
    """CLAUDE_BIN."""
    codex_sandbox_mode: Protected[str] = "danger-full-access"
    """Codex's own sandbox. CODEX_SANDBOX_MODE."""
    interval_seconds: Protected[float] = 30.0
    """Between two cycles. LOOP_INTERVAL."""
    cycle_timeout_seconds: Protected[float] = 1800.0
    """The most one cycle may take. CYCLE_TIMEOUT_SECONDS."""
    max_consecutive_errors: Protected[int] = 5
    """Failures in a row after which it cools down. MAX_CONSECUTIVE_ERRORS."""
    max_no_progress: Protected[int] = 3
    """Cycles in a row that leave the consensus as it was, after which it ends; 0: it goes on. MAX_NO_PROGRESS."""
    cooldown_seconds: Protected[float] = 300.0
    """How long that takes. COOLDOWN_SECONDS."""
    limit_wait_seconds: Protected[float] = 3600.0
    """How long to wait where a usage limit names no time. LIMIT_WAIT_SECONDS."""
    max_logs: Protected[int] = 200
    """So many of the newest cycles' logs are kept. MAX_LOGS."""
    max_output_mb: Protected[int] = 64
    """So much of what an engine prints in one cycle is kept in its log."""
    max_cycles: Protected[int | None] = None
    """After how many cycles it ends; None: it goes on. --max-cycles."""
    cost_cap: Protected[Decimal] = Decimal(0)
    """US dollars of all cycles and tasks since the last reset of the consensus, at which it stops; 0: none. Only what
    engines report can be counted."""
    max_tokens: Protected[int] = 0
    """Tokens of all of them since then, read and written, at which it stops; 0: no cap."""
    max_minutes: Protected[int] = 0
    """Minutes of work of all of them since then, at which it stops; 0: no cap. No engine names what a plan pays for."""
    program_folders: Program[tuple[str, ...]] = ()
    """Folders that the engine may read and run programs from, beside the system's and its own."""
    environment: Program[tuple[str, ...]] = ()
    """Environment variables that the engine gets beside its own, such as ANTHROPIC_AUTH_TOKEN, or AWS_* for all that
    begin so."""


class Tasks(Section, frozen=True, kw_only=True):
    """Tasks (``cleared task``): who works on them where no person does. Flags take precedence."""

    command: Program[str | None] = None
    """A shell command that works on a task: in a private clone, without network, the briefing as its input."""
    agent: Program[str | None] = None
    """Or an agent whose result is the changed files."""
    engine: Program[EngineName | None] = None
    """Or a coding engine, with the opt-in of AI cycles."""
    workers: Protected[int] = 1
    """So many tasks are done at once, where their files do not meet."""
    work_seconds: Protected[float] = 1800.0
    """The most that a worker may take for one task."""
    verify_seconds: Protected[float] = 600.0
    """The most that a verification command may take."""
    read_only_folders: Program[tuple[str, ...]] = ()
    """Folders that a verification command may read and run programs from, but not change: of the workspace what git
    ignores, such as node_modules or .venv; with a / or ~ in front others, such as the interpreter of a .venv."""
