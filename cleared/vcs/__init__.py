"""Git: reading commits, and the one place that makes them.

``Repository`` opens, ``Snapshot`` reads, ``seal`` commits, ``recover`` repairs after a kill, ``differences``
tells what the user changed by hand, ``history`` reads the past (with GitPython, imported on demand).
"""

from __future__ import annotations

from cleared.vcs.clone_mark import origin
from cleared.vcs.commit import STEPS, LocalMove, Unfinished, seal
from cleared.vcs.housekeeping import maybe_gc
from cleared.vcs.index import held_by_git, wait_for_index
from cleared.vcs.object_writer import Author, blob_id
from cleared.vcs.recent_commits import Recent, parents_in, recent
from cleared.vcs.recovery import recover
from cleared.vcs.refs import GitBusy, HeadMoved
from cleared.vcs.remembered_commit import forget, long_before, remembered
from cleared.vcs.repository import Repository, TreeEntry
from cleared.vcs.snapshot import Snapshot
from cleared.vcs.worktree_changes import Difference, differences

__all__ = [
    "STEPS",
    "Author",
    "Difference",
    "GitBusy",
    "HeadMoved",
    "LocalMove",
    "Recent",
    "Repository",
    "Snapshot",
    "TreeEntry",
    "Unfinished",
    "blob_id",
    "differences",
    "forget",
    "held_by_git",
    "long_before",
    "maybe_gc",
    "origin",
    "parents_in",
    "recent",
    "recover",
    "remembered",
    "seal",
    "wait_for_index",
]
