"""Answering for a commit that no run and no decision made."""

from __future__ import annotations

from cleared.audit.provenance import named_commits
from cleared.changes.host import Host
from cleared.decisions.decision_context import ORIGINS, Decided, Desk, decide
from cleared.decisions.journal_decisions import made
from cleared.decisions.signatures import ACCEPTS
from cleared.errors import PolicyError, UsageError
from cleared.vcs import Snapshot, history


def accept_commit(host: Host, rev: str, reason: str) -> tuple[str, str]:
    """A person answers for a commit that changed the books without a run or a decision, or decided what was not
    theirs to decide; ``(it, the answer)``.

    ``cleared journal check`` names it no more. Raises ``UsageError`` where there is no such commit, ``PolicyError``
    where nobody needs to answer for it.
    """
    if not reason.strip():
        raise UsageError("accepting needs a reason", remedy="Pass --reason.")
    found = history.commit_info(host.root, rev)
    if any(mark in found.trailers for mark in ORIGINS) and not _is_named(host, found.id):
        raise PolicyError(f"{found.short} came from a run or a decision", remedy="Only other commits need accepting.")

    def act(desk: Desk) -> Decided:
        context = desk.context
        context.note("accept", f"{found.id} {found.subject}: {reason}"[:500])
        said = f"confirm: commit {found.short}: {' '.join(reason.split())}"[:200]
        return Decided(said, trailers=((ACCEPTS, found.id),))

    return found.id, made(decide(host, "journal accept", act, gathers=[]))


def _is_named(host: Host, commit: str) -> bool:
    """Whether a check names the commit though it calls itself a run or a decision."""
    with host.reading() as repo:
        return any(each == commit for each, _ in named_commits(host, repo, Snapshot(repo, repo.head())))
