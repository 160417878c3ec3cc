"""Whose approvals count here: kept outside the repository, a file for each workspace, on this machine only.

It also remembers which records were withdrawn by a rollback, so that bringing an old commit back with plain git does
not bring its approval back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cleared.approvals.keys import home
from cleared.errors import WorkspaceError
from cleared.workspace.files import write_atomic

_ID = re.compile(r"[0-9a-f]{32}")


def is_id(text: str) -> bool:
    """Whether a text is a workspace's id; it comes from a file that anybody may have written, and names one here."""
    return _ID.fullmatch(text) is not None


@dataclass(slots=True)
class Trust:
    """``keys``: public key → whose it was said to be. ``withdrawn``: ids of records that count no more."""

    workspace: str
    keys: dict[str, str] = field(default_factory=dict)
    withdrawn: set[str] = field(default_factory=set)

    def save(self) -> None:
        """Raises ``WorkspaceError`` where it cannot be written."""
        if not is_id(self.workspace):
            raise WorkspaceError("this workspace has no id yet: nothing was approved in it")
        path = _path(self.workspace)
        data = {"keys": self.keys, "withdrawn": sorted(self.withdrawn)}
        write_atomic(path, (json.dumps(data, indent=1) + "\n").encode("utf-8"))


def load(workspace: str) -> Trust:
    """What this user trusts of a workspace; nothing where nothing was said yet."""
    if not is_id(workspace):
        return Trust(workspace)
    path = _path(workspace)
    try:
        data = json.loads(path.read_bytes())
        return Trust(workspace, {str(k): str(v) for k, v in data["keys"].items()}, {str(i) for i in data["withdrawn"]})
    except FileNotFoundError:
        return Trust(workspace)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise WorkspaceError(
            f"{path} is damaged", remedy="Delete it, then say again whom you trust: cleared trust."
        ) from None


def withdraw(workspace: str, records: Iterable[str]) -> None:
    """Never take these records for approvals again on this machine."""
    trust = load(workspace)
    trust.withdrawn |= set(records)
    trust.save()


def _path(workspace: str) -> Path:
    return home() / "workspaces" / f"{workspace}.json"
