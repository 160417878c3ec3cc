"""Rows of the books and cards that were committed on this branch, and that the branch no longer has.

Rows are compared, not commits: a rebase, a squash and a merge make other commits with the same rows. Ids that a second
import of a file gives anew are not compared, nor is what may change later (a status).

They are compared with the last commit that this program made on the branch, and with the one that this machine saw
last, whoever made it: that one stands in a checkpoint outside the repository, with where the books lay and how many
rows they had.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cleared.base.errors import WorkspaceError
from cleared.base.short_text import list_first
from cleared.base.terminal import count_noun
from cleared.books.ledger.entry import HEADER
from cleared.cards.queue_files import SUFFIX
from cleared.changes.change_digests import is_attestation
from cleared.git import Repository, Snapshot, find_ancestor, history, parse_parents
from cleared.git.shared_history import list_beginnings
from cleared.trust.checkpoint import SeenBranch, read_checkpoint, remove_checkpoint, write_checkpoint
from cleared.workspace.location import Layout

MAX_COMMITS_COMPARED: Final = 50
"""How many commits before the last one are compared."""
_COMPARED_COLUMNS: Final = tuple(
    HEADER.index(name) for name in ("date", "account_id", "description", "debit", "credit")
)
_YEAR: Final = re.compile(r"[0-9]{4}")
_REVERTS: Final = re.compile(r"This reverts commit ([0-9a-f]{40,64})")

_COUNTED: Final = ("entry", "line", "decision")
"""The kinds of rows whose numbers a checkpoint keeps."""

Row = tuple[str, ...]
"""A kind (entry, line, card, period, decision), and the values that tell two rows of it apart."""


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
    decisions: tuple[str, ...] = ()
    """Ids of runs and decisions whose attestations are gone."""
    beginning: str = ""
    """A commit without a parent that was not there before, in words."""
    fewer: str = ""
    """How many rows there are and were, where they cannot be compared one by one."""

    @property
    def remedy(self) -> str:
        """What to do about it."""
        if self.tip == self.head and self.fewer:
            return "Compare it with another clone: cleared journal check. If it is right: cleared recover --forget."
        if self.beginning or self.fewer:
            return (
                f"Look at what came since (git log {self.tip[:10]}..HEAD). Take it back: git reset --keep "
                f"{self.tip[:10]}. If that is meant: cleared recover --forget."
            )
        return REMEDY

    def __str__(self) -> str:
        if self.beginning or self.fewer:
            return self.beginning or self.fewer
        up_to = f"what was committed up to {self.tip[:10]} ({self.subject[:60]})"
        return f"the branch has lost {self.summary} of {up_to}"

    @property
    def summary(self) -> str:
        """How many of what."""
        count = count_noun(len(self.entries), "entry", "entries")
        parts = [f"{count} ({list_first(self.entries, 3)})"] if self.entries else []
        others = ((self.lines, "bank line"), (self.cards, "card"), (self.periods, "closing"))
        attested = (self.decisions, "attested decision")
        parts += [count_noun(len(ids), one) for ids, one in (*others, attested) if ids]
        return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


REMEDY: Final = "Bring it back: cleared recover. If that is meant: cleared recover --forget."


def refuse_lost_rows(layout: Layout, repo: Repository, snapshot: Snapshot) -> None:
    """Raises ``WorkspaceError`` where the branch lost rows: new ones would take their place. Else the branch is seen
    as it is now."""
    lost = find_lost_rows(layout, repo, snapshot)
    if lost is not None:
        raise WorkspaceError(str(lost), remedy=lost.remedy)
    remember_seen(layout, repo, snapshot)


def find_lost_rows(layout: Layout, repo: Repository, snapshot: Snapshot) -> LostRows | None:
    """What the branch's last commits had, and the commit of ``snapshot``, which is its commit, lacks; or that there is
    a second beginning now.

    Costs nothing where nothing came since, and little where the books are the same. Beside a commit it may name rows
    that are there: ``Host.find_lost_rows`` looks again.
    """
    tip, head = repo.branch.read_remembered_commit(), snapshot.commit
    if head is None:
        return None
    try:
        checkpoint = read_checkpoint(repo.root)
    except WorkspaceError as error:
        return LostRows(head, head, "", (), fewer=error.message)
    seen = checkpoint.branches.get(repo.branch.name) if checkpoint is not None else None
    is_there = seen is not None and repo.objects.has_commit_tree(seen.commit)
    lost = None
    if tip not in (None, head):
        start = find_ancestor(repo, tip, MAX_COMMITS_COMPARED) if tip is not None else None
        lost = _compare_rows(layout, repo, str(tip), start, snapshot)
    if lost is None and seen is not None and seen.commit not in (head, tip) and is_there:
        lost = _compare_rows(layout, repo, seen.commit, None, snapshot)
    if lost is None and seen is not None and (seen.books != layout.config.paths.books or not is_there):
        lost = _compare_counts(layout, seen, snapshot, is_there=is_there)
    if lost is None and checkpoint is not None and (seen is None or seen.commit != head):
        known = seen.commit if seen is not None and is_there else None
        lost = _find_second_beginning(repo, checkpoint.beginnings, known, head)
    return lost


def remember_seen(layout: Layout, repo: Repository, snapshot: Snapshot) -> None:
    """Note outside the repository that the branch is at this commit, and lacks nothing; only where it is pinned."""
    checkpoint, head, name = read_checkpoint(repo.root), snapshot.commit, repo.branch.name
    if checkpoint is None or head is None or repo.branch.is_detached:
        return
    seen, books = checkpoint.branches.get(name), layout.config.paths.books
    if seen is not None and (seen.commit, seen.books) == (head, books):
        return
    is_known = seen is not None and seen.books == books and repo.objects.has_commit_tree(seen.commit)
    before = Snapshot(repo, seen.commit if seen is not None and is_known else None)
    counts = _count_kinds(layout, before, snapshot)
    old = (seen.entries, seen.lines, seen.decisions) if seen is not None and is_known else (0, 0, 0)
    made = SeenBranch(head, books, *(old[at] + counts[kind] for at, kind in enumerate(_COUNTED)))
    beginnings = () if is_known else list_beginnings(repo, head, None)
    write_checkpoint(repo.root, checkpoint.with_branch(name, made, tuple(beginnings)))


def forget_seen(layout: Layout, repo: Repository, snapshot: Snapshot) -> None:
    """Take the branch as it is now, with every beginning that it has: a person says so. The caller holds the lock."""
    repo.branch.forget_remembered_commit()
    remove_checkpoint(repo.root)
    remember_seen(layout, repo, snapshot)


def _find_second_beginning(
    repo: Repository, accepted: tuple[str, ...], known: str | None, head: str
) -> LostRows | None:
    """A history that was joined to the one that is known. One that was written anew as a whole has its rows compared,
    and ``journal check`` asks who wrote it."""
    is_ancestor = known is not None and repo.has_in_history(known)
    found = list_beginnings(repo, head, known if is_ancestor else None) if accepted else []
    new = [each for each in found if each not in accepted]
    if not new or not (is_ancestor or len(new) < len(found)):
        return None
    subject = _read_subject(repo, new[0])
    more = f" (and {len(new) - 1} more)" if len(new) > 1 else ""
    return LostRows(
        known or head,
        head,
        subject,
        (),
        beginning=f"the history has a second beginning: commit {new[0][:10]} ({subject[:60]!r}){more} has no commit "
        "before it, and was not there when this machine saw the books last",
    )


def _compare_counts(layout: Layout, seen: SeenBranch, snapshot: Snapshot, *, is_there: bool) -> LostRows | None:
    counts = _count_kinds(layout, Snapshot(snapshot.repo, None), snapshot)
    had = dict(zip(_COUNTED, (seen.entries, seen.lines, seen.decisions), strict=True))
    if all(counts[kind] >= had[kind] for kind in _COUNTED):
        return None
    books, words = layout.config.paths.books, ("rows of entries", "rows of bank lines", "attested runs and decisions")
    now, then = (
        ", ".join(f"{each[k]} {word}" for k, word in zip(_COUNTED, words, strict=True)) for each in (counts, had)
    )
    head = str(snapshot.commit)
    return LostRows(
        seen.commit if is_there else head,
        head,
        "",
        (),
        fewer=f"the books have fewer rows than this machine saw last, at commit {seen.commit[:10]}: {now} in {books}/ "
        f"now, {then} in {seen.books}/ then",
    )


def _compare_rows(layout: Layout, repo: Repository, tip: str, start: str | None, snapshot: Snapshot) -> LostRows | None:
    """Rows that were added after ``start`` up to ``tip``, and that the commit of ``snapshot`` lacks."""
    head, last = str(snapshot.commit), Snapshot(repo, tip)
    paths = list(_changed_paths(layout, last, snapshot))
    if all((snapshot.read_file(path) or b"").startswith(last.read_file(path) or b"") for path in paths):
        return None  # they only grew, if at all
    is_ancestor = repo.has_in_history(tip)
    first = _count_rows(_read_rows(layout, Snapshot(repo, start), paths))
    had, has = _read_rows(layout, last, paths), _read_rows(layout, snapshot, paths)
    wanted = (_count_rows(had) - first) - (_count_rows(has) - first)
    if wanted:
        wanted -= _reverted_rows(layout, repo, tip, head, paths)
    if not wanted:
        return None
    # A row that was edited in a later commit is not lost; `journal check` asks who edited it.
    edited = {_row_identity(each) for each in has} if is_ancestor else set()
    names: dict[str, list[str]] = {kind: [] for kind in ("entry", "line", "card", "period", "decision")}
    for row, name in had:
        if wanted[row] > 0 and _row_identity((row, name)) not in edited:
            wanted[row] -= 1
            if name not in names[row[0]]:
                names[row[0]].append(name)
    if not any(names.values()):
        return None
    found = {kind: tuple(ids) for kind, ids in names.items()}
    return LostRows(
        tip,
        head,
        _read_subject(repo, tip),
        found["entry"],
        found["line"],
        found["card"],
        found["period"],
        found["decision"],
    )


def _read_subject(repo: Repository, commit: str) -> str:
    message = repo.objects.read_object(commit)[1].partition(b"\n\n")[2]
    return message.partition(b"\n")[0].decode("utf-8", "replace")


def _count_kinds(layout: Layout, before: Snapshot, after: Snapshot) -> Counter[str]:
    """How many rows of each kind a commit has more than another; negative where it has fewer."""
    counts: Counter[str] = Counter()
    for path in _changed_paths(layout, before, after):
        kind = _kind_of_file(layout, path)
        for sign, each in ((1, after), (-1, before)) if kind in _COUNTED else ():
            data = each.read_file(path) or b""
            counts[kind] += sign * (data.count(b"\n") - (1 if data and path.endswith(".csv") else 0))
    return counts


def _kind_of_file(layout: Layout, path: str) -> str:
    """What the rows of a file are; empty where they are not compared."""
    if path.startswith(f"{layout.queue_dir}/"):
        return "card" if path.endswith(SUFFIX) else ""
    if is_attestation(path):
        return "decision"
    if layout.journal_month(path) is not None:
        return "entry"
    if path == layout.periods:
        return "period"
    is_line = path.startswith(f"{layout.bank_root}/") and path.count("/") > layout.bank_root.count("/") + 1
    return "line" if is_line else ""


def _row_identity(named: tuple[Row, str]) -> tuple[str, ...]:
    """What stays the same when a row is edited: its id; of a card's row also whether it opens or resolves the card."""
    row, name = named
    return (row[0], name, row[1]) if row[0] == "card" else (row[0], name)


def _changed_paths(layout: Layout, one: Snapshot, other: Snapshot) -> Iterator[str]:
    """Paths of the books, the queue and the attestations that differ between two commits."""
    roots = {layout.books_dir, layout.queue_dir, layout.logs_dir}
    if not layout.journal_root:
        roots |= {name for each in (one, other) for name in each.list_folder("") if _YEAR.fullmatch(name)}
    for root in sorted(roots):
        if one.find_entry(root) != other.find_entry(root):
            old, new = one.list_entries(root), other.list_entries(root)
            changed = (path for path in sorted({*old, *new}) if old.get(path) != new.get(path))
            yield from (path for path in changed if root != layout.logs_dir or is_attestation(path))


def _read_rows(layout: Layout, snapshot: Snapshot, paths: list[str]) -> list[tuple[Row, str]]:
    """The rows of these files of one commit, each with its id, as far as they can be read."""
    rows: list[tuple[Row, str]] = []
    for path in paths:
        text, kind = (snapshot.read_file(path) or b"").decode("utf-8", "replace"), _kind_of_file(layout, path)
        if kind == "card":
            rows += _card_rows(text)
        elif kind == "entry":
            rows += [
                (("entry", *(row[i] for i in _COMPARED_COLUMNS)), row[0].rstrip("abcdefghijklmnopqrstuvwxyz"))
                for row in _csv_rows(text)
                if len(row) > max(_COMPARED_COLUMNS)
            ]
        elif kind == "period":
            rows += [(("period", *row), row[0]) for row in _csv_rows(text)]
        elif kind == "line":
            rows += [(("line", row[0]), row[0]) for row in _csv_rows(text)]
        elif kind == "decision":
            rows += _decision_rows(text)
    return rows


def _decision_rows(text: str) -> Iterator[tuple[Row, str]]:
    for line in text.splitlines():
        try:
            yield ("decision", line), str(json.loads(line)["says"]["by"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue


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
