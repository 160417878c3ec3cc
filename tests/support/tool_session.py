"""A session's tools over a real workspace, and what tests say with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness import Workspace

from cleared.changes.workspace_opening import open_workspace
from cleared.meta.tools.overlay import Overlay
from cleared.meta.tools.tool_set import ToolSet, open_tool_set

SESSION = "S20250210T060000-0a1b"


class Session:
    """The tools, and what a test says with them."""

    def __init__(self, ws: Workspace, session_id: str = SESSION, author: str = "chat") -> None:
        self.ws = ws
        self.folder = ws.root / ".cleared/sessions" / session_id
        self.overlay = Overlay(self.folder / "overlay")
        self.tools: ToolSet = open_tool_set(open_workspace(ws.root), self.overlay, session_id=session_id, author=author)

    def ok(self, name: str, /, **arguments: Any) -> str:
        result = self.tools.call(name, arguments)
        assert result.outcome == "ok", result.text
        return result.text

    def failed(self, name: str, /, *phrases: str, **arguments: Any) -> str:
        result = self.tools.call(name, arguments)
        assert result.outcome == "failed", result
        assert result.text.startswith(f"[failed] {name}: ") and "What to do: " in result.text
        assert all(phrase in result.text for phrase in phrases), result.text
        return result.text

    def invalid(self, name: str, /, *phrases: str, **arguments: Any) -> str:
        result = self.tools.call(name, arguments)
        assert result.outcome == "invalid", result
        assert result.text.startswith("[invalid call] ")
        assert all(phrase in result.text for phrase in phrases), result.text
        return result.text


def files_below(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
