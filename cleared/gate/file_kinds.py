"""What the files are that are proposed, by where they lie."""

from __future__ import annotations

from typing import Final, Literal

from cleared.base.safe_names import require_plain_name
from cleared.workspace.location import Layout

Kind = Literal["agent", "script", "case", "config", "text"]
"""``text``: a file of ``rules/`` or ``templates/``. It has no behaviour: people and models read it."""
CASES_DIR: Final = "tests/cases"
_TEXT_PLACES: Final = {"rules": (".md", ".txt"), "templates": (".md", ".txt", ".py")}


def file_kind(path: str) -> Kind | None:
    """What kind of file lies at this path; None where it cannot be proposed.

    Raises ``UsageError`` for a name that could lead elsewhere, or that looks like another one.
    """
    if path == Layout.config_file:
        return "config"
    folder, _, name = path.rpartition("/")
    places: tuple[tuple[Kind, str, str], ...] = (
        ("agent", Layout.agents_dir, ".py"),
        ("script", Layout.scripts_dir, ".py"),
        ("case", CASES_DIR, ".json"),
    )
    for kind, place, suffix in places:
        if folder == place and name.endswith(suffix):
            require_plain_name(name.removesuffix(suffix), kind)
            return kind
    if folder in _TEXT_PLACES and name.endswith(_TEXT_PLACES[folder]):
        require_plain_name(name, "text")
        return "text"
    return None
