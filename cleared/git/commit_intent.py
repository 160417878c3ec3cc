"""What a commit is about to do, and what stands in its way, which is looked at before anything is written.

The intent is written down beforehand, so that the next command can finish the commit after a kill.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from shlex import quote

from msgspec import Struct, to_builtins

from cleared.base.errors import RestoreRemedy, WorkspaceError, quote_path
from cleared.base.safe_files import create_temporary, write_durably
from cleared.git import working_files
from cleared.git.history import iter_versions
from cleared.git.object_reader import blob_id, is_oid
from cleared.git.refs import head_moved_error
from cleared.git.repository import Repository, Snapshot, unfinished_error
from cleared.git.working_files import check_path, name_way_aside

_NAME = "seal.json"
_VERSION = 1


class PathChange(Struct, frozen=True):
    """One committed path: its blob before and after (``None``: no file)."""

    path: str
    old: str | None
    new: str | None


class PathMove(Struct, frozen=True):
    """A file outside the commit: moved to ``target`` once the commit is there, or removed (``None``)."""

    source: str
    target: str | None
    oid: str


class CommitIntent(Struct, frozen=True):
    """A commit under way. ``made``: folders made for it; ``pending``: paths whose index entries are not set yet."""

    base: str | None
    commit: str
    branch: str
    paths: tuple[PathChange, ...] = ()
    moves: tuple[PathMove, ...] = ()
    made: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()


def intent_file(state_dir: Path) -> Path:
    """Where the intent lies."""
    return state_dir / _NAME


def encode_intent(intent: CommitIntent) -> bytes:
    """The intent as text, for ``decode_intent``."""
    return json.dumps({"version": _VERSION, **to_builtins(intent)}).encode("ascii")


def save_intent(state_dir: Path, intent: CommitIntent) -> None:
    """Replace the intent, durably. Raises ``OSError``."""
    write_durably(intent_file(state_dir), encode_intent(intent))


def stage_intent(state_dir: Path, intent: CommitIntent) -> Path:
    """Write the intent under another name; ``place_file`` makes it the intent once it is synced. Raises ``OSError``."""
    temporary, descriptor = create_temporary(intent_file(state_dir), state_dir, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        file.write(encode_intent(intent))
    return temporary


def load_intent(state_dir: Path) -> CommitIntent | None:
    """The intent of a commit that did not end, or ``None``. Raises ``ValueError`` where it cannot be read."""
    try:
        return decode_intent(intent_file(state_dir).read_bytes())
    except FileNotFoundError:
        return None


def decode_intent(text: bytes) -> CommitIntent:
    """The inverse of ``encode_intent``. Raises ``ValueError`` for anything else."""
    try:
        data = json.loads(text)
        if data.pop("version") != _VERSION:
            raise ValueError("another version")
        intent = CommitIntent(
            base=data["base"],
            commit=data["commit"],
            branch=data["branch"],
            paths=tuple(PathChange(**change) for change in data["paths"]),
            moves=tuple(PathMove(**move) for move in data["moves"]),
            made=tuple(data["made"]),
            pending=tuple(data["pending"]),
        )
        _check_intent(intent)
    except (KeyError, TypeError, AttributeError, WorkspaceError, RecursionError) as error:
        raise ValueError(str(error)) from error
    return intent


def _check_intent(intent: CommitIntent) -> None:
    ids = [intent.commit, *(oid for c in intent.paths for oid in (c.old, c.new)), *(m.oid for m in intent.moves)]
    if not all(oid is None or is_oid(oid) for oid in (*ids, intent.base)) or not intent.commit:
        raise ValueError("not an object id")
    names = [change.path for change in intent.paths]
    names += [name for move in intent.moves for name in (move.source, move.target) if name is not None]
    for name in (*names, *intent.made, *intent.pending):
        check_path(name)


class LocalMove(Struct, frozen=True):
    """A file that git does not hold, to be moved (or, ``target=None``, removed) when the commit is made.

    ``content`` is what was read from it; where the file has another content now, the commit is refused.
    """

    source: str
    target: str | None
    content: bytes


def plan_changes(repo: Repository, before: Snapshot, changes: Mapping[str, bytes | None]) -> list[PathChange]:
    """The changes that change something; deletions first, as a file may make place for a folder.

    Raises ``WorkspaceError`` for a path that cannot be committed, or where the last commit has no plain file.
    """
    plan: list[PathChange] = []
    for path, content in sorted(changes.items(), key=lambda change: (change[1] is not None, change[0])):
        working_files.check_path(path)
        entry = before.find_entry(path)
        if entry is not None and not entry.is_file and not (entry.is_tree and content is None):
            kind = {"120000": "a symbolic link", "160000": "a submodule"}.get(entry.mode, "a folder")
            where, newest = quote_path(path), next(iter_versions(before, path), None)
            way = f"Take it away: git rm -r -- {where}, and commit that"
            raise WorkspaceError(
                f"{path} cannot be written: the last commit has {kind} there",
                remedy=f"Look who put it there (git log -- {where}). "
                + (RestoreRemedy(path).name_version(newest[0]) if newest is not None else way),
            )
        old = entry.oid if entry is not None and entry.is_file else None
        new = None if content is None else blob_id(content, repo.hash_name)
        if old != new:
            plan.append(PathChange(path, old, new))
    return plan


def list_missing_folders(repo: Repository, intent: CommitIntent) -> Iterator[str]:
    """The folders that have to be made for the files of the commit, each before those in it."""
    listed: set[str] = set()
    for change in intent.paths:
        if change.new is not None:
            for folder in working_files.missing_parents(repo.root, change.path):
                if folder not in listed:
                    listed.add(folder)
                    yield folder


def refuse_obstacles(repo: Repository, intent: CommitIntent, edited: Collection[str]) -> None:
    """Raises ``WorkspaceError`` for anything that would keep the working tree from following the commit."""
    root = repo.root
    deleted = frozenset(change.path for change in intent.paths if change.new is None)
    for change in intent.paths:
        path = change.path
        content = working_files.read_content_id(root / path, repo.hash_name)
        is_expected = content in (change.old, change.new)
        if path in edited and not is_expected:
            continue
        working_files.check_parents(root, path, deleted=deleted)
        if not is_expected:
            raise _obstacle_error(path, content, change.old)
        _refuse_unwritable(root, path)
    for move in intent.moves:
        _refuse_move_obstacles(repo, move)


def refuse_unfinished_merge(repo: Repository) -> None:
    """Raises ``HeadMoved`` where a merge or rebase began meanwhile: it would end with the files that it found."""
    if (command := repo.find_unfinished()) is not None:
        raise head_moved_error(unfinished_error(repo, command).message)


def _refuse_move_obstacles(repo: Repository, move: PathMove) -> None:
    root = repo.root
    for path in (move.source, move.target):
        if path is not None:
            working_files.check_path(path)
            working_files.check_parents(root, path)
            _refuse_unwritable(root, path)
    if working_files.read_content_id(root / move.source, repo.hash_name) != move.oid:
        raise WorkspaceError(
            f"{move.source} changed since it was read, nothing was changed", remedy="Run the agent again."
        )
    if move.target is not None:
        content = working_files.read_content_id(root / move.target, repo.hash_name)
        if content not in (None, move.oid):
            raise WorkspaceError(
                f"{move.target} is there already, nothing was changed",
                remedy=f"Move it elsewhere: {name_way_aside(move.target)}.",
            )


def _obstacle_error(path: str, content: str | None, old: str | None) -> WorkspaceError:
    back = f"git checkout HEAD -- {quote_path(path)}"
    if content == "unreadable":
        return WorkspaceError(f"{path} cannot be written: it is unreadable", remedy=f"Run: chmod u+rw {quote(path)}.")
    if content in working_files.NOT_A_FILE:
        kinds = {"symlink": "a symbolic link", "folder": "a folder"}
        aside = name_way_aside(path) + ("" if old is None else f" && {back}")
        return WorkspaceError(
            f"{path} cannot be written: it is {kinds.get(str(content), 'no plain file')}",
            remedy=f"Move it out of the way: {aside}. Then run the command again.",
        )
    if content is None:
        return WorkspaceError(f"{path} is missing from the working tree", remedy=f"To get it back: {back}")
    if old is None:
        return WorkspaceError(
            f"{path} is in the way: it is not in the last commit",
            remedy=f"Move it elsewhere: {name_way_aside(path)}.",
        )
    return WorkspaceError(f"{path} differs from the last commit", remedy=f"Commit it, or undo it: {back}")


def _refuse_unwritable(root: Path, path: str) -> None:
    folder = (root / path).parent
    while not os.path.lexists(folder) and folder != root:
        folder = folder.parent
    if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
        raise WorkspaceError(
            f"{path} cannot be written: {folder} is read-only; nothing was changed",
            remedy=f"Give yourself the right to write there: chmod u+rwx {quote(str(folder))}.",
        )
