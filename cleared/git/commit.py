"""Making one commit of a draft, with an index and a working tree that agree with it.

What takes long comes first: the objects, and the new files in a folder of git's directory. Then ``index.lock`` and the
branch are held for moments: the index, the branch, the files. So no git of the user commits an index or files that are
behind the branch. Until the branch moves nothing can be seen. From then on the commit is made, and what is left to do
is written in an intent, which ``recover_interrupted_commit`` finishes after a kill. The caller holds the writer lock.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import place_file, sweep_temporaries
from cleared.git import working_files
from cleared.git.commit_intent import (
    CommitIntent,
    LocalMove,
    PathMove,
    encode_intent,
    intent_file,
    list_missing_folders,
    plan_changes,
    refuse_obstacles,
    refuse_unfinished_merge,
    stage_intent,
)
from cleared.git.commit_text import Author, format_commit
from cleared.git.git_process import GitFailed
from cleared.git.index import Damaged, IndexLock
from cleared.git.made_commits import hold_interrupts, note_commit, write_command_note
from cleared.git.object_reader import TreeEntry, blob_id
from cleared.git.object_writer import NewObjects, build_tree
from cleared.git.recovery import (
    OnStep,
    end_intent,
    recover_interrupted_commit,
    remove_made_folders,
    update_working_tree,
)
from cleared.git.ref_move import RefMove, start_move, sync_move
from cleared.git.refs import head_moved_error
from cleared.git.repository import Repository, Snapshot

#: The instants between which a commit can be killed, in order; ``file`` once for each file of the working tree.
STEPS = (
    "objects",
    "intent",
    "staged",
    "locked",
    "prepared",
    "verified",
    "index",
    "ref",
    "file",
    "worktree",
    "unlocked",
    "done",
)


class Unfinished(WorkspaceError):
    """The commit was made, but the working tree is behind it; the next command brings it up."""

    def __init__(self, message: str, *, commit: str, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.commit = commit


class CommitHeader(Struct, frozen=True):
    """What a commit says beside its files. ``merges``: another commit to be a parent of it. ``command_key``: by which
    ``find_unreported_commit`` finds the commit, where the command is killed after it. ``made``: a commit that is there
    already, with these files and on whatever base: the branch is moved to it, and none is written."""

    message: str
    trailers: Sequence[tuple[str, str]]
    author: Author
    when: datetime
    merges: str | None = None
    command_key: str = ""
    made: str | None = None


def commit_changes(
    repo: Repository,
    base: str | None,
    changes: Mapping[str, bytes | None],
    header: CommitHeader,
    *,
    verify: Callable[[], None] | None = None,
    on_step: OnStep | None = None,
    state_dir: Path | None = None,
    moves: Sequence[LocalMove] = (),
    edited: Collection[str] = (),
    wait_seconds: float = 0.0,
) -> str:
    """Commits ``changes`` (path to content, ``None`` deletes) on top of ``base`` and returns the commit's id.

    ``base`` is the commit the changes were made against, ``None`` for the first one of a new repository.
    ``verify`` is called at the last moment, with the branch locked; what it raises calls the commit off.
    ``state_dir`` (default ``.cleared``) is where the intent is kept. ``wait_seconds``: for a git of the user that
    holds the index. ``edited``: paths that a person edits too; a working copy that is neither as in ``base`` nor as
    committed now stays as it is, as with git's own commits.

    Raises ``HeadMoved`` where the branch is no longer at ``base``, ``GitBusy`` where another git holds what is
    needed; ``WorkspaceError`` where a path cannot be written or its file is not what ``base`` has, or the disk
    refuses: nothing is changed then. ``Unfinished``: committed, the rest follows. ``ValueError`` where ``changes``
    has nothing that ``base`` has not, and no commit is ``made``.
    """
    state_dir = _make_state_dir(repo, state_dir)
    report_step = on_step or (lambda _: None)
    recover_interrupted_commit(repo, state_dir)
    if repo.find_head() != base:
        raise head_moved_error("the branch has a new commit")
    before = Snapshot(repo, base)
    plan = plan_changes(repo, before, changes)
    if not plan and header.made is None:
        raise ValueError("nothing to commit")
    path_moves = tuple(PathMove(m.source, m.target, blob_id(m.content, repo.hash_name)) for m in moves)
    intent = CommitIntent(base=base, commit="", branch=repo.branch.name, paths=tuple(plan), moves=path_moves)
    refuse_obstacles(repo, intent, edited)
    intent = replace(intent, made=tuple(list_missing_folders(repo, intent)))
    contents = {change.path: changes[change.path] for change in plan}
    with ExitStack() as stack:
        commit = _Commit(repo, state_dir, before, contents, intent, header, stack)
        with commit.undo_on_error():
            commit.start()
            commit.write_objects(report_step)
            commit.stage_files()
            report_step("staged")
            commit.prepare_index(wait_seconds)
            report_step("locked")
            commit.prepare_branch()
            report_step("prepared")
            if verify is not None:
                verify()
            refuse_unfinished_merge(repo)
            refuse_obstacles(repo, intent, edited)
            report_step("verified")
            commit.install_index(report_step)
        with hold_interrupts():
            commit.move_branch()
            report_step("ref")
            commit.bring_up_files(report_step)
            report_step("done")
    return commit.id


class _Commit:
    """A commit that is being made. Its methods are called once each, in the order in which they stand here."""

    def __init__(
        self,
        repo: Repository,
        state_dir: Path,
        before: Snapshot,
        contents: Mapping[str, bytes | None],
        intent: CommitIntent,
        header: CommitHeader,
        stack: ExitStack,
    ) -> None:
        """``contents`` are those of the intent's paths; ``stack`` closes what is opened here."""
        self._repo, self._state_dir = repo, state_dir
        self._before, self._contents = before, contents
        self._intent, self._header, self._stack = intent, header, stack
        self._index = IndexLock(repo)
        self._staged: dict[str, Path] = {}
        self._entries: dict[str, TreeEntry | None] = {}
        self._pending: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The commit's id, once its objects are written."""
        return self._intent.commit

    @contextmanager
    def undo_on_error(self) -> Iterator[None]:
        """Whatever is raised in here, nothing is left behind. An error of the disk becomes a ``WorkspaceError``."""
        try:
            yield
        except BaseException as error:
            self._undo_preparation()
            if isinstance(error, OSError | GitFailed):
                raise _unwritten_error(error) from error
            raise

    def start(self) -> None:
        """Where git will move the branch, start it: it is ready by the time the objects are written."""
        self._move = self._start_move()
        self._objects = self._stack.enter_context(NewObjects(self._repo))

    def write_objects(self, report_step: OnStep) -> None:
        """Write the blobs, the trees and the commit; then the intent, which has the commit's id."""
        header = self._header
        if (commit := header.made) is not None:
            made = Snapshot(self._repo, commit)
            self._entries.update({path: made.find_entry(path) for path in self._contents})
        else:
            for change in self._intent.paths:
                path, content = change.path, self._contents[change.path]
                if content is None:
                    self._entries[path] = None
                else:
                    is_executable = working_files.is_executable(self._before.find_entry(path), path)
                    mode = "100755" if is_executable else "100644"
                    self._entries[path] = TreeEntry(mode, self._objects.add_object("blob", content, change.new))
            tree = build_tree(self._repo.objects, self._before.tree, self._entries, self._objects)
            parents = [parent for parent in (self._before.commit, header.merges) if parent is not None]
            text = format_commit(tree, parents, header.author, header.when, header.message, header.trailers)
            commit = self._objects.add_object("commit", text)
        self._intent = replace(self._intent, commit=commit)
        written = stage_intent(self._state_dir, self._intent)
        self._objects.flush([written])
        report_step("objects")
        place_file(written, intent_file(self._state_dir))
        if header.command_key:
            write_command_note(self._state_dir, header.command_key, self.id, header.when)
        report_step("intent")

    def stage_files(self) -> None:
        """Write the new files, to be put in the places of the old ones."""
        unseen = self._index.make_folder()
        for path, content in self._contents.items():
            # One that has to wait until a file makes place for its folder is written after the commit.
            if content is not None and not working_files.is_blocked(self._repo.root, path):
                is_made = self._header.made is not None
                last = self._entries.get(path) if is_made else self._before.find_entry(path)
                is_executable = working_files.is_executable(last, path)
                self._staged[path] = working_files.stage_file(
                    self._repo.root, unseen, path, content, executable=is_executable
                )

    def prepare_index(self, wait_seconds: float) -> None:
        """Lock the index, and make the one that goes with the commit.

        Where git cannot read the index that is there, no git can commit it either: it is left alone, and its entries
        are pending. ``recover_interrupted_commit`` will make another index.
        """
        self._index.acquire(encode_intent(self._intent), wait_seconds, list(self._staged.values()))
        try:
            self._index.prepare_index(
                {path: (e.mode, e.oid) if e is not None else None for path, e in self._entries.items()},
                self._intent.base,
            )
        except Damaged:
            self._index.discard_prepared()
            self._pending = tuple(self._entries)

    def prepare_branch(self) -> None:
        """Lock the branch, and compare it with the commit's base. All that was prepared is durable then."""
        self._objects.flush()
        try:
            self._move.prepare(self.id)
        except WorkspaceError:  # a git gc may have removed the commit in between
            self._objects.flush()
            self._move = self._start_move()
            self._move.prepare(self.id)
        if self._header.made is not None:  # written by somebody else, who may have lost it by now
            self._repo.git.run("cat-file", "-e", f"{self.id}^{{tree}}")
        self._objects.sync_names([self._state_dir, *self._index.list_unsynced(), *self._move.list_prepared()])

    def install_index(self, report_step: OnStep) -> None:
        """Replace git's index by the prepared one."""
        self._index.install_index()
        report_step("index")
        self._flush_again()

    def move_branch(self) -> None:
        """Move the branch: from here on the commit is made. Raises what ``RefMove.commit`` does; all is undone then."""
        try:
            self._move.commit()
        except BaseException as error:
            self._move.close()
            if self._repo.has_in_history(self.id):  # broken off when git had moved it
                note_commit(self._state_dir, self.id)
                raise
            self._undo_preparation()
            if isinstance(error, OSError):
                raise _unwritten_error(error) from error
            raise
        note_commit(self._state_dir, self.id)

    def bring_up_files(self, report_step: OnStep) -> None:
        """Bring the working tree up to the commit, and let go of the index. Raises ``Unfinished``."""
        try:
            sync_move(self._move)
            # From here on a git gc that begins knows of the objects; one that had begun before does not.
            self._flush_again()
            left_alone = update_working_tree(
                self._repo, self._intent, self._index.folder, staged=self._staged, on_step=report_step
            )
            for path in left_alone:
                if working_files.is_blocked(self._repo.root, path):
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            report_step("worktree")
            self._index.release()
            report_step("unlocked")
            end_intent(self._repo, self._state_dir, self._pending)
        except OSError as error:
            raise Unfinished(
                f"committed as {self.id[:10]}, but the working tree could not be written: {_error_text(error)}",
                commit=self.id,
                remedy="The working tree will be brought up by the next command, once that is put right; until then "
                "git is kept from committing it.",
            ) from error

    def _flush_again(self) -> None:
        self._objects.flush()
        self._objects.sync_names()

    def _start_move(self) -> RefMove:
        header = self._header
        log = "cleared: " + header.message.strip().split("\n")[0].replace("\0", "")[:200]
        move = start_move(self._repo, self._intent.base, log, header.author, header.when)
        self._stack.callback(move.close)
        return move

    def _undo_preparation(self) -> None:
        with suppress(OSError):
            for temporary in self._staged.values():
                temporary.unlink(missing_ok=True)
            sweep_temporaries(self._state_dir)  # an intent that has not its name yet
        remove_made_folders(self._repo, self._intent)
        try:
            self._index.restore_index()
        except OSError:
            return  # with the intent, and the lock, ``recover_interrupted_commit`` does it
        with suppress(OSError):
            self._index.release()
        with suppress(OSError):
            end_intent(self._repo, self._state_dir, ())


def _make_state_dir(repo: Repository, chosen: Path | None) -> Path:
    state_dir = repo.root / ".cleared" if chosen is None else chosen
    if state_dir.is_symlink():
        raise WorkspaceError(f"{state_dir} is a symbolic link", remedy="Remove it: it is made anew.")
    try:
        state_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkspaceError(f"{state_dir} cannot be made, nothing was changed: {_error_text(error)}") from error
    return state_dir


_REMEDIES: Final = {
    errno.ENOSPC: "Make room on the disk.",
    errno.EDQUOT: "Make room: your quota is used up.",
    errno.EROFS: "Make the file system writable.",
    errno.EACCES: "Give yourself the right to write there.",
    errno.EPERM: "Give yourself the right to write there.",
}


def _unwritten_error(error: OSError | GitFailed) -> WorkspaceError:
    return WorkspaceError(
        f"the commit could not be written, nothing was changed: {_error_text(error)}",
        remedy=_REMEDIES.get(error.errno or 0) if isinstance(error, OSError) else None,
    )


def _error_text(error: OSError | GitFailed) -> str:
    if isinstance(error, GitFailed):
        return error.message
    return f"{error.strerror or error} ({error.filename})" if error.filename else error.strerror or str(error)
