"""Putting an earlier ``config.yaml`` in the place of one that is not valid, and that no single change mends."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from cleared.base.errors import Place, UsageError, WorkspaceError
from cleared.base.safe_files import write_atomic
from cleared.changes import commit_messages
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision, undo_unless_decided
from cleared.changes.host import Host
from cleared.git import Repository, Snapshot, history
from cleared.trust.person_only import refuse_in_job
from cleared.workspace.settings.loading import ConfigError, load_config

_MOST_COMMITS = 200


class RestoredSettings(Struct, frozen=True):
    """``taken_from``: the commit that the file is taken from. ``commit``: the one that was made; None where the last
    one had it already. ``kept``: where the file lies now that was there, relative to the workspace. ``by_hand``: the
    last commit has a link or a folder there, so that a person has to commit it."""

    taken_from: str
    commit: str | None
    kept: str
    by_hand: bool


def restore_settings(host: Host) -> RestoredSettings:
    """Put the newest committed ``config.yaml`` that is valid in the place of one that is not, in one commit.

    It approves nothing: what differs from the settings in force waits, as after any edit. Raises ``UsageError`` where
    the file is valid, ``WorkspaceError`` where no commit has one that is, and ``PolicyError`` inside a job.
    """
    refuse_in_job()
    path, full = host.layout.config_file, host.root / host.layout.config_file
    if host.policy is None or host.policy.fault is None:
        raise UsageError(
            f"{path} is valid",
            remedy=f"To have an earlier one: git checkout COMMIT -- {path}, then cleared config approve.",
        )
    with host.open_for_reading() as repo:
        taken_from, data = _find_valid(repo, host, path)
    aside = _choose_name(host.layout.state_dir / f"{path}.replaced")
    kept: list[Path] = []
    by_hand: list[bool] = []

    def stage_file(decision_context: DecisionContext) -> Decision | None:
        if os.path.lexists(full):
            host.layout.state_dir.mkdir(exist_ok=True)
            full.replace(aside)
            kept.append(aside)
        write_atomic(full, data)
        entry = decision_context.snapshot.find_entry(path)
        if entry is not None and not entry.is_file:
            by_hand.append(True)  # a link or a folder, in whose place no command commits
            return None
        is_committed = decision_context.snapshot.read_file(path) == data
        return None if is_committed else Decision(commit_messages.settings_restored(taken_from), {path: data})

    def put_back() -> None:
        for each in kept:
            each.replace(full)

    with undo_unless_decided(put_back):
        commit = commit_decision(host, "config", stage_file)
    return RestoredSettings(taken_from, commit, aside.relative_to(host.root).as_posix() if kept else "", bool(by_hand))


def _choose_name(wanted: Path) -> Path:
    names = (wanted.with_name(f"{wanted.name}{number or ''}") for number in range(_MOST_COMMITS))
    return next((each for each in names if not os.path.lexists(each)), wanted)


def _find_valid(repo: Repository, host: Host, path: str) -> tuple[str, bytes]:
    commits = [repo.read_head(), *(each.id for each in history.read_log(host.root, _MOST_COMMITS, [path]))]
    for commit in commits:
        data = Snapshot(repo, commit).read_file(path)
        try:
            load_config((data or b"").decode("utf-8-sig"))
        except (ConfigError, UnicodeDecodeError):
            continue
        if data is not None:
            return commit, data
    raise WorkspaceError(
        f"none of the last {len(commits)} commits that changed it has one that is valid",
        place=Place(path),
        remedy="Correct it with a text editor; cleared doctor says what is wrong in it.",
    )
