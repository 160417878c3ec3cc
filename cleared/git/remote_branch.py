"""The branch of another repository that this one follows: fetching it, and pushing to it.

Pushes are plain: what somebody else has pushed meanwhile is never overwritten.
"""

from __future__ import annotations

import hashlib
import time
from typing import Final

from msgspec import Struct

from cleared.base.errors import UsageError, WorkspaceError
from cleared.git.git_process import first_line
from cleared.git.repository import Repository, Snapshot
from cleared.git.side_branch import write_rootless_commit

_THEIRS: Final = "refs/cleared/sync/of/"
"""What was fetched last, of each other repository. Refs of our own, as the user's settings say where git keeps them
otherwise."""
_PAUSES: Final = (0, 0.1, 0.5)
"""Seconds before each try, as others hold a lock for a moment."""
_NOT_REFUSED: Final = "(atomic transaction failed)"
"""What is said of a branch to which alone the push could have been made."""
_LOCKED: Final = (b"[remote rejected] (failed to update ref)", b"cannot lock ref")
"""What is said while another push moves the branch, and for good where a push was killed there and its lock stayed."""


class RemoteBranch(Struct, frozen=True):
    """``remote``: a name of git's settings, or a path or address. ``address``: of that name, where people know the
    address alone."""

    remote: str
    name: str
    address: str = ""

    @property
    def shown(self) -> str:
        """For people."""
        return f"{self.remote}/{self.name}"

    @property
    def known_as(self) -> str:
        """What people know the other repository as."""
        return self.address or self.remote

    @property
    def fetched(self) -> str:
        """The ref with what was fetched last of it. A remote may be an address, and its name may be no name of a
        ref."""
        return f"{_THEIRS}{hashlib.sha256(self.remote.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}/{self.name}"


def find_remote_branch(repo: Repository, remote: str | None) -> RemoteBranch:
    """The branch that the checked out one follows; on ``remote`` where that is given. Raises ``UsageError`` where
    there is none."""
    if repo.branch.is_detached:
        raise UsageError("no branch is checked out", remedy="Check out the one that you work on: git switch main.")
    own = repo.branch.short_name
    known = remote or _read_setting(repo, f"branch.{own}.remote") or "origin"
    if known.startswith("-") or (remote is None and not _read_setting(repo, f"remote.{known}.url")):
        raise UsageError(
            f"there is no other repository {known!r}", remedy="Name it: git remote add origin ADDRESS, or sync ADDRESS."
        )
    followed = _read_setting(repo, f"branch.{own}.merge") if remote in (None, known) else ""
    return RemoteBranch(known, followed.removeprefix("refs/heads/") or own)


def fetch_branch(repo: Repository, branch: RemoteBranch) -> str | None:
    """Its newest commit, with all that it consists of; None where there is no such branch yet.

    Raises ``WorkspaceError`` where the other repository cannot be read.
    """
    for pause in _PAUSES:
        time.sleep(pause)
        code, _, err = repo.git.run_remote("fetch", "--", branch.remote, f"+refs/heads/{branch.name}:{branch.fetched}")
        if b"cannot lock ref" not in err:  # another fetch has just moved it
            break
    if code and b"couldn't find remote ref" in err:
        return None
    if code:
        raise WorkspaceError(
            f"{branch.known_as} cannot be read: {first_line(err)}",
            remedy=f"Try: git {'ls-remote' if branch.address else 'fetch'} {branch.known_as}. Nothing was changed.",
        )
    commit = repo.git.run("rev-parse", "--verify", f"{branch.fetched}^{{commit}}").decode("ascii").strip()
    Snapshot(repo, commit)
    return commit


def push_commit(repo: Repository, branch: RemoteBranch, commit: str) -> bool:
    """Let the branch there be this commit. False where somebody was faster: it has commits that this one does not know.

    Raises ``WorkspaceError`` where it is refused for another reason.
    """
    for pause in _PAUSES:
        time.sleep(pause)
        code, out, err = repo.git.run_remote("push", "--", branch.remote, f"{commit}:refs/heads/{branch.name}")
        if code == 0:
            return True
        if b"[rejected]" in out:  # not in what the other side says of itself
            return False
        if not any(word in out for word in _LOCKED):
            break
    refused = next((line for line in out.decode("utf-8", "replace").splitlines() if line.startswith("!")), "")
    raise WorkspaceError(
        f"{branch.remote} did not take it: {refused.rpartition(chr(9))[2] or first_line(err)}{_find_remote_cause(err)}",
        remedy=f"Your work is committed here. Try: git push {branch.remote}; then cleared sync.",
    )


def _find_remote_cause(err: bytes) -> str:
    """What the other side says of why, such as that its disk is full."""
    said = [line[8:].strip() for line in err.decode("utf-8", "replace").splitlines() if line.startswith("remote: ")]
    cause = next((line for line in said if "error:" in line or "fatal:" in line), "")
    return f"; it says: {cause}" if cause else ""


def refuse_unfenced(repo: Repository, branch: RemoteBranch) -> None:
    """Raises ``WorkspaceError`` where the other repository would let somebody take commits back, or delete the branch.

    It is asked by one push of all or nothing: with a second branch that cannot be made beside this one, so that nothing
    comes of it whatever is allowed.
    """
    head = repo.read_head()
    tree = Snapshot(repo, head).tree
    assert tree is not None
    unrelated = write_rootless_commit(repo, tree, "-")
    ref = f"refs/heads/{branch.name}"
    for what, asked, setting in (
        ("take commits back", f"+{unrelated}", "receive.denyNonFastForwards"),
        ("delete the branch", "", "receive.denyDeletes"),
    ):
        _, out, err = repo.git.run_remote(
            "push", "--atomic", "--", branch.remote, f"{asked}:{ref}", f"{head}:{ref}/cannot-be"
        )
        line = next((each for each in out.decode("utf-8", "replace").splitlines() if f":{ref}\t" in each), "")
        if not line:
            raise WorkspaceError(
                f"{branch.known_as} does not say whether somebody can {what}: {first_line(err)}",
                remedy="Look whether you may push there. It must take atomic pushes (receive.advertiseAtomic).",
            )
        if not line.startswith("!") or _NOT_REFUSED in line:
            raise WorkspaceError(
                f"whoever can push to {branch.known_as} can {what}, so that finished work could be lost",
                remedy=f"Forbid it there: git config {setting} true; or protect the branch {branch.name}.",
            )


def _read_setting(repo: Repository, name: str) -> str:
    return repo.git.run("config", "--get", name, check=False).decode("utf-8", "replace").strip()
