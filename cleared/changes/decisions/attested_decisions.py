"""Which records persons have decided about, by what machines that count here attest."""

from __future__ import annotations

import re
from collections.abc import Collection, Set
from typing import Final

from cleared.changes.attestation import find_counting
from cleared.changes.attestation_lines import Attestation, list_shards, split_lines
from cleared.changes.decisions.decision_context import SHOWN_TRAILER, UNDO_TRAILER
from cleared.changes.host import Host
from cleared.changes.taken_over import TAKES_OVER, list_counting
from cleared.git import Snapshot

_NAMED: Final = re.compile(rb'"%s":"([^"]*)"' % UNDO_TRAILER.encode("ascii"))


def list_decided_records(host: Host, snapshot: Snapshot, wanted: Collection[str]) -> frozenset[str]:
    """Those of the ``wanted`` records that a decision of a person names. Whoever can push makes no such line, and who
    answers for somebody else's commit (``cleared accept``) has decided nothing that is in it."""
    counting = find_counting(host, snapshot)
    marks = {each.encode("utf-8", "replace") for each in wanted}
    decided: set[str] = set()
    for path in reversed(list_shards(snapshot)):
        if len(decided) == len(marks):  # mostly they are new: the older ones are not read
            break
        lines = [line for line in split_lines(snapshot.read_file(path) or b"") if _may_name(line, marks)]
        for _, said in list_counting(snapshot, lines, counting):
            if _is_of_person(said):
                decided |= set(said.trailers.get(UNDO_TRAILER, "").split()).intersection(wanted)
    return frozenset(decided)


def _may_name(line: bytes, marks: Set[bytes]) -> bool:
    """Whether a line may name one of the records, or take over lines that do: only such are verified."""
    named = _NAMED.search(line)
    return TAKES_OVER.encode("ascii") in line or (named is not None and not marks.isdisjoint(named[1].split()))


def _is_of_person(said: Attestation) -> bool:
    """Whether a person decided it, not a timeout or a check: these sign with a name of their own."""
    by_user = said.trailers.get("By") == said.statement.get("user") or SHOWN_TRAILER in said.trailers
    return "Decision" in said.trailers and by_user
