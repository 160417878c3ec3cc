"""Where the books' bytes come from: a commit, a working tree, or a dictionary in a test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class Source(Protocol):
    """Read-only files by workspace-relative POSIX path."""

    def read(self, path: str) -> bytes | None:
        """The file's bytes, or None where there is none."""

    def list_paths(self, prefix: str) -> Iterable[str]:
        """All files below ``prefix`` (a directory, or ``""``), sorted."""


class BookPaths(Protocol):
    """Where each book lies (see ``workspace.Layout``, which is one)."""

    @property
    def journal_root(self) -> str: ...
    @property
    def bank_root(self) -> str: ...
    @property
    def matches(self) -> str: ...
    @property
    def outcomes(self) -> str: ...
    @property
    def imports(self) -> str: ...
    @property
    def duplicates(self) -> str: ...
    @property
    def undone(self) -> str: ...
    @property
    def reconciliations(self) -> str: ...
    @property
    def receipts(self) -> str: ...
    @property
    def periods(self) -> str: ...
    @property
    def chart(self) -> str: ...
    def journal_path(self, year: int, month: int) -> str: ...
    def bank_path(self, account: str, month: str) -> str: ...
