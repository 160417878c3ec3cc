"""Imported bank files that git keeps: whether they are still what was imported. Whoever can push can alter them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from cleared.base.errors import Place, PolicyError, RestoreRemedy, WorkspaceError, quote_path
from cleared.base.safe_files import read_stable
from cleared.books.index.past_lines import read_imports_once
from cleared.books.ledger.book_paths import locate_books
from cleared.changes.record_sources import CommittedSource
from cleared.domains.record_audit import Violation
from cleared.git import Snapshot
from cleared.git.history import VersionSearch
from cleared.workspace.location import Layout

KEPT_TOGETHER: Final = 500
"""Imports, of a file for an account, from which on files lie in a folder of their month: with each file git writes the
whole list of its folder, and a bank may call each file the same."""
_MONTH: Final = r"\A[0-9]{4}-[0-9]{2}/"
_NUMBER: Final = r"-[0-9]+(?=(?:\.[^./]*)?$)"
"""What tells files of one name apart (``january-2.csv``)."""


def name_month_folder(layout: Layout, committed: Callable[[str], bool], imported_at: str) -> str:
    """The folder of a month, in that of imported files; empty where something else has its name: whoever can push may
    put it there. ``committed``: whether the commit has a file or a link at a path."""
    path = f"{layout.processed_dir}/{imported_at[:7]}"
    place = layout.root / path
    is_taken = committed(path) or place.is_symlink() or (place.exists() and not place.is_dir())
    return "" if is_taken else imported_at[:7]


def find_altered_bank_files(layout: Layout, snapshot: Snapshot, since: Snapshot | None = None) -> Iterator[Violation]:
    """Kept bank files that have the name of an imported one, and a content that nobody imported. ``since``: a commit
    that had none; what is as it was there is looked at where a file of its name was imported later."""
    try:
        names, digests = _read_imported(layout, snapshot)
        before = _read_imported(layout, since) if since is not None else None
    except WorkspaceError:  # ``BookAudit.find_damage`` names what cannot be read
        return
    if since is not None and before is not None and before[1] <= digests:  # what was imported then is known to be now
        paths = _list_new_files(layout, snapshot, since, names - before[0])
    else:
        paths = list(snapshot.list_entries(layout.processed_dir))
    contents = snapshot.read_files(layout.processed_dir) if since is None else {}
    search = VersionSearch(snapshot)
    for path in paths:
        name = path.removeprefix(f"{layout.processed_dir}/")
        called = {name, re.sub(_MONTH, "", name)}
        called |= {re.sub(_NUMBER, "", each) for each in called}
        if names.isdisjoint(called):
            continue
        data = contents.get(path) if since is None else snapshot.read_file(path)
        if digest_file(data or b"") in digests:
            continue
        yield Violation(
            "bank_files",
            "the bank file is not what was imported: a commit has altered or replaced it",
            _describe_way_back(search, path, digests, f"Where it was never imported: git rm -- {quote_path(path)}"),
            Place(path),
        )


def _describe_way_back(search: VersionSearch, path: str, digests: Collection[str], also: str) -> str:
    """How a kept bank file comes back as somebody imported it. ``digests``: of what was imported."""
    return search.name_version(RestoreRemedy(path, also), lambda data: digest_file(data) in digests)


def _read_imported(layout: Layout, snapshot: Snapshot) -> tuple[set[str], set[str]]:
    """The names and digests of the imported files."""
    records = read_imports_once(layout.state_dir, CommittedSource(snapshot), locate_books(layout))
    return {record.name for record in records}, {record.file_sha256 for record in records}


def _list_new_files(layout: Layout, snapshot: Snapshot, since: Snapshot, new_names: Collection[str]) -> list[str]:
    """The kept files that a commit has otherwise than ``since``, and those that may have one of the names."""
    changed = snapshot.list_changes(since, layout.processed_dir)
    if not new_names:
        return [path for path, (_, now) in changed.items() if now]
    begins = _list_beginnings(new_names)
    return [
        path
        for path in snapshot.list_entries(layout.processed_dir)
        if path in changed or path.rpartition("/")[2].startswith(begins)
    ]


def refuse_altered_bank_files(layout: Layout, snapshot: Snapshot, sources: Iterable[Path]) -> None:
    """Raises ``PolicyError`` where one of the files is a kept bank file, and what it holds now nobody has imported."""
    kept = (layout.root / layout.processed_dir).resolve()
    inside = [path for source in sources if (path := source.resolve()).is_relative_to(kept)]
    records = read_imports_once(layout.state_dir, CommittedSource(snapshot), locate_books(layout)) if inside else []
    digests = {record.file_sha256 for record in records}
    for path in inside:
        place = f"{layout.processed_dir}/{path.relative_to(kept).as_posix()}"
        if (
            snapshot.has_file(place)
            and digest_file(read_stable(path, layout.config.import_.max_bytes)[0]) not in digests
        ):
            raise PolicyError(
                "this is not what was imported, and nobody on this machine handed it in: nothing was taken",
                place=Place(place),
                remedy=_describe_way_back(
                    VersionSearch(snapshot), place, digests, "If it is right as it is, hand in a copy from elsewhere"
                ),
            )


def find_kept_files(layout: Layout, names: Mapping[str, str]) -> dict[str, str]:
    """Digest → the path of a kept bank file with this content that lies here, whether git has it or only this
    machine. ``names``: digest → what the file was called; those of another name are read last, if at all."""
    begins, found = _list_beginnings(names.values()), dict[str, str]()
    files = sorted((layout.root / layout.processed_dir).rglob("*"))
    for path in sorted(files, key=lambda path: not path.name.startswith(begins)):
        if len(found) == len(names):
            break
        digest = digest_file(path.read_bytes()) if path.is_file() and not path.is_symlink() else ""
        if digest in names:
            found.setdefault(digest, path.relative_to(layout.root).as_posix())
    return found


def _list_beginnings(names: Iterable[str]) -> tuple[str, ...]:
    """How the names of files begin that were kept under these, whatever tells them apart."""
    return tuple(name.rpartition("/")[2].partition(".")[0] for name in names)


def digest_file(data: bytes) -> str:
    """By which imports know a file."""
    return hashlib.sha256(data).hexdigest()
