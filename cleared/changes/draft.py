"""The draft as files: what the commit of a run or decision will hold, and the one function that commits it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.base.csv_text import format_record
from cleared.base.errors import ClearedError
from cleared.base.file_source import choose_dated
from cleared.changes import agent_log, consumed_events, imported_files
from cleared.changes.attestation import attest_commit
from cleared.changes.attested_sums import AttestedSums
from cleared.changes.auto_resolve import find_restored_files
from cleared.changes.change_digests import CountedRows, is_attestation
from cleared.changes.commit_messages import CommitSubject
from cleared.changes.host import Host
from cleared.changes.line_worth import LineWorth
from cleared.changes.lost_rows import remember_commit
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import ManagedFiles
from cleared.git import CommitHeader, LocalMove, Repository, Snapshot, Unfinished, commit_changes, start_packing_if_due
from cleared.primitives.context import Context, taken_files

SignChanges = Callable[[Mapping[str, bytes | None], str, Sequence[tuple[str, str]]], list[tuple[str, str]]]


class Draft(Struct, frozen=True):
    """``changes``: path → new content (``None``: deleted); ``moves``: files outside git that move with the commit."""

    changes: dict[str, bytes | None]
    moves: tuple[LocalMove, ...]
    events: tuple[str, ...] = ()
    """The lines of the events that it emits."""
    opened: Mapping[str, str] = {}
    """Card → the line that opens it."""


def render_draft(host: Host, snapshot: Snapshot, context: Context) -> Draft:
    """All that the run or decision staged, as files."""
    changes: dict[str, bytes | None] = {}
    for part in context.parts.values():
        changes.update(part.render_files(context.run_id))
    opened = context.cards.render_opened()
    changes.update(context.cards.changed_files(opened))
    moves: list[LocalMove] = []
    for path, file in taken_files(context).items():
        target = file.processed_as or ""
        if host.config.import_.keep == "git":
            changes[target] = file.data
        moves.append(LocalMove(path, None if host.config.import_.keep == "git" else target, file.data))
        if host.config.import_.keep == "local":
            changes.update(_processed_gitignore(host, snapshot))
    changes.update(dict.fromkeys(find_restored_files(host, snapshot, context)))
    events = tuple(
        consumed_events.format_event(context.run_id, i, context.agent, context.now, e["name"], e["payload"])
        for i, e in enumerate(context.events)
    )
    if events:
        path = choose_dated(CommittedSource(snapshot), host.layout.events, format_iso(context.now)[:7])
        changes[path] = (snapshot.read_file(path) or b"") + "".join(events).encode("utf-8")
    return Draft(changes, tuple(moves), events, opened)


def _processed_gitignore(host: Host, snapshot: Snapshot) -> dict[str, bytes | None]:
    """A ``.gitignore`` for imported files that stay on this machine, so that git status and git add pass them over."""
    path = f"{host.layout.processed_dir}/.gitignore"
    if snapshot.find_entry(path) is not None or os.path.lexists(host.root / path):
        return {}
    return {path: b"# import.keep: local\n*\n!.gitignore\n!.gitkeep\n"}


class CommitPlan(Struct, frozen=True):
    """What a commit says, and what it holds beside the draft. ``merged_commit`` and ``command_key``: as for
    ``CommitHeader``."""

    message: CommitSubject
    trailers: Sequence[tuple[str, str]]
    files: Mapping[str, bytes | None] = {}
    local_moves: Sequence[LocalMove] = ()
    sign: SignChanges | None = None
    """Makes the trailers that show whose commit it is, from all that it changes, its message and its trailers."""
    edited_files: Collection[str] = ()
    """Their working copies may be somebody's edit, which stays then."""
    merged_commit: str | None = None
    command_key: str = ""


def prepare_commit(
    host: Host, repo: Repository, snapshot: Snapshot, context: Context, plan: CommitPlan, waiting: bytes = b""
) -> tuple[Draft, CommitHeader]:
    """Check the draft; all that its commit on this snapshot holds and says. ``waiting``: rows of the log that go before
    its own. Raises ``RecordsViolated``."""
    context.host.check_draft()
    for part in context.parts.values():
        part.complete_draft(context, snapshot, stays_open=host.stays_open)
    host.report_step("checked")
    draft = render_draft(host, snapshot, context)
    draft.changes.update(plan.files)
    if any(key == "Event" for key, _ in plan.trailers):  # a run that failed, or waits for an answer, handled no files
        _record_handled_files(host, snapshot, context, draft)
    log = agent_log.choose_log(CommittedSource(snapshot), context.now)
    rows = waiting.decode("utf-8") + agent_log.format_rows(context, context.now)
    draft.changes[log] = agent_log.append_rows(draft.changes.get(log) or snapshot.read_file(log), rows)
    clean = host.redactor.redact_text
    subject = clean(plan.message)
    # The key of an event stays as it is: by it the event is not run again.
    marks = [(key, value if key in ("Event", "Attempt") else clean(value)) for key, value in plan.trailers]
    marks += consumed_events.commit_trailers(repo, context)
    total = _sum_changes(host, snapshot, draft.changes)
    attested = attest_commit(host, snapshot, context, subject, marks, draft.changes, draft.events, draft.opened, total)
    for path, data in attested.items():
        line = data.removeprefix(snapshot.read_file(path) or b"")
        draft.changes[path] = (draft.changes.get(path) or snapshot.read_file(path) or b"") + line
    marks += plan.sign(draft.changes, subject, marks) if plan.sign is not None else []
    header = CommitHeader(subject, marks, host.author, context.now, plan.merged_commit, plan.command_key)
    return draft, header


def commit_draft(host: Host, repo: Repository, snapshot: Snapshot, context: Context, plan: CommitPlan) -> str:
    """Check the draft and commit it as planned. Returns the commit's id.

    Raises ``RecordsViolated``, ``GitBusy``, or ``PrimitiveError`` where an input file changed since it was parsed.
    """
    waiting = agent_log.read_waiting_rows(host)
    draft, header = prepare_commit(host, repo, snapshot, context, plan, waiting)
    moves, held_files = imported_files.hold_files(host, (*draft.moves, *plan.local_moves), context.now, context.run_id)
    moves += (agent_log.waiting_rows_move(host, waiting),) if waiting else ()

    def verify_files() -> None:
        for part in context.parts.values():
            part.verify_files()

    try:
        commit = commit_changes(
            repo,
            snapshot.commit,
            draft.changes,
            header,
            verify=verify_files,
            on_step=host.on_step,
            state_dir=host.layout.state_dir,
            moves=moves,
            edited=plan.edited_files,
            wait_seconds=host.config.lock.wait_seconds,
        )
    except Unfinished:
        raise  # the commit is made
    except BaseException:
        with contextlib.suppress(ClearedError, OSError):
            if repo.find_head() == snapshot.commit:
                imported_files.release_files(host, held_files)
        raise
    remember_commit(host.layout, repo, snapshot, commit, draft.changes)
    start_packing_if_due(repo)
    return commit


def _record_handled_files(host: Host, snapshot: Snapshot, context: Context, draft: Draft) -> None:
    if handled := consumed_events.handled_files(host, context):
        header = format_record(consumed_events.FILES_HEADER)
        month = format_iso(context.now)[:7]
        path = choose_dated(CommittedSource(snapshot), host.layout.imported_files, month, header)
        draft.changes[path] = consumed_events.append_handled_files(snapshot.read_file(path), handled)


def _sum_changes(host: Host, before: Snapshot, changes: Mapping[str, bytes | None]) -> int:
    """The sum that a commit with these changes attests: of the rows that it adds, less those that it removes, and less
    what lines attest that it brings back."""
    total = CountedRows(ManagedFiles(host.layout)).sum_changes(before, changes)
    brought = {path: data for path, data in changes.items() if data is not None and is_attestation(path)}
    if brought:
        sums = AttestedSums(LineWorth(host, before), host.layout.state_dir)
        total -= sums.read(before, brought).total(()) - sums.read(before).total(())
    return total
