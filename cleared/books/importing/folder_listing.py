"""Which files lie in the drop folder, by their names alone."""

from __future__ import annotations

import os
from pathlib import Path

from cleared.base.errors import PolicyError
from cleared.base.safe_names import relative_problem
from cleared.workspace.watched_names import FINISHED_FOLDERS, MAX_FILES, has_control_characters, is_ready_name


def list_names(root: Path) -> list[str]:
    """The files below the folder that may be complete, relative to it, sorted; of very many the first."""
    names: list[str] = []
    for folder, folders, files in os.walk(root, followlinks=False):
        directory = Path(folder)
        folders[:] = sorted(
            d
            for d in folders
            if not (d.startswith(".") or (directory == root and d in FINISHED_FOLDERS) or (directory / d).is_symlink())
        )
        for file in files:
            if is_ready_name(file):
                names.append((directory / file).relative_to(root).as_posix())
        if len(names) > MAX_FILES:
            break
    return sorted(names)[:MAX_FILES]


def refuse_bad_name(name: str) -> None:
    """A script could neither be given such a name nor pass it on: one file of that kind must not stop the others."""
    if relative_problem(name):
        what = (
            "holds control characters, or bytes that are not UTF-8"
            if has_control_characters(name)
            else "begins with ~ or as a drive does, or holds a backslash or characters that cannot be seen"
        )
        raise PolicyError(f"the file's name {what}", remedy="Rename the file.")
