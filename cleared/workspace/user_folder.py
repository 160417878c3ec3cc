"""Where what is this user's, and no workspace's, lies."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cleared_home() -> Path:
    """Where this user's key and trust lie: ``$CLEARED_HOME``, else the platform's configuration folder."""
    chosen = os.environ.get("CLEARED_HOME")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        base = os.environ.get("APPDATA") or str(Path.home() / "AppData" / "Roaming")
    else:
        base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "cleared"


def trust_folder() -> Path:
    """Where it is kept whom this user trusts, a file for each workspace; it is written to whenever one changes."""
    return cleared_home() / "workspaces"
