"""Tasks that await approval: completed once what they made is live, failed where a person has rejected it.

A proposal is live once it is approved, files on a branch once they are in the last commit, by whatever way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from cleared.base.errors import UsageError
from cleared.cards.card import Card
from cleared.cards.kinds import BRANCH
from cleared.changes import commit_messages
from cleared.changes.committed_cards import read_cards
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.gate.proposals.approval import digest_rejection
from cleared.gate.proposals.proposal import Proposal, load_proposals
from cleared.git import Repository, Snapshot
from cleared.jobs.tasks.task_definition import Task
from cleared.jobs.tasks.task_states import AWAITING, COMPLETED, FAILED, StatusLine
from cleared.review.branch_merge import read_branch
from cleared.trust.shown_digests import is_known
from cleared.work.task_runs.last_try import forget_last_try, note_failure
from cleared.work.task_runs.task_recording import open_ledger, open_recorder, read_task_set

_OVER: Final = {"rejected": "was rejected", "stale": "is stale", "superseded": "was superseded"}


class _Verdict(Struct, frozen=True):
    """What was decided. ``reason``: why the task fails, as git has it; empty where all of it is live. ``told``: what
    its next worker is told of that: whoever can push may have written the rest."""

    line: StatusLine
    reason: str
    told: str = ""


def settle_awaiting(host: Host) -> None:
    """Record what was decided about the tasks that await approval, in one commit; nothing where nothing was.

    Raises ``BusyError`` where the workspace stays locked.
    """
    if not (found := _list_verdicts(host, open_ledger(host).read_all())):
        return
    with open_recorder(host, "task approvals") as recorder:
        found = [each for each in found if recorder.ledger.read_latest(each.line.id) == each.line]
        lines = [
            recorder.make_line(
                line.id, FAILED if reason else COMPLETED, reason or f"{line.summary}: it is live", line.delta
            )
            for line, reason in ((each.line, each.reason) for each in found)
        ]
        if lines:
            subject = commit_messages.tasks_settled((line.id, line.status) for line in lines)
            recorder.commit(lines, subject, by="orchestrator")
    for each in found:
        if each.reason:
            note_failure(host, each.line.id, each.told)
        else:
            forget_last_try(host, each.line.id)


def _list_verdicts(host: Host, lines: Mapping[str, StatusLine]) -> list[_Verdict]:
    waiting = [line for line in lines.values() if line.status == AWAITING]
    if not waiting:
        return []
    tasks, found = read_task_set(host).tasks, []
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        proposals = load_proposals(CommittedSource(snapshot))
        cards = {card.id: card for card in read_cards(host, snapshot).list_kind(BRANCH.name)}
        for line in waiting:
            awaits, reasons = line.awaits or {}, list[str | None]()
            if "proposal" in awaits:
                reasons.append(_judge_proposal(proposals, awaits["proposal"]))
            if "card" in awaits:
                reasons.append(_judge_branch(repo, snapshot, cards.get(awaits["card"]), tasks.get(line.id)))
            said = next((reason for reason in reasons if reason), None)
            if said is not None or (reasons and None not in reasons):
                found.append(_Verdict(line, said or "", _say_rejection(host, proposals, awaits.get("proposal", ""))))
    return found


def _find_last(proposals: Sequence[Proposal], folder: str) -> Proposal | None:
    """The proposal, or the one that has taken its place with the same texts."""
    first = next((each for each in proposals if each.folder == folder), None)
    if first is None:
        return None
    same = [each for each in proposals if each.number >= first.number and first.texts.items() <= each.texts.items()]
    return max(same, key=lambda each: each.number)


def _judge_proposal(proposals: Sequence[Proposal], folder: str) -> str | None:
    """Why the task fails by its proposal; empty where that is live, None while nobody has decided."""
    last = _find_last(proposals, folder)
    if last is None or last.decision is None:
        return None
    why = f": {last.decision.reason}" if last.decision.reason else ""
    return f"{last.id} {_OVER[last.status]} by {last.decision.by}{why}" if last.status in _OVER else ""


def _say_rejection(host: Host, proposals: Sequence[Proposal], folder: str) -> str:
    """With the reason, where somebody on this machine has given it."""
    last = _find_last(proposals, folder)
    reason = last.decision.reason if last is not None and last.decision is not None else ""
    is_ours = last is not None and is_known(host.root, digest_rejection(last, reason), "taken")
    return f"A person has rejected the change: {reason}" if is_ours else "The change was not accepted."


def _judge_branch(repo: Repository, snapshot: Snapshot, card: Card | None, task: Task | None) -> str | None:
    """Why the task fails by its branch; empty where its files are live, None while nobody has decided."""
    if card is None or task is None:
        return None
    branch, is_merged = str(card.details.get("branch", "")), card.resolution == "merge"
    try:
        found = read_branch(repo, card.details)
    except UsageError:  # it was removed
        return None if card.status == "open" else "" if is_merged else f"the branch {branch} was dropped"
    wanted = [path for path in found.changed if path in task.files]
    missing = [path for path in wanted if snapshot.find_blob_id(path) != found.new.find_blob_id(path)]
    left_out = [path for path in missing if snapshot.find_blob_id(path) == found.base.find_blob_id(path)]
    if card.status == "open":
        return None if missing else ""
    if is_merged and not left_out:
        return ""
    said = f"{', '.join(left_out)} was left out" if is_merged else f"the branch {branch} was dropped"
    return f"{said} by {card.resolved_by}" if missing else ""
