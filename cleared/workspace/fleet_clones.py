"""The clones that a fleet makes on this machine, and what is special about a workspace in one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from cleared.workspace.location import cleared_home
from cleared.workspace.settings.protected_settings import is_within

_FOLDER: Final = "fleet"
DESK: Final = "desk"
"""The folder of the owner's own clones: they are looked at, and decided in, here."""
CLONES: Final = "clones"
"""The folder of a worker's clones."""
WORKSPACE_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


def fleet_folder() -> Path:
    """Where this machine keeps its clones of the fleet's workspaces, and what belongs to them."""
    return cleared_home() / _FOLDER


def find_served(root: Path) -> str:
    """The name of the workspace whose clone this is, which the fleet has made on this machine; empty for any other."""
    places = [(fleet_folder() / part).resolve() for part in (DESK, CLONES)]
    return root.name if root.resolve().parent in places and WORKSPACE_NAME.fullmatch(root.name) else ""


def name_next_step(root: Path, changes: Iterable[tuple[str, Any, Any]]) -> str:
    """What the fleet's owner has to say once these changes of settings are approved, ``(key, before, after)`` each;
    empty where nothing: workers hear whose approvals count from them alone, in no push."""
    name = find_served(root)
    if not name or not any(is_within(key, ("reviewers", "bookkeepers")) for key, _, _ in changes):
        return ""
    return f"So that workers know who approves now, say of {name} once more: cleared fleet add NAME GIT-URL."
