"""Commits by hand that changed records, and for which nobody answers: also those after which the records are still what
is attested, such as git's revert of a run, which takes out what attests it as well.
"""

from __future__ import annotations

import json
from typing import Any, Final

from cleared.changes.attestation_lines import ORIGIN_TRAILERS, has_line
from cleared.changes.audit.commit_naming import describe_commit
from cleared.changes.audit.commit_origins import CommitOrigins
from cleared.changes.audit.own_commits import is_carried_on
from cleared.changes.decisions.signatures import read_parents
from cleared.changes.host import Host
from cleared.changes.line_worth import COUNTING
from cleared.domains.installed_domains import ManagedFiles
from cleared.git import Repository, Snapshot, history
from cleared.git.history import CommitInfo
from cleared.workspace.sealed_files import SealedFiles

_NAME: Final = "by-hand"
_VERSION: Final = b"1"


def find_hand_commit(host: Host, repo: Repository, snapshot: Snapshot) -> str:
    """What the newest such commit did, in a sentence; empty where there is none.

    Up to which commit there is none is kept, with the attestations of those who answer for others: git may take one
    back.
    """
    kept, origins = SealedFiles(host.layout.state_dir, _VERSION), CommitOrigins(host, repo, snapshot)
    context = json.dumps([host.config.paths.books, *origins.worth.describe()])
    data = kept.read(_NAME)
    known: dict[str, Any] = json.loads(data) if data is not None else {}
    since, answers = known.get("commit"), [line.encode("latin-1") for line in known.get("answers", ())]
    is_reached = since is not None and repo.objects.has_commit_tree(since) and repo.has_in_history(since)
    if known.get("context") != context or not is_reached or not all(has_line(snapshot, line) for line in answers):
        since, answers = None, []
    if since == snapshot.commit:
        return ""
    if since is None or not is_carried_on(host, repo, snapshot, origins.worth, since):
        folders = ManagedFiles(host.layout).audited_folders
        for commit in history.read_log(host.root, None, folders, since=since, full_history=True):
            if _is_by_hand(origins, commit):
                if not (given := origins.list_answers(commit, also=COUNTING)):
                    return f"{describe_commit(commit)} changed the books without a run or a decision"
                answers += given
    made = {"context": context, "commit": snapshot.commit, "answers": [line.decode("latin-1") for line in answers]}
    kept.write(_NAME, json.dumps(made).encode("ascii"))
    return ""


def _is_by_hand(origins: CommitOrigins, commit: CommitInfo) -> bool:
    """Whether a commit calls itself no run or decision, joins nothing, and changes more than people may by hand."""
    if commit.id in origins.cut or len(read_parents(origins.repo, commit.id)) > 1:
        return False
    is_called = any(mark in commit.trailers for mark in ORIGIN_TRAILERS)
    return not is_called and origins.touches_more_than_shared(history.read_commit(origins.host.root, commit.id))
