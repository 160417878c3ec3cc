"""Files that lie in the workspace and are in no commit, such as a bank's file that a person has just put there."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cleared.base.errors import PolicyError
from cleared.base.safe_files import read_stable
from cleared.domains.installed_domains import ManagedFiles
from cleared.jobs.forbidden_files import ForbiddenFiles
from cleared.jobs.input_files import InputFiles
from cleared.workspace.location import Layout
from cleared.workspace.watched_names import WatchedNames

MAX_BYTES: Final = 8 << 20
"""Of one file that is shown."""
_MAX_LISTED: Final = 1_000
_EVERYTHING: Final = ("./",)


class UncommittedFiles:
    """As they lie there now. Hidden ones, what is reached through a link, and records are none of them."""

    def __init__(self, layout: Layout, forbidden: ForbiddenFiles) -> None:
        self._root, self._inputs = layout.root, InputFiles(layout.root, ManagedFiles(layout), forbidden)

    def list_paths(self, is_shown: Callable[[str], bool]) -> list[str]:
        """Their paths, sorted; of very many the first. ``is_shown``: whether a path is one to show."""
        names = WatchedNames(os.path.realpath(self._root), _EVERYTHING).list_files([])
        return [path for path in names if self._may_be_shown(path) and is_shown(path)][:_MAX_LISTED]

    def read_file(self, path: str) -> bytes:
        """The content of a listed one. Raises ``PolicyError`` or ``WorkspaceError`` where it is not read."""
        if problem := self._inputs.explain_refusal(path):
            raise PolicyError(problem, remedy="Do without it.")
        return read_stable(self._root / path, MAX_BYTES, shown=path)[0]

    def digest_listing(self, paths: list[str]) -> str:
        """Tells whether the files are the same, by name, size and time."""
        known = []
        for path in paths:
            try:
                facts = Path(self._root, path).lstat()
            except OSError:
                continue
            known.append((path, facts.st_size, facts.st_mtime_ns))
        return hashlib.sha256(repr(known).encode("utf-8", "surrogatepass")).hexdigest()

    def _may_be_shown(self, path: str) -> bool:
        return self._inputs.has_path(path) and not Path(self._root, path).is_symlink()
