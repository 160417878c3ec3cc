"""Creating a workspace: its files, and one commit of them."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

from cleared.base.clock import Clock, format_iso
from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import describe_os_error as os_reason
from cleared.changes import commit_messages
from cleared.changes.attestation import attest_first_commit
from cleared.changes.change_digests import CountedRows, is_attestation
from cleared.changes.host import current_user, refuse_tracked_state
from cleared.domains.installed_domains import ManagedFiles
from cleared.git import Author, CommitHeader, Repository, Snapshot, commit_changes, recover_interrupted_commit
from cleared.trust.approval_record import CONFIG, WORKSPACE, ApprovalRecord, digest_of, sign_record
from cleared.trust.keys import own_key, unlock_own_key
from cleared.trust.trust_store import remember_newest
from cleared.trust.workspace_pin import new_workspace_id, pin_clone, unpin_clone
from cleared.workspace.location import Layout
from cleared.workspace.lock import writer_lock
from cleared.workspace.settings.editing import set_value
from cleared.workspace.settings.loading import load_config
from cleared.workspace.settings.model import Config
from cleared.workspace.settings.protected_settings import protected_settings_of
from cleared.workspace.template import read_starter_chart, shell_scripts, starter_config, starter_files

_INTENT: Final = ".cleared/seal.json"
"""This file is there while a commit is under way, and after a kill."""
GITIGNORE = b"""\
# What can be rebuilt, or is only operational.
.cleared/
# Bank files enter the books' history when they have been processed, not before.
import/*
!import/.gitkeep
!import/processed/
# Never in git: secrets, and what is kept or sent elsewhere.
.env
receipts/
exports/
"""

GITATTRIBUTES = b"""\
# Books, scripts and bank files are kept byte for byte.
* -text
# Only ever appended to: when two clones are merged, the lines of both are kept.
logs/*.csv merge=union
logs/*.jsonl merge=union
queue/*.jsonl merge=union
books/bank/** merge=union
"""

_KEPT = (
    "import/processed",
    "books",
    "queue",
    "logs",
    "rules",
    "templates",
    "tests/cases",
    "import",
)


def create_workspace(
    target: Path,
    *,
    name: str | None,
    entity_type: str,
    currency: str,
    clock: Clock,
    extra: dict[str, bytes] | None = None,
    say: Callable[[str], None] | None = None,
    on_step: Callable[[str], None] | None = None,
) -> tuple[Path, str]:
    """Create the workspace. Returns its root and its first commit.

    Its settings are approved with this user's key: whoever makes books has chosen them.
    ``extra`` files replace those of the template or are added to them. A creation that was killed is finished or undone
    first, and ``say`` gets a line about it; where it had the same files, its workspace is the result.

    Raises ``UsageError`` for bad values, ``WorkspaceError`` where the directory is a workspace already, has files in
    the way, or cannot be written; what was made is removed then. ``PolicyError`` where the approval key has a
    passphrase and nobody can be asked for it.
    """
    root = Path(os.path.abspath(target))  # noqa: PTH100 - resolve() would follow a link the user did not mean
    title = name if name is not None else (root.name or "My business")
    files = {**initial_files(title, entity_type, currency), **(extra or {})}
    config = load_config(files["config.yaml"].decode("utf-8"))
    _refuse_brought_state(root)
    if not (root / _INTENT).exists():
        _refuse_occupied(root, files)
    unlock_own_key(root)
    existed = root.is_dir()
    try:
        root.mkdir(parents=True, exist_ok=True)
        # Look at what is there, and remove it, only under the lock: another process may be creating it.
        with writer_lock(root / ".cleared", 0.0, "init", clock=clock):
            recovered = _recover_creation(root, files, say or (lambda _: None))
            if recovered is not None:
                return root, recovered
            _refuse_occupied(root, files)
            had_git = (root / ".git").exists()
            try:
                with Repository.open(root, for_writing=True, unborn=True) if had_git else Repository.init(root) as repo:
                    commit = _commit_files(repo, files, title, config, clock.now(), on_step)
            except BaseException:
                unpin_clone(root)
                _remove_created(root, existed, had_git)
                raise
    except OSError as e:
        raise WorkspaceError(f"{root} cannot be written: {os_reason(e)}", remedy="Choose another directory.") from None
    return root, commit


def _commit_files(
    repo: Repository,
    files: dict[str, bytes],
    title: str,
    config: Config,
    now: datetime,
    on_step: Callable[[str], None] | None,
) -> str:
    """Pin the books, and make their first commit, attested as every later one is, with the approval of its settings."""
    workspace = files.setdefault(WORKSPACE, f"{new_workspace_id()}\n".encode()).decode("ascii").strip()
    pin_clone(repo.root, workspace)
    files[CONFIG] = _approve_settings(repo.root, files["config.yaml"], config, workspace, format_iso(now)).render()
    subject, trailers = commit_messages.workspace_created(title), [("Decision", "init"), ("Clock", format_iso(now))]
    before = Snapshot(repo, repo.find_head())
    total = CountedRows(ManagedFiles(Layout(repo.root, config))).sum_changes(before, files)
    attested = attest_first_commit(repo.root, workspace, before, files, subject, trailers, now, total)
    return commit_changes(
        repo,
        before.commit,
        {**files, **attested},
        CommitHeader(subject, trailers, Author(config.git.author_name, config.git.author_email), now),
        on_step=on_step,
        state_dir=repo.root / ".cleared",
    )


def _approve_settings(root: Path, text: bytes, config: Config, workspace: str, at: str) -> ApprovalRecord:
    """The record that approves the settings which the books begin with; it counts on this machine from now on."""
    key = own_key(root, create=True)
    assert key is not None
    unsigned = ApprovalRecord(
        "config", CONFIG, digest_of(text), current_user(), at, workspace, policy=protected_settings_of(config)
    )
    record = sign_record(unsigned, key)
    remember_newest(record)
    return record


def _refuse_brought_state(root: Path) -> None:
    """Raises ``WorkspaceError`` where a commit brought ``.cleared/``: a note in it would move files as its author
    wishes."""
    if (root / ".git").exists():
        with Repository.open(root, for_writing=False, unborn=True) as repo:
            refuse_tracked_state(repo, Layout.state)


def _recover_creation(root: Path, files: dict[str, bytes], say: Callable[[str], None]) -> str | None:
    """Finish or undo a creation that was killed. Returns its commit, if it has just these files."""
    if not (root / _INTENT).exists() or not (root / ".git").exists():
        return None
    with Repository.open(root, for_writing=True, unborn=True) as repo:
        report = recover_interrupted_commit(repo, root / ".cleared")
        if report:
            say(report)
        head = repo.find_head()
        if head is None:
            return None
        snapshot = Snapshot(repo, head)
        made = {path for path in snapshot.list_entries() if not is_attestation(path)}
        same = made == {*files, WORKSPACE, CONFIG} and all(snapshot.read_file(path) == files[path] for path in files)
        return head if same else None


def _refuse_occupied(root: Path, files: dict[str, bytes]) -> None:
    if (root / "config.yaml").exists():
        raise WorkspaceError(f"{root} is a workspace already", remedy="Choose another directory.")
    if root.exists() and not root.is_dir():
        raise WorkspaceError(f"{root} is not a directory", remedy="Choose another name.")
    if not root.exists():
        return
    try:
        names = sorted(p.name for p in root.iterdir() if p.name not in (".git", ".cleared"))
    except OSError as e:
        raise WorkspaceError(f"{root} cannot be read: {os_reason(e)}") from None
    ours = {f.split("/", 1)[0] for f in files}
    in_the_way = [name for name in names if name in ours]
    if in_the_way or names:
        shown = ", ".join((in_the_way or names)[:5])
        raise WorkspaceError(
            f"{root} is not empty: {shown} {'is' if len(names) == 1 else 'are'} in the way",
            remedy="Choose an empty or new directory.",
        )


def _remove_created(root: Path, existed: bool, had_git: bool) -> None:
    """Remove what a failed creation made."""
    if had_git:
        return
    if not existed:
        shutil.rmtree(root, ignore_errors=True)
        return
    with contextlib.suppress(OSError):
        for path in root.iterdir():
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def initial_files(name: str, entity_type: str, currency: str) -> dict[str, bytes]:
    """Relative path → content of everything a new workspace is committed with.

    Raises ``UsageError`` for an unknown kind of business, ``ConfigError`` for a name or currency that the
    configuration does not accept.
    """
    accounts = read_starter_chart(entity_type)
    config = starter_config()
    for key, value in (("name", name), ("entity_type", entity_type), ("currency", currency)):
        config = set_value(config, f"business.{key}", value)
    files = starter_files() | shell_scripts()
    files |= {f"{folder}/.gitkeep": b"" for folder in _KEPT}
    files |= {
        "accounts/chart-of-accounts.csv": accounts,
        "config.yaml": config.encode(),
        ".gitignore": GITIGNORE,
        ".gitattributes": GITATTRIBUTES,
    }
    return dict(sorted(files.items()))
