"""Which version of a damaged file is the newest that is right: what to restore, where a remedy can only guess."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.errors import RESTORE_OTHERWISE, WorkspaceError, quote_path
from cleared.base.file_source import FileSource
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.domains.record_audit import Violation
from cleared.git import Snapshot, history

UNCHANGED: Final = "unchanged"
"""The check that names files which are otherwise than in the last commit, and as such are not damaged."""
_MOST: Final = 20
"""Versions of the files that are looked at; each time the records are judged with them."""
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


def name_right_versions(
    host: Host, snapshot: Snapshot, violations: Sequence[Violation], judge: Judge
) -> list[Violation]:
    """The violations, with remedies that restore the newest version of a damaged file that ``judge`` finds right: that
    of the last commit, where the working copy alone is damaged."""
    damaged = list(dict.fromkeys(file for each in violations if (file := _find_restored(each))))
    restoring = dict.fromkeys(damaged, "") | _find_right(host, snapshot, damaged[:_MOST_FILES], judge)
    return [
        _restore_from(each, file, restoring[file]) if (file := _find_restored(each)) else each for each in violations
    ]


def _find_restored(violation: Violation) -> str:
    """The damaged file that a remedy restores; empty for none."""
    file = violation.place.file if violation.place is not None else None
    is_named = file and violation.check != UNCHANGED and f"git checkout HEAD -- {quote_path(file)}" in violation.remedy
    return file or "" if is_named else ""


def _restore_from(violation: Violation, file: str, commit: str) -> Violation:
    plain = f"git checkout HEAD -- {quote_path(file)}"
    way = f"git checkout {commit} -- {quote_path(file)}, and commit that" if commit not in ("", "HEAD") else plain
    otherwise = (
        "" if commit else f". Where it was committed so: git log -- {quote_path(file)} shows which versions there are"
    )
    remedy = violation.remedy.replace(RESTORE_OTHERWISE, otherwise).replace(plain, way)
    return replace(violation, remedy=remedy)


def _find_right(host: Host, snapshot: Snapshot, files: Sequence[str], judge: Judge) -> dict[str, str]:
    """File → the newest commit with a version that is right, and has nothing to be restored; without those of which
    none was found. The versions of all are judged together: however many files were pushed, no more often than for one.
    """
    versions = {file: islice(_iter_versions(host, snapshot, file), _MOST) for file in files}
    right: dict[str, str] = {}
    chosen: dict[str, bytes] = {}
    while versions:
        found: dict[str, str] = {}
        for file, left in versions.items():
            with suppress(WorkspaceError):  # what git cannot read is told elsewhere
                if (version := next(left, None)) is not None:
                    found[file], chosen[file] = version
        try:
            damaged = {*map(_find_restored, judge(_SourceWith(CommittedSource(snapshot), chosen)))} if found else set()
        except WorkspaceError:
            break
        right |= {file: commit for file, commit in found.items() if file not in damaged}
        versions = {file: versions[file] for file in found if file in damaged}
    return right


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
