"""An open workspace: its settings, its repository, its traces. ``workspace_opening.open_workspace`` makes it."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, structs

from cleared.base import money
from cleared.base.bounds import MAX_ITEMS
from cleared.base.clock import Clock
from cleared.base.errors import BusyError, Place, WorkspaceError
from cleared.base.safe_names import fold_path
from cleared.changes import lost_rows
from cleared.changes.lost_rows import LostRows
from cleared.changes.trace import TraceStore
from cleared.domains.installed_domains import use_plugins
from cleared.git import Author, Repository, Snapshot, recover_interrupted_commit, wait_for_index
from cleared.llm.api_keys import list_environment_keys
from cleared.primitives import primitive_registry
from cleared.primitives.registry.primitive import Registry
from cleared.primitives.registry.vocabulary import DecodingContext
from cleared.sandbox.executor import Executor
from cleared.trust.checkpoint import read_checkpoint
from cleared.trust.policy_in_force import SettingsInForce, settings_stamp
from cleared.workspace.location import Layout, find_git_folders
from cleared.workspace.lock import LockHolder, is_held_here, writer_lock
from cleared.workspace.settings.kept_tree import keep_tree
from cleared.workspace.settings.model import Config
from cleared.workspace.settings.secrets import Redactor, list_config_secrets, redactor_of_secrets

ShowMessage = Callable[[str], None]

_reported_losses: set[tuple[str, str | None]] = set()
"""Workspaces and commits for which this process has shown which rows are lost."""

_LOOP_STATE: Final = ".auto-loop"
"""How the files of a loop begin that lie beside ``.cleared/``."""


class Host(Struct, eq=False):
    """One workspace, opened. ``show_message`` gets lines for the user (stderr)."""

    root: Path
    layout: Layout
    config: Config
    clock: Clock
    show_message: ShowMessage
    on_step: Callable[[str], None] | None = None
    """Called with each step of a run and its commit; crash tests stop the process there."""
    on_call: Callable[[str], None] | None = None
    """Called with the name of each primitive that a run calls, for whoever shows how far it is."""
    on_ended: Callable[[Any, Any], None] | None = None
    """Called with the ``Attempt`` and the ``RunResult`` of each run that has ended."""
    policy: SettingsInForce | None = None
    """The settings in force: ``config.yaml`` with the approved protected settings; ``None``: unchecked."""
    reread_policy: Callable[[], tuple[Layout, SettingsInForce]] | None = None
    """Reads the settings in force again; ``None`` where they stay as they are."""
    policy_stamp: object = None
    """Tells one state of the settings in force from another (``settings_stamp``)."""
    make_executor: Callable[[Host], AbstractContextManager[Executor]] | None = None
    """Starts the sandbox that the configuration names; set by ``open_workspace``."""
    kept_executor: Executor | None = None
    """The sandbox that ``keep_executor`` holds."""
    command_key: str = ""
    """Of a command that would do it once more if it were said again: what tells one such command from others."""
    stays_open: bool = False
    """Whether repository and traces stay open between runs, so that a service does not start git for each."""
    serves_all_clones: bool = False
    """Whether events of every clone are delivered here, and questions of every clone settled: in a fleet, whose workers
    serve a workspace one at a time."""
    reads_again: bool = False
    """Whether the program goes on to read the books of later commits, so that what it has read is worth keeping."""
    _open: Repository | None = None
    _traces: TraceStore | None = None
    _added_secrets: tuple[str, ...] = ()
    domain_problem: WorkspaceError | None = None
    """Why the domains that the settings in force name are not there: nothing is run or decided then but settings."""
    decimal_places: int = 2
    redactor: Redactor = Redactor()

    def __post_init__(self) -> None:
        self._open, self._traces, self._added_secrets = None, None, ()  # in a copy, too: each opens its own
        self._derive_settings()

    def __repr__(self) -> str:
        return f"Host({str(self.root)!r})"  # and none of the secrets that it knows

    def _derive_settings(self) -> None:
        self.domain_problem = use_plugins(self.config.domains.plugins)
        if self.domain_problem is not None:
            self.show_message(f"{self.domain_problem}")
        keys = list_environment_keys(self.config.llm, os.environ)
        self.redactor = redactor_of_secrets([*list_config_secrets(self.config), *keys, *self._added_secrets])
        self.decimal_places = money.currency_exponent(self.config.business.currency)

    def add_secrets(self, *secrets: str) -> None:
        """Take these texts out of all that is written or shown from now on."""
        self._added_secrets += secrets
        self._derive_settings()

    @property
    def is_outdated(self) -> bool:
        """Whether other settings may be in force by now."""
        return self.reread_policy is not None and settings_stamp(self.root) != self.policy_stamp

    def refresh_settings(self) -> None:
        """Take over the settings that are in force now. Raises ``WorkspaceError`` where they are wrong."""
        stamp = settings_stamp(self.root)
        if self.reread_policy is None or stamp == self.policy_stamp:
            return
        self.layout, self.policy = self.reread_policy()
        self.config, self.policy_stamp = self.layout.config, stamp
        self._derive_settings()

    def with_config(self, config: Config) -> Host:
        """The same workspace as it would be under these settings, whatever comes in force meanwhile."""
        layout = structs.replace(self.layout, config=config)
        return structs.replace(self, config=config, layout=layout, reread_policy=None)

    def refuse_invalid_policy(self) -> None:
        """Raises ``PolicyError`` where nothing may run under the settings in force; ``WorkspaceError`` where there is
        no history that could be trusted, and ``ConfigError`` where ``config.yaml`` is not valid."""
        if self.domain_problem is not None:
            raise self.domain_problem
        if self.policy is not None and self.policy.problem is not None:
            with Repository.open(self.root, for_writing=False) as repo:
                repo.read_head()
            raise self.policy.problem
        if self.policy is not None and self.policy.fault is not None:
            raise self.policy.fault

    def refuse_unapproved_settings(self) -> None:
        """Raises ``PolicyError`` where no settings are known on this machine that anybody approved, ``WorkspaceError``
        where they name a domain that is not there."""
        if self.domain_problem is not None:
            raise self.domain_problem
        if self.policy is not None and self.policy.problem is not None and self.policy.approved is None:
            raise self.policy.problem

    @property
    def registry(self) -> Registry:
        """All primitives. What only reads needs none, and does not load them."""
        return primitive_registry()

    @property
    def env(self) -> DecodingContext:
        most = max(MAX_ITEMS, self.config.import_.max_rows)
        return DecodingContext(self.decimal_places, self.config.limits.max_text_bytes, most, self.redactor)

    @property
    def author(self) -> Author:
        return Author(self.config.git.author_name, self.config.git.author_email)

    def report_step(self, name: str) -> None:
        if self.on_step is not None:
            self.on_step(name)

    def executor(self) -> AbstractContextManager[Executor]:
        """What runs scripts: the sandbox that is kept, else one for this block."""
        if self.kept_executor is not None:
            return nullcontext(self.kept_executor)
        assert self.make_executor is not None
        return self.make_executor(self)

    @contextmanager
    def keep_executor(self) -> Iterator[Executor]:
        """Use one sandbox for all scripts that run in this block."""
        with self.executor() as executor:
            before, self.kept_executor = self.kept_executor, executor
            try:
                yield executor
            finally:
                self.kept_executor = before

    @contextmanager
    def open_for_reading(self, *, tells_losses: bool = True) -> Iterator[Repository]:
        """The repository for reading. An interrupted commit is finished first, where nobody else is at work.

        ``tells_losses``: shows what the branch has lost; not for a command that goes on to write, which refuses it.
        """
        self.repair_interrupted_commit()
        with Repository.open(self.root, for_writing=False) as repo:
            if self.reads_again:
                repo.objects.share_memory()
            refuse_tracked_state(repo, self.layout.state)
            if tells_losses:
                self._report_lost_rows(repo)
            yield repo

    @contextmanager
    def open_last_commit(self) -> Iterator[Snapshot]:
        """The branch's commit, as ``open_for_reading`` has it. Raises ``WorkspaceError`` where there is none."""
        with self.open_for_reading() as repo:
            yield Snapshot(repo, repo.read_head())

    @contextmanager
    def open_unchanging(self, what: str, wait_seconds: float | None = None) -> Iterator[Repository]:
        """The repository for reading under the writer lock, so that commit and files are of one moment.

        ``what`` is shown to others that wait; None: as long as is set. A user who may not write takes no lock. Raises
        ``BusyError``.
        """
        state = self.layout.state_dir
        can_write = os.access(state if state.exists() else self.root, os.W_OK)
        with self._writer_lock(what, wait_seconds) if can_write else nullcontext():
            if can_write:
                _finish_interrupted_commit(self.root, self.show_message)
            with Repository.open(self.root, for_writing=False) as repo:
                if can_write:
                    lost_rows.accept_sync(self.layout, repo)
                yield repo

    def find_lost_rows(
        self, repo: Repository, snapshot: Snapshot, wait_seconds: float | None = None
    ) -> LostRows | None:
        """What the branch has lost of what was committed.

        Beside a commit, what is compared is not of one moment: nothing is called lost before it was looked at again
        under the writer lock. Raises ``BusyError`` where that is not free in time; whoever holds it looks, too.
        """
        lost = lost_rows.find_lost_rows(self.layout, repo, snapshot)
        if lost is None or is_held_here(self.layout.state_dir):
            return lost
        with self.open_unchanging("look for lost rows", wait_seconds) as still:
            return lost_rows.find_lost_rows(self.layout, still, Snapshot(still, still.find_head()))

    @contextmanager
    def open_for_writing(self, what: str) -> Iterator[Repository]:
        """The repository under the writer lock, once an interrupted commit is finished and the settings are read again.

        Raises ``BusyError`` where the lock is not free in time, or another git command holds the index.
        """
        with self._writer_lock(what):
            repo, self._open = self._open, None
            repo = self._open_writable(repo)
            if self.reads_again:
                repo.objects.share_memory()
            with nullcontext() if self.stays_open else repo:
                refuse_tracked_state(repo, self.layout.state)
                wait_for_index(repo, self.config.lock.wait_seconds, self.show_message)
                report = recover_interrupted_commit(repo, self.layout.state_dir)
                if report:
                    self.show_message(report)
                lost_rows.accept_sync(self.layout, repo)
                self.refresh_settings()  # whoever had the lock may have changed them
                keep_tree(self.layout.state_dir)
                yield repo
            self._open = repo if self.stays_open else None

    def _open_writable(self, repo: Repository | None) -> Repository:
        """``repo``, which was kept open, or the repository anew. Raises ``WorkspaceError`` where nothing can be
        committed."""
        try:
            return repo.reopen_for_writing() if repo is not None else Repository.open(self.root, for_writing=True)
        except WorkspaceError as error:
            if repo is not None:
                repo.close()
            from cleared.changes.unfinished_merge import explain_unwritable

            with Repository.open(self.root, for_writing=False) as opened:
                raise explain_unwritable(opened, self.layout) or error from None

    @property
    def traces(self) -> TraceStore:
        """The trace database."""
        if not self.stays_open:
            return TraceStore(self.layout.state_dir, redactor=self.redactor)
        if self._traces is None:
            self._traces = TraceStore(self.layout.state_dir, redactor=self.redactor, stays_open=True)
        return self._traces

    def close(self) -> None:
        """Close what is kept open. It is opened again when it is needed."""
        repo, self._open = self._open, None
        traces, self._traces = self._traces, None
        if repo is not None:
            repo.close()
        if traces is not None:
            traces.close()

    def _writer_lock(self, what: str, wait_seconds: float | None = None) -> AbstractContextManager[None]:
        wait = self.config.lock.wait_seconds if wait_seconds is None else wait_seconds
        return writer_lock(self.layout.state_dir, wait, what, clock=self.clock, on_wait=self._report_waiting)

    def _report_lost_rows(self, repo: Repository) -> None:
        """Show, once for each commit, that the branch has lost rows; else it is seen as it is now."""
        head = repo.find_head()
        key = (str(self.root), head)
        if key in _reported_losses or head is None or self._is_seen(repo, head):
            return
        snapshot = Snapshot(repo, head)
        try:
            lost = self.find_lost_rows(repo, snapshot, 0.0)
        except BusyError:
            return
        if lost is not None:
            _reported_losses.add(key)
            self.show_message(f"{lost}. {lost.remedy}")
            return
        with suppress(WorkspaceError):  # the next command will
            lost_rows.remember_seen(self.layout, repo, snapshot, read_checkpoint(self.root))

    def _is_seen(self, repo: Repository, head: str) -> bool:
        """Whether nothing has come since this machine saw the books last; without reading any of them."""
        try:
            checkpoint = read_checkpoint(self.root)
        except WorkspaceError:
            return False
        seen = checkpoint.branches.get(repo.branch.name) if checkpoint is not None else None
        is_same = (
            seen is None
            if checkpoint is None
            else seen is not None
            and (seen.commit, seen.books) == (head, self.config.paths.books)
            and checkpoint.last_branch == repo.branch.name
        )
        return is_same and repo.branch.read_remembered_commit() in (None, head)

    def _report_waiting(self, holder: LockHolder | None) -> None:
        self.show_message(f"waiting for {holder}" if holder else "waiting for another command")

    def repair_interrupted_commit(self) -> None:
        """Finish a commit that was killed, where there is one: see ``repair_interrupted_commit``."""
        repair_interrupted_commit(self.root, self.clock, self.show_message)


def repair_interrupted_commit(root: Path, clock: Clock, say: ShowMessage) -> None:
    """Finish a commit that was killed, so that the files are those of the last commit. One that is under way holds the
    lock: it is left alone."""
    if _has_interrupted_commit(root):
        with suppress(BusyError, WorkspaceError), writer_lock(root / Layout.state, 0.0, "repair", clock=clock):
            _finish_interrupted_commit(root, say)


def _finish_interrupted_commit(root: Path, say: ShowMessage) -> None:
    """The same under the writer lock, as far as can be."""
    if _has_interrupted_commit(root):
        with suppress(BusyError, WorkspaceError), Repository.open(root, for_writing=True) as repo:
            refuse_tracked_state(repo, Layout.state)  # a note that was pushed would move files as whoever did wishes
            report = recover_interrupted_commit(repo, root / Layout.state)
            if report:
                say(report)


def _has_interrupted_commit(root: Path) -> bool:
    folders = find_git_folders(root)
    is_locked = folders is not None and (folders[0] / "index.lock").exists()
    return is_locked or (root / Layout.state / "seal.json").exists()


def refuse_tracked_state(repo: Repository, folder: str, commit: str | None = None) -> None:
    """Raises ``WorkspaceError`` where the last commit, or another one, holds this machine's own state: whoever can push
    wrote it."""
    head = commit or repo.find_head()
    for name in Snapshot(repo, head).list_folder("") if head is not None else ():
        folded = fold_path(name)  # some disks take the one for the other
        if folded == folder or folded.startswith(_LOOP_STATE):
            which = "last" if commit is None else "pushed"
            raise WorkspaceError(
                f"the {which} commit holds {name}, this machine's own state: somebody may have planted it",
                place=Place(name),
                remedy=f"Remove it, and what came with it: git rm -r -f {name} && rm -rf {name}, and commit that. "
                "It is made again.",
            )


def current_user() -> str:
    """The name of the user who runs this program, as the system has it."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):
        name = ""
    return "".join(c for c in name if c.isprintable())[:60] or "unknown"
