"""Where the top of a workspace is."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cleared.base.errors import WorkspaceError

CONFIG_NAME: Final = "config.yaml"
APPROVED_CONFIG: Final = "agents/approvals/config.json"
"""The record that approves it."""


def find_workspace(start: Path | None = None) -> Path:
    """The root of the workspace that holds ``start`` (default: the current directory).

    Looks upwards for ``config.yaml``, as git does for ``.git``. Raises ``WorkspaceError``.
    """
    try:
        first = (start or Path.cwd()).resolve(strict=True)
    except (OSError, RuntimeError):
        raise WorkspaceError(f"there is no directory {start or 'here any more'}") from None
    for folder in (first, *first.parents):
        try:
            if (folder / CONFIG_NAME).is_file() or (folder / APPROVED_CONFIG).is_file():
                return folder  # without the file the first command says what brings it back
        except OSError:
            break  # not allowed to look: nothing above is ours
    raise WorkspaceError(
        f"{first} is not in a workspace: no {CONFIG_NAME} here or above",
        remedy="Make one with: cleared init DIR",
    )
