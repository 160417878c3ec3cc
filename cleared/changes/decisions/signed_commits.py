"""The commits that reviewers have signed: what they did counts on machines that may be trusted nowhere."""

from __future__ import annotations

from collections.abc import Iterator

from cleared.changes.attestation import load_approvals
from cleared.changes.decisions.signatures import find_signing_reviewer
from cleared.changes.host import Host
from cleared.git import Repository, Snapshot, history
from cleared.git.history import CommitInfo
from cleared.trust.reviewers import KEY


def list_signed_commits(host: Host, repo: Repository, snapshot: Snapshot, folder: str) -> Iterator[CommitInfo]:
    """Those of them that touch a folder, judged by the rules that count as of ``snapshot``."""
    approvals = load_approvals(host, snapshot)
    for commit in history.commits_touching(host.root, [folder]):
        if KEY in commit.trailers and find_signing_reviewer(approvals, repo, commit.id):
            yield commit
