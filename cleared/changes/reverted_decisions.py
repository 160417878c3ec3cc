"""Runs and decisions that a history took back itself: whoever lacks them has let nothing go."""

from __future__ import annotations

from msgspec.structs import replace

from cleared.changes.attestation import ORIGIN_TRAILERS
from cleared.changes.attestation_lines import added_lines
from cleared.changes.change_digests import DECISIONS
from cleared.changes.lost_rows import LostRows
from cleared.git import Repository, Snapshot, history, parse_parents


def leave_out_reverted(repo: Repository, snapshot: Snapshot, lost: LostRows) -> LostRows:
    """What is lost without the runs and decisions that a commit in the history of ``snapshot`` attests: others took
    them back there, and a merge of git had brought them back here."""
    gone, found = {*lost.ids.get(DECISIONS.key, ())}, set[str]()
    for commit in history.read_log(repo.root, None, rev=str(snapshot.commit)) if gone else ():
        called = gone.intersection(commit.trailers.get(mark, "") for mark in ORIGIN_TRAILERS)
        parents = parse_parents(repo.objects.read_object(commit.id)[1]) if called else ()
        if len(parents) == 1:  # anybody can write a message: its lines say it
            lines = b"\n".join(added_lines(Snapshot(repo, parents[0]), Snapshot(repo, commit.id)))
            found |= {each for each in called if f'"by":"{each}"'.encode() in lines}
    return replace(lost, ids={**lost.ids, DECISIONS.key: tuple(gone - found)})
