"""Where records are read from: a commit, or the working tree. Each class is a ``FileSource``."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from cleared.base.errors import Place, WorkspaceError
from cleared.git import Snapshot


class CommittedSource(Struct, eq=False):
    """The files of one commit."""

    snapshot: Snapshot

    def read(self, path: str) -> bytes | None:
        return self.snapshot.read_file(path)

    def list_paths(self, prefix: str) -> list[str]:
        return sorted(self.snapshot.list_entries(prefix))


class PreloadedSource(CommittedSource, eq=False):
    """The files of one commit, those of one folder read together: for callers that need nearly all of them."""

    folder: str
    files: dict[str, bytes] = {}

    def __post_init__(self) -> None:
        self.files = self.snapshot.read_files(self.folder)

    def read(self, path: str) -> bytes | None:
        inside = path.startswith(f"{self.folder}/")
        return self.files.get(path) if inside else super().read(path)


class WorkingSource:
    """The files of the working tree: only for ``check``, which checks them."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, path: str) -> bytes | None:
        full = self.root / path
        try:
            return full.read_bytes() if full.is_file() and not full.is_symlink() else None
        except OSError as e:
            raise WorkspaceError(f"the file cannot be read: {e.strerror}", place=Place(path)) from None

    def list_paths(self, prefix: str) -> list[str]:
        root = self.root
        start = root / prefix if prefix else root
        return sorted(
            p.relative_to(root).as_posix()
            for p in start.rglob("*")
            if p.is_file()
            and ".git" not in p.relative_to(root).parts[:1]
            and p.relative_to(root).parts[0] != ".cleared"
        )
