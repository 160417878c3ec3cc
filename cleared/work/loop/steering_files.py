"""Files that programs run, or take their instructions and settings from, by their paths. Whoever brings one has others'
programs do something: so none that a worker or an engine has changed comes in before a person said so.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Final

from cleared.base.safe_names import fold_path

_ENGINE_NAMES: Final = frozenset(
    {
        "agents.md",
        "agents.override.md",
        "claude.md",
        "claude.local.md",
        "qwen.md",
        "context.md",
        "opencode.json",
        "opencode.jsonc",
        ".mcp.json",
        ".env",
        "bunfig.toml",
    }
)
"""Files that engines take their instructions or settings from, wherever they lie. The last two are read where an engine
starts: they name its provider, to which its credential goes, or a program to run before it."""
_ENGINE_FOLDERS: Final = frozenset({".agents", ".claude", ".codex", ".opencode", ".qwen"})
"""Folders of whose files they do."""
_HARMLESS_TYPES: Final = frozenset(
    {
        *(".md", ".markdown", ".rst", ".adoc", ".txt", ".csv", ".tsv", ".jsonl", ".ndjson"),
        *(".pdf", ".png", ".jpg", ".jpeg", ".gif", ".webp"),
    }
)
"""Documents, tables and pictures. All others steer: of names of settings and sources there is no end, new tools bring
new ones, and a module beside a program is imported in place of one of the system's."""
_STEERING_FOLDERS: Final = frozenset(
    {"skills", "commands", "prompts", "hooks", "memories", "memory-bank", "steering", "node_modules", "__pycache__"}
)
"""Folders of which tools read documents, too."""
_STEERING_NAMES: Final = (
    *(
        "agent.md",
        "gemini.md",
        "iflow.md",
        "warp.md",
        "crush.md",
        "codex.md",
        "conventions.md",
        "skill.md",
        "memory.md",
    ),
    *("copilot-instructions.md", "*.instructions.md", "*.prompt.md", "*.chatmode.md", "*.agent.md", "prompt.md"),
    *("consensus.md*", "replit.md", "soul.md", "tools.md", "identity.md", "heartbeat.md", "llms*.txt"),
    *("requirements*.txt", "*requirements.txt", "constraints*.txt", "cmakelists.txt", "meson_options.txt"),
    *("conanfile.txt", "runtime.txt", "packages.txt", "apt.txt", "entry_points.txt", "top_level.txt"),
    *("test*.txt", "*.egg-info", "*.dist-info"),
)
"""Names of documents, and of folders of them, that tools take instructions or settings from, in lower case. pytest runs
examples in ``test*.txt``."""


def is_read_by_engines(path: str) -> bool:
    """Whether engines take instructions or settings from what lies at this path, by its names."""
    *folders, name = fold_path(path).split("/")
    is_named = name in _ENGINE_NAMES or name.startswith(".env.") or not _ENGINE_FOLDERS.isdisjoint(folders)
    return is_named or folders[:1] in (["rules"], ["templates"])


def steers_programs(path: str) -> bool:
    """Whether some program may run what lies at this path, or be steered by it, though nobody names it to that program:
    all but documents, tables and pictures under names that say nothing to any.

    A name that begins with a hyphen is an option where somebody says ``*`` in a shell.
    """
    parts = fold_path(path).split("/")
    is_hidden = any(part.startswith((".", "-")) for part in parts)
    is_named = any(fnmatchcase(part, name) for part in parts for name in _STEERING_NAMES)
    is_harmless = PurePosixPath(parts[-1]).suffix in _HARMLESS_TYPES and _STEERING_FOLDERS.isdisjoint(parts)
    return is_hidden or is_named or not is_harmless or is_read_by_engines(path)
