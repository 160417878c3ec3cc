"""The last commit that was sealed on a branch, remembered outside the branch and the tree.

``git reset --soft``, ``git update-ref`` and a commit of files of yesterday ask no lock: what the branch lost by them
shows only to whoever knows what it had. A reference of this working tree's own (``refs/worktree/…``: it is neither
pushed with the branches nor cloned) moves in one act with the branch, and keeps what it names from ``git gc``. One for
each branch, so it is bounded.
"""

from __future__ import annotations

import hashlib
from typing import Final

from cleared.errors import WorkspaceError
from cleared.vcs.recent_commits import parse_parents
from cleared.vcs.repository import Repository, is_oid

_FOLDER: Final = "refs/worktree/cleared"
_LONGEST: Final = 150


def remembered_ref(branch: str) -> str:
    """The name of the reference that remembers for a branch; no branch's is a folder of another's."""
    name = branch.removeprefix("refs/heads/").replace("%", "%25").replace("/", "%2F")
    if len(name.encode("utf-8", "surrogateescape")) > _LONGEST:
        name = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{_FOLDER}/{name}"


def read_remembered_commit(repo: Repository) -> str | None:
    """The commit that was sealed last on the branch; None where none is known, or it is not there any more."""
    ref = remembered_ref(repo.branch)
    try:
        found = (repo.git_dir / ref).read_bytes().decode("ascii", "replace").strip()
    except OSError:
        if not (repo.common_dir / "reftable").is_dir():
            return None
        found = repo.git.run("rev-parse", "--verify", "--quiet", ref, check=False).decode().strip()
    if not is_oid(found):
        return None
    try:
        repo.read_tree(repo.find_tree_id(found))
    except WorkspaceError:
        return None
    return found


def remove_damaged_ref(repo: Repository) -> None:
    """Remove the reference where a power cut left it empty: git could not move it, and so not the branch either."""
    path = repo.git_dir / remembered_ref(repo.branch)
    try:
        damaged = not is_oid(path.read_bytes().decode("ascii", "replace").strip())
    except OSError:
        return
    if damaged:
        path.unlink(missing_ok=True)


def forget_remembered_commit(repo: Repository) -> None:
    """Remember nothing of the branch. The caller holds the writer lock. Raises ``WorkspaceError``."""
    remove_damaged_ref(repo)
    repo.git.run("update-ref", "-d", remembered_ref(repo.branch))


def find_ancestor(repo: Repository, commit: str, steps: int) -> str | None:
    """The commit so many steps before, by first parents, or the first one that is here; None: before the first."""
    at = commit
    for _ in range(steps):
        try:
            before = parse_parents(repo.read_object(at)[1])
            if not before:
                return None
            repo.find_tree_id(before[0])
        except WorkspaceError:  # a shallow clone ends here
            return at
        at = before[0]
    return at
