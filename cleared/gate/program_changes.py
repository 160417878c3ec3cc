"""What becomes of a file that a program changed in a clone of its own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Final, Literal

from cleared.base.errors import ClearedError
from cleared.base.safe_names import fold_path
from cleared.changes.host import Host
from cleared.domains.installed_domains import ManagedFiles
from cleared.gate.file_kinds import file_kind
from cleared.jobs.tasks.task_definition import ARCHIVE, TASKS_FOLDER
from cleared.jobs.tasks.task_ledger import LEDGER

_REFUSED_FOLDERS: Final = ("accounts", "queue", "logs", "import", "receipts", "exports", ".cleared", ".git")
_PROPOSED_FOLDERS: Final = ("agents/", "scripts/", "tests/cases/", "rules/", "templates/")
"""A file in the place of one would keep it from being there."""
_REFUSED_NAMES: Final = (".env", ".auto-loop")
"""How names begin of files that no program changes: secrets, and the state of the loop of cycles."""

_REPOSITORIES: Final = (frozenset({"head", "objects", "refs"}), frozenset({"head", "commondir"}))
"""What git finds in a folder that it takes for a repository, or for the settings of a working tree."""

Fate = Literal["proposable", "refused", "plain"]
"""``proposable``: it goes through the gate. ``refused``: no program changes it. ``plain``: no part of the program
reads it."""


def sort_change(host: Host, path: str) -> Fate:
    """What becomes of a change of this file. In other letters it is the same file on some disks: such are refused where
    the file is not plain."""
    folded = fold_path(path)
    try:
        if file_kind(path) is not None:
            return "proposable"
        if file_kind(folded) is not None:
            return "refused"
    except ClearedError:
        return "refused"
    if is_task_file(path) or _is_of_host(host, path, folded) or _takes_place_of_file(path):
        return "refused"
    return "plain"


def _takes_place_of_file(path: str) -> bool:
    """Whether a folder on the way has the name of a file that a program proposes, or of a task: then no such file can
    be there."""
    parents = [parent.as_posix() for parent in PurePosixPath(path).parents]
    try:
        return any(file_kind(name) or is_task_file(name) for parent in parents for name in (parent, fold_path(parent)))
    except ClearedError:
        return True


def is_task_file(path: str) -> bool:
    """Whether it is the ledger of tasks or a task, which only ``cleared task`` writes."""
    folded = fold_path(path)
    in_folder = folded.startswith(f"{TASKS_FOLDER}/") and folded.endswith((".json", ".jsonl"))
    return in_folder or folded in (LEDGER, fold_path(ARCHIVE))


def _is_of_host(host: Host, path: str, folded: str) -> bool:
    files = ManagedFiles(host.layout)
    records = any(audit.is_record_file(p) for audit in files.audits for p in (path, folded))  # also being written
    folders = [f"{fold_path(folder)}/" for folder in files.folders]
    managed = records or folded.startswith(tuple(folders))
    blocks = any(folder.startswith(f"{folded}/") for folder in (*folders, *_PROPOSED_FOLDERS))
    top, *_ = parts = folded.split("/")
    hidden = any(part.startswith(_REFUSED_NAMES) for part in parts)
    scripts = top in (host.layout.agents_dir, host.layout.scripts_dir) and folded.endswith(".py")
    return managed or blocks or hidden or scripts or top in _REFUSED_FOLDERS


def find_repositories(paths: Iterable[str]) -> frozenset[str]:
    """The folders among these paths, folded, that git takes for a repository though none is called ``.git``: whoever
    says ``git status`` there runs what its settings name."""
    inside: dict[str, set[str]] = {}
    for path in paths:
        folder, _, rest = "", "", fold_path(path)
        while rest:
            name, _, rest = rest.partition("/")
            if name in _REPOSITORIES[0] | _REPOSITORIES[1]:
                inside.setdefault(folder, set()).add(name)
            folder = f"{folder}{name}/"
    return frozenset(folder for folder, names in inside.items() if any(names >= parts for parts in _REPOSITORIES))


def is_inside(path: str, folders: Iterable[str]) -> bool:
    """Whether it lies in one of these, as ``find_repositories`` gives them."""
    return fold_path(path).startswith(tuple(folders))
