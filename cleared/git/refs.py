"""The branch that is checked out: its name and its commit. ``ref_move`` moves it.

The last commit is remembered outside the branch and the tree. ``git reset --soft``, ``git update-ref`` and a commit of
yesterday's files take no lock: that the branch lost something by them can be seen only by who knows what it had. The
memory is a reference of this working tree alone (``refs/worktree/…``), neither pushed with the branches nor cloned. It
moves in one act with the branch, and keeps what it names from ``git gc``. There is one for each branch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cleared.base.errors import BusyError, WorkspaceError
from cleared.git.git_process import Git, GitFailed
from cleared.git.object_reader import OID_PATTERN, ObjectReader, is_oid
from cleared.workspace.location import remembered_ref as remembered_ref


class GitBusy(BusyError):
    """Another git command is at work here, or has been; nothing was changed."""


class HeadMoved(GitBusy):
    """The branch is not where the draft was based: somebody committed, or checked out, meanwhile."""


def head_moved_error(why: str) -> HeadMoved:
    """The error for a branch that is not where the draft was based."""
    return HeadMoved(f"{why} while this was being prepared; nothing was changed", remedy="Run the command again.")


def current_branch_name(git: Git, git_dir: Path) -> str | None:
    """The full name of the branch that HEAD points to now; ``None`` where HEAD is detached."""
    text = _read_text(git_dir / "HEAD")
    if text.startswith("ref: ") and text != "ref: refs/heads/.invalid":
        return text.removeprefix("ref: ").strip()
    if is_oid(text):
        return None
    return git.run("symbolic-ref", "--quiet", "HEAD", check=False).decode().strip() or None


class Branch:
    """The branch ``name`` (in full, or ``HEAD`` where none is checked out) of one working tree.

    ``git_dir`` is the working tree's own directory, ``common_dir`` the one that all working trees share.
    """

    def __init__(self, git: Git, objects: ObjectReader, git_dir: Path, common_dir: Path, name: str) -> None:
        self.name = name
        self._git = git
        self._objects = objects
        self._git_dir = git_dir
        self._common_dir = common_dir
        self._file = (git_dir if self.is_detached else common_dir) / name

    @property
    def short_name(self) -> str:
        return self.name.removeprefix("refs/heads/")

    @property
    def is_detached(self) -> bool:
        return self.name == "HEAD"

    @property
    def remembered_ref(self) -> str:
        return remembered_ref(self.name)

    def find_commit(self) -> str | None:
        """The id of the branch's commit, read anew each time; ``None`` where it has none yet.

        Raises ``WorkspaceError`` where the branch's file is there and empty: what packed refs say of it is old.
        """
        # A loose ref outranks packed refs, so reading the files is what git would do; anything else git is asked for.
        text = _read_text(self._file)
        if is_oid(text):
            return text
        if not text.strip("\0") and self._file.is_file() and not _read_text(self._file).strip("\0"):
            raise self._damaged_error()
        if not text and not self.is_detached:
            line = rf"^({OID_PATTERN.pattern}) {re.escape(self.name)}$"
            packed = re.search(line, _read_text(self._common_dir / "packed-refs"), re.MULTILINE)
            if packed is not None:
                return packed[1]
        output = self._git.run("rev-parse", "--verify", "--quiet", f"{self.name}^{{commit}}", check=False)
        return output.decode().strip() or None

    def read_remembered_commit(self) -> str | None:
        """The last commit that this program made on the branch; ``None`` where none is known, or it is gone."""
        try:
            commit = (self._git_dir / self.remembered_ref).read_bytes().decode("ascii", "replace").strip()
        except OSError:
            if not (self._common_dir / "reftable").is_dir():
                return None
            output = self._git.run("rev-parse", "--verify", "--quiet", self.remembered_ref, check=False)
            commit = output.decode().strip()
        return commit if is_oid(commit) and self._objects.has_commit_tree(commit) else None

    def remove_damaged_ref(self) -> None:
        """Remove the remembering reference where a power cut left it empty: git could not move the branch with it."""
        path = self._git_dir / self.remembered_ref
        try:
            is_damaged = not is_oid(path.read_bytes().decode("ascii", "replace").strip())
        except OSError:
            return
        if is_damaged:
            path.unlink(missing_ok=True)

    def forget_remembered_commit(self) -> None:
        """Remember no commit of the branch. The caller holds the writer lock. Raises ``WorkspaceError``."""
        self.remove_damaged_ref()
        self._git.run("update-ref", "-d", self.remembered_ref)

    def _damaged_error(self) -> WorkspaceError:
        """The error for a branch whose file a power cut left empty. It names the commit that the branch was at: the
        newest one that the reflog or the remembering reference has, and the repository still holds."""
        message = f"{self._file} is empty, as a power cut can leave it: git does not know the commit of {self.name}"
        last = self._find_last_commit()
        if last is None:
            return WorkspaceError(message, remedy="Fetch from a clone, or restore .git from a backup; git fsck --full.")
        commit, source = last
        return WorkspaceError(
            message,
            remedy=f"By {source} it was {commit}. Put it back: echo {commit} > '{self._file}'. Then: cleared check.",
        )

    def _find_last_commit(self) -> tuple[str, str] | None:
        """The commit that the branch was at last, and the name of where that is written."""
        logged, remembered = next(self._reflog_commits(), None), self.read_remembered_commit()
        if remembered is None:
            return (logged, "the reflog") if logged is not None else None
        if logged is not None and logged != remembered:
            try:
                self._git.run("merge-base", "--is-ancestor", remembered, logged)
            except GitFailed:
                pass
            else:
                return logged, "the reflog"
        return remembered, "what cleared has committed"

    def _reflog_commits(self) -> Iterator[str]:
        """Commits that the branch was at, newest first, as far as they can be read."""
        try:
            lines = (self._common_dir / "logs" / self.name).read_bytes().splitlines()
        except OSError:
            return
        for line in reversed(lines):
            commit = line.decode("utf-8", "replace").partition(" ")[2].partition(" ")[0]
            if is_oid(commit) and self._objects.has_commit_tree(commit):
                yield commit


def _read_text(path: Path) -> str:
    """The file's text without surrounding white space; empty where it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - asked so often that a Path takes longer than all else
            return file.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""
