"""A worker's clone of a workspace: set to what was pushed, and pushed from. Its disk is a cache; nothing in it counts
that was not pushed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.errors import Place, PolicyError, WorkspaceError
from cleared.base.safe_files import write_atomic
from cleared.changes.attestation_lines import added_lines, parse_attestation
from cleared.changes.host import Host
from cleared.changes.lost_rows import find_lost_rows, forget_seen
from cleared.changes.sync.branch_move import move_branch
from cleared.git import Repository, Snapshot, find_clone_id
from cleared.git.git_process import Git
from cleared.git.history_copy import check_out
from cleared.git.remote_branch import RemoteBranch, fetch_branch, push_commit
from cleared.trust.workspace_pin import find_pinned_mark, pin_clone
from cleared.workspace.location import Layout

REMOTE: Final = "origin"


class KnownHistory(Struct, frozen=True):
    """What must be in the history that was pushed, and what must not. ``head``: the commit that the fleet saw last;
    ``revoked``: keys of workers; ``rewritten``: see ``WorkspaceStatement``."""

    head: str
    revoked: Collection[str]
    rewritten: str


class WorkerClone:
    """The clone in ``root`` of ``branch`` at ``url``, which holds the books of this id."""

    def __init__(self, root: Path, url: str, branch: str, books: str) -> None:
        self.root, self._url, self._books = root, url, books
        self._branch = RemoteBranch(REMOTE, branch)

    def make_if_missing(self, known: KnownHistory, *, anew: bool = False) -> None:
        """Clone, where there is no clone of these books yet; ``anew``: also where there is one, whose disk may be
        damaged. What is there stays where the new one would lack what the fleet has seen: it may be the last that has
        it. Raises ``WorkspaceError`` where it cannot be reached, ``PolicyError`` as ``follow_pushed`` does."""
        check = partial(self._refuse_taken_back, known)
        if clone_books(self.root, self._url, self._branch.name, anew=anew, check=check):
            with Repository.open(self.root, for_writing=False) as repo:
                # The workspace's, not the clone's: each worker goes on with what any of them has begun.
                find_clone_id(repo, make=True, given=self._books[:12])
        if not find_pinned_mark(self.root):
            pin_clone(self.root, self._books)

    def follow_pushed(self, host: Host, known: KnownHistory) -> str:
        """Set branch and files to what was pushed, and discard what was not; the commit.

        Raises ``PolicyError`` where the commit that was seen last is in the history no more, or a revoked worker has
        pushed since.
        """
        with host.open_for_reading() as repo:
            try:
                theirs = fetch_branch(repo, self._branch)
            except WorkspaceError as error:
                remedy = "It is tried again. Look whether this worker reaches the git host."
                raise WorkspaceError(error.message, place=Place(self._url), remedy=remedy) from None
        if theirs is None:
            raise WorkspaceError(f"the branch {self._branch.name} is gone", place=Place(self._url))
        with host.open_for_writing("set to what was pushed") as repo:
            self._refuse_taken_back(known, repo, theirs)
            self._remove_untracked(repo)
            own = repo.read_head()
            if own != theirs:
                move_branch(host, repo, own, theirs, "set to what was pushed")
            snapshot = Snapshot(repo, theirs)
            lost = find_lost_rows(host.layout, repo, snapshot)
            if lost is not None:  # of a job that ended before its push, or was not the first to push
                forget_seen(host.layout, repo, snapshot, lost)
        return theirs

    def push_head(self, host: Host) -> tuple[str, bool]:
        """Push what was committed, plainly: the commit, and whether it is there now; else somebody was faster."""
        with host.open_for_reading() as repo:
            head = repo.read_head()
            try:
                return head, push_commit(repo, self._branch, head)
            except WorkspaceError as error:
                raise WorkspaceError(
                    error.message,
                    place=Place(self._url),
                    remedy="It is tried again. Look whether this worker may push there (its key, the hooks there).",
                ) from None

    def _refuse_taken_back(self, known: KnownHistory, repo: Repository, theirs: str) -> None:
        head, rewritten = known.head, known.rewritten
        is_taken_over = (
            bool(rewritten) and _is_ancestor(repo, rewritten, theirs) and not _is_ancestor(repo, rewritten, head)
        )
        if head and head != theirs and not _is_ancestor(repo, head, theirs) and not is_taken_over:
            raise PolicyError(
                f"the history that was pushed has lost the commit {head[:10]}, so nothing is run",
                place=Place(self._url),
                remedy="Somebody has rewritten it (let the remote deny that: receive.denyNonFastForwards), or it is an "
                f"older copy. Push what was there{self._name_copy(head)}, or take it as it is: cleared fleet add NAME "
                "GIT-URL --rewritten.",
            )
        before = Snapshot(repo, head) if known.revoked and head and _is_ancestor(repo, head, theirs) else None
        for line in added_lines(before, Snapshot(repo, theirs)) if before is not None else ():
            said = parse_attestation(line)
            if said is not None and said.key in known.revoked:
                raise PolicyError(
                    f"a worker that was revoked has pushed: {said.subject[:80]}",
                    place=Place(self._url),
                    remedy="Take its key to the git host away, and look at what it did: git log, in a clone of yours. "
                    "Then take the history as it is: cleared fleet add NAME GIT-URL --rewritten.",
                )

    def _name_copy(self, commit: str) -> str:
        """Where a commit lies on this worker, in words; empty where it does not."""
        found = Git(self.root).run("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", check=False)
        command = f"git -C {self.root} push {self._url} {commit[:10]}:{self._branch.name}"
        return f" (on {os.uname().nodename}: {command})" if found else ""

    def _remove_untracked(self, repo: Repository) -> None:
        """What lies there and was never pushed: files of an earlier job."""
        listed = repo.git.run("ls-files", "--others", "-z").split(b"\0")
        for name in filter(None, listed):
            path = self.root / os.fsdecode(name)
            if not os.fsdecode(name).startswith(f"{Layout.state}/"):
                with suppress(OSError):
                    path.unlink()

    def put_file(self, folder: str, name: str, data: bytes, at: datetime) -> Path:
        """Put a dropped file where the service looks for it. ``at``: when it was dropped, its time on each worker."""
        path = self.root / folder / name
        write_atomic(path, data, fsync=False)
        os.utime(path, (at.timestamp(), at.timestamp()))
        return path


def clone_books(
    root: Path, url: str, branch: str, *, anew: bool = False, check: Callable[[Repository, str], None] | None = None
) -> bool:
    """Clone into ``root``, where there is no clone of these books yet, or ``anew``; whether it was made. It runs
    nothing and follows no link of what is cloned. ``check``: is asked about the new one and its commit before that
    takes the place of another. Raises ``WorkspaceError`` where it cannot be reached."""
    if not anew and follow_address(root, url, branch):
        return False
    made = being_made(root)
    shutil.rmtree(made, ignore_errors=True)  # of whoever was killed at it
    made.mkdir(parents=True)
    try:
        with Repository.init(made, branch) as repo:
            repo.git.run("config", f"branch.{branch}.remote", REMOTE)
            repo.git.run("config", f"branch.{branch}.merge", f"refs/heads/{branch}")
            repo.git.run("config", f"remote.{REMOTE}.url", url)
            commit = _fetch_first(repo, RemoteBranch(REMOTE, branch, url))
            if check is not None and root.exists():
                check(repo, commit)
            check_out(Snapshot(repo, commit), commit, made, branch)
        shutil.rmtree(root, ignore_errors=True)
        made.rename(root)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return True


def being_made(root: Path) -> Path:
    """Where a clone is made that is then put in its place whole: no workspace has such a name."""
    return root.with_name(f"{root.name}.new")


def _fetch_first(repo: Repository, branch: RemoteBranch) -> str:
    commit = fetch_branch(repo, branch)
    if commit is None:
        raise WorkspaceError(
            f"there is no branch {branch.name} yet",
            place=Place(branch.known_as),
            remedy="Push the books there first: git push.",
        )
    return commit


def follow_address(root: Path, url: str, branch: str) -> bool:
    """Whether that branch of that repository is cloned there. A clone of the same books from another address has them
    from this one from now on: a git host may move."""
    if not (root / ".git").is_dir():
        return False
    git = Git(root)
    head = git.run("symbolic-ref", "--short", "HEAD", check=False).decode("utf-8", "replace").strip()
    cloned = git.run("config", "--get", f"remote.{REMOTE}.url", check=False).decode("utf-8", "replace").strip()
    if head != branch or not cloned:
        return False
    if cloned != url:
        with Repository.open(root, for_writing=False) as repo:
            theirs = _fetch_first(repo, RemoteBranch(url, branch, url))
            if repo.find_common_ancestor(repo.read_head(), theirs) is None:
                return False
            repo.git.run("config", f"remote.{REMOTE}.url", url)
    return True


def _is_ancestor(repo: Repository, commit: str, of: str) -> bool:
    return repo.objects.has_commit_tree(commit) and repo.find_common_ancestor(commit, of) == commit
