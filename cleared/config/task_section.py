"""The section ``tasks``: who works on tasks, and for how long."""

from __future__ import annotations

from typing import Literal

from cleared.config.section import Section, config_section


@config_section
class Tasks(Section):
    """Tasks (``cleared task``): who works on them where no person does. Flags take precedence."""

    command: str | None = None
    """A shell command that works on a task: in a private clone, without network, the briefing as its input."""
    agent: str | None = None
    """Or an agent whose result is the changed files."""
    engine: Literal["codex", "qwen", "opencode", "claude"] | None = None
    """Or a coding engine, with the opt-in of AI cycles."""
    work_seconds: float = 1800.0
    """The most that a worker may take for one task."""
    verify_seconds: float = 600.0
    """The most that a verification command may take."""
