"""A commit on a branch that is not checked out: the working tree and the index stay as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from cleared.base.errors import WorkspaceError
from cleared.git.commit_text import Author, format_commit
from cleared.git.git_process import Git
from cleared.git.object_reader import TreeEntry
from cleared.git.object_writer import NewObjects, build_tree
from cleared.git.repository import Repository, Snapshot

_NOBODY: Final = Author("cleared", "cleared@localhost")


def commit_to_branch(
    repo: Repository,
    branch: str,
    base: str,
    changes: Mapping[str, bytes | None],
    author: Author,
    when: datetime,
    message: str,
) -> None:
    """Make the new branch ``branch`` with one commit on ``base``. ``changes``: path → content, None: removed.

    Raises ``WorkspaceError`` where there is such a branch already, or its name is none.
    """
    commit = write_commit(repo, [base], changes, author, when, message)
    move_branch(repo, branch, commit, None, author, when)


def write_commit(
    repo: Repository,
    parents: Sequence[str],
    changes: Mapping[str, bytes | None],
    author: Author,
    when: datetime,
    message: str,
    trailers: Sequence[tuple[str, str]] = (),
    *,
    modes_of: Snapshot | None = None,
) -> str:
    """Write a commit with the files of the first parent and ``changes``; its id. No branch is moved to it. Which files
    can be executed is as in ``modes_of``, else as before."""
    snapshot = Snapshot(repo, parents[0])
    with NewObjects(repo, is_named_later=True) as objects:
        entries: dict[str, TreeEntry | None] = {}
        for path, content in changes.items():
            old = (modes_of or snapshot).find_entry(path)
            mode = "100755" if old is not None and old.mode == "100755" else "100644"
            entries[path] = None if content is None else TreeEntry(mode, objects.add_object("blob", content))
        tree = build_tree(repo.objects, snapshot.tree, entries, objects)
        commit = objects.add_object("commit", format_commit(tree, parents, author, when, message, trailers))
        objects.flush()
    return commit


def write_rootless_commit(repo: Repository, tree: str, message: str) -> str:
    """Write a commit of a tree, which the repository has, without a history; its id. The same for the same."""
    with NewObjects(repo, is_named_later=True) as objects:
        text = format_commit(tree, [], _NOBODY, datetime.fromtimestamp(0, UTC), message, ())
        commit = objects.add_object("commit", text)
        objects.flush()
    return commit


def move_branch(
    repo: Repository, branch: str, commit: str | None, old: str | None, author: Author, when: datetime
) -> None:
    """Let a branch name ``commit`` (None: remove it). ``old``: what it names now; None: there is no such branch.

    Raises ``WorkspaceError`` where it names something else, or its name is none.
    """
    nothing = "0" * len(commit or old or "")
    try:
        Git(repo.root).run(
            "update-ref",
            "--create-reflog",
            f"refs/heads/{branch}",
            commit or nothing,
            old or nothing,
            env=author.reflog_environment(when),
        )
    except WorkspaceError as error:
        raise WorkspaceError(
            f"the branch {branch} cannot be {'moved' if old else 'made'}: {error.message}",
            remedy="Look at it: git branch --list.",
        ) from None


def find_branch(repo: Repository, branch: str) -> str | None:
    """The commit of a branch; None where there is none."""
    out = Git(repo.root).run(
        "rev-parse", "--verify", "--quiet", "--end-of-options", f"refs/heads/{branch}^{{commit}}", check=False
    )
    return out.decode("ascii").strip() or None
