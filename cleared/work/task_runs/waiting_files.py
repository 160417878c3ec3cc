"""What a worker changed and is not committed with its task: it waits on a branch, with a card, for a person.

That is what the task does not name, and what programs run or are steered by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cleared.changes.decisions.decision_context import DecisionContext
from cleared.changes.host import Host
from cleared.git import Repository, Snapshot
from cleared.jobs.tasks.task_definition import Task
from cleared.review.branch_merge import TASK_BRANCHES
from cleared.trust.approval_record import canonical_digest, digest_of
from cleared.work.loop.kept_branch import keep_on_branch, make_branch_card
from cleared.work.loop.private_clone import is_executable_text
from cleared.work.loop.steering_files import steers_programs
from cleared.work.task_runs.task_claims import Claim
from cleared.work.task_runs.task_delta import TaskDelta


@dataclass(frozen=True, slots=True)
class WaitingFiles:
    """``files``: path → content, None where it is removed. They are on ``branch`` already."""

    host: Host
    name: str
    branch: str
    files: Mapping[str, bytes | None]

    def stage_card(self, decision_context: DecisionContext) -> None:
        """Stage the card that asks about them."""
        card = make_branch_card(self.host, decision_context.repo, self.branch, self.name, self.files, [])
        decision_context.context.cards.add_card(card)


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
    waiting = WaitingFiles(host, name, f"{TASK_BRANCHES}{name.lower()}", files)
    keep_on_branch(host, waiting.branch, claim.base, files, author=claim.by, message=f"task: what {task.id} changed")
    host.show_message(f"{task.id}: not merged, on the branch {waiting.branch}: {', '.join(files)}")
    return waiting
