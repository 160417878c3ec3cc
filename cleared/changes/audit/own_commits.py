"""Whether a history went on by nothing but plain runs and decisions of machines that count here.

Such a commit changes just the files, from just these contents to just those, that the one line which it adds attests
under a key that counts. Where a check found all right before the first of them, with the same keys and settings, it
need not judge again what was there: so a check of old books costs what came since the last. A commit by hand that is
about no managed file is passed over, as the judgement of a whole history does. Whatever is otherwise in any way (a
merge, a rebase, a commit by a reviewer or about approvals, an answer for another one) is judged with that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cleared.changes.attestation_lines import new_lines
from cleared.changes.audit.commit_origins import matches_trailers, printable_text
from cleared.changes.change_digests import digest_blobs, is_attestation
from cleared.changes.decisions.signatures import ACCEPTS_TRAILER
from cleared.changes.host import Host
from cleared.changes.line_worth import LineWorth
from cleared.changes.taken_over import TAKES_OVER
from cleared.domains.installed_domains import ManagedFiles
from cleared.git import RecentCommit, Repository, Snapshot, read_recent_commits
from cleared.trust.checkpoint import read_forgotten
from cleared.trust.reviewers import KEY

_MOST: Final = 20_000
"""Commits; of more, all of the history is judged."""


def is_carried_on(host: Host, repo: Repository, snapshot: Snapshot, worth: LineWorth, since: str) -> bool:
    """Whether every commit after ``since`` up to that of ``snapshot`` is such a one. ``worth``: as of the latter."""
    if snapshot.commit == since:
        return True
    commits = read_recent_commits(repo, str(snapshot.commit), since, _MOST)
    if commits is None:
        return False
    forgotten, managed, after = read_forgotten(host.root), ManagedFiles(host.layout), snapshot
    for commit, parent in zip(commits, [*(each.id for each in commits[1:]), since], strict=True):
        before = Snapshot(repo, parent)
        changes = after.list_changes(before)
        if {KEY, ACCEPTS_TRAILER} & commit.trailers.keys():
            return False
        if any(map(managed.lies_inside, changes)) and not _is_plain(
            host, commit, changes, before, after, worth, forgotten
        ):
            return False
        after = before
    return True


def _is_plain(
    host: Host,
    commit: RecentCommit,
    changes: Mapping[str, tuple[str, str]],
    before: Snapshot,
    after: Snapshot,
    worth: LineWorth,
    forgotten: frozenset[str],
) -> bool:
    if any(path.startswith(f"{host.layout.approvals_dir}/") for path in changes):
        return False
    lines = new_lines([before], after)
    if len(lines) != 1 or not _only_adds(lines[0], changes, before, after):
        return False
    judged = worth.read(lines[0])
    if judged is None or judged[1] != "ours":
        return False
    said = judged[0]
    digests = said.statement.get("changes")
    return (
        isinstance(digests, dict)
        and digests.get("blobs") == digest_blobs((path, *blobs) for path, blobs in changes.items())
        and TAKES_OVER not in said.statement
        and said.made_by not in forgotten
        and printable_text(said.subject) == printable_text(commit.subject)
        and matches_trailers(said, commit.trailers)
    )


def _only_adds(line: bytes, changes: Mapping[str, object], before: Snapshot, after: Snapshot) -> bool:
    """Whether all that a commit does to attestations is to add this line at the end of one file: what it says about
    other files does not cover those."""
    paths = [path for path in changes if is_attestation(path)]
    if len(paths) != 1:
        return False
    old = before.read_file(paths[0]) or b""
    return (old == b"" or old.endswith(b"\n")) and after.read_file(paths[0]) == old + line + b"\n"
