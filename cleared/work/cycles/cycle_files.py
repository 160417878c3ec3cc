"""The files that ``cleared cycle init`` makes, and what git is told to ignore."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cleared.base.errors import Place, WorkspaceError
from cleared.base.safe_files import write_atomic, write_new
from cleared.work.cycles.consensus import CONSENSUS, INITIAL
from cleared.work.cycles.cycle_prompt import PROMPT_FILE

_FILES: Final = Path(__file__).parent / "files"
_IGNORED: Final = (
    ".auto-loop*",
    "logs/auto-loop*",
    "logs/cycle-*",
    "memories/*.bak",
    "memories/*.cycle-*",
    "node_modules/",
    ".venv/",
    "__pycache__/",
)
_IGNORE_FILE: Final = ".gitignore"
_HEADER: Final = '#!/bin/sh\n# {about}\nset -eu\ncd "$(dirname "$0")/../.."\n'
_SCRIPTS: Final = {
    "auto-loop": ("The loop of AI cycles with Codex, in the foreground.", "codex"),
    "auto-loop-qwen": ("The loop of AI cycles with Qwen Code, in the foreground.", "qwen"),
    "auto-loop-opencode": ("The loop of AI cycles with OpenCode, in the foreground.", "opencode"),
    "auto-loop-claude": ("The loop of AI cycles with Claude Code, in the foreground.", "claude"),
}


def cycle_files() -> dict[str, tuple[bytes, int]]:
    """Path → content and permissions of every file that ``init`` makes."""
    files = {
        PROMPT_FILE: ((_FILES / "PROMPT.md").read_bytes(), 0o644),
        CONSENSUS: (INITIAL, 0o644),
        "Makefile": ((_FILES / "Makefile").read_bytes(), 0o644),
    }
    for name, (about, engine) in _SCRIPTS.items():
        text = _HEADER.format(about=about) + f'CLEARED_ALLOW_AI=1 exec cleared cycle start --engine {engine} "$@"\n'
        files[f"scripts/core/{name}.sh"] = (text.encode(), 0o755)
    for name, about, command in (
        ("monitor", "Follows the log of the loop of AI cycles.", "monitor"),
        ("stop-loop", "Stops the loop of AI cycles, whatever its engine.", "stop"),
    ):
        text = _HEADER.format(about=about) + f'exec cleared cycle {command} "$@"\n'
        files[f"scripts/core/{name}.sh"] = (text.encode(), 0o755)
    return files


def make_cycle_files(root: Path) -> tuple[list[str], list[str]]:
    """Write the files that are not there yet: ``(made, kept)``. Git is told what to ignore.

    Raises ``WorkspaceError`` where a folder on the way is a link, or the file that git reads: nothing is made then.
    """
    made: list[str] = []
    kept: list[str] = []
    files = cycle_files()
    folders = dict.fromkeys(str(parent) for path in files for parent in Path(path).parents)
    for path in (*folders, _IGNORE_FILE):
        if (root / path).is_symlink():
            raise WorkspaceError(
                "it is a link; nothing is written through it",
                place=Place(path),
                remedy="Put what it leads to in its place, and say it again.",
            )
    for path, (content, mode) in files.items():
        full = root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        (made if write_new(full, content, mode=mode) else kept).append(path)
    if _ignore_in_git(root):
        made.append(_IGNORE_FILE)
    return made, kept


def _ignore_in_git(root: Path) -> bool:
    """Add what is missing to ``.gitignore``; whether something was."""
    path = root / _IGNORE_FILE
    text = path.read_text(encoding="utf-8", errors="surrogateescape") if path.is_file() else ""
    missing = [pattern for pattern in _IGNORED if pattern not in text.splitlines()]
    if missing:
        gap = "" if not text or text.endswith("\n") else "\n"
        lines = "\n".join(["# AI cycles: what is only of this machine.", *missing])
        write_atomic(path, f"{text}{gap}{lines}\n".encode("utf-8", "surrogateescape"))
    return bool(missing)
