"""Which version of a damaged file is the newest that is right: what to restore, where a remedy can only guess."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from shlex import quote
from typing import Final

from msgspec.structs import replace

from cleared.base.errors import RESTORE_OTHERWISE, WorkspaceError
from cleared.base.file_source import FileSource
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.domains.record_audit import Violation
from cleared.git import Snapshot, history

UNCHANGED: Final = "unchanged"
"""The check that names files which are otherwise than in the last commit, and as such are not damaged."""
_MOST: Final = 50
"""Versions of a file that are looked at; each time the records are judged with it."""
_MOST_FILES: Final = 10
Judge = Callable[[FileSource], Sequence[Violation]]


class _SourceWith(CommittedSource, eq=False):
    """The files of one commit, one of them as it was in another."""

    path: str
    data: bytes

    def read(self, path: str) -> bytes | None:
        return self.data if path == self.path else super().read(path)


def name_right_versions(
    host: Host, snapshot: Snapshot, violations: Sequence[Violation], judge: Judge
) -> list[Violation]:
    """The violations, with remedies that restore the newest version of a damaged file that ``judge`` finds right: that
    of the last commit, where the working copy alone is damaged."""
    restoring = {file: "" for each in violations if (file := _find_restored(each))}
    for file in [*restoring][:_MOST_FILES]:
        with suppress(WorkspaceError):  # what git cannot read is told elsewhere
            restoring[file] = _find_right(host, snapshot, file, judge)
    return [
        _restore_from(each, file, restoring[file]) if (file := _find_restored(each)) else each for each in violations
    ]


def _find_restored(violation: Violation) -> str:
    """The damaged file that a remedy restores; empty for none."""
    file = violation.place.file if violation.place is not None else None
    is_named = file and violation.check != UNCHANGED and f"git checkout HEAD -- {quote(file)}" in violation.remedy
    return file or "" if is_named else ""


def _restore_from(violation: Violation, file: str, commit: str) -> Violation:
    plain = f"git checkout HEAD -- {quote(file)}"
    way = f"git checkout {commit} -- {quote(file)}, and commit that" if commit not in ("", "HEAD") else plain
    otherwise = (
        "" if commit else f". Where it was committed so: git log -- {quote(file)} shows which versions there are"
    )
    remedy = violation.remedy.replace(RESTORE_OTHERWISE, otherwise).replace(plain, way)
    return replace(violation, remedy=remedy)


def _find_right(host: Host, snapshot: Snapshot, file: str, judge: Judge) -> str:
    """The newest commit with a version that is right, and has nothing to be restored; empty where none was found."""
    for commit, data in islice(_iter_versions(host, snapshot, file), _MOST):
        if file not in map(_find_restored, judge(_SourceWith(snapshot, file, data))):
            return commit
    return ""


def _iter_versions(host: Host, snapshot: Snapshot, file: str) -> Iterator[tuple[str, bytes]]:
    seen = set()
    log = history.read_log(host.root, None, [file], rev=str(snapshot.commit), full_history=True)
    commits = ((each.short, each.id) for each in log)
    for name, commit in [("HEAD", str(snapshot.commit)), *commits]:
        at = snapshot.at_commit(commit)
        blob, data = at.find_blob_id(file), at.read_file(file)
        if data is not None and blob not in seen:
            seen.add(blob)
            yield name, data
