"""What becomes of a file that a program changed in a clone of its own."""

from __future__ import annotations

from typing import Final, Literal

from cleared.base.errors import ClearedError
from cleared.changes.host import Host
from cleared.domains.managed_files import ManagedFiles
from cleared.gate.candidate import file_kind

_REFUSED_FOLDERS: Final = ("accounts", "queue", "logs", "import", "receipts", "exports", ".cleared", ".git")

Fate = Literal["proposable", "refused", "plain"]
"""``proposable``: it goes through the gate. ``refused``: no program changes it. ``plain``: no part of the program
reads it."""


def sort_change(host: Host, path: str) -> Fate:
    """What becomes of a change of this file."""
    top = path.split("/")[0]
    try:
        if file_kind(path) is not None:
            return "proposable"
    except ClearedError:
        return "refused"
    files = ManagedFiles(host.layout)
    records = any(audit.is_record_file(path) for audit in files.audits)  # also those that are being written
    managed = records or files.has_path(path) or path.startswith(host.layout.approvals_dir)
    hidden = any(part.startswith(".env") for part in path.split("/"))
    scripts = top in (host.layout.agents_dir, host.layout.scripts_dir) and path.endswith(".py")
    return "refused" if managed or hidden or scripts or top in _REFUSED_FOLDERS else "plain"
