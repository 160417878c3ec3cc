"""An opened git repository: its branch, its objects, the id of this clone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import write_atomic
from cleared.git.commit_text import parse_parents
from cleared.git.git_process import Git, GitFailed
from cleared.git.object_reader import HashName, ObjectReader, TreeEntry
from cleared.git.refs import Branch, current_branch_name
from cleared.git.repository_location import locate_repository

#: What git leaves in the git directory while it waits for the user to finish something: the git command that began it.
_UNFINISHED: Final = {
    "rebase-merge": "rebase",
    "rebase-apply/applying": "am",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
}
_RECENT: Final = 32
"""How many commits back an ancestor is looked for before git is asked."""


class Repository:
    """Use ``open`` or ``init``; close it, or use it as a context manager. Safe to share between threads."""

    def __init__(self, root: Path, git_dir: Path, common_dir: Path, hash_name: HashName) -> None:
        self.root = root
        self.git = Git(root)
        #: This working tree's own directory (HEAD, index); the same as ``common_dir`` but in a linked worktree.
        self.git_dir = git_dir
        self.common_dir = common_dir
        self.hash_name = hash_name
        self.objects = ObjectReader(self.git, common_dir / "objects")
        #: The branch that was checked out when the repository was opened.
        self.branch = self._read_branch()

    @classmethod
    def open(cls, root: Path, *, for_writing: bool, unborn: bool = False) -> Repository:
        """The repository whose top level is ``root``.

        ``for_writing`` refuses also what is no place to put a commit: a detached HEAD, a branch without a
        commit (unless ``unborn``: the first one is to be made), an unfinished merge, rebase or the like, a sparse
        checkout. Raises ``WorkspaceError``.
        """
        repo = cls._locate(root)
        if for_writing:
            try:
                repo._refuse_unwritable(unborn)
            except BaseException:
                repo.close()
                raise
        return repo

    def reopen_for_writing(self) -> Repository:
        """This repository as ``open`` for writing would give it now, without starting a git: for a process that runs
        for long. Raises as ``open`` does."""
        self.branch = self._read_branch()
        self._refuse_unwritable(unborn=False)
        return self

    @classmethod
    def init(cls, root: Path, branch: str = "main", *, hash_name: HashName | None = None) -> Repository:
        """A new repository in the existing directory ``root``, without hooks or other templates.

        It has no commit yet: ``commit_changes`` with ``base=None`` makes the first one.
        """
        if os.path.lexists(root / ".git"):
            raise WorkspaceError(f"{root} is a git repository already", remedy="Choose a directory that is not one.")
        options = [] if hash_name is None else [f"--object-format={hash_name}"]
        Git(root).run("init", "--quiet", "--template=", f"--initial-branch={branch}", *options)
        return cls._locate(root)

    @classmethod
    def _locate(cls, root: Path) -> Repository:
        root = Path(os.path.abspath(root))  # noqa: PTH100  (resolve() would follow the user's own symlinks)
        found = locate_repository(root)
        return cls(root, found.git_dir, found.common_dir, found.hash_name)

    def find_unfinished(self) -> str | None:
        """The git command, such as ``merge``, that waits for the user to finish it."""
        folder = f"{self.git_dir}{os.sep}"  # asked so often that a Path of each mark takes longer than all else
        return next((command for mark, command in _UNFINISHED.items() if os.path.exists(folder + mark)), None)  # noqa: PTH110

    def _refuse_unwritable(self, unborn: bool) -> None:
        if (command := self.find_unfinished()) is not None:
            raise unfinished_error(self, command)
        if self.branch.is_detached:
            bisecting = (self.git_dir / "BISECT_LOG").exists()
            raise WorkspaceError(
                "the repository is in the middle of a bisection"
                if bisecting
                else "HEAD is detached: a commit would belong to no branch",
                remedy="End it with: git bisect reset."
                if bisecting
                else "Check out a branch, for example: git switch main.",
            )
        if not self.branch.name.startswith("refs/heads/"):
            raise WorkspaceError(
                f"HEAD points to {self.branch.name}, which is not a branch",
                remedy="Check out a branch, for example: git switch main.",
            )
        if not unborn and self.find_head() is None:
            raise WorkspaceError(
                f"the branch {self.branch.short_name} has no commit yet",
                remedy="Make a first commit (git add -A && git commit), or check out a branch that has one.",
            )
        # The file is there in few repositories, so that git is rarely asked.
        if (self.git_dir / "info" / "sparse-checkout").exists() and self.git.run(
            "config", "--type=bool", "--get", "core.sparseCheckout", check=False
        ).strip() == b"true":
            raise WorkspaceError(
                "the working tree is a sparse checkout: files of the books may be missing from it",
                remedy="Run: git sparse-checkout disable.",
            )

    def _read_branch(self) -> Branch:
        return Branch(self.git, self.objects, self.git_dir, self.common_dir, self.current_branch() or "HEAD")

    def current_branch(self) -> str | None:
        """The full name of the branch that HEAD points to now; ``None`` where it is detached."""
        return current_branch_name(self.git, self.git_dir)

    def has_switched_branch(self) -> bool:
        """Whether another branch, or none, is checked out than when this was opened."""
        return self.current_branch() != self.branch.name

    def read_head(self) -> str:
        """The id of the branch's commit, read anew each time. Raises ``WorkspaceError`` where there is none."""
        commit = self.find_head()
        if commit is None:
            raise WorkspaceError(
                f"the branch {self.branch.short_name} has no commit yet",
                remedy="Make a first commit (git add -A && git commit).",
            )
        return commit

    def find_head(self) -> str | None:
        """As ``read_head``, but ``None`` where the branch has no commit yet.

        Raises ``WorkspaceError`` where the branch's file was left empty by a power cut.
        """
        return self.branch.find_commit()

    def has_in_history(self, commit: str) -> bool:
        """Whether ``commit`` is the branch's commit or one of its ancestors."""
        head = self.find_head()
        if head is None or head == commit:
            return head is not None
        if self._is_recent_ancestor(commit, head):
            return True
        try:
            self.git.run("merge-base", "--is-ancestor", commit, head)
        except GitFailed:
            return False
        return True

    def _is_recent_ancestor(self, commit: str, head: str) -> bool:
        """Whether it is among the newest first parents: found without starting a git, after each decision."""
        at = head
        for _ in range(_RECENT):
            try:
                parents = parse_parents(self.objects.read_object(at)[1])
            except WorkspaceError:  # git says what is wrong with the history
                return False
            if not parents or parents[0] == commit:
                return bool(parents)
            at = parents[0]
        return False

    def find_common_ancestor(self, one: str, other: str) -> str | None:
        """The newest commit that is in the history of both, or ``None``."""
        return next(iter(self.list_merge_bases(one, [other])), None)

    def list_merge_bases(self, one: str, others: Sequence[str]) -> list[str]:
        """The newest commits that are in the history of ``one`` and of any of the others: several where histories
        cross."""
        return self.git.run("merge-base", "--all", one, *others, check=False).decode("ascii").split()

    def close(self) -> None:
        """Ends the reading process; a later read starts it again."""
        self.objects.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_NAME = "cleared-origin"
_MARK = re.compile(r"[0-9a-f]{12}")


def forget_clone_id(git_dir: Path) -> None:
    """Give the clone another id when it needs one: it is a copy of one that keeps this."""
    (git_dir / _NAME).unlink(missing_ok=True)


def find_clone_id(repo: Repository, *, make: bool = False, given: str = "") -> str | None:
    """The id of this clone: 12 hex digits; ``None`` where it has none yet.

    ``make`` gives it one (that which is ``given``); the caller holds the writer lock then.
    """
    path = repo.git_dir / _NAME
    try:
        text = path.read_text("ascii").strip()
    except (OSError, ValueError):
        text = ""
    if _MARK.fullmatch(text):
        return text
    if not make:
        return None
    text = given or os.urandom(6).hex()
    write_atomic(path, f"{text}\n".encode())
    return text


def unfinished_error(repo: Repository, command: str) -> WorkspaceError:
    """What is said in the middle of a merge, a rebase or the like: of the git ``command`` that waits."""
    finish = f"Finish it (git {command} --continue)"
    # A merge is committed without a change, too; a rebase leaves such a commit out itself, unless it goes by patches.
    stops_when_empty = command in ("cherry-pick", "revert", "am") or (repo.git_dir / "rebase-apply").exists()
    if stops_when_empty and not repo.git.run("diff-index", "--name-only", "HEAD", check=False).strip():
        finish = f"Nothing of this commit is staged. Leave it out (git {command} --skip)"
        if command in ("am", "rebase"):  # a patch that does not fit leaves nothing to join
            finish += f", put it in by hand (git add, then git {command} --continue)"
    return WorkspaceError(
        f"the repository is in the middle of a {command}",
        remedy=f"{finish} or give it up (git {command} --abort).",
    )


class Snapshot:
    """The state of all files in ``commit`` (``None``: before the first commit, where there are none).

    Paths are relative to the top level, with ``/``; names that are not UTF-8 carry surrogate escapes.
    """

    def __init__(self, repo: Repository, commit: str | None) -> None:
        self.repo = repo
        self.commit = commit
        self.hash_name = repo.hash_name
        self.tree: str | None = None if commit is None else repo.objects.find_tree_id(commit)

    def at_commit(self, commit: str) -> Snapshot:
        """The files of another commit of the same repository."""
        return Snapshot(self.repo, commit)

    def find_entry(self, path: str) -> TreeEntry | None:
        """What the commit has at ``path``: a file, a tree, a symlink, a submodule, or ``None``; at ``""`` its tree."""
        return None if self.tree is None else self.repo.objects.find_entry(self.tree, path)

    def read_file(self, path: str) -> bytes | None:
        """The content of the regular file at ``path``; ``None`` where the commit has none there."""
        oid = self.find_blob_id(path)
        return None if oid is None else self.repo.objects.read_object(oid)[1]

    def find_blob_id(self, path: str) -> str | None:
        """The blob id of the regular file at ``path``; ``None`` where the commit has none there."""
        entry = self.find_entry(path)
        return entry.oid if entry is not None and entry.is_file else None

    def has_file(self, path: str) -> bool:
        """Whether the commit has a file, a symlink or a submodule at ``path``, and no folder."""
        entry = self.find_entry(path)
        return entry is not None and not entry.is_tree

    def list_entries(self, prefix: str = "") -> dict[str, tuple[str, str]]:
        """``{path: (mode, id)}`` of all that lies under the folder ``prefix``, or of the one file it names.

        The mode is git's: ``100644``, ``100755``, ``120000`` (symlink) or ``160000`` (submodule).
        """
        prefix = prefix.strip("/")
        entry = self.find_entry(prefix)
        if entry is None:
            return {}
        if entry.is_tree:
            self.repo.objects.preload_trees(entry.oid)
        return {path: (found.mode, found.oid) for path, found in self.repo.objects.list_below(prefix, entry)}

    def read_files(self, prefix: str) -> dict[str, bytes]:
        """The contents of all regular files under the folder ``prefix``, by path."""
        oids = {path: oid for path, (mode, oid) in self.list_entries(prefix).items() if mode.startswith("100")}
        return dict(zip(oids, self.read_blobs(list(oids.values())), strict=True))

    def list_changes(self, before: Snapshot, prefix: str = "") -> dict[str, tuple[str, str]]:
        """What this commit has otherwise than another, of all that lies under ``prefix``: path → the blob ids there and
        here, as ``CommitInfo.changes`` has them. Folders that are the same are not read."""
        old, new = before.find_entry(prefix), self.find_entry(prefix)
        return {} if old == new else dict(self._compare(prefix, old, new))

    def _compare(
        self, path: str, old: TreeEntry | None, new: TreeEntry | None
    ) -> Iterator[tuple[str, tuple[str, str]]]:
        contents = [
            "" if each is None or each.is_tree else each.oid if each.is_file else f"{each.mode} {each.oid}"
            for each in (old, new)
        ]
        if any(contents):
            yield path, (contents[0], contents[1])
        trees = [self.repo.objects.read_tree(e.oid) if e is not None and e.is_tree else {} for e in (old, new)]
        for name in sorted({*trees[0], *trees[1]}):
            then, now = trees[0].get(name), trees[1].get(name)
            if then != now:
                yield from self._compare(f"{path}/{name}" if path else name, then, now)

    def list_folder(self, path: str) -> dict[str, TreeEntry]:
        """What lies directly in the folder, by name; empty where there is no such folder. Do not alter it."""
        entry = self.find_entry(path)
        return self.repo.objects.read_tree(entry.oid) if entry is not None and entry.is_tree else {}

    def read_blobs(self, oids: Sequence[str]) -> Iterator[bytes]:
        """The contents of many files by their ids, in that order, in a fraction of the time of single reads."""
        return (content for _, content in self.repo.objects.read_objects(oids))
