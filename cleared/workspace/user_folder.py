"""Where what is this user's, and no workspace's, lies."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from cleared.base.errors import Place, UsageError


def cleared_home() -> Path:
    """Where this user's key and trust lie: ``$CLEARED_HOME``, else the platform's configuration folder.

    Raises ``UsageError`` where the variable that says so is not absolute: each folder that a command is run in would
    be another home, with other keys, and nobody trusted there.
    """
    chosen = _read_folder("CLEARED_HOME")
    if chosen is not None:
        return chosen
    if sys.platform == "win32":
        return (_read_folder("APPDATA") or user_home() / "AppData" / "Roaming") / "cleared"
    return config_home() / "cleared"


def config_home() -> Path:
    """Where the programs of this user keep their settings: ``$XDG_CONFIG_HOME``, else ``~/.config``. Raises as
    ``cleared_home``."""
    return _read_folder("XDG_CONFIG_HOME") or user_home() / ".config"


def user_home() -> Path:
    """The user's home directory: ``$HOME``, else what the system knows. Raises ``UsageError`` where it is not absolute,
    or there is none."""
    named = os.environ.get("HOME") if sys.platform != "win32" else None
    if named is not None:
        return _require_absolute("HOME", named)
    try:
        return Path.home()
    except RuntimeError:  # no variable, and the system does not know this user
        raise UsageError(
            "this user has no home directory to keep keys in",
            place=Place(field="HOME"),
            remedy="Set HOME (or CLEARED_HOME) to an absolute path.",
        ) from None


def trust_folder() -> Path:
    """Where it is kept whom this user trusts, a file for each workspace; it is written to whenever one changes."""
    return cleared_home() / "workspaces"


def _read_folder(variable: str) -> Path | None:
    """The folder that a variable names; None where it is not set, or empty."""
    text = os.environ.get(variable)
    return _require_absolute(variable, text) if text else None


def _require_absolute(variable: str, text: str) -> Path:
    folder = Path(text)
    if folder.is_absolute():
        return folder
    examples = {"HOME": "/home/ana", "XDG_CONFIG_HOME": "/home/ana/.config, or unset it"}
    example = examples.get(variable, "/home/ana/keys, or unset it")
    raise UsageError(
        f"{text[:200]!r} is not an absolute path, so your keys would lie elsewhere in each folder that you are in",
        place=Place(field=variable),
        remedy=f"Set {variable} to an absolute path, such as {example}.",
    )
