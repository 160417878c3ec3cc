"""What persons decided about rows of tables: confirmed, corrected or put back, by their commits in the history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from cleared.changes.audit.commit_origins import CommitOrigins
from cleared.changes.audit.git_reverts import find_git_revert
from cleared.changes.decisions.decision_context import UNDO_TRAILER
from cleared.changes.record_sources import CommittedSource
from cleared.gate.improvements import LessonSource
from cleared.gate.past_runs import parent_commit
from cleared.git import Snapshot, history
from cleared.records.row_cards import OLDER
from cleared.records.row_changes import find_row, list_changes_between
from cleared.records.table_names import parse_row_id, table_of
from cleared.records.table_rows import Table
from cleared.review.last_act import UNDOES

_REMEMBERED = 200
"""Rows of all tables whose decisions count: those that were decided last."""


class DecidedRow(Struct, frozen=True):
    """A row as a person left it; of several decisions the last counts."""

    id: str
    table: str
    values: Mapping[str, str]
    """Column → text."""
    corrected: frozenset[str]
    """The columns that the person changed; none: it was right as it was."""
    at: str


def read_decisions(source: LessonSource, tables: Mapping[str, Table]) -> list[DecidedRow]:
    """The decisions about rows of these tables, newest first, as far as what vouches for them counts here. What was
    taken back, also by git, is none."""
    host, snapshot = source.host, source.snapshot
    repo = snapshot.repo
    origins = CommitOrigins(host, repo, snapshot)
    undos = (each for each in _read_log(source, UNDOES) if find_git_revert(host, repo, snapshot, each) is None)
    undone = {commit.trailers.get(UNDOES, "") for commit in undos}
    found: dict[str, DecidedRow | None] = {}
    for commit in _read_log(source, UNDO_TRAILER):
        named = commit.trailers.get(UNDO_TRAILER, "").split()  # where an id with a blank is not whole
        cards = [source.cards[name] for name in named if name in source.cards]
        asked = [card.record_id or "" for card in cards if card.resolution != OLDER]
        about = [name for name in (*asked, *named) if _is_of(name, tables)]
        is_changed = any(table_of(path, "csv") in tables for path in commit.files or ())
        decision = commit.trailers.get("Decision", "")
        parent = parent_commit(repo, commit.id) if about or is_changed else None
        if not decision or decision in undone or parent is None:
            continue
        before, after = CommittedSource(Snapshot(repo, parent)), CommittedSource(Snapshot(repo, commit.id))
        changes = {change.id: change for change in list_changes_between(before, after, commit.files or ())}
        ids = [name for name in dict.fromkeys((*changes, *about)) if name not in found]
        if not ids or not origins.is_ours(commit) or find_git_revert(host, repo, snapshot, commit) is not None:
            continue
        for name in ids:
            row, change = find_row(after, name), changes.get(name)
            found[name] = None  # where it is gone
            if row is not None:
                corrected = change.list_differences() if change is not None else []
                values = dict(zip(row[0].schema.columns, row[2], strict=True))
                columns = frozenset(each for each, _, _ in corrected)
                found[name] = DecidedRow(name, row[0].name, values, columns, commit.trailers.get("Clock", ""))
        if len(found) >= _REMEMBERED:
            break
    return [each for each in found.values() if each is not None]


def _read_log(source: LessonSource, mark: str) -> Iterator[history.CommitInfo]:
    rev = str(source.snapshot.commit)
    yield from history.read_log(source.host.root, None, grep=f"{mark}: ", rev=rev, files=True)


def _is_of(name: str, tables: Mapping[str, Table]) -> bool:
    parsed = parse_row_id(name)
    return parsed is not None and bool(parsed[1]) and parsed[0] in tables
