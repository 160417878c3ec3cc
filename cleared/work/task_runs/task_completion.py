"""Completing a task: its delta, the verification by the host over exactly the files that would be committed, the gate
for what needs it, and the one commit.

What a worker changed and the task does not name, and what programs run or are steered by, is not committed with it: it
waits on a branch, with a card, for a person.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from cleared.base.errors import ClearedError, Place, PolicyError
from cleared.base.process_identity import process_start
from cleared.base.safe_files import write_atomic
from cleared.base.short_text import parse_count
from cleared.base.terminal import count_noun
from cleared.base.tree_removal import remove_tree
from cleared.cards.card import Card
from cleared.changes import commit_messages
from cleared.changes.decisions.decision_context import DecisionContext
from cleared.changes.host import Host
from cleared.gate.proposals.author import Author
from cleared.gate.proposals.proposal import Proposal
from cleared.gate.proposals.submission import propose_changes
from cleared.git import Repository, Snapshot
from cleared.git.history_copy import copy_history
from cleared.git.side_branch import find_branch
from cleared.jobs.tasks.task_definition import Task
from cleared.jobs.tasks.task_seals import TaskSeals
from cleared.jobs.tasks.task_states import AWAITING, COMPLETED, FAILED
from cleared.review.branch_merge import TASK_BRANCHES
from cleared.trust.approval_record import canonical_digest, digest_of
from cleared.work.loop.kept_branch import keep_on_branch, make_branch_card
from cleared.work.loop.private_clone import is_executable_text, write_file
from cleared.work.loop.steering_files import steers_programs
from cleared.work.task_runs.fenced_command import CommandResult, run_fenced
from cleared.work.task_runs.last_try import forget_last_try, note_failure, output_path
from cleared.work.task_runs.read_only_folders import link_folders
from cleared.work.task_runs.task_claims import Claim, drop_claim, require_claim
from cleared.work.task_runs.task_delta import TaskDelta, compute_delta, find_conflicts
from cleared.work.task_runs.task_recording import (
    Recorded,
    finish_interrupted,
    open_ledger,
    open_recorder,
    read_task_set,
    state_folder,
)


class TaskOutcome(Struct, frozen=True):
    """What became of a task. ``reason``: why it failed; ``proposal``: of the changes that need an approval."""

    task_id: str
    status: str
    summary: str
    delta: Mapping[str, list[str]]
    commit: str | None
    proposal: str | None = None
    reason: str | None = None
    warnings: tuple[str, ...] = ()
    branch: str | None = None
    """Where files wait that a worker changed and nobody has looked at."""


class WorkRefused(Exception):
    """The work of a worker cannot be taken; the text says why."""


def complete_task(
    host: Host,
    task_id: str,
    *,
    summary: str = "",
    clone: Path | None = None,
    token: str | None = None,
    should_stop: Callable[[], bool] = bool,
) -> TaskOutcome:
    """Verify what was done for a claimed task, and record it: completed, awaiting the approval of what it made, or
    failed with the reason.

    ``clone``: where a worker worked; without, the workspace itself. ``token``: of the worker's claim, which must still
    be the task's; ``should_stop``: whether its verification is to end now. Raises ``PolicyError`` where it is not
    claimed here, not sealed, or nothing was changed (then the claim stays).
    """
    finish_interrupted(host)
    task = read_task_set(host).require_task(task_id)
    claim = require_claim(host, task_id, open_ledger(host).read_latest(task_id))
    _require_same(claim, token)
    try:
        delta, head, warnings = _gather_work(host, task, claim, clone)
        result = verify_delta(host, task, delta, commit=head, should_stop=should_stop)
        host.report_step("task-verified")
        if not result.passed:
            raise WorkRefused(_describe_failure(host, task, result))
        proposed = _propose_gated(host, task, claim, delta)
        waiting = keep_waiting(host, task, claim, delta) if clone is not None else None
    except WorkRefused as refusal:
        return fail_task(host, task_id, str(refusal), by=_program(claim))
    host.report_step("task-proposed")
    proposal = proposed.id if proposed else None
    text = summary or f"{task.title}: verified by {task.verification_command.splitlines()[0][:120]!r}"
    text += f" ({proposal} waits for approval)" if proposal else ""
    text += f" ({count_noun(len(waiting.files), 'file')} on the branch {waiting.branch})" if waiting else ""
    left_out = waiting.files if waiting else {}
    accepted = {path: data for path, data in delta.plain_files().items() if path not in left_out}
    found, awaits = delta.to_json_object(), {"proposal": proposed.folder} if proposed else {}
    if waiting is not None and not left_out.keys().isdisjoint(task.files):
        awaits["card"] = waiting.card.id
    status = AWAITING if awaits else COMPLETED
    with open_recorder(host, f"task done {task_id}") as recorder:
        _require_same(require_claim(host, task_id, recorder.ledger.read_latest(task_id)), claim.token)
        line = recorder.make_line(task_id, status, text, found, awaits or None)
        subject = commit_messages.task_recorded(task_id, status, task.title)
        stage = waiting.stage_card if waiting else None
        recorded = recorder.commit([line], subject, accepted, by=_program(claim), stage=stage)
        drop_claim(host, task_id)
    if status == COMPLETED:
        forget_last_try(host, task_id)
    branch = waiting.branch if waiting else None
    return TaskOutcome(task_id, status, line.summary, found, recorded.commit, proposal, None, warnings, branch)


def fail_task(host: Host, task_id: str, reason: str, *, by: str | None = None) -> TaskOutcome:
    """Record that a task has failed, and why. ``by``: the worker, where no person says so.

    Raises ``PolicyError`` where it is neither worked on nor completed.
    """
    with open_recorder(host, f"task fail {task_id}") as recorder:
        line = recorder.make_line(task_id, FAILED, reason)
        recorded: Recorded = recorder.commit(
            [line], commit_messages.task_recorded(task_id, FAILED, line.summary), by=by
        )
        drop_claim(host, task_id)
    note_failure(host, task_id, reason)
    return TaskOutcome(task_id, FAILED, line.summary, {}, recorded.commit, None, reason)


def verify_task(host: Host, task_id: str) -> tuple[CommandResult, TaskDelta]:
    """Run a task's verification over the workspace as it is: what was changed since the claim, or is not committed.

    Nothing is recorded. Raises ``PolicyError`` where the task is not sealed here.
    """
    task = read_task_set(host).require_task(task_id)
    latest = open_ledger(host).read_latest(task_id)
    is_claimed = latest is not None and latest.status == "in-progress"
    claim = require_claim(host, task_id, latest) if is_claimed else None
    with Repository.open(host.root, for_writing=False) as repo:
        head = repo.read_head()
        base, dirty = (claim.base, claim.dirty) if claim is not None else (head, None)
        delta = compute_delta(host, repo, base, host.root, is_clone=False, dirty=dirty)
        delta = delta.leave_out(_list_committed(repo, head, delta, task))
    for warning in _describe_undeclared(delta, task):
        host.show_message(f"{task.id}: {warning}")
    return verify_delta(host, task, delta, commit=head), delta


def _gather_work(host: Host, task: Task, claim: Claim, clone: Path | None) -> tuple[TaskDelta, str, tuple[str, ...]]:
    """The delta, the commit that it goes on, and warnings. Raises ``WorkRefused`` where it cannot be taken."""
    with Repository.open(host.root, for_writing=False) as repo:
        head = repo.read_head()
        root = clone if clone is not None else host.root
        dirty = claim.dirty if clone is None else None
        delta = compute_delta(host, repo, claim.base, root, is_clone=clone is not None, dirty=dirty)
        if clone is None:
            delta = delta.leave_out(_list_committed(repo, head, delta, task))
        try:
            delta.refuse_faults(task)
            if clone is not None:
                delta.refuse_undeclared(task)
            _refuse_secrets(host, Snapshot(repo, claim.base), delta)
        except PolicyError as error:
            if clone is None and delta.is_empty:
                raise  # the person has not begun yet, or has not saved
            raise WorkRefused(str(error)) from None
        delta.refuse_undeclared(task)  # a person's own: the claim stays, as they may be doing something else besides
        conflicts = find_conflicts(repo, claim.base, head, (c.path for c in delta.changes)) if clone is not None else []
    if conflicts:
        raise WorkRefused(f"somebody changed the same files meanwhile: {', '.join(conflicts[:10])}")
    warnings = _describe_undeclared(delta, task)
    for warning in warnings:
        host.show_message(f"{task.id}: {warning}")
    return delta, head, warnings


def _list_committed(repo: Repository, head: str, delta: TaskDelta, task: Task) -> list[str]:
    """What somebody has committed meanwhile just so, and the task does not name."""
    snapshot = Snapshot(repo, head)
    return [
        change.path
        for change in delta.changes
        if change.path not in task.files and snapshot.read_file(change.path) == change.new
    ]


def _describe_undeclared(delta: TaskDelta, task: Task) -> tuple[str, ...]:
    undeclared = delta.list_undeclared(task)
    named = f"not named in context.files, so the verification does not see it: {', '.join(undeclared)}"
    return (named,) if undeclared else ()


def _refuse_secrets(host: Host, before: Snapshot, delta: TaskDelta) -> None:
    """Raises ``PolicyError`` where a secret would come into the repository that is not in that file already."""
    for change in delta.changes:
        text, old = ((data or b"").decode("utf-8", "replace") for data in (change.new, before.read_file(change.path)))
        if any(secret not in old for secret in host.redactor.find_secrets(text)):
            raise PolicyError("it holds a secret, and would be committed", place=Place(change.path))


def _propose_gated(host: Host, task: Task, claim: Claim, delta: TaskDelta) -> Proposal | None:
    """Propose what only a person makes live. Raises ``WorkRefused`` where the gate refuses it."""
    texts = delta.files_for_gate()
    if not texts:
        return None
    author = Author(claim.by, is_human=False) if _program(claim) else None
    try:
        proposal, _ = propose_changes(host, [], texts=texts, message=f"{task.id}: {task.title}", author=author)
    except ClearedError as error:
        raise WorkRefused(f"its change of {', '.join(texts)} was not taken as a proposal: {error}") from None
    return proposal


def _describe_failure(host: Host, task: Task, result: CommandResult) -> str:
    lines = [line.strip() for line in result.output.splitlines() if line.strip()]
    shown = f": {lines[-1][:300]}" if lines else ""
    place = output_path(host, task.id).relative_to(host.root)
    return f"Verification failed ({result.summary}){shown}; its output is in {place}"


def _require_same(claim: Claim, token: str | None) -> None:
    if token is not None and claim.token != token:
        raise PolicyError(f"{claim.task_id} was claimed by somebody else meanwhile ({claim.by})")


def _program(claim: Claim) -> str | None:
    """Who worked where it was no person."""
    return claim.by if claim.is_program else None


def verify_delta(
    host: Host, task: Task, delta: TaskDelta, *, commit: str, should_stop: Callable[[], bool] = bool
) -> CommandResult:
    """Run the task's verification command in a fresh tree: ``commit`` with what the task may change of the delta. So
    what verifies it is what the plan's author saw, and no file that a worker put beside it.

    What is ignored by git is not in it, but for folders that the settings name. The output is kept in
    ``.cleared/task-output/``. Raises ``PolicyError`` where nobody has taken the task on this machine as it is now, or
    such a folder is not what it must be.
    """
    TaskSeals(host.root).require_sealed(task)
    with Repository.open(host.root, for_writing=False) as repo, fresh_tree(host, repo, commit, task.id) as folder:
        for change in delta.keep_declared(task).changes:
            write_file(folder, change.path, change.new)
        reads = link_folders(host, repo, commit, folder)
        host.report_step("verify-ready")
        result = run_fenced(
            host,
            ["/bin/sh", "-c", task.verification_command],
            folder,
            name=f"verification of {task.id}",
            seconds=host.config.tasks.verify_seconds,
            reads=reads,
            should_stop=should_stop,
        )
    write_atomic(output_path(host, task.id), f"{result.output}\n[{result.summary}]\n".encode(), mode=0o600)
    return result


@contextmanager
def fresh_tree(host: Host, repo: Repository, commit: str, name: str) -> Iterator[Path]:
    """A private clone at ``commit``, removed afterwards, as is what killed ones have left."""
    trees = state_folder(host, "task-trees")
    for left in trees.iterdir():
        maker = parse_count(left.name.rpartition("-")[2])
        if maker is None or process_start(maker) is None:
            remove_tree(left)
    folder = trees / f"{name}-{secrets.token_hex(4)}-{os.getpid()}"
    try:
        copy_history(repo, commit, folder)
        yield folder.resolve()
    finally:
        remove_tree(folder)


class WaitingFiles(Struct, frozen=True):
    """``files``: path → content, None where it is removed. They are on ``branch`` already."""

    branch: str
    files: Mapping[str, bytes | None]

    card: Card
    """The one that asks about them."""

    def stage_card(self, decision_context: DecisionContext) -> None:
        """Stage it."""
        decision_context.context.cards.add_card(self.card)


def keep_waiting(host: Host, task: Task, claim: Claim, delta: TaskDelta) -> WaitingFiles | None:
    """Keep on a branch what nobody has looked at; None where there is nothing. Said is each path.

    Raises ``BusyError`` where the workspace stays locked.
    """
    with Repository.open(host.root, for_writing=False) as repo:
        programs = {p for p, (mode, _) in Snapshot(repo, claim.base).list_entries().items() if mode == "100755"}
    files = {
        path: data
        for path, data in delta.plain_files().items()
        if path not in task.files or path in programs or steers_programs(path) or is_executable_text(data or b"")
    }
    if not files:
        return None
    digest = canonical_digest([claim.base, {path: digest_of(data or b"") for path, data in files.items()}])
    name = f"{task.id}-{digest.rpartition(':')[2][:8]}"
    branch = f"{TASK_BRANCHES}{name.lower()}"
    keep_on_branch(host, branch, claim.base, files, author=claim.by, message=f"task: what {task.id} changed")
    host.show_message(f"{task.id}: not merged, on the branch {branch}: {', '.join(files)}")
    with Repository.open(host.root, for_writing=False) as repo:
        commit = find_branch(repo, branch) or ""
    return WaitingFiles(branch, files, make_branch_card(host, branch, commit, name, files, []))
