"""What a run or decision works with: one commit, the books as of it, and a context in which changes are staged."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from cleared.base.clock import find_day, format_iso
from cleared.base.errors import Place, WorkspaceError
from cleared.base.safe_files import is_temporary
from cleared.base.short_text import list_first
from cleared.base.terminal import count_noun
from cleared.cards.card_draft import CardDraft
from cleared.changes.committed_cards import read_cards
from cleared.changes.definitions import find_definition_doubt
from cleared.changes.doubtful_cards import find_doubtful_cards
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.domains.domain import DraftParts, Opening
from cleared.domains.installed_domains import ManagedFiles, load_domains
from cleared.domains.record_audit import RecordsViolated
from cleared.git import Difference, Repository, Snapshot, find_differences, history
from cleared.git.known_files import KnownFiles
from cleared.jobs.forbidden_files import ForbiddenFiles
from cleared.jobs.input_files import InputFiles
from cleared.primitives.context import Context, HostCalls
from cleared.primitives.loop_jobs import WorkspaceLoop
from cleared.primitives.watched_files import WatchedFiles
from cleared.trust.approval_record import CASES, CONFIG, WORKSPACE, record_folder
from cleared.trust.device_signing import make_token

_reported_temporaries: set[tuple[str, str]] = set()
"""Workspaces and committed temporary files that this process has told of."""


def new_run_id(now: datetime) -> str:
    """``20250201T060000Z-1f3a9c``: sortable, unique."""
    return f"{now:%Y%m%dT%H%M%SZ}-{make_token(3)}"


def refuse_changed_files(host: Host, snapshot: Snapshot, agent: str | None = None) -> None:
    """Raises ``WorkspaceError`` where a managed file differs from the commit.

    ``agent``: the agent that is about to run. Of all approvals only its own are compared then, and those that all runs
    share.
    """
    known = KnownFiles(host.layout.state_dir, stays=host.reads_again)
    different = managed_differences(host, snapshot, agent, known)
    if different:
        from cleared.changes.unfinished_merge import list_unfinished  # late: nearly always nothing differs

        paths = {each.path for each in different}
        for error in list_unfinished(snapshot.repo, host.layout):
            if error.place is not None and error.place.file in paths:
                raise error
    refuse_differences(different)
    known.save()


@contextmanager
def compare_with_commit(
    host: Host, what: str, known: KnownFiles | None = None
) -> Iterator[tuple[Repository, Snapshot, list[Difference]]]:
    """The last commit, and how the managed files differ from it. ``what`` names the caller, in messages to others.
    ``known``: files that need not be read again.

    Beside a run, commit and files are not of one moment: a difference is looked at again under the writer lock. Raises
    ``BusyError`` where the lock is not free in time.
    """
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        if not managed_differences(host, snapshot, known=known):
            if known is not None:
                known.save()
            yield repo, snapshot, []
            return
    with host.open_unchanging(what) as repo:
        snapshot = Snapshot(repo, repo.read_head())
        yield repo, snapshot, managed_differences(host, snapshot)


def refuse_differences(differences: Sequence[Difference]) -> None:
    """Raises ``WorkspaceError`` where there are any such differences."""
    if differences:
        shown = list_first([f"{d.path} ({d.kind})" for d in differences], 5)
        raise WorkspaceError(
            f"files that only runs and decisions may change differ from the last commit: {shown}",
            place=Place(differences[0].path),
            remedy="Look with git diff HEAD and cleared check; then restore them (git checkout HEAD -- FILE), "
            "or, if the change is meant, commit it yourself.",
        )


def managed_differences(
    host: Host, snapshot: Snapshot, agent: str | None = None, known: KnownFiles | None = None
) -> list[Difference]:
    """How the managed files in the working tree differ from the commit: all of them, or those that one agent's run
    uses. All are read that are not ``known``."""
    managed = ManagedFiles(host.layout)
    prefixes = managed.folders
    if agent is not None:
        records = (record_folder(path) for path in (host.layout.scripts_dir, host.layout.agent_path(agent)))
        prefixes = [*managed.audited_folders, CONFIG, CASES, WORKSPACE, *records]
    # A folder of the commit that is gone from the working tree is one that it had, such as a year.
    roots = [root for audit in managed.audits for root in audit.list_roots(snapshot)]
    differences = find_differences(snapshot, host.root, list(dict.fromkeys([*prefixes, *roots])), known=known)
    _report_committed_temporaries(host, [d.path for d in differences if is_temporary(d.path)])
    return [
        d
        for d in differences
        if not (is_temporary(d.path) or managed.is_definition(d.path))
        and (d.kind != "untracked" or managed.has_row_file(d.path))
    ]


def _report_committed_temporaries(host: Host, paths: list[str]) -> None:
    """Say, once in a process, which temporary files somebody has committed: nothing reads them, and nothing waits."""
    new = [path for path in paths if (str(host.root), path) not in _reported_temporaries]
    if new:
        _reported_temporaries.update((str(host.root), path) for path in new)
        names = " ".join(shlex.quote(path) for path in new[:10])
        host.show_message(
            f"the last commit holds {count_noun(len(new), 'temporary file')} of a command; nothing reads them. To take "
            f"them out: git rm -q -f {names} && git commit -m 'Remove temporary files' -- {names}"
        )


def make_context(
    host: Host,
    repo: Repository,
    snapshot: Snapshot,
    *,
    agent: str,
    now: datetime,
    run_id: str,
    event: Mapping[str, Any],
    dry_run: bool,
    on_log: Callable[[str], None],
    run_script: Callable[[str, Mapping[str, Any]], Any],
    drop_folder: Path | None = None,
    only: frozenset[str] | None = None,
) -> Context:
    """A new context with nothing staged, which reads records from ``snapshot`` and bank files from ``drop_folder``
    (default: ``import/``); ``only``: the files of it that can be seen."""
    source = CommittedSource(snapshot)
    today = find_day(now, host.config.business.timezone)
    forbidden = ForbiddenFiles(host.root, host.config.loop.forbidden_paths)
    cards = CardDraft(source, host.layout.queue_dir, host.redactor.redact_text, partial(read_cards, host, snapshot))
    cards.find_doubtful = partial(find_doubtful_cards, host, repo, snapshot)
    context = Context(
        run_id=run_id,
        agent=agent,
        config=host.config,
        env=host.env,
        source=source,
        cards=cards,
        now=now,
        today=today,
        dry_run=dry_run,
        event=event,
        loop=WorkspaceLoop(host.root, host.config, in_fleet=host.serves_all_clones),
        files=WatchedFiles(
            host.root, host.config.import_.max_bytes, InputFiles(host.root, ManagedFiles(host.layout), forbidden)
        ),
        host=HostCalls(on_log, lambda limit: recent_commits(host, limit), run_script, lambda: None),
    )
    context.host.check_draft = _check_once(context)
    opening = Opening(
        host.layout,
        source,
        snapshot.has_file,
        today,
        context.stage_card,
        partial(find_definition_doubt, host, source, was=dry_run),
        drop_folder,
        only,
    )
    context.parts = DraftParts(opening, load_domains())
    return context


def _check_once(context: Context) -> Callable[[], None]:
    """The check of the draft, which does nothing where nothing was staged since it passed. It raises
    ``RecordsViolated`` with every violation of what the draft makes of the domains' records."""
    passed: list[object] = []

    def check_draft() -> None:
        key = [part.draft_key() for part in context.parts.values()]
        if passed != [key]:
            violations = [violation for part in context.parts.values() for violation in part.find_violations()]
            if violations:
                raise RecordsViolated(violations)
            passed[:] = [key]

    return check_draft


def recent_commits(host: Host, limit: int, rev: str = "HEAD", *, proposed: bool = True) -> list[dict[str, Any]]:
    """The newest commits up to ``rev``; ``proposed``: also those that only propose a change."""
    return [
        {"commit_hash": c.id, "date": format_iso(c.when), "author": c.author, "message": c.subject}
        for c in history.read_log(host.root, limit if proposed else limit * 3 + 50, rev=rev)
        if proposed or "Proposed" not in c.trailers
    ][:limit]
