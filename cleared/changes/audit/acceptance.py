"""A person accepts a commit that no run and no decision made."""

from __future__ import annotations

from cleared.base.errors import PolicyError, UsageError
from cleared.changes import commit_messages
from cleared.changes.attestation_lines import ORIGIN_TRAILERS
from cleared.changes.attested_sums import ACCEPTS
from cleared.changes.audit.attested_state import AttestedState
from cleared.changes.audit.provenance import find_unexplained_commits
from cleared.changes.change_digests import CountedRows
from cleared.changes.decisions.decision_context import (
    Decision,
    DecisionContext,
    commit_decision,
    require_commit,
)
from cleared.changes.decisions.signatures import ACCEPTS_TRAILER, read_parents
from cleared.changes.doubtful_cards import list_doubtful_openings
from cleared.changes.host import Host
from cleared.changes.line_worth import LineWorth
from cleared.domains.installed_domains import ManagedFiles
from cleared.git import Snapshot, history


def accept_commit(host: Host, rev: str, reason: str) -> tuple[str, str]:
    """A person answers for a commit that changed the books without a run or a decision, or decided what was not
    theirs to decide; ``(it, the answer)``. What it put back to be decided is asked again.

    ``cleared check`` names it no more. Raises ``UsageError`` where there is no such commit, ``PolicyError``
    where nobody needs to answer for it.
    """
    commit = _find_commit(host, rev, reason)

    def stage_acceptance(decision_context: DecisionContext) -> Decision:
        context = decision_context.context
        context.cards.accepted += list_doubtful_openings(
            host, decision_context.repo, decision_context.snapshot, commit.id
        )
        state = AttestedState(
            host, decision_context.repo, decision_context.snapshot, LineWorth(host, decision_context.snapshot)
        )
        context.attested[ACCEPTS] = state.describe_acceptance(commit.id)
        for part in context.parts.values():
            part.renew_questions(context, decision_context.snapshot, settles=True)
        context.log_action("accept", f"{commit.id} {commit.subject}: {reason}"[:500])
        subject = commit_messages.commit_accepted(commit.short, reason)
        return Decision(subject, trailers=((ACCEPTS_TRAILER, commit.id),))

    return commit.id, require_commit(commit_decision(host, "accept", stage_acceptance, collects=[]))


def list_accepted_changes(host: Host, rev: str, reason: str) -> tuple[str, list[str]]:
    """A commit, and all that a person who answers for it vouches for: each row that it adds or takes away, and the
    cards that it opens, a line each. Raises as ``accept_commit``."""
    commit = _find_commit(host, rev, reason)
    with host.open_for_reading() as repo:
        before = Snapshot(repo, next(iter(read_parents(repo, commit.id)), None))
        lines = []
        for changes in CountedRows(ManagedFiles(host.layout)).list_changes(before, Snapshot(repo, commit.id)):
            for sign, rows in (("-", changes.lost), ("+", changes.gained)):
                texts = (row[0].decode("utf-8", "replace").rstrip("\r\n") for row in rows.elements())
                lines += [f"{sign} {changes.path}  {text}" for text in texts]
        cards = list_doubtful_openings(host, repo, Snapshot(repo, repo.read_head()), commit.id)
    return commit.id, [*lines, *(f"+ card {card.id}  {card.title}" for card in cards)]


def _find_commit(host: Host, rev: str, reason: str) -> history.CommitInfo:
    if not reason.strip():
        raise UsageError("accepting needs a reason", remedy="Pass --reason.")
    commit = history.read_commit(host.root, rev)
    if any(mark in commit.trailers for mark in ORIGIN_TRAILERS) and not _needs_answer(host, commit.id):
        raise PolicyError(f"{commit.short} came from a run or a decision", remedy="Only other commits need accepting.")
    return commit


def _needs_answer(host: Host, commit: str) -> bool:
    """Whether a check names the commit though it calls itself a run or a decision, or nothing vouches for a card that
    it opened."""
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        return bool(list_doubtful_openings(host, repo, snapshot, commit)) or any(
            each == commit for each, _ in find_unexplained_commits(host, repo, snapshot)
        )
