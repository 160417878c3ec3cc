"""What somebody altered by hand in files of records to which people may add, such as a chart of accounts.

The names in them stand on cards. So who has approved nothing must not be able to give an account another name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from cleared.base.short_text import list_first
from cleared.changes.attestation_lines import has_line
from cleared.changes.audit.commit_naming import describe_commit
from cleared.changes.audit.commit_origins import CommitOrigins
from cleared.changes.decisions.signatures import read_parents
from cleared.changes.host import Host
from cleared.changes.line_worth import COUNTING
from cleared.domains.installed_domains import ManagedFiles
from cleared.domains.record_audit import SharedFile
from cleared.git import Repository, Snapshot, history
from cleared.git.history import CommitInfo
from cleared.workspace.sealed_files import SealedFiles

_NAME: Final = "shared"
_VERSION: Final = b"2"
_MOST_SHOWN: Final = 3


def find_shared_doubt(host: Host, repo: Repository, snapshot: Snapshot, context: str) -> str:
    """What a commit by hand altered in such a file, and nobody answers for; empty where that is nothing.

    ``context``: what else decides whose commits count. Where all was in order it is kept by the contents of the files,
    and with the attestations of those who answer for others: git may take one back.
    """
    shared_files = ManagedFiles(host.layout).shared_files
    blobs = {path: snapshot.find_blob_id(path) or "" for path in shared_files}
    kept = SealedFiles(host.layout.state_dir, _VERSION)
    data = kept.read(_NAME)
    known: dict[str, Any] = json.loads(data) if data is not None else {}
    answers = [line.encode("latin-1") for line in known.get("answers", ())]
    if known.get("context") != context or not all(has_line(snapshot, line) for line in answers):
        known, answers = {}, []
    since = str(known.get("commit", ""))
    is_reached = bool(since) and repo.objects.has_commit_tree(since) and repo.has_in_history(since)
    is_known = is_reached and known.get("blobs") == blobs
    if is_known and since == snapshot.commit:
        return ""
    origins = CommitOrigins(host, repo, snapshot)
    for shared in shared_files.values() if not is_known else ():
        for commit, said in _list_edits(origins, shared, since if is_reached else None, answers):
            return f"{describe_commit(commit)} changed {shared.noun} by hand: {list_first(said, _MOST_SHOWN, '; ')}"
    made = {"context": context, "blobs": blobs, "commit": snapshot.commit}
    lines = [line.decode("latin-1") for line in answers]
    kept.write(_NAME, json.dumps({**made, "answers": lines}).encode("ascii"))
    return ""


def _list_edits(
    origins: CommitOrigins, shared: SharedFile, since: str | None, answers: list[bytes]
) -> Iterator[tuple[CommitInfo, list[str]]]:
    """The commits after ``since`` that nobody answers for, with what they altered and was not altered back. The
    attestations of those who answer for others go to ``answers``."""
    host, repo, settled = origins.host, origins.repo, set[str]()
    first: dict[str, CommitInfo] = {}
    """What is altered → the first commit after the last decision about it that nobody answers for."""
    for commit in history.commits_touching(host.root, [shared.path], since):
        after, parents = Snapshot(repo, commit.id), read_parents(repo, commit.id)
        if commit.id in origins.cut:  # a check says that this cannot be told here
            continue
        altered = [
            {_name_row(said) for said in shared.describe_changes(Snapshot(repo, each), after)} for each in parents
        ]
        rows = (set.intersection(*altered) if altered else set()) - settled  # a merge has what either side altered
        if not rows:
            continue
        answers += (given := origins.list_answers(commit))
        if given or origins.judge_alone(commit) in COUNTING:
            settled |= rows
        else:
            first |= dict.fromkeys(rows, commit)
    for commit in {each.id: each for each in first.values()}.values():
        before = Snapshot(repo, read_parents(repo, commit.id)[0])
        changes = shared.describe_changes(before, origins.snapshot)
        left = [said for said in changes if first.get(_name_row(said)) is commit]
        if left:
            yield commit, left


def _name_row(said: str) -> str:
    """What a sentence of ``SharedFile.describe_changes`` is about."""
    return said.partition(" ")[0]
