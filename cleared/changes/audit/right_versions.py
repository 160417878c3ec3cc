"""Which version of a damaged file is the newest that is right: what to restore, where a remedy can only guess."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.errors import RestoreRemedy, WorkspaceError
from cleared.base.file_source import FileSource
from cleared.changes.record_sources import CommittedSource
from cleared.domains.record_audit import Violation
from cleared.git import Snapshot, history

_MOST_FILES: Final = 10
Judge = Callable[[FileSource], Sequence[Violation]]


class _SourceWith(Struct, eq=False):
    """The files of one commit, some of them as they were in others. As it is none of a commit, nothing that is read in
    it is kept as what the commit has."""

    committed: CommittedSource
    changed: Mapping[str, bytes]

    def read(self, path: str) -> bytes | None:
        return self.changed[path] if path in self.changed else self.committed.read(path)

    def list_paths(self, prefix: str) -> list[str]:
        return self.committed.list_paths(prefix)


def name_right_versions(snapshot: Snapshot, violations: Sequence[Violation], judge: Judge) -> list[Violation]:
    """The violations, with remedies that restore the newest version of a damaged file that ``judge`` finds right: that
    of the last commit, where the working copy alone is damaged."""
    right = _find_right(snapshot, _list_restored(violations)[:_MOST_FILES], judge)
    return [
        replace(each, remedy=each.remedy.name_version(right.get(each.remedy.file, "")))
        if isinstance(each.remedy, RestoreRemedy)
        else each
        for each in violations
    ]


def _list_restored(violations: Iterable[Violation]) -> list[str]:
    """The damaged files that remedies restore."""
    remedies = (each.remedy for each in violations)
    return list(dict.fromkeys(remedy.file for remedy in remedies if isinstance(remedy, RestoreRemedy)))


def _find_right(snapshot: Snapshot, files: Sequence[str], judge: Judge) -> dict[str, str]:
    """File → the newest commit with a version that is right, and has nothing to be restored; without those of which
    none was found. The versions of all are judged together: however many files were pushed, no more often than for one.
    """
    versions = {file: history.iter_versions(snapshot, file) for file in files}
    right: dict[str, str] = {}
    chosen: dict[str, bytes] = {}
    while versions:
        found: dict[str, str] = {}
        for file, left in versions.items():
            with suppress(WorkspaceError):  # what git cannot read is told elsewhere
                if (version := next(left, None)) is not None:
                    found[file], chosen[file] = version
        try:
            damaged = _list_restored(judge(_SourceWith(CommittedSource(snapshot), chosen))) if found else []
        except WorkspaceError:
            break
        right |= {file: commit for file, commit in found.items() if file not in damaged}
        versions = {file: versions[file] for file in found if file in damaged}
    return right
