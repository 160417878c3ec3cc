"""Git: reading commits, and the one place that makes them.

``Repository`` opens, ``Snapshot`` reads a commit's files, ``commit_changes`` commits, ``recover_interrupted_commit``
repairs after a kill, ``find_differences`` compares the working tree with a commit, ``history`` reads the past.
"""

from __future__ import annotations

from cleared.vcs.clone_mark import find_clone_id
from cleared.vcs.commit import STEPS, Unfinished, commit_changes
from cleared.vcs.commit_plan import LocalMove
from cleared.vcs.commit_text import Author, parse_parents
from cleared.vcs.housekeeping import start_gc_if_due
from cleared.vcs.index import describe_lock_holder, wait_for_index
from cleared.vcs.object_reader import TreeEntry
from cleared.vcs.object_writer import blob_id
from cleared.vcs.recent_commits import RecentCommit, find_ancestor, read_recent_commits
from cleared.vcs.recovery import recover_interrupted_commit
from cleared.vcs.refs import GitBusy, HeadMoved
from cleared.vcs.repository import Repository
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
    "parse_parents",
    "read_recent_commits",
    "recover_interrupted_commit",
    "start_gc_if_due",
    "wait_for_index",
]
