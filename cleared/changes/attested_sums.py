"""What the attestations of a commit say that the records are: the sum of what each of them added and took away.

A person who answers for a commit attests what that one brought otherwise (``accepts``): the sum that it left open; the
lines that it added and that did not count (``covers``), which count no more once they would; and those that it took out
and that are still gone (``withdraws``), which count no more wherever they come back.

A line counts in the file of its month alone. So of months that are over it is kept what their lines come to, sealed
beside the ids of their files and whose keys count: else each check of a commit by hand verifies all signatures.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from cleared.base.file_source import find_whole
from cleared.base.multiset_sum import decode_sum, encode_sum
from cleared.base.short_text import mark_text
from cleared.changes.attestation import SUM, digest_data
from cleared.changes.attestation_lines import Attestation, list_shards, name_shard, split_lines
from cleared.changes.line_worth import COUNTING, LineWorth
from cleared.git import Snapshot
from cleared.workspace.sealed_files import SealedFiles, make_months_once, program_version

ACCEPTS: Final = "accepts"
_NAME: Final = "attested"
_WITHDRAWS: Final = b'"withdraws"'


class Acceptance(Struct, frozen=True):
    """What a person who answers for a commit says of it."""

    line: str
    """The digest of the line that says so."""
    commit: str
    total: int
    covers: frozenset[str]
    withdraws: frozenset[str]


class MonthLines(Struct, frozen=True):
    """What the lines of one month come to."""

    total: str
    """The sum of those that count."""
    counting: str
    """The digests of these, one after the other."""
    accepts: list[tuple[str, str]]
    """The digests of those of them that answer for a commit, with what they say of it, as JSON."""
    is_own: bool
    """Whether none is worth more where another line takes it over."""
    marks: bytes
    """Eight bytes for each line, whoever signed it: the same for the same text."""
    withdrawn: list[str]
    """The digests of the lines that one takes back, whoever signed it."""


class Attested:
    """What the lines of one commit come to, by month. ``sum_lines``: digest of each line of a month that counts → its
    sum."""

    def __init__(self, months: Mapping[str, MonthLines], sum_lines: Callable[[str], Mapping[str, int]]) -> None:
        self.months = months
        self._sum_lines = sum_lines
        said = (_read_acceptance(*each) for month in months.values() for each in month.accepts)
        self._acceptances = [each for each in said if each is not None]

    def total(self, covered: Collection[str], counted: Collection[tuple[str, int]] | None = None) -> int:
        """The sum of all of them but for lines that are ``covered`` or withdrawn. ``counted``: of what was accepted
        (commit, total) only this counts; None: all."""
        standing = self.list_standing()
        gone = {*covered, *(line for each in standing for line in each.withdraws)}
        accepted = {(each.commit, each.total) for each in standing}
        accepted = accepted if counted is None else accepted.intersection(counted)
        return sum(self._sum_month(month, gone) for month in self.months) + sum(total for _, total in accepted)

    def list_standing(self) -> list[Acceptance]:
        """The acceptances that no other one has withdrawn."""
        by_line = {line: each for each in self._acceptances for line in each.withdraws}
        known: dict[str, bool] = {}

        def stands(acceptance: Acceptance) -> bool:
            if acceptance.line not in known:
                taker = by_line.get(acceptance.line)
                known[acceptance.line] = taker is None or taker is acceptance or not stands(taker)
            return known[acceptance.line]

        return [each for each in self._acceptances if stands(each)]

    def _sum_month(self, month: str, gone: Collection[str]) -> int:
        if any(line in self.months[month].counting for line in gone):
            return sum(total for line, total in self._sum_lines(month).items() if line not in gone)
        return decode_sum(self.months[month].total)


class AttestedSums:
    """Adds up what counts in the commits of one workspace. ``state_dir``: its ``.cleared/``."""

    def __init__(self, worth: LineWorth, state_dir: Path) -> None:
        self._worth = worth
        self._sealed = SealedFiles(state_dir, program_version)
        self._digests: dict[bytes, str] = {}

    def read(self, snapshot: Snapshot, brought: Mapping[str, bytes] | None = None) -> Attested:
        """What the lines of a commit come to; each counts once, in a file of its month. ``brought``: path → content of
        files that are otherwise than in the commit."""
        brought = brought or {}
        months = _list_months(snapshot, brought)
        context = json.dumps(self._worth.describe())

        def split_month(month: str) -> list[bytes]:
            files = (brought[path] if path in brought else _read(snapshot, path) for path in months[month])
            return list(dict.fromkeys(line for data in files for line in split_lines(data)))

        def read_month(month: str) -> MonthLines:
            return self._read_month(month, split_month(month))

        versions: dict[str, list[str]] = {}
        for month, blobs in months.items():
            is_kept = brought.keys().isdisjoint(blobs) and all(map(str.isascii, blobs))
            versions[month] = [context, *blobs, *blobs.values()] if is_kept else []
        known = make_months_once(self._sealed, _NAME, MonthLines, versions, read_month)
        read = {month: each if each.is_own else read_month(month) for month, each in known.items()}
        return Attested(read, lambda month: self._sum_lines(month, split_month(month)))

    def list_lines(
        self, snapshot: Snapshot, months: Collection[str] | None, *, counting: bool
    ) -> dict[str, Attestation]:
        """Digest of a line → what it says, of those of some months (None: of all) that count, or of those that do
        not: these may lie in the file of any month."""
        found = {}
        for month, blobs in _list_months(snapshot).items():
            paths = blobs if months is None or month in months else ()
            for line in (each for path in paths for each in split_lines(_read(snapshot, path))):
                said = self._worth.parse(line)
                if said is not None and (self._find_counting(month, line) is not None) is counting:
                    found[self.name_line(line, said)] = said
        return found

    def name_line(self, line: bytes, said: Attestation) -> str:
        """What a line is called in others: a digest of what it says, however it is spelled."""
        if line not in self._digests:
            self._digests[line] = digest_data([said.key, said.statement])
        return self._digests[line]

    def _find_counting(self, month: str, line: bytes) -> Attestation | None:
        judged = self._worth.read(line)
        if judged is None or judged[1] not in COUNTING or name_shard(judged[0].at) != month:
            return None
        return judged[0]

    def _list_counting(self, month: str, lines: Iterable[bytes]) -> Iterator[tuple[str, Attestation]]:
        for line in lines:
            if (said := self._find_counting(month, line)) is not None:
                yield self.name_line(line, said), said

    def _sum_lines(self, month: str, lines: Iterable[bytes]) -> dict[str, int]:
        return {digest: decode_sum(said.statement.get(SUM)) for digest, said in self._list_counting(month, lines)}

    def _read_month(self, month: str, lines: Sequence[bytes]) -> MonthLines:
        sums = self._sum_lines(month, lines)
        said = ((digest, said.statement.get(ACCEPTS)) for digest, said in self._list_counting(month, lines))
        return MonthLines(
            encode_sum(sum(sums.values())),
            "".join(sums),
            [(digest, json.dumps(accepts)) for digest, accepts in said if isinstance(accepts, dict)],
            all(map(self._worth.is_own, lines)),
            b"".join(map(mark_line, lines)),
            [line for each in lines if _WITHDRAWS in each for line in _read_withdrawn(each)],
        )


def list_changed_months(*snapshots: Snapshot) -> set[str]:
    """The months of whose attestations not all of these commits have the same."""
    first, *others = map(_list_months, snapshots)
    return {month for each in others for month in {*first, *each} if each.get(month) != first.get(month)}


def mark_line(line: bytes) -> bytes:
    """What stands for a line in ``MonthLines.marks``."""
    return mark_text(line.decode("latin-1"))


def _list_months(snapshot: Snapshot, brought: Iterable[str] = ()) -> dict[str, dict[str, str]]:
    """The first file of each month → path and blob of all its files. Of those that are ``brought`` there need be
    none."""
    months: dict[str, dict[str, str]] = {}
    for path, blob in (dict.fromkeys(brought, "") | list_shards(snapshot)).items():
        months.setdefault(find_whole(path), {})[path] = blob
    return months


def _read(snapshot: Snapshot, path: str) -> bytes:
    return snapshot.read_file(path) or b""


def _read_withdrawn(line: bytes) -> list[str]:
    """The lines that one takes back, by their digests, whoever signed it."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        return [each for each in map(str, json.loads(line)["says"][ACCEPTS]["withdraws"]) if each.isascii()]
    return []


def _read_acceptance(line: str, accepts: str) -> Acceptance | None:
    """What an acceptance says; None where it is none, as any key may have signed anything."""
    said = json.loads(accepts)
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
