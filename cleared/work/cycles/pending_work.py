"""What cycles have left and nobody has decided about yet. The next cycle goes on with it.

Plain files wait on one branch, which grows by a commit a cycle and has one card; what is for the gate waits as a
proposal. The first parent of the branch's last commit is the commit of the workspace that it goes on, the second what
was on the branch before. So what is decided, by a merge, by hand or by being dropped, is in no later cycle's way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from cleared.base.errors import UsageError
from cleared.cards.card import Card
from cleared.cards.kinds import BRANCH, CYCLE_NOTE
from cleared.changes.committed_cards import read_cards
from cleared.changes.doubtful_cards import find_doubtful_cards
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.gate.proposals.proposal import Proposal, load_proposals
from cleared.git import Author, Snapshot
from cleared.git.side_branch import find_branch, write_commit
from cleared.git.text_merge import merge_versions
from cleared.review.branch_merge import CYCLE_BRANCHES, read_branch
from cleared.trust.approval_record import digest_of
from cleared.work.cycles.cycle_handover import PROGRAM

PENDING: Final = f"{CYCLE_BRANCHES}pending"
_NAME: Final = re.compile(rf"{PENDING}(?:-\d+)?")
_MOST_REJECTED: Final = 5
"""Rejected proposals that a cycle is told of."""


class PendingWork(Struct, frozen=True):
    """What waits beside ``head``, the last commit. ``files``, ``proposed``: path → content, None where it is removed;
    those on the branch, as they fit to ``head``, and those of open proposals."""

    head: str
    branch: str
    """Where further files go."""
    tip: str | None
    """The last commit there; None where there is no such branch yet."""
    card: Card | None
    """The card that asks about it; None where all of it was decided."""
    files: Mapping[str, bytes | None]
    proposed: Mapping[str, bytes | None]
    proposals: tuple[str, ...]
    """The folders of these proposals."""
    conflicts: tuple[str, ...]
    """Paths on the branch that somebody changed in the workspace since, so that both do not fit together."""
    declined: tuple[str, ...]
    """Files that a person decided about and did not take."""

    @property
    def all_files(self) -> dict[str, bytes | None]:
        """What a clone has beside ``head``."""
        return {**self.proposed, **self.files}


def read_pending(host: Host) -> PendingWork:
    """What cycles have left here, and nobody has decided about up to the last commit."""
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        assert snapshot.commit is not None  # a workspace has one
        source = CommittedSource(snapshot)
        known = read_cards(host, snapshot)
        cards = {
            str(card.details["commit"]): card
            for kind in (BRANCH, CYCLE_NOTE)
            for card in known.list_kind(kind.name)
            if _NAME.fullmatch(str(card.details.get("branch", ""))) and card.details.get("commit")
        }
        branch, tip = _find_branch(host, snapshot, cards)
        card = cards.get(tip) if tip is not None else None
        found = read_branch(repo, card.details) if card is not None else None
        is_open = card is not None and card.status == "open"
        files: dict[str, bytes | None] = {}
        conflicts, declined = [], []
        for path in found.changed if found is not None else ():
            assert found is not None and card is not None
            ours, old, theirs = (each.read_file(path) for each in (snapshot, found.base, found.new))
            merged, fits = merge_versions(old, ours, theirs)
            if not is_open:
                declined += [path] if theirs != ours and not str(card.resolved_by).startswith(PROGRAM) else []
            elif not fits:
                conflicts.append(path)
            elif merged != ours:
                files[path] = merged
        proposals = [p for p in load_proposals(source) if not p.by_human and _is_of_cycle(p)]
        rejected = [p for p in proposals if p.status == "rejected"][-_MOST_REJECTED:]
        waiting = [p for p in proposals if p.status == "open"]
        return PendingWork(
            snapshot.commit,
            branch,
            tip,
            card if is_open else None,
            files,
            {path: text for p in waiting for path, text in _list_fitting(snapshot, p)},
            tuple(p.folder for p in waiting),
            tuple(conflicts),
            (*declined, *(f"{', '.join(p.paths)} ({p.id})" for p in rejected)),
        )


def commit_start(host: Host, pending: PendingWork | None = None) -> str:
    """The commit that a cycle's clone is made from: the last one with what waits; no branch names it. ``pending``: as
    ``read_pending`` gives it (None: it is read)."""
    pending = pending or read_pending(host)
    if not pending.all_files:
        return pending.head
    with host.open_for_writing("cycle clone") as repo:
        who = Author("cleared", host.config.git.author_email)
        text = "cycle: the workspace with what waits for a person"
        return write_commit(repo, [pending.head], pending.all_files, who, host.clock.now(), text)


def _find_branch(host: Host, snapshot: Snapshot, cards: Mapping[str, Card]) -> tuple[str, str | None]:
    """The branch, and its commit. One that a person has put a commit of their own on, or whose card nothing vouches
    for, waits for a person as it is: the next name is."""
    for number in range(1, 1_000):
        branch = PENDING if number == 1 else f"{PENDING}-{number}"
        tip = find_branch(snapshot.repo, branch)
        if tip is None:
            return branch, None
        asked = [cards[tip]] if tip in cards and cards[tip].details["branch"] == branch else []
        if asked and not find_doubtful_cards(host, snapshot.repo, snapshot, asked):
            return branch, tip
    raise UsageError(f"there are too many branches {PENDING}-…", remedy="Remove what you do not need: git branch -D.")


def _is_of_cycle(proposal: Proposal) -> bool:
    return str(proposal.data["author"]["name"]).startswith(PROGRAM)


def _list_fitting(snapshot: Snapshot, proposal: Proposal) -> Iterator[tuple[str, bytes | None]]:
    """The files of a proposal that were not changed since it was made."""
    before = {str(file["path"]): str(file["old"]) for file in proposal.data["files"]}
    for path in proposal.paths:
        now = snapshot.read_file(path)
        if (digest_of(now) if now is not None else "") == before.get(path):
            yield path, proposal.texts[path]
