"""Rows of the books and cards that were committed on this branch, and that the branch no longer has.

Rows are compared, not commits: a rebase, a squash and a merge make other commits with the same rows. Ids that a second
import of a file gives anew are not compared, nor is what may change later (a status).
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from cleared.cards.queue_files import SUFFIX
from cleared.errors import WorkspaceError
from cleared.ledger.entry import HEADER
from cleared.light_dataclass import dataclass
from cleared.terminal import count_noun
from cleared.vcs import Repository, Snapshot, find_ancestor, history, parse_parents
from cleared.workspace.location import Layout

MAX_COMMITS_COMPARED: Final = 50
"""How many commits before the last one are compared."""
_COMPARED_COLUMNS: Final = tuple(
    HEADER.index(name) for name in ("date", "account_id", "description", "debit", "credit")
)
_YEAR: Final = re.compile(r"[0-9]{4}")
_REVERTS: Final = re.compile(r"This reverts commit ([0-9a-f]{40,64})")

Row = tuple[str, ...]
"""A kind (entry, line, card, period), and the values that tell two rows of it apart."""


@dataclass(frozen=True, slots=True)
class LostRows:
    """What was committed here, and is not in the branch's commit any more."""

    tip: str
    """The last commit that this program made on the branch."""
    head: str
    subject: str
    entries: tuple[str, ...]
    """Ids of entries; ``lines``: of bank lines; ``cards``: of cards opened or resolved; ``periods``: closed periods."""
    lines: tuple[str, ...] = ()
    cards: tuple[str, ...] = ()
    periods: tuple[str, ...] = ()

    def __str__(self) -> str:
        count = count_noun(len(self.entries), "entry", "entries")
        parts = [f"{count} ({_list_some(self.entries)})"] if self.entries else []
        for ids, one in ((self.lines, "bank line"), (self.cards, "card"), (self.periods, "closing")):
            if ids:
                parts.append(count_noun(len(ids), one))
        summary = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
        return f"the branch has lost {summary} of what was committed up to {self.tip[:10]} ({self.subject[:60]})"


REMEDY: Final = "Bring it back: cleared recover. If that is meant: cleared recover --forget."


def refuse_lost_rows(layout: Layout, repo: Repository, snapshot: Snapshot) -> None:
    """Raises ``WorkspaceError`` where the branch lost rows: new ones would take their place."""
    lost = find_lost_rows(layout, repo, snapshot)
    if lost is not None:
        raise WorkspaceError(str(lost), remedy=REMEDY)


def find_lost_rows(layout: Layout, repo: Repository, snapshot: Snapshot) -> LostRows | None:
    """Rows that the last commits of this program on the branch added, and that the commit of ``snapshot`` lacks.

    Looks at ``MAX_COMMITS_COMPARED`` commits. Costs nothing where the branch is at the last of them, and little where
    its books are the same.
    """
    tip, head = repo.branch.read_remembered_commit(), snapshot.commit
    if tip is None or head is None or tip == head:
        return None
    last = Snapshot(repo, tip)
    paths = list(_changed_paths(layout, last, snapshot))
    if all((snapshot.read_file(path) or b"").startswith(last.read_file(path) or b"") for path in paths):
        return None  # they only grew, if at all
    start = _count_rows(_read_rows(layout, Snapshot(repo, find_ancestor(repo, tip, MAX_COMMITS_COMPARED)), paths))
    had, has = _read_rows(layout, last, paths), _read_rows(layout, snapshot, paths)
    wanted = (_count_rows(had) - start) - (_count_rows(has) - start)
    if wanted:
        wanted -= _reverted_rows(layout, repo, tip, head, paths)
    if not wanted:
        return None
    # A row that was edited in a later commit is not lost; `journal check` asks who edited it.
    edited = {_row_identity(each) for each in has} if repo.has_in_history(tip) else set()
    names: dict[str, list[str]] = {"entry": [], "line": [], "card": [], "period": []}
    for row, name in had:
        if wanted[row] > 0 and _row_identity((row, name)) not in edited:
            wanted[row] -= 1
            if name not in names[row[0]]:
                names[row[0]].append(name)
    if not any(names.values()):
        return None
    subject = repo.objects.read_object(tip)[1].partition(b"\n\n")[2].partition(b"\n")[0].decode("utf-8", "replace")
    return LostRows(tip, head, subject, *(tuple(names[kind]) for kind in ("entry", "line", "card", "period")))


def _row_identity(named: tuple[Row, str]) -> tuple[str, ...]:
    """What stays the same when a row is edited: its id; of a card's row also whether it opens or resolves the card."""
    row, name = named
    return (row[0], name, row[1]) if row[0] == "card" else (row[0], name)


def _list_some(ids: tuple[str, ...]) -> str:
    return ", ".join(ids[:3]) + (" …" if len(ids) > 3 else "")


def _changed_paths(layout: Layout, one: Snapshot, other: Snapshot) -> Iterator[str]:
    """Paths of the books and the queue that differ between two commits."""
    roots = {layout.books_dir, layout.queue_dir}
    if not layout.journal_root:
        roots |= {name for each in (one, other) for name in each.list_folder("") if _YEAR.fullmatch(name)}
    for root in sorted(roots):
        if one.find_entry(root) != other.find_entry(root):
            old, new = one.list_entries(root), other.list_entries(root)
            yield from (path for path in sorted({*old, *new}) if old.get(path) != new.get(path))


def _read_rows(layout: Layout, snapshot: Snapshot, paths: list[str]) -> list[tuple[Row, str]]:
    """The rows of these files of one commit, each with its id, as far as they can be read."""
    rows: list[tuple[Row, str]] = []
    for path in paths:
        text = (snapshot.read_file(path) or b"").decode("utf-8", "replace")
        if path.startswith(f"{layout.queue_dir}/") and path.endswith(SUFFIX):
            rows += _card_rows(text)
        elif layout.journal_month(path) is not None:
            rows += [(("entry", *(row[i] for i in _COMPARED_COLUMNS)), row[0].rstrip("abcdefghijklmnopqrstuvwxyz"))
                      for row in _csv_rows(text) if len(row) > max(_COMPARED_COLUMNS)]  # fmt: skip
        elif path == layout.periods:
            rows += [(("period", *row), row[0]) for row in _csv_rows(text)]
        elif path.startswith(f"{layout.bank_root}/") and path.count("/") > layout.bank_root.count("/") + 1:
            rows += [(("line", row[0]), row[0]) for row in _csv_rows(text)]
    return rows


def _count_rows(rows: list[tuple[Row, str]]) -> Counter[Row]:
    return Counter(row for row, _ in rows)


def _csv_rows(text: str) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO(text, newline="")))[1:]
    except csv.Error:
        return []


def _card_rows(text: str) -> Iterator[tuple[Row, str]]:
    for line in text.splitlines():
        try:
            event = json.loads(line)
            row = ("card", str(event["event"]), str(event["id"]), str(event.get("resolution", "")))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        yield row, row[2]


def _reverted_rows(layout: Layout, repo: Repository, tip: str, head: str, paths: list[str]) -> Counter[Row]:
    """The rows of commits that somebody took back by ``git revert``, as its message says."""
    reverted: Counter[Row] = Counter()
    for commit in history.read_log(repo.root, None, grep="This reverts commit ", since=tip, rev=head):
        for name in _REVERTS.findall(commit.body):
            try:
                parents = parse_parents(repo.objects.read_object(name)[1])
                before = Snapshot(repo, parents[0] if parents else None)
                reverted += _count_rows(_read_rows(layout, Snapshot(repo, name), paths)) - _count_rows(
                    _read_rows(layout, before, paths)
                )
            except WorkspaceError:
                continue
    return reverted
