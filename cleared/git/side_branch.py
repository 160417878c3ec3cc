"""A commit on a branch that is not checked out: the working tree and the index stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from cleared.base.errors import WorkspaceError
from cleared.git.commit_text import Author, format_commit
from cleared.git.git_process import Git
from cleared.git.object_reader import TreeEntry
from cleared.git.object_writer import LooseObjects, build_tree
from cleared.git.repository import Repository, Snapshot


def commit_to_branch(
    repo: Repository,
    branch: str,
    base: str,
    changes: Mapping[str, bytes | None],
    author: Author,
    when: datetime,
    message: str,
) -> str:
    """Make the new branch ``branch`` with one commit on ``base``; its id. ``changes``: path → content, None: removed.

    Raises ``WorkspaceError`` where there is such a branch already, or its name is none.
    """
    snapshot = Snapshot(repo, base)
    with LooseObjects(repo) as objects:
        entries: dict[str, TreeEntry | None] = {}
        for path, content in changes.items():
            old = snapshot.find_entry(path)
            mode = "100755" if old is not None and old.mode == "100755" else "100644"
            entries[path] = None if content is None else TreeEntry(mode, objects.add_object("blob", content))
        tree = build_tree(repo.objects, snapshot.tree, entries, objects)
        commit = objects.add_object("commit", format_commit(tree, [base], author, when, message, ()))
        objects.flush()
    try:
        zero = "0" * len(commit)
        Git(repo.root).run(
            "update-ref", "--create-reflog", f"refs/heads/{branch}", commit, zero, env=author.reflog_environment(when)
        )
    except WorkspaceError as error:
        raise WorkspaceError(
            f"the branch {branch} cannot be made: {error.message}", remedy="Look at it: git branch --list."
        ) from None
    return commit


def find_branch(repo: Repository, branch: str) -> str | None:
    """The commit of a branch; None where there is none."""
    out = Git(repo.root).run(
        "rev-parse", "--verify", "--quiet", "--end-of-options", f"refs/heads/{branch}^{{commit}}", check=False
    )
    return out.decode("ascii").strip() or None
