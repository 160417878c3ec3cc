"""Files of the workspace that scripts and models may read as data: what a person put there."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.errors import PolicyError
from cleared.base.safe_names import fold_path, relative_problem, resolve_inside
from cleared.domains.installed_domains import ManagedFiles
from cleared.jobs.forbidden_files import ForbiddenFiles
from cleared.workspace.location import Layout
from cleared.workspace.watched_names import has_control_characters

_DEFINING: Final = (
    f"{Layout.config_file}*",  # a copy beside it (config.yaml.orig) holds the same secrets
    f"{Layout.agents_dir}/*.py",
    f"{Layout.scripts_dir}/*.py",
    "rules/*",
    "templates/*",
    "tests/*",
    ".git/*",
    f"{Layout.state}/*",
)
"""What decides what runs. A working copy counts for nothing before it is approved, so nobody reads it."""


class InputFiles(Struct, frozen=True):
    """Records are none of them, nor settings, what is proposed and approved, keys and other secrets.

    The settings have to be refused by name: a script can spell a password so that no redaction finds it.
    """

    root: Path
    managed: ManagedFiles
    forbidden: ForbiddenFiles

    def has_path(self, path: str) -> bool:
        """Whether a relative path names one; no file is looked at."""
        folded = fold_path(path)
        if any(fnmatchcase(folded, pattern) for pattern in _DEFINING):
            return False
        if has_control_characters(path) or relative_problem(path):
            return False
        if self.managed.has_path(path) or self.managed.has_path(folded):
            return False
        try:
            self.forbidden.refuse_name(path)
        except PolicyError:
            return False
        return True

    def explain_refusal(self, path: str) -> str | None:
        """Why the file that lies at such a path is none, whatever its name; None where it is one."""
        real = resolve_inside(self.root, path)
        problem = self.forbidden.explain_refusal(real)
        return problem or (None if real == self.root.resolve() / path else "it is reached through a symbolic link")
