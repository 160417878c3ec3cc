"""The one act that makes a draft real: one commit, and an index and a working tree that agree with it.

What takes long comes first: the objects, and the new files beside the old ones. Then, for moments, ``index.lock`` and
the branch are held: the index, the branch, the files. No git of the user commits an index or files that are behind
the branch. Until the branch moves nothing can be seen; from then on the commit is the truth, and what is left to do is
written in an intent that ``recover`` finishes. Both rely on the caller's lock: one seals or recovers at a time.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from cleared.errors import WorkspaceError
from cleared.vcs import working_files
from cleared.vcs.commit_intent import CommitIntent, PathChange, PathMove, encode_intent, save_intent
from cleared.vcs.git_process import Git, GitFailed
from cleared.vcs.index import Damaged, IndexLock
from cleared.vcs.object_writer import Author, LooseObjects, blob_id, build_tree, commit_text, sync_files
from cleared.vcs.recovery import recover_interrupted_commit
from cleared.vcs.refs import GitBusy, RefMove, head_moved_error, sync_branch
from cleared.vcs.repository import Repository, TreeEntry
from cleared.vcs.snapshot import Snapshot
from cleared.vcs.working_tree_update import OnStep, end_intent, remove_made_folders, update_working_tree

#: The instants between which a seal can be killed, in order; ``file`` once for each file of the working tree.
STEPS = (
    "objects", "intent", "staged", "locked", "prepared", "verified", "index", "ref", "file", "worktree", "unlocked",
    "done",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LocalMove:
    """A file that git does not hold, to be moved (or, ``target=None``, removed) when the commit is made.

    ``content`` is what was read from it; a file that is no longer that is a reason to refuse.
    """

    source: str
    target: str | None
    content: bytes = field(repr=False)


class Unfinished(WorkspaceError):
    """The commit was made, but the working tree is behind it; ``recover`` brings it up."""

    def __init__(self, message: str, *, commit: str, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.commit = commit


def commit_changes(
    repo: Repository,
    base: str | None,
    changes: Mapping[str, bytes | None],
    message: str,
    trailers: Sequence[tuple[str, str]],
    author: Author,
    when: datetime,
    *,
    verify: Callable[[], None] | None = None,
    on_step: OnStep | None = None,
    state_dir: Path | None = None,
    moves: Sequence[LocalMove] = (),
    edited: Collection[str] = (),
    wait_seconds: float = 0.0,
    merges: str | None = None,
) -> str:
    """Commits ``changes`` (path to content, ``None`` deletes) on top of ``base`` and returns the commit's id.

    ``base`` is the commit the changes were made against, ``None`` for the first one of a new repository.
    ``verify`` is called at the last moment, with the branch locked; what it raises calls the seal off.
    ``state_dir`` (default ``.cleared``) is where the intent is kept. ``wait_seconds``: for a git of the user that
    holds the index. ``edited``: paths that a person edits too; a working copy that is neither as in ``base`` nor as
    committed now stays as it is, as with git's own commits. ``merges``: another commit to be a parent of this one.

    Raises ``HeadMoved`` where the branch is no longer at ``base``, ``GitBusy`` where another git holds what is
    needed; ``WorkspaceError`` where a path cannot be written or its file is not what ``base`` has, or the disk
    refuses: nothing is changed then. ``Unfinished``: committed, the rest follows. ``ValueError`` where ``changes``
    has nothing that ``base`` has not.
    """
    state_dir = _make_state_dir(repo, state_dir)
    step = on_step or (lambda _: None)
    recover_interrupted_commit(repo, state_dir)
    if repo.find_head() != base:
        raise head_moved_error("the branch has a new commit")
    before = Snapshot(repo, base)
    plan, contents = _plan_changes(repo, before, changes)
    if not plan:
        raise ValueError("nothing to commit")
    intent = CommitIntent(
        base=base,
        commit="",
        branch=repo.branch,
        paths=tuple(plan),
        moves=tuple(PathMove(m.source, m.target, blob_id(m.content, repo.hash_name)) for m in moves),
    )
    _refuse_obstacles(repo, intent, edited)
    intent = replace(intent, made=tuple(_folders_to_make(repo, intent)))

    staged: dict[str, Path] = {}
    names = repo.git.setting_names()  # once: nothing that a seal starts git for alters them
    git, index = Git(repo.root, names), IndexLock(repo, names)
    log = "cleared: " + message.strip().split("\n")[0].replace("\0", "")[:200]
    with ExitStack() as stack:
        with _undo_on_error(repo, state_dir, intent, staged, index):
            move = RefMove(repo, git, base, log, author.reflog_environment(when))
            stack.callback(move.close)
            objects = stack.enter_context(LooseObjects(repo))
            commit, entries = _write_objects(
                repo, before, contents, plan, (author, when, message, trailers, merges), objects
            )
            step("objects")
            intent = replace(intent, commit=commit)
            save_intent(state_dir, intent)
            step("intent")
            _stage_files(repo, before, contents, staged)
            step("staged")
            index.acquire(encode_intent(intent), wait_seconds)
            owed = _prepare_index(index, intent, entries)
            step("locked")
            objects.flush()
            try:
                move.prepare(commit)
            except WorkspaceError:  # a git gc may have taken the commit away in between
                objects.flush()
                move = RefMove(repo, git, base, log, author.reflog_environment(when))
                stack.callback(move.close)
                move.prepare(commit)
            step("prepared")
            if verify is not None:
                verify()
            _refuse_unfinished_merge(repo)
            _refuse_obstacles(repo, intent, edited)
            step("verified")
            index.install_index()
            step("index")
            objects.flush()
        try:
            move.commit()
        except (GitBusy, WorkspaceError):
            _undo_preparation(repo, state_dir, intent, staged, index)
            raise
        step("ref")
        try:
            sync_branch(repo)
            objects.flush()  # from here on a git gc that begins knows of them; one that had begun before does not
            update_working_tree(repo, intent, staged=staged, step=step)
            step("worktree")
            index.release()
            step("unlocked")
            end_intent(repo, state_dir, owed)
        except OSError as error:
            raise Unfinished(
                f"committed as {commit[:10]}, but the working tree could not be written: {_error_text(error)}",
                commit=commit,
                remedy="The working tree will be brought up by the next command, once that is put right; until then "
                "git is kept from committing it.",
            ) from error
        step("done")
    return commit


# --- before the branch moves -----------------------------------------------------------------------


def _make_state_dir(repo: Repository, given: Path | None) -> Path:
    state_dir = repo.root / ".cleared" if given is None else given
    if state_dir.is_symlink():
        raise WorkspaceError(f"{state_dir} is a symbolic link", remedy="Remove it: it is made anew.")
    try:
        state_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkspaceError(f"{state_dir} cannot be made, nothing was changed: {_error_text(error)}") from error
    return state_dir


def _prepare_index(index: IndexLock, intent: CommitIntent, entries: Mapping[str, TreeEntry | None]) -> tuple[str, ...]:
    """Have the index ready that goes with the commit. The paths for which it is owed: where git cannot read the one
    that is there, no git can commit it either, and ``recover`` will make another."""
    try:
        index.prepare_index(
            {path: (e.mode, e.oid) if e is not None else None for path, e in entries.items()}, intent.base
        )
    except Damaged:
        index.discard_prepared()
        return tuple(entries)
    return ()


def _plan_changes(
    repo: Repository, before: Snapshot, changes: Mapping[str, bytes | None]
) -> tuple[list[PathChange], dict[str, bytes | None]]:
    """The changes that are any, and their contents; deletions first, as a file may make place for a folder."""
    plan: list[PathChange] = []
    for path, content in sorted(changes.items(), key=lambda change: (change[1] is not None, change[0])):
        working_files.check_path(path)
        entry = before.find_entry(path)
        if entry is not None and not entry.is_file and not (entry.is_tree and content is None):
            what = {"120000": "a symbolic link", "160000": "a submodule"}.get(entry.mode, "a folder")
            raise WorkspaceError(f"{path} cannot be written: the last commit has {what} there")
        old = entry.oid if entry is not None and entry.is_file else None
        new = None if content is None else blob_id(content, repo.hash_name)
        if old != new:
            plan.append(PathChange(path, old, new))
    return plan, {change.path: changes[change.path] for change in plan}


def _refuse_obstacles(repo: Repository, intent: CommitIntent, edited: Collection[str]) -> None:
    """Whatever would stand in the way after the commit is to be known before it."""
    root = repo.root
    going = frozenset(change.path for change in intent.paths if change.new is None)
    for change in intent.paths:
        path = change.path
        found = working_files.read_content_id(root / path, repo.hash_name)
        if path in edited and found not in (change.old, change.new):
            continue
        working_files.check_parents(root, path, going=going)
        if found not in (change.old, change.new):
            raise WorkspaceError(*_describe_obstacle(path, found, change.old))
        _refuse_unwritable(root, path)
    for move in intent.moves:
        for place in (move.source, move.target):
            if place is not None:
                working_files.check_path(place)
                working_files.check_parents(root, place)
                _refuse_unwritable(root, place)
        if working_files.read_content_id(root / move.source, repo.hash_name) != move.oid:
            raise WorkspaceError(
                f"{move.source} changed since it was read, nothing was changed", remedy="Run the agent again."
            )
        if move.target is not None:
            there = working_files.read_content_id(root / move.target, repo.hash_name)
            if there not in (None, move.oid):
                raise WorkspaceError(f"{move.target} is there already, nothing was changed")


def _refuse_unfinished_merge(repo: Repository) -> None:
    """A merge or rebase that was begun since ends with what it found."""
    try:
        repo.refuse_unfinished()
    except WorkspaceError as error:
        raise head_moved_error(error.message) from None


def _describe_obstacle(path: str, found: str | None, old: str | None) -> tuple[str]:
    if found in working_files.NOT_A_FILE:
        how = {"symlink": "a symbolic link", "folder": "a folder", "unreadable": "unreadable"}
        return (f"{path} cannot be written: it is {how.get(str(found), 'no plain file')}",)
    if found is None:
        return (f"{path} is missing from the working tree. To get it back: git restore -- {path}",)
    if old is None:
        return (f"{path} is in the way: it is not in the last commit. Move it elsewhere",)
    return (f"{path} differs from the last commit. Commit it, or undo it: git restore -- {path}",)


def _refuse_unwritable(root: Path, path: str) -> None:
    folder = (root / path).parent
    while not os.path.lexists(folder) and folder != root:
        folder = folder.parent
    if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
        raise WorkspaceError(
            f"{path} cannot be written: {folder} is read-only; nothing was changed",
            remedy="Give yourself the right to write there.",
        )


def _write_objects(
    repo: Repository,
    before: Snapshot,
    contents: Mapping[str, bytes | None],
    plan: Sequence[PathChange],
    about: tuple[Author, datetime, str, Sequence[tuple[str, str]], str | None],
    objects: LooseObjects,
) -> tuple[str, dict[str, TreeEntry | None]]:
    author, when, message, trailers, merges = about
    parents = [parent for parent in (before.commit, merges) if parent is not None]
    entries: dict[str, TreeEntry | None] = {}
    for change in plan:
        content = contents[change.path]
        if content is None:
            entries[change.path] = None
        else:
            mode = "100755" if working_files.is_executable(before.find_entry(change.path), change.path) else "100644"
            entries[change.path] = TreeEntry(mode, objects.add_object("blob", content))
    tree = build_tree(repo, before.tree, entries, objects)
    commit = objects.add_object("commit", commit_text(tree, parents, author, when, message, trailers))
    objects.flush()
    return commit, entries


def _stage_files(
    repo: Repository, before: Snapshot, contents: Mapping[str, bytes | None], staged: dict[str, Path]
) -> None:
    for path, content in contents.items():
        # One that has to wait until a file makes place for its folder is written after the commit.
        if content is not None and not working_files.is_blocked(repo.root, path):
            executable = working_files.is_executable(before.find_entry(path), path)
            staged[path] = working_files.stage_file(repo.root, path, content, executable=executable)
    sync_files(list(staged.values()))


def _folders_to_make(repo: Repository, intent: CommitIntent) -> Iterator[str]:
    known: set[str] = set()
    for change in intent.paths:
        if change.new is not None:
            for folder in working_files.missing_parents(repo.root, change.path):
                if folder not in known:
                    known.add(folder)
                    yield folder


@contextmanager
def _undo_on_error(
    repo: Repository, state_dir: Path, intent: CommitIntent, staged: dict[str, Path], index: IndexLock
) -> Iterator[None]:
    """Whatever happens in here, it leaves nothing behind, and a disk that refuses is a ``WorkspaceError``."""
    try:
        yield
    except BaseException as error:
        _undo_preparation(repo, state_dir, intent, staged, index)
        if isinstance(error, OSError | GitFailed):
            raise WorkspaceError(
                f"the commit could not be written, nothing was changed: {_error_text(error)}",
                remedy=_REMEDIES.get(error.errno or 0) if isinstance(error, OSError) else None,
            ) from error
        raise


def _undo_preparation(
    repo: Repository, state_dir: Path, intent: CommitIntent, staged: Mapping[str, Path], index: IndexLock
) -> None:
    with suppress(OSError):
        for temporary in staged.values():
            temporary.unlink(missing_ok=True)
    remove_made_folders(repo, intent)
    try:
        index.restore_index()
    except OSError:
        return  # with the intent, and the lock, ``recover`` does it
    with suppress(OSError):
        index.release()
    with suppress(OSError):
        end_intent(repo, state_dir, ())


_REMEDIES = {
    errno.ENOSPC: "Make room on the disk.",
    errno.EDQUOT: "Make room: your quota is used up.",
    errno.EROFS: "Make the file system writable.",
    errno.EACCES: "Give yourself the right to write there.",
    errno.EPERM: "Give yourself the right to write there.",
}


def _error_text(error: OSError | GitFailed) -> str:
    if isinstance(error, GitFailed):
        return error.message
    return f"{error.strerror or error} ({error.filename})" if error.filename else error.strerror or str(error)
