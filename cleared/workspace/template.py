"""What new workspaces begin with: the starter agents, scripts and configuration, and a chart for each kind of business.

There is one source of them, wherever the package was installed from.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from cleared.base.errors import UsageError, WorkspaceError

_PACKAGE = Path(__file__).parent.parent


def starter_folder() -> Path:
    """Where the starters are: in the wheel, or at the top of the checkout. Raises ``WorkspaceError``."""
    for place in (_PACKAGE / "starters", _PACKAGE.parent):
        if (place / "config.yaml").is_file() and (place / "agents" / "ingest.py").is_file():
            return place
    raise WorkspaceError(
        "this installation lacks the starter files",
        remedy="Install again, in the checkout: pip install --force-reinstall .",
    )


def starter_files() -> dict[str, bytes]:
    """Relative path → content of the starter agents and shared scripts."""
    top = starter_folder()
    return {
        f"{kind}/{path.name}": path.read_bytes()
        for kind in ("agents", "scripts")
        for path in sorted((top / kind).glob("*.py"))
        if not path.name.startswith((".", "_"))
    }


def shell_scripts() -> dict[str, bytes]:
    """Relative path → content of the commands for a person's shell that lie beside the shared scripts."""
    top = starter_folder()
    return {f"scripts/{path.name}": path.read_bytes() for path in sorted((top / "scripts").glob("*.sh"))}


def starter_config() -> str:
    """The commented ``config.yaml`` that new workspaces begin with."""
    return (starter_folder() / "config.yaml").read_text(encoding="utf-8")


def was_shipped(path: str, data: bytes) -> bool:
    """Whether these bytes are a version of the starter at ``path`` that this program or an earlier one brought."""
    return (hashlib.sha256(data).hexdigest(), path) in shipped_digests()


def was_path_shipped(path: str) -> bool:
    """Whether a starter was ever shipped at ``path``."""
    return any(path == known for _, known in shipped_digests())


@cache
def shipped_digests() -> frozenset[tuple[str, str]]:
    """sha256 and path of every version of a starter that was ever shipped, today's too."""
    lines = (Path(__file__).parent / "starter_digests.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split() for line in lines if not line.startswith("#"))
    return frozenset((digest, path) for digest, path in pairs)


ENTITY_TYPES = ("llc_single_member", "s_corp", "sole_proprietor", "generic")
_FOLDER = Path(__file__).parent / "charts"


def read_starter_chart(entity_type: str) -> bytes:
    """``accounts/chart-of-accounts.csv`` for a kind of business. Raises ``UsageError`` for an unknown one."""
    if entity_type not in ENTITY_TYPES:
        raise UsageError(f"{entity_type!r} is not a kind of business", remedy=f"Use {', '.join(ENTITY_TYPES)}.")
    return (_FOLDER / f"{entity_type}.csv").read_bytes()
