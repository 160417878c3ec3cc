"""Git: reading commits, and the one place that makes them.

``Repository`` opens, ``Snapshot`` reads, ``seal`` commits, ``recover`` repairs after a kill, ``differences``
tells what the user changed by hand, ``history`` reads the past (with GitPython, imported on demand).
"""

from __future__ import annotations

from cleared.vcs.clone_mark import find_clone_id
from cleared.vcs.commit import STEPS, LocalMove, Unfinished, commit_changes
from cleared.vcs.housekeeping import start_gc_if_due
from cleared.vcs.index import describe_lock_holder, wait_for_index
from cleared.vcs.object_writer import Author, blob_id
from cleared.vcs.recent_commits import RecentCommit, parse_parents, read_recent_commits
from cleared.vcs.recovery import recover_interrupted_commit
from cleared.vcs.refs import GitBusy, HeadMoved
from cleared.vcs.remembered_commit import find_ancestor, forget_remembered_commit, read_remembered_commit
from cleared.vcs.repository import Repository, TreeEntry
from cleared.vcs.snapshot import Snapshot
from cleared.vcs.worktree_changes import Difference, find_differences

__all__ = [
    "STEPS",
    "Author",
    "Difference",
    "GitBusy",
    "HeadMoved",
    "LocalMove",
    "RecentCommit",
    "Repository",
    "Snapshot",
    "TreeEntry",
    "Unfinished",
    "blob_id",
    "commit_changes",
    "describe_lock_holder",
    "find_ancestor",
    "find_clone_id",
    "find_differences",
    "forget_remembered_commit",
    "parse_parents",
    "read_recent_commits",
    "read_remembered_commit",
    "recover_interrupted_commit",
    "start_gc_if_due",
    "wait_for_index",
]
