"""The section ``tasks``: who works on tasks, and for how long."""

from __future__ import annotations

from typing import Literal

from cleared.workspace.settings.section import Section, config_section, protected


@config_section
class Tasks(Section):
    """Tasks (``cleared task``): who works on them where no person does. Flags take precedence."""

    command: str | None = protected(default=None)
    """A shell command that works on a task: in a private clone, without network, the briefing as its input."""
    agent: str | None = protected(default=None)
    """Or an agent whose result is the changed files."""
    engine: Literal["codex", "qwen", "opencode", "claude"] | None = protected(default=None)
    """Or a coding engine, with the opt-in of AI cycles."""
    work_seconds: float = protected(default=1800.0)
    """The most that a worker may take for one task."""
    verify_seconds: float = protected(default=600.0)
    """The most that a verification command may take."""
