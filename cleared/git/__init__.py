"""Git: reading commits, and the one place that makes them.

It imports ``workspace`` and below. Begin with ``repository`` and ``commit``.

``Repository`` opens, ``Snapshot`` reads a commit's files, ``commit_changes`` commits, ``recover_interrupted_commit``
repairs after a kill, ``find_differences`` compares the working tree with a commit, ``history`` reads the past.
"""

from __future__ import annotations

from cleared.git.commit import STEPS, CommitHeader, Unfinished, commit_changes
from cleared.git.commit_intent import LocalMove
from cleared.git.commit_text import Author, parse_parents
from cleared.git.history import RecentCommit, find_ancestor, read_recent_commits
from cleared.git.housekeeping import start_packing_if_due
from cleared.git.index import describe_lock_holder, wait_for_index
from cleared.git.made_commits import find_unreported_commit, has_command_note, list_made_commits, note_commit
from cleared.git.object_reader import TreeEntry, blob_id
from cleared.git.recovery import recover_interrupted_commit
from cleared.git.refs import GitBusy, HeadMoved
from cleared.git.repository import Repository, Snapshot, find_clone_id
from cleared.git.working_files import Difference, find_differences

__all__ = [
    "STEPS",
    "Author",
    "CommitHeader",
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
    "find_unreported_commit",
    "has_command_note",
    "list_made_commits",
    "note_commit",
    "parse_parents",
    "read_recent_commits",
    "recover_interrupted_commit",
    "start_packing_if_due",
    "wait_for_index",
]
