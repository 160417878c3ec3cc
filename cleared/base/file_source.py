"""Where files are read from: a commit, a working tree, or a dictionary in a test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class FileSource(Protocol):
    """Read-only files by workspace-relative POSIX path."""

    def read(self, path: str) -> bytes | None:
        """The file's bytes, or None where there is none."""

    def list_paths(self, prefix: str) -> Iterable[str]:
        """All files below ``prefix`` (a directory, or ``""``), sorted."""
