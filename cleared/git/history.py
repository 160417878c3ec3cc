"""Reading the history: what was committed, when, by whom, with which trailers. Through GitPython (``git_python``).

All commits are printed by one ``git log``: GitPython's own commit objects cost 2.7 times as much, and a process each
for their files and short ids.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from cleared.base.errors import RestoreRemedy, UsageError, WorkspaceError
from cleared.git.commit_text import parse_parents, parse_trailers
from cleared.git.git_process import NOT_INSTALLED
from cleared.git.repository import Repository, Snapshot

if TYPE_CHECKING:
    from cleared.git.git_python import HardenedRepo

Changes = Mapping[str, tuple[str, str]]
"""Path → the blob ids before and after, empty where there is nothing; of a link or a submodule with its mode before."""

_MOST_VERSIONS = 20
_ID_DIGITS = r"[0-9a-fA-F]{4,64}"
_FORMAT = "--format=tformat:%H%x00%h%x00%at%x00%an%x00%ae%x00%B"


class CommitInfo(Struct, frozen=True):
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
    trailers: dict[str, str] = {}
    #: What it changed against its first parent; ``None`` where that was not read.
    changes: Changes | None = None

    @property
    def files(self) -> tuple[str, ...] | None:
        """The paths that it changed; ``None`` where they were not read."""
        return None if self.changes is None else tuple(self.changes)


def read_log(
    root: Path,
    limit: int | None = None,
    paths: Sequence[str] | None = None,
    *,
    grep: str | None = None,
    since: str | None = None,
    files: bool = False,
    rev: str = "HEAD",
    full_history: bool = False,
    only_merges: bool = False,
) -> list[CommitInfo]:
    """The commits of HEAD (or of the commit ``rev``), newest first.

    ``paths``: only those that touched one of these files or folders (taken literally). ``grep``: only those
    whose message has this text, exactly. ``since``: only those that are not in this commit's history.
    ``files``: also what each changed. ``full_history``: also those on side branches whose changes a merge dropped.
    Raises ``WorkspaceError`` where git cannot read them.
    """
    if paths is not None and not paths:
        return []
    args = ["-z", "--no-decorate", "--no-color", _FORMAT]
    if limit is not None:
        args.append(f"--max-count={limit}")
    if grep is not None:
        args += ["--fixed-strings", f"--grep={grep}"]
    if only_merges:
        args.append("--merges")
    if full_history:
        args += ["--full-history", "--date-order"]  # whatever dates say, a commit comes before its parents
    args += ["--end-of-options", rev]
    if since is not None:
        args.append(f"^{since}")
    if paths is not None:
        args += ["--", *paths]
    with _open_repo(root) as repo:
        output = _output_of(repo.git.log(*args))
        ids = [commit.id for commit in _parse_commits(output, None)] if files else []
        return list(_parse_commits(output, _read_changes(repo, ids) if files else None))


def commits_touching(root: Path, paths: Sequence[str], since: str | None = None) -> list[CommitInfo]:
    """Every commit of HEAD that changed one of ``paths``, on side branches too, newest first, with its files."""
    return read_log(root, None, paths, since=since, files=True, full_history=True)


def list_merges(root: Path) -> list[CommitInfo]:
    """Every commit of HEAD that joins others, newest first, without its files."""
    return read_log(root, only_merges=True)


def find_by_trailer(root: Path, key: str, value: str, rev: str = "HEAD") -> list[CommitInfo]:
    """The commits of HEAD (or of the commit ``rev``) that have the trailer ``key: value``, newest first."""
    commits = read_log(root, None, None, grep=f"{key}: {value}", rev=rev)
    return [commit for commit in commits if value in commit.trailers.get(key, "").split("\n")]


def read_commit(root: Path, rev: str) -> CommitInfo:
    """One commit with its files. ``rev`` is anything git takes for a commit; digits are the beginning of its id,
    whatever tag is named so. ``UsageError`` where there is none, or several."""
    with _open_repo(root) as repo:
        try:
            if rev.startswith("-"):
                raise ValueError("an option, not a revision")
            names = _find_objects(repo, rev) if re.fullmatch(_ID_DIGITS, rev) else []
            commit = _find_commit(repo, names or [rev])
        except (WorkspaceError, ValueError):  # ValueError also for a NUL in it
            raise UsageError(f"there is no commit {rev!r}", remedy="See: git log.") from None
        output = _output_of(repo.git.log("-z", "--no-walk", _FORMAT, commit))
        return next(_parse_commits(output, _read_changes(repo, [commit])))


def _find_objects(repo: HardenedRepo, digits: str) -> list[str]:
    """The ids of objects that begin so."""
    return _output_of(repo.git.rev_parse(f"--disambiguate={digits.lower()}")).decode().split()


def _find_commit(repo: HardenedRepo, names: Sequence[str]) -> str:
    """The id of the one commit among these. Raises ``WorkspaceError`` for none, ``UsageError`` for several."""
    commits = set[str]()
    for name in names:
        with suppress(WorkspaceError):
            found = _output_of(repo.git.rev_parse("--verify", "--quiet", f"{name}^{{commit}}")).decode().strip()
            if len(names) == 1 or found == name:
                commits.add(found)
    if len(commits) > 1:
        raise UsageError(f"the ids of {len(commits)} commits begin so", remedy="Give more of its digits: git log.")
    if not commits:
        raise WorkspaceError("there is no such commit")
    return commits.pop()


def find_merge_base(root: Path, commits: Sequence[str]) -> str | None:
    """The commit that the histories of these have in common; ``None`` where there is none."""
    with _open_repo(root) as repo:
        try:
            return _output_of(repo.git.merge_base("--octopus", *commits)).decode().strip() or None
        except WorkspaceError:
            return None


def iter_versions(snapshot: Snapshot, path: str) -> Iterator[tuple[str, bytes]]:
    """The newest versions of a file up to a commit, newest first, each with what has it: ``HEAD`` for that commit."""
    seen = set[str | None]()
    log = read_log(snapshot.repo.root, None, [path], rev=str(snapshot.commit), full_history=True)
    for name, commit in [("HEAD", str(snapshot.commit)), *((each.short, each.id) for each in log)]:
        at = snapshot.at_commit(commit)
        blob, data = at.find_blob_id(path), at.read_file(path)
        if data is not None and blob not in seen:
            seen.add(blob)
            yield name, data
            if len(seen) == _MOST_VERSIONS:
                return


class VersionSearch(Struct, eq=False):
    """Names the versions to which files can go back; of very many files it names none, as each takes a git."""

    snapshot: Snapshot
    left: int = 10

    def name_version(self, remedy: RestoreRemedy, is_right: Callable[[bytes], bool]) -> str:
        """The remedy with the newest version that is right, if there is one."""
        self.left -= 1
        versions = iter_versions(self.snapshot, remedy.file) if self.left >= 0 else ()
        return remedy.name_version(next((commit for commit, data in versions if is_right(data)), ""))


def is_pushed(root: Path, commit: str) -> bool:
    """Whether a remote is known to have the commit."""
    with _open_repo(root) as repo:
        args = ("--count=1", "--format=%(refname)", f"--contains={commit}", "refs/remotes")
        return bool(_output_of(repo.git.for_each_ref(*args)).strip())


def _parse_commits(output: bytes, changes: Mapping[str, Changes] | None) -> Iterator[CommitInfo]:
    fields = [part.decode("utf-8", "replace") for part in output.split(b"\0")]
    for at in range(0, len(fields) - 5, 6):
        commit, short, when, author, email, message = fields[at : at + 6]
        subject, _, rest = message.strip("\n").partition("\n")
        trailers = parse_trailers(message)
        if trailers:
            rest = rest.strip("\n").rpartition("\n\n")[0]
        yield CommitInfo(
            id=commit,
            short=short,
            when=_parse_when(when),
            author=author,
            email=email,
            subject=subject,
            body=rest.strip("\n"),
            trailers=trailers,
            changes=None if changes is None else changes.get(commit, {}),
        )


def _parse_when(seconds: str) -> datetime:
    """Whoever writes a commit by hand may write any time, or none: then it is 1970."""
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)


def _read_changes(repo: HardenedRepo, commits: Sequence[str]) -> dict[str, Changes]:
    """Commit → what it changed against its first parent, from one process for all of them."""
    args = [
        "--stdin",
        "-r",
        "-z",
        "--root",
        "--always",
        "--raw",
        "--no-abbrev",
        "--no-renames",
        "--diff-merges=first-parent",
    ]
    # No name is empty, so two NULs cannot be part of one: no file name can pass for the next commit's id.
    args.append("--format=%x00%x00%H")
    ids = io.BytesIO("".join(f"{commit}\n" for commit in commits).encode())
    output = _output_of(repo.git.diff_tree(*args, istream=ids)).decode("utf-8", "surrogateescape")
    changes: dict[str, Changes] = {}
    for part in output.split("\0\0"):
        # Before an id the end of the last name, after it a newline of the format.
        commit, _, rest = part.lstrip("\0").partition("\0")
        if commit:
            fields = [field for field in rest.removeprefix("\n").split("\0") if field]
            changes[commit] = {path: _parse_blobs(raw) for raw, path in zip(fields[::2], fields[1::2], strict=True)}
    return changes


def _parse_blobs(raw: str) -> tuple[str, str]:
    """What was and is there by ``:100644 100644 OLD NEW M``."""
    old_mode, new_mode, old, new, _ = raw.removeprefix(":").split(" ")
    return _name_content(old_mode, old), _name_content(new_mode, new)


def _name_content(mode: str, oid: str) -> str:
    if mode == "000000":
        return ""
    return oid if mode.startswith("100") else f"{mode} {oid}"


def _open_repo(root: Path) -> AbstractContextManager[HardenedRepo]:
    try:
        from cleared.git.git_python import open_repo  # on demand: importing GitPython takes longer than a whole run
    except ImportError as error:
        raise WorkspaceError("GitPython cannot be used", remedy=NOT_INSTALLED) from error
    return closing(open_repo(root))


def _output_of(result: Any) -> bytes:
    """What a command of GitPython printed; ``HardenedGit`` returns bytes, which GitPython's types do not know."""
    return bytes(result)


class RecentCommit(Struct, frozen=True):
    """One commit: its id, the first line of its message, and its trailers."""

    id: str
    subject: str
    trailers: Mapping[str, str] = {}


def read_recent_commits(
    repo: Repository, commit: str, after: str | None, limit: int = 200
) -> list[RecentCommit] | None:
    """The commits after ``after`` (None: all) up to ``commit``, newest first.

    None where that is not a straight line of at most ``limit`` commits (a merge, another history, a shallow clone's
    end): use ``read_log`` then.
    """
    commits: list[RecentCommit] = []
    at: str | None = commit
    while at is not None and at != after:
        if len(commits) >= limit:
            return None
        try:
            kind, data = repo.objects.read_object(at)
        except WorkspaceError:
            return None
        parents = parse_parents(data)
        if kind != "commit" or len(parents) > 1 or (not parents and after is not None):
            return None
        message = data.partition(b"\n\n")[2].decode("utf-8", "replace")
        commits.append(RecentCommit(at, message.partition("\n")[0], parse_trailers(message)))
        at = parents[0] if parents else None
    return commits


def find_ancestor(repo: Repository, commit: str, steps: int) -> str | None:
    """The commit that many steps before ``commit``, by first parents; ``None`` where the history is shorter.

    Where a shallow clone ends before that, the oldest commit that is there.
    """
    at = commit
    for _ in range(steps):
        try:
            parents = parse_parents(repo.objects.read_object(at)[1])
            if not parents:
                return None
            repo.objects.find_tree_id(parents[0])
        except WorkspaceError:  # a shallow clone ends here
            return at
        at = parents[0]
    return at


def list_beginnings(repo: Repository, head: str, known: str | None) -> list[str]:
    """The commits without a parent that are in the history of ``head`` and not in that of ``known``; the ends of a
    shallow clone are none."""
    recent = read_recent_commits(repo, head, known)
    if recent is not None:  # a straight line
        return [recent[-1].id] if recent and known is None else []
    return [each for each in list_ends(repo, head, known) if not parse_parents(repo.objects.read_object(each)[1])]


def list_cut_commits(repo: Repository) -> frozenset[str]:
    """Where a shallow clone ends: of these commits it is not known what was before."""
    try:
        return frozenset((repo.common_dir / "shallow").read_text(encoding="ascii", errors="replace").split())
    except FileNotFoundError:
        return frozenset()


def list_ends(repo: Repository, head: str, known: str | None = None) -> list[str]:
    """The commits without a parent that git finds in the history of ``head``, or of it but not of ``known``."""
    without = [f"^{known}"] if known is not None else []
    return repo.git.run("log", "--max-parents=0", "--format=%H", head, *without).decode("ascii").split()
