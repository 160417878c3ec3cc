"""Runs and decisions that a history took back itself: whoever lacks them has let nothing go."""

from __future__ import annotations

from collections.abc import Collection

from cleared.changes.attestation_lines import ORIGIN_TRAILERS, added_lines
from cleared.git import Repository, Snapshot, history, parse_parents


def leave_out_reverted(repo: Repository, snapshot: Snapshot, lost: Collection[str]) -> tuple[str, ...]:
    """Of lost runs and decisions those that no commit in the history of ``snapshot`` attests. What one attests others
    took back there, and a merge of git had brought it back here."""
    gone, found = {*lost}, set[str]()
    for commit in history.read_log(repo.root, None, rev=str(snapshot.commit)) if gone else ():
        called = gone.intersection(commit.trailers.get(mark, "") for mark in ORIGIN_TRAILERS)
        parents = parse_parents(repo.objects.read_object(commit.id)[1]) if called else ()
        if len(parents) == 1:  # anybody can write a message: its lines say it
            lines = b"\n".join(added_lines(Snapshot(repo, parents[0]), Snapshot(repo, commit.id)))
            found |= {each for each in called if f'"by":"{each}"'.encode() in lines}
    return tuple(each for each in lost if each not in found)
