"""What the attestations of a commit say that the records are: the sum of what each of them added and took away.

A person who answers for a commit attests what that one brought otherwise (``accepts``): the sum that it left open; the
lines that it added and that did not count (``covers``), which count no more once they would; and those that it took out
and that are still gone (``withdraws``), which count no more wherever they come back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from msgspec import Struct

from cleared.base.file_source import find_whole
from cleared.base.multiset_sum import decode_sum, encode_sum
from cleared.changes.attestation import SUM, digest_data
from cleared.changes.attestation_lines import Attestation, list_shards, name_shard, split_lines
from cleared.changes.line_worth import COUNTING, LineWorth
from cleared.git import Snapshot

ACCEPTS: Final = "accepts"


class Acceptance(Struct, frozen=True):
    """What a person who answers for a commit says of it."""

    line: str
    """The digest of the line that says so."""
    commit: str
    total: int
    covers: frozenset[str]
    withdraws: frozenset[str]


class Attested(Struct):
    """What the lines of one commit come to."""

    sums: dict[str, int] = {}
    """Digest of a line that counts → its sum."""
    acceptances: list[Acceptance] = []

    def total(self, covered: Collection[str], counted: Collection[tuple[str, int]] | None = None) -> int:
        """The sum of all of them but for lines that are ``covered`` or withdrawn. ``counted``: of what was accepted
        (commit, total) only this counts; None: all."""
        standing = self.list_standing()
        gone = {*covered, *(line for each in standing for line in each.withdraws)}
        accepted = {(each.commit, each.total) for each in standing}
        accepted = accepted if counted is None else accepted.intersection(counted)
        return sum(total for line, total in self.sums.items() if line not in gone) + sum(total for _, total in accepted)

    def list_standing(self) -> list[Acceptance]:
        """The acceptances that no other one has withdrawn."""
        by_line = {line: each for each in self.acceptances for line in each.withdraws}
        known: dict[str, bool] = {}

        def stands(acceptance: Acceptance) -> bool:
            if acceptance.line not in known:
                taker = by_line.get(acceptance.line)
                known[acceptance.line] = taker is None or taker is acceptance or not stands(taker)
            return known[acceptance.line]

        return [each for each in self.acceptances if stands(each)]


class AttestedSums:
    """Adds up what counts in the commits of one workspace."""

    def __init__(self, worth: LineWorth) -> None:
        self._worth = worth
        self._digests: dict[bytes, str] = {}

    def read(self, snapshot: Snapshot) -> Attested:
        """What the lines of a commit come to; each counts once, in a file of its month."""
        return self.read_files(self.read_shards(snapshot))

    def read_files(self, shards: Mapping[str, bytes]) -> Attested:
        """The same for the files of attestations of a commit: path → content."""
        found = Attested()
        for path, data in shards.items():
            for line in dict.fromkeys(split_lines(data)):
                said = self._find_counting(path, line)
                if said is not None:
                    self._add(found, line, said)
        return found

    def list_lines(self, snapshot: Snapshot, *, counting: bool) -> dict[str, Attestation]:
        """Digest of a line → what it says, of those that count, or of those that do not."""
        found = {}
        for path, data in self.read_shards(snapshot).items():
            for line in split_lines(data):
                said = self._worth.parse(line)
                if said is not None and (self._find_counting(path, line) is not None) is counting:
                    found[self.name_line(line, said)] = said
        return found

    def name_line(self, line: bytes, said: Attestation) -> str:
        """What a line is called in others: a digest of what it says, however it is spelled."""
        if line not in self._digests:
            self._digests[line] = digest_data([said.key, said.statement])
        return self._digests[line]

    def read_shards(self, snapshot: Snapshot) -> dict[str, bytes]:
        """The files of attestations of a commit: path → content."""
        return {path: snapshot.read_file(path) or b"" for path in list_shards(snapshot)}

    def _find_counting(self, path: str, line: bytes) -> Attestation | None:
        judged = self._worth.read(line)
        if judged is None or judged[1] not in COUNTING or name_shard(judged[0].at) != find_whole(path):
            return None
        return judged[0]

    def _add(self, found: Attested, line: bytes, said: Attestation) -> None:
        digest = self.name_line(line, said)
        found.sums[digest] = decode_sum(said.statement.get(SUM))
        accepts = said.statement.get(ACCEPTS)
        acceptance = _read_acceptance(digest, accepts) if isinstance(accepts, dict) else None
        if acceptance is not None:
            found.acceptances.append(acceptance)


def _read_acceptance(line: str, said: Mapping[str, Any]) -> Acceptance | None:
    """What an acceptance says; None where it is none, as any key may have signed anything."""
    covers, withdraws, commit = said.get("covers", []), said.get("withdraws", []), said.get("commit")
    lists = (covers, withdraws)
    if not isinstance(commit, str) or not all(isinstance(each, list) for each in lists):
        return None
    if not all(isinstance(name, str) for each in lists for name in each):
        return None
    return Acceptance(line, commit, decode_sum(said.get(SUM)), frozenset(covers), frozenset(withdraws))


def describe_acceptance(
    commit: str, total: int, covers: Collection[str], withdraws: Collection[str]
) -> Mapping[str, Any]:
    """What an attestation says of a commit that a person answers for; only what there is."""
    said: dict[str, Any] = {SUM: encode_sum(total) if total else "", "covers": [*covers], "withdraws": [*withdraws]}
    said = {name: value for name, value in said.items() if value}
    return {"commit": commit, **said} if said else {}
