"""An opened git repository: where it is, whether it can be used, and its objects.

All reading goes through one ``git cat-file --batch`` process per repository, so a read costs microseconds.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Literal, Self, cast

from cleared.errors import WorkspaceError
from cleared.vcs.git_process import Git, GitFailed
from cleared.vcs.open_errors import open_error

HashName = Literal["sha1", "sha256"]

_OID = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})")

#: Questions put to git together: few enough that they fit into a pipe while nobody reads it.
_AT_ONCE = 64

#: Trees from which on a repository that stays open forgets what it has read.
_REMEMBERED = 500

#: What git leaves behind in the git directory while it waits for the user to finish something.
_UNFINISHED = (
    ("rebase-merge", "a rebase", "git rebase --continue", "git rebase --abort"),
    ("rebase-apply", "a rebase", "git rebase --continue", "git rebase --abort"),
    ("MERGE_HEAD", "a merge", "git merge --continue", "git merge --abort"),
    ("CHERRY_PICK_HEAD", "a cherry-pick", "git cherry-pick --continue", "git cherry-pick --abort"),
    ("REVERT_HEAD", "a revert", "git revert --continue", "git revert --abort"),
)


def is_oid(text: object) -> bool:
    """Whether ``text`` is a full object id, SHA-1 or SHA-256."""
    return isinstance(text, str) and _OID.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One name in a tree: git's octal mode exactly as stored, and the id of what it names."""

    mode: str
    oid: str

    @property
    def is_tree(self) -> bool:
        return self.mode in ("40000", "040000")  # the second by broken tools

    @property
    def is_file(self) -> bool:
        return self.mode.startswith("100")


class Repository:
    """Use ``open`` or ``init``; close it, or use it as a context manager. Safe to share between threads."""

    def __init__(self, root: Path, git_dir: Path, common_dir: Path, hash_name: HashName, branch: str) -> None:
        self.root = root
        self.git = Git(root)
        #: This working tree's own directory (HEAD, index); the same as ``common_dir`` but in a linked worktree.
        self.git_dir = git_dir
        self.common_dir = common_dir
        self.hash_name = hash_name
        #: The full name of the branch checked out when it was opened (``HEAD`` where detached).
        self.branch = branch
        self._lock = threading.Lock()
        self._reader: subprocess.Popen[bytes] | None = None
        self._trees: dict[str, dict[str, TreeEntry]] = {}

    # --- opening -----------------------------------------------------------------------------------

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
        """This repository as ``open`` for writing would give it now, without starting a git: for a process that lives
        long. Raises as ``open`` does."""
        self.branch = self.current_branch() or "HEAD"
        self._refuse_unwritable(unborn=False)
        if len(self._trees) > _REMEMBERED:
            self.forget_trees()
        return self

    @classmethod
    def init(cls, root: Path, branch: str = "main", *, hash_name: HashName | None = None) -> Repository:
        """A new repository in the existing directory ``root``, without hooks or other templates.

        It has no commit yet: ``seal`` with ``base=None`` makes the first one.
        """
        if os.path.lexists(root / ".git"):
            raise WorkspaceError(f"{root} is a git repository already", remedy="Choose a directory that is not one.")
        options = [] if hash_name is None else [f"--object-format={hash_name}"]
        Git(root).run("init", "--quiet", "--template=", f"--initial-branch={branch}", *options)
        return cls._locate(root)

    @classmethod
    def _locate(cls, root: Path) -> Repository:
        root = Path(os.path.abspath(root))  # noqa: PTH100  (resolve() would follow the user's own symlinks)
        git = Git(root)
        process = git.start(
            [
                "rev-parse",
                "--show-object-format",
                "--is-bare-repository",
                "--absolute-git-dir",
                "--git-common-dir",
                "--show-toplevel",
            ]
        )
        out, err = process.communicate()
        said = out.decode("utf-8", "surrogateescape").splitlines()
        if process.returncode != 0 or len(said) != 5:
            raise open_error(root, said, err)
        hash_name, _, git_dir, common_dir, top = said
        if not root.samefile(top):
            raise WorkspaceError(
                f"{root} is inside the git repository {top}, not its top level",
                remedy=f"Use {top}, or make {root} a repository of its own (git init).",
            )
        if hash_name not in ("sha1", "sha256"):
            raise WorkspaceError(f"git stores objects here by {hash_name}, which is not supported")
        repo = cls(root, Path(git_dir), (root / common_dir).resolve(), cast(HashName, hash_name), branch="HEAD")
        repo.branch = repo.current_branch() or "HEAD"
        return repo

    def refuse_unfinished(self) -> None:
        """Raises ``WorkspaceError`` in the middle of a merge, a rebase or the like."""
        for name, what, go_on, give_up in _UNFINISHED:
            if (self.git_dir / name).exists():
                raise WorkspaceError(
                    f"the repository is in the middle of {what}",
                    remedy=f"Finish it ({go_on}) or give it up ({give_up}).",
                )

    def _refuse_unwritable(self, unborn: bool) -> None:
        self.refuse_unfinished()
        if self.branch == "HEAD":
            bisecting = (self.git_dir / "BISECT_LOG").exists()
            raise WorkspaceError(
                "the repository is in the middle of a bisection"
                if bisecting
                else "HEAD is detached: a commit would belong to no branch",
                remedy="End it with: git bisect reset."
                if bisecting
                else "Check out a branch, for example: git switch main.",
            )
        if not self.branch.startswith("refs/heads/"):
            raise WorkspaceError(
                f"HEAD points to {self.branch}, which is not a branch",
                remedy="Check out a branch, for example: git switch main.",
            )
        if not unborn and self.find_head() is None:
            raise WorkspaceError(
                f"the branch {self.branch.removeprefix('refs/heads/')} has no commit yet",
                remedy="Make a first commit (git add -A && git commit), or check out a branch that has one.",
            )
        # The file is there on few repositories, so the question to git is rare.
        if (self.git_dir / "info" / "sparse-checkout").exists() and self.git.run(
            "config", "--type=bool", "--get", "core.sparseCheckout", check=False
        ).strip() == b"true":
            raise WorkspaceError(
                "the working tree is a sparse checkout: files of the books may be missing from it",
                remedy="Run: git sparse-checkout disable.",
            )

    # --- refs --------------------------------------------------------------------------------------

    def current_branch(self) -> str | None:
        """The full name of the branch HEAD points to now; ``None`` where it is detached."""
        text = _read_text(self.git_dir / "HEAD")
        if text.startswith("ref: ") and text != "ref: refs/heads/.invalid":
            return text.removeprefix("ref: ").strip()
        if _OID.fullmatch(text):
            return None
        return self.git.run("symbolic-ref", "--quiet", "HEAD", check=False).decode().strip() or None

    def read_head(self) -> str:
        """The id of the branch's commit, asked anew each time. Raises ``WorkspaceError`` where there is none."""
        found = self.find_head()
        if found is None:
            raise WorkspaceError(
                f"the branch {self.branch.removeprefix('refs/heads/')} has no commit yet",
                remedy="Make a first commit (git add -A && git commit).",
            )
        return found

    def find_head(self) -> str | None:
        """As ``head``, but ``None`` where the branch has no commit yet.

        Raises ``WorkspaceError`` where the branch's file is there and empty: what packed refs say of it is old.
        """
        # A loose ref outranks packed refs, so reading the files is what git would do; anything else is asked.
        file = (self.git_dir if self.branch == "HEAD" else self.common_dir) / self.branch
        text = _read_text(file)
        if _OID.fullmatch(text):
            return text
        if not text.strip("\0") and file.is_file() and not _read_text(file).strip("\0"):
            from cleared.vcs.damaged_branch import damaged_branch_error

            raise damaged_branch_error(self, file)
        if not text and self.branch != "HEAD":
            line = rf"^({_OID.pattern}) {re.escape(self.branch)}$"
            packed = re.search(line, _read_text(self.common_dir / "packed-refs"), re.MULTILINE)
            if packed is not None:
                return packed[1]
        said = self.git.run("rev-parse", "--verify", "--quiet", f"{self.branch}^{{commit}}", check=False)
        return said.decode().strip() or None

    def has_in_history(self, commit: str) -> bool:
        """Whether ``commit`` is the branch's commit or one of its ancestors."""
        head = self.find_head()
        if head is None or head == commit:
            return head is not None
        try:
            self.git.run("merge-base", "--is-ancestor", commit, head)
        except GitFailed:
            return False
        return True

    def find_common_ancestor(self, one: str, other: str) -> str | None:
        """The newest commit that is in the history of both, or None."""
        return self.git.run("merge-base", one, other, check=False).decode().partition("\n")[0].strip() or None

    # --- objects -----------------------------------------------------------------------------------

    def read_object(self, oid: str) -> tuple[str, bytes]:
        """The type (``blob``, ``tree``, ``commit``, ``tag``) and content of an object.

        Raises ``WorkspaceError`` where the repository does not have it, or it is damaged.
        """
        with self._lock:
            for attempt in (1, 2):
                try:
                    return self._ask(oid)
                except (BrokenPipeError, EOFError):
                    self._stop_reader()
                    if attempt == 2:
                        break
        raise WorkspaceError(f"git could not read the object {oid}", remedy="See what is damaged: git fsck --full.")

    def _ask(self, oid: str) -> tuple[str, bytes]:
        self._put([oid])
        return self._answer(oid)

    def _put(self, oids: Sequence[str]) -> None:
        if self._reader is None:
            self._reader = self.git.start(["cat-file", "--batch"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        to = cast(IO[bytes], self._reader.stdin)
        try:
            to.write("".join(f"{oid}\n" for oid in oids).encode())
            to.flush()
        except BaseException:
            self._stop_reader()
            raise

    def _answer(self, oid: str) -> tuple[str, bytes]:
        assert self._reader is not None
        of = cast(IO[bytes], self._reader.stdout)
        try:
            header = of.readline().split()
            if len(header) == 3:
                size = int(header[2])
                content = of.read(size + 1)
                if len(content) == size + 1:
                    return header[1].decode(), content[:-1]
        except BaseException:
            # Half an answer left in the pipe would be taken for the next one's.
            self._stop_reader()
            raise
        if len(header) == 2:
            raise WorkspaceError(
                f"the object {oid} is missing from the repository",
                remedy="See what is damaged: git fsck --full. Fetching from a clone may bring it back.",
            )
        raise EOFError

    def read_objects(self, oids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """As ``object``, for many: so many questions are put at once that neither side waits for the other."""
        for at in range(0, len(oids), _AT_ONCE):
            some = oids[at : at + _AT_ONCE]
            found: list[tuple[str, bytes]] = []
            with self._lock, suppress(BrokenPipeError, EOFError):
                self._put(some)
                try:
                    for oid in some:
                        found.append(self._answer(oid))
                except BaseException:
                    self._stop_reader()  # the answers that are left would be taken for the next ones'
                    raise
            yield from found
            for oid in some[len(found) :]:
                yield self.read_object(oid)

    def read_tree(self, oid: str) -> dict[str, TreeEntry]:
        """The entries of a tree by name (names that are not UTF-8 with surrogate escapes). Do not alter it."""
        known = self._trees.get(oid)
        if known is None:
            kind, content = self.read_object(oid)
            if kind != "tree":
                raise WorkspaceError(f"the object {oid} is a {kind}, not a tree")
            known = self._trees[oid] = _parse_tree(content, len(oid) // 2)
        return known

    def preload_trees(self, oid: str) -> None:
        """Have all trees in and beneath this one at hand for ``tree``, read together."""
        level = [oid]
        while level:
            new = [one for one in dict.fromkeys(level) if one not in self._trees]
            for one, (kind, content) in zip(new, self.read_objects(new), strict=True):
                if kind != "tree":
                    raise WorkspaceError(f"the object {one} is a {kind}, not a tree")
                self._trees[one] = _parse_tree(content, len(one) // 2)
            below = (entry for one in dict.fromkeys(level) for entry in self._trees[one].values())
            level = [entry.oid for entry in below if entry.is_tree]

    def find_tree_id(self, commit: str) -> str:
        """The id of a commit's tree."""
        kind, content = self.read_object(commit)
        if kind != "commit" or not content.startswith(b"tree "):
            raise WorkspaceError(f"{commit} is a {kind}, not a commit")
        return content[5 : content.index(b"\n")].decode("ascii")

    def forget_trees(self) -> None:
        """Drop what is remembered of trees; a process that lives long reads ever new ones."""
        self._trees.clear()

    # --- closing -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends the reading process; a later read starts it again."""
        with self._lock:
            self._stop_reader()

    def _stop_reader(self) -> None:
        reader, self._reader = self._reader, None
        if reader is None:
            return
        with suppress(OSError):  # a confined thread that collects garbage may not: at its closed input it ends too
            reader.kill()
        for stream in (reader.stdin, reader.stdout):
            try:
                if stream is not None:
                    stream.close()
            except OSError:
                pass  # unflushed bytes to a process that is gone
        reader.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_reader", None) is not None:
            self._stop_reader()


def _parse_tree(content: bytes, oid_length: int) -> dict[str, TreeEntry]:
    entries: dict[str, TreeEntry] = {}
    at = 0
    while at < len(content):
        space = content.index(b" ", at)
        end = content.index(b"\0", space)
        oid = content[end + 1 : end + 1 + oid_length].hex()
        name = content[space + 1 : end].decode("utf-8", "surrogateescape")
        entries[name] = TreeEntry(content[at:space].decode("ascii"), oid)
        at = end + 1 + oid_length
    return entries


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace").strip()
    except OSError:
        return ""
