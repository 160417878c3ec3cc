"""An open workspace: its settings, its repository, its traces. ``app.open_workspace`` makes it."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleared.approvals.policy_in_force import SettingsInForce, settings_stamp
from cleared.bounds import MAX_ITEMS
from cleared.clock import Clock
from cleared.config.model import Config
from cleared.config.secrets import Redactor, list_config_secrets, redactor_of_secrets
from cleared.errors import BusyError, Place, WorkspaceError
from cleared.light_dataclass import dataclass
from cleared.llm.api_keys import list_environment_keys
from cleared.schema import money
from cleared.vcs import Author, Repository, Snapshot, recover_interrupted_commit, wait_for_index
from cleared.workspace.location import Layout
from cleared.workspace.lock import LockHolder, writer_lock

if TYPE_CHECKING:
    from cleared.changes.trace import TraceStore
    from cleared.ledger.staged_journal import Bounds
    from cleared.registry.primitive import Registry
    from cleared.registry.vocabulary import DecodingContext
    from cleared.sandbox.executor import Executor

ShowMessage = Callable[[str], None]

_reported_losses: set[tuple[str, str | None]] = set()
"""Workspaces and commits for which this process has shown which rows are lost."""


@dataclass(slots=True)
class Host:
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
    make_executor: Callable[[Host], AbstractContextManager[Executor]] | None = field(default=None, repr=False)
    """Starts the sandbox that the configuration names; set by ``app.open_workspace``."""
    kept_executor: Executor | None = field(default=None, repr=False, compare=False)
    """The sandbox that ``keep_executor`` holds."""
    stays_open: bool = False
    """Whether repository and traces stay open between runs, so that a service does not start git for each."""
    _open: Repository | None = field(init=False, default=None, repr=False, compare=False)
    _traces: TraceStore | None = field(init=False, default=None, repr=False, compare=False)
    _added_secrets: tuple[str, ...] = field(init=False, default=(), repr=False, compare=False)
    decimal_places: int = field(init=False)
    redactor: Redactor = field(init=False)

    def __post_init__(self) -> None:
        self._derive_settings()

    def _derive_settings(self) -> None:
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

    def refuse_invalid_policy(self) -> None:
        """Raises ``PolicyError`` where nothing may run under the settings in force."""
        if self.policy is not None and self.policy.problem is not None:
            raise self.policy.problem

    @property
    def registry(self) -> Registry:
        """All primitives. What only reads needs none, and does not load them."""
        from cleared.primitives import primitive_registry

        return primitive_registry()

    @property
    def env(self) -> DecodingContext:
        from cleared.registry.vocabulary import DecodingContext

        most = max(MAX_ITEMS, self.config.import_.max_rows)
        return DecodingContext(self.decimal_places, self.config.limits.max_text_bytes, most, self.redactor)

    @property
    def bounds(self) -> Bounds:
        from cleared.ledger.staged_journal import Bounds

        limits = self.config.limits
        return Bounds(self.decimal_places, limits.max_amount, limits.min_date, limits.max_date, limits.max_text_bytes)

    @property
    def author(self) -> Author:
        return Author(self.config.git.author_name, self.config.git.author_email)

    @property
    def ledger_accounts(self) -> dict[str, int]:
        """Id of a bank account → its account in the chart of accounts."""
        return {a.id: a.ledger_account for a in self.config.bank_accounts}

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
    def open_for_reading(self) -> Iterator[Repository]:
        """The repository for reading. An interrupted commit is finished first, where nobody else is at work."""
        self._repair_interrupted_commit()
        with Repository.open(self.root, for_writing=False) as repo:
            _refuse_tracked_state(repo, self.layout.state)
            self._report_lost_rows(repo)
            yield repo

    @contextmanager
    def open_unchanging(self, what: str) -> Iterator[Repository]:
        """The repository for reading under the writer lock, so that commit and files are of one moment.

        ``what`` is shown to others that wait. A user who may not write takes no lock. Raises ``BusyError``.
        """
        self._repair_interrupted_commit()
        state = self.layout.state_dir
        can_write = os.access(state if state.exists() else self.root, os.W_OK)
        with (
            self._writer_lock(what) if can_write else nullcontext(),
            Repository.open(self.root, for_writing=False) as repo,
        ):
            yield repo

    @contextmanager
    def open_for_writing(self, what: str) -> Iterator[Repository]:
        """The repository under the writer lock, once an interrupted commit is finished and the settings are read again.

        Raises ``BusyError`` where the lock is not free in time, or another git command holds the index.
        """
        with self._writer_lock(what):
            repo, self._open = self._open, None
            repo = repo.reopen_for_writing() if repo is not None else Repository.open(self.root, for_writing=True)
            with nullcontext() if self.stays_open else repo:
                _refuse_tracked_state(repo, self.layout.state)
                wait_for_index(repo, self.config.lock.wait_seconds, self.show_message)
                report = recover_interrupted_commit(repo, self.layout.state_dir)
                if report:
                    self.show_message(report)
                self.refresh_settings()  # whoever had the lock may have changed them
                yield repo
            self._open = repo if self.stays_open else None

    @property
    def traces(self) -> TraceStore:
        """The trace database."""
        from cleared.changes.trace import TraceStore

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

    def _writer_lock(self, what: str) -> AbstractContextManager[None]:
        wait = self.config.lock.wait_seconds
        return writer_lock(self.layout.state_dir, wait, what, clock=self.clock, on_wait=self._report_waiting)

    def _report_lost_rows(self, repo: Repository) -> None:
        """Show, once for each commit, that the branch has lost rows."""
        head = repo.find_head()
        key = (str(self.root), head)
        if key in _reported_losses or head is None or repo.branch.read_remembered_commit() in (None, head):
            return
        from cleared.changes import lost_rows

        lost = lost_rows.find_lost_rows(self.layout, repo, Snapshot(repo, head))
        if lost is not None:
            _reported_losses.add(key)
            self.show_message(f"{lost}. {lost_rows.REMEDY}")

    def _report_waiting(self, holder: LockHolder | None) -> None:
        self.show_message(f"waiting for {holder}" if holder else "waiting for another command")

    def _repair_interrupted_commit(self) -> None:
        """Finish a commit that was killed. One that is under way holds the lock: it is left alone."""
        if not (self.layout.state_dir / "seal.json").exists() and not (self.root / ".git/index.lock").exists():
            return
        try:
            with (
                writer_lock(self.layout.state_dir, 0.0, "repair", clock=self.clock),
                Repository.open(self.root, for_writing=True) as repo,
            ):
                report = recover_interrupted_commit(repo, self.layout.state_dir)
                if report:
                    self.show_message(report)
        except (BusyError, WorkspaceError):
            return


def _refuse_tracked_state(repo: Repository, folder: str) -> None:
    """Raises ``WorkspaceError`` where the last commit holds this machine's own state: whoever can push wrote it."""
    head = repo.find_head()
    if head is not None and Snapshot(repo, head).find_entry(folder) is not None:
        raise WorkspaceError(
            f"the last commit holds files in {folder}/, this machine's own state: somebody may have planted them",
            place=Place(folder),
            remedy=f"Remove them, and what came with them: git rm -r -f {folder} && rm -rf {folder}, and commit that. "
            "It is made again.",
        )


def current_user() -> str:
    """The name of the user who runs this program, as the system has it."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):
        name = ""
    return "".join(c for c in name if c.isprintable())[:60] or "unknown"
