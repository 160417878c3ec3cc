"""The first member of a backup: which books it holds, of which moment, and what git held."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from cleared.git.history_archive import RepositoryState, parse_state
from cleared.git.object_reader import is_oid
from cleared.trust.trust_store import is_workspace_id

NAME: Final = "manifest.json"
BUNDLE: Final = "git/repository.bundle"
"""The member with the history: git reads it as it is."""
MAX_BYTES: Final = 64 << 20
VERSION: Final = 1


class BackupManifest(Struct, frozen=True):
    """``folder``: where the workspace was. ``mark``: of its clone. ``is_pinned``: whether its machine had said which
    books these are. ``approval_key`` and ``run_key``: the public halves, empty where there was none. ``git``: what
    ``RepositoryState.to_record`` gives."""

    made_at: str
    program: str
    folder: str
    workspace: str
    mark: str
    is_pinned: bool
    commit: str
    approval_key: str
    run_key: str
    git: dict[str, Any]

    def render(self) -> bytes:
        """The file's content."""
        return (json.dumps({"version": VERSION, **asdict(self)}, indent=1) + "\n").encode("ascii")

    def git_state(self, index: bytes) -> RepositoryState:
        """What git held. Raises as ``parse_state``."""
        return parse_state(self.git, index)


def parse_manifest(data: bytes) -> BackupManifest:
    """The inverse of ``render``. Raises ``ValueError``, ``KeyError``, ``TypeError`` or ``RecursionError`` for what it
    did not make."""
    fields = json.loads(data)
    if fields.pop("version") != VERSION:
        raise ValueError("another version")
    manifest = BackupManifest(**fields)
    for name in ("made_at", "program", "folder", "workspace", "mark", "commit", "approval_key", "run_key"):
        if not isinstance(getattr(manifest, name), str):
            raise ValueError(name)
    datetime.fromisoformat(manifest.made_at)
    if not is_oid(manifest.commit) or not isinstance(manifest.is_pinned, bool) or not isinstance(manifest.git, dict):
        raise ValueError("commit")
    if any(text and not is_workspace_id(text) for text in (manifest.workspace, manifest.mark)):
        raise ValueError("workspace")
    return manifest
