"""Reading the history: what was committed, when, by whom, with which trailers.

The only place that uses GitPython, which starts git through ``command`` as all do; importing it takes longer than a
whole run, so it is imported on demand.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from cleared.errors import UsageError, WorkspaceError
from cleared.vcs.git_process import NOT_INSTALLED, Git, find_git
from cleared.vcs.object_writer import parse_trailers

if TYPE_CHECKING:
    from git import Repo

_FORMAT = "--format=tformat:%H%x00%h%x00%at%x00%an%x00%ae%x00%B"


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """One commit. ``trailers`` are those of the last paragraph; a repeated key's values are joined by newlines."""

    id: str
    short: str
    #: Author time, aware, UTC.
    when: datetime
    author: str
    email: str
    subject: str
    #: The message without its subject and its trailers.
    body: str
    trailers: dict[str, str] = field(default_factory=dict)
    #: The paths it changed against its first parent; ``None`` where they were not asked for.
    files: tuple[str, ...] | None = None


def read_log(
    root: Path,
    limit: int | None = None,
    paths: Sequence[str] | None = None,
    *,
    grep: str | None = None,
    since: str | None = None,
    files: bool = False,
    rev: str = "HEAD",
) -> list[CommitInfo]:
    """The commits of HEAD (or of the commit ``rev``), newest first.

    ``paths``: only those that touched one of these files or folders (taken literally). ``grep``: only those
    whose message has this text, exactly. ``since``: only those that are not in this commit's history.
    ``files``: also what each changed. Raises ``WorkspaceError`` where git cannot tell.
    """
    return _log(root, limit, paths, grep=grep, since=since, files=files, rev=rev)


def commits_touching(root: Path, paths: Sequence[str], since: str | None = None) -> list[CommitInfo]:
    """Every commit of HEAD that changed one of ``paths``, on side branches too, newest first, with its files."""
    return _log(root, None, paths, since=since, files=True, full=True)


def find_by_trailer(root: Path, key: str, value: str) -> list[CommitInfo]:
    """The commits of HEAD that have the trailer ``key: value``, newest first."""
    found = _log(root, None, None, grep=f"{key}: {value}")
    return [commit for commit in found if value in commit.trailers.get(key, "").split("\n")]


def read_commit(root: Path, rev: str) -> CommitInfo:
    """One commit with its files. ``rev`` is anything git takes for a commit; ``UsageError`` where there is none."""
    with _open_repo(root) as repo:
        try:
            if rev.startswith("-"):
                raise ValueError("an option, not a revision")
            commit = _run_git(repo, ["rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}"]).decode().strip()
        except (WorkspaceError, ValueError):  # ValueError also for a NUL in it
            raise UsageError(f"there is no commit {rev!r}", remedy="See: git log.") from None
        said = _run_git(repo, ["log", "-z", "--no-walk", _FORMAT, commit])
        return next(_parse_commits(said, _changed_files(repo, [commit])))


def find_merge_base(root: Path, commits: Sequence[str]) -> str | None:
    """The commit that the histories of these have in common; None where there is none."""
    with _open_repo(root) as repo:
        try:
            return _run_git(repo, ["merge-base", "--octopus", *commits]).decode().strip() or None
        except WorkspaceError:
            return None


def list_unmerged_paths(root: Path) -> list[str]:
    """Paths that a merge, rebase or the like which is under way could not join."""
    with _open_repo(root) as repo:
        said = _run_git(repo, ["ls-files", "--unmerged", "-z"]).decode("utf-8", "surrogateescape")
        return sorted({row.partition("\t")[2] for row in said.split("\0") if row})


def is_pushed(root: Path, commit: str) -> bool:
    """Whether a remote is known to have the commit."""
    with _open_repo(root) as repo:
        said = _run_git(
            repo, ["for-each-ref", "--count=1", "--format=%(refname)", f"--contains={commit}", "refs/remotes"]
        )
        return bool(said.strip())


def _log(
    root: Path,
    limit: int | None,
    paths: Sequence[str] | None,
    *,
    grep: str | None = None,
    since: str | None = None,
    files: bool = False,
    full: bool = False,
    rev: str = "HEAD",
) -> list[CommitInfo]:
    if paths is not None and not paths:
        return []
    args = ["log", "-z", "--no-decorate", "--no-color", _FORMAT]
    if limit is not None:
        args.append(f"--max-count={limit}")
    if grep is not None:
        args += ["--fixed-strings", f"--grep={grep}"]
    if full:
        args.append("--full-history")
    args += ["--end-of-options", rev]
    if since is not None:
        args.append(f"^{since}")
    if paths is not None:
        args += ["--", *paths]
    with _open_repo(root) as repo:
        said = _run_git(repo, args)
        ids = [commit.id for commit in _parse_commits(said, None)] if files else []
        return list(_parse_commits(said, _changed_files(repo, ids) if files else None))


def _parse_commits(said: bytes, files: dict[str, tuple[str, ...]] | None) -> Iterator[CommitInfo]:
    fields = [part.decode("utf-8", "replace") for part in said.split(b"\0")]
    for at in range(0, len(fields) - 5, 6):
        commit, short, when, author, email, message = fields[at : at + 6]
        subject, _, rest = message.strip("\n").partition("\n")
        trailers = parse_trailers(message)
        if trailers:
            rest = rest.strip("\n").rpartition("\n\n")[0]
        yield CommitInfo(
            id=commit,
            short=short,
            when=datetime.fromtimestamp(int(when), UTC),
            author=author,
            email=email,
            subject=subject,
            body=rest.strip("\n"),
            trailers=trailers,
            files=None if files is None else files.get(commit, ()),
        )


def _changed_files(repo: Repo, commits: Sequence[str]) -> dict[str, tuple[str, ...]]:
    args = ["diff-tree", "--stdin", "-r", "-z", "--root", "--always", "--name-only", "--no-renames"]
    # No name is empty, so two NULs cannot be part of one: no file name can pass for the next commit's id.
    args += ["--diff-merges=first-parent", "--format=%x00%x00%H"]
    asked = io.BytesIO("".join(f"{commit}\n" for commit in commits).encode())
    said = _run_git(repo, args, asked).decode("utf-8", "surrogateescape")
    found: dict[str, tuple[str, ...]] = {}
    for part in said.split("\0\0"):
        # Before an id the end of the last name, after it a newline of the format.
        commit, _, names = part.lstrip("\0").partition("\0")
        if commit:
            found[commit] = tuple(filter(None, names.removeprefix("\n").split("\0")))
    return found


@contextmanager
def _open_repo(root: Path) -> Iterator[Repo]:
    # Its import runs "git version", of this path, and complains on stderr.
    os.environ["GIT_PYTHON_GIT_EXECUTABLE"] = find_git()
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    try:
        import git
    except ImportError as error:
        raise WorkspaceError("GitPython cannot be used", remedy=NOT_INSTALLED) from error

    class Hardened(git.Git):
        """Whatever GitPython has git do is done by our own."""

        def execute(self, command: Sequence[str], istream: BinaryIO | None = None, **_: Any) -> bytes:  # type: ignore[override]
            return Git(root).run(*command[1:], input=None if istream is None else istream.read())

    class Opened(git.Repo):
        GitCommandWrapperType = Hardened

    try:
        repo = Opened(root, expand_vars=False)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError) as error:
        raise WorkspaceError(f"{root} is not a git repository", remedy="Make it one: git init.") from error
    with repo:
        yield repo


def _run_git(repo: Repo, args: Sequence[str], asked: BinaryIO | None = None) -> bytes:
    said: Any = repo.git.execute(["git", *args], istream=asked)
    return bytes(said)
