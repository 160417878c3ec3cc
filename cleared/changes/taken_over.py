"""What books that were made from others (``cleared trust --new-books``) take over of what was attested in those.

Their first attestation names files of attestations by git's ids, whose lines in them counted, and for which books. What
is signed for the old books afterwards is in none of these files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.errors import WorkspaceError
from cleared.changes.attestation_lines import Attestation, added_lines, list_shards, new_lines, parse_attestation
from cleared.git import Snapshot, history, parse_parents
from cleared.git.object_reader import is_oid
from cleared.workspace.location import Layout

TAKES_OVER: Final = "takes_over"
"""What an attestation calls it."""
_MAX_FILES: Final = 1_000
"""How many files a line may lead to that was signed by nobody who counts: such could name files without end."""


class Counting(Struct, frozen=True):
    """Whose attestations count: the public keys, and the names of books for which they sign (an id, or a clone)."""

    keys: frozenset[str]
    books: frozenset[str]


_Seen = set[tuple[str, Counting]]


def list_counting(
    snapshot: Snapshot, lines: Iterable[bytes], counting: Counting
) -> Iterator[tuple[bytes, Attestation]]:
    """The lines that count, each with what it says; and after one that takes over those of other books, these, as they
    counted there then."""
    return _list_counting(snapshot, lines, counting, set())


def list_taken_over(snapshot: Snapshot, said: Attestation) -> Iterator[tuple[bytes, Attestation]]:
    """The lines of other books that an attestation takes over, each with what it says. None where git does not have
    their files here, as in a shallow clone."""
    return _list_taken_over(snapshot, said, set())


def find_takeovers(snapshot: Snapshot) -> list[Attestation]:
    """The attestations of a commit that take over others, whoever signed them."""
    lines = (line for line in added_lines(None, snapshot) if TAKES_OVER.encode("ascii") in line)
    said = filter(None, map(parse_attestation, lines))
    return [each for each in said if TAKES_OVER in each.statement]


def describe_takeover(root: Path, snapshot: Snapshot, counting: Counting) -> dict[str, list[str]]:
    """What an attestation says that takes over all that these keys signed for these books, up to a commit."""
    files = list(list_shards(snapshot).values())
    known = set(added_lines(None, snapshot))
    for commit in history.commits_touching(root, [Layout.logs_dir]):  # what was reverted stands in the history, too
        with suppress(WorkspaceError):  # a shallow clone ends here
            after = snapshot.at_commit(commit.id)
            parents = parse_parents(snapshot.repo.objects.read_object(commit.id)[1])
            missing = set(new_lines(list(map(snapshot.at_commit, parents)), after)) - known
            if missing:
                known |= missing
                files += list_shards(after).values()
    return {"workspaces": sorted(counting.books), "keys": sorted(counting.keys), "files": sorted(set(files))}


def _list_counting(
    snapshot: Snapshot, lines: Iterable[bytes], counting: Counting, seen: _Seen
) -> Iterator[tuple[bytes, Attestation]]:
    for line in lines:
        said = parse_attestation(line)
        if said is not None and said.key in counting.keys and said.workspace in counting.books:
            yield line, said
            yield from _list_taken_over(snapshot, said, seen)


def _list_taken_over(snapshot: Snapshot, said: Attestation, seen: _Seen) -> Iterator[tuple[bytes, Attestation]]:
    files, counted = _read_takeover(said)
    for blob in files:
        if (blob, counted) in seen or len(seen) >= _MAX_FILES:
            continue
        seen.add((blob, counted))
        with suppress(WorkspaceError):
            (data,) = snapshot.read_blobs([blob])
            yield from _list_counting(snapshot, data.splitlines(), counted, seen)


def _read_takeover(said: Attestation) -> tuple[list[str], Counting]:
    """The files that it names, and whose lines counted in them; nothing where it is of another form."""
    taken = said.statement.get(TAKES_OVER)
    lists: list[list[str]] = []
    for name in ("files", "keys", "workspaces"):
        texts = taken.get(name) if isinstance(taken, dict) else None
        lists.append([text for text in texts if isinstance(text, str)] if isinstance(texts, list) else [])
    files, keys, workspaces = lists
    return sorted(text for text in files if is_oid(text)), Counting(frozenset(keys), frozenset(workspaces))
