"""Rows of the books and cards that were committed on this branch, and that the branch no longer has.

Rows are compared, not commits: a rebase, a squash and a merge make other commits with the same rows. Ids that a second
import of a file gives anew are not compared, nor is what may change later (a status).

They are compared with the last commit that this program made on the branch, and with the one that this machine saw
last, whoever made it: that one stands in a checkpoint outside the repository, with where the books lay and how many
rows they had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.errors import WorkspaceError
from cleared.base.short_text import join_words, list_first
from cleared.base.terminal import count_noun
from cleared.changes.attestation_lines import added_lines
from cleared.changes.change_digests import CARDS, DECISIONS, CommittedRows, Row, find_moved_rows
from cleared.changes.reverted_decisions import count_reverted_rows, leave_out_reverted
from cleared.domains.record_audit import RowKind
from cleared.git import Repository, Snapshot, find_ancestor
from cleared.git.history import list_beginnings
from cleared.trust.checkpoint import Checkpoint, SeenBranch, begin_checkpoint, read_checkpoint, write_checkpoint
from cleared.workspace.location import Layout

MAX_COMMITS_COMPARED: Final = 50
"""How many commits before the last one are compared."""
SYNC_RESULT: Final = "refs/worktree/cleared-sync"
"""What a sync is about to move the branch to, or has: a kill right after the move leaves it to be accepted."""


class LostRows(Struct, frozen=True):
    """What was committed here, and is not in the branch's commit any more."""

    tip: str
    """The last commit that this program made on the branch."""
    head: str
    subject: str
    kinds: Sequence[RowKind]
    """The kinds of rows that were compared."""
    ids: Mapping[str, tuple[str, ...]] = {}
    """Key of a kind → the ids of its rows that are gone: of cards opened or resolved, of runs and decisions whose
    attestations are gone, and so on."""
    beginning: str = ""
    """A commit without a parent that was not there before, in words."""
    fewer: str = ""
    """How many rows there are and were, where they cannot be compared one by one."""
    moved: str = ""
    """Which rows stand elsewhere, where none is gone."""
    joined: str = ""
    """What a merge has made of two histories that no clone would have written, where no row is gone."""
    branch: str = ""
    """The branch that was compared with where this one was never seen here, or none is checked out. It may be meant to
    be another one: all is said, and nothing refused."""

    @property
    def other_news(self) -> str:
        """In words what it is where no rows are known to be gone that could be brought back; else empty."""
        return self.beginning or self.fewer or self.moved or self.joined

    @property
    def remedy(self) -> str:
        """What to do about it."""
        if self.branch:
            return f"Go back: git checkout {self.branch}. If this one is meant to be without: cleared recover --forget."
        if self.tip == self.head and self.fewer:
            return "Compare it with another clone: cleared check. If it is right: cleared recover --forget."
        if self.joined:
            return (
                f"Before it is pushed: git reset --keep {self.tip[:10]}, then cleared sync. If it is pushed: cleared "
                "recover --forget, then mend what cleared check names."
            )
        if self.other_news:
            return (
                f"Look at what came since (git log {self.tip[:10]}..HEAD). Take it back: git reset --keep "
                f"{self.tip[:10]}. If that is meant: cleared recover --forget."
            )
        return REMEDY

    def __str__(self) -> str:
        if self.other_news:
            return self.other_news
        up_to = f"what was committed up to {self.tip[:10]} ({self.subject[:60]})"
        return f"the branch has lost {self.summary} of {up_to}"

    @property
    def summary(self) -> str:
        """How many of what."""
        return join_words(self.count_rows(with_ids=True))

    def count_rows(self, *, with_ids: bool = False) -> list[str]:
        """How many of each kind, with its noun. ``with_ids``: some of their ids, too, where those say something."""
        counts = []
        for kind in self.kinds:
            ids = self.ids.get(kind.key, ())
            shown = f" ({list_first(ids, 3)})" if with_ids and kind.shows_ids else ""
            counts += [f"{count_noun(len(ids), *kind.noun)}{shown}"] if ids else []
        return counts

    def to_dict(self) -> dict[str, Any]:
        """As JSON shows it: the ids of each kind stand under its key."""
        ids = {kind.key: self.ids.get(kind.key, ()) for kind in self.kinds}
        made = {"tip": self.tip, "head": self.head, "subject": self.subject}
        news = {name: getattr(self, name) for name in ("beginning", "fewer", "moved", "joined")}
        return {**made, **ids, **news}


REMEDY: Final = "Bring it back: cleared recover. If that is meant: cleared recover --forget."


def refuse_lost_rows(layout: Layout, repo: Repository, snapshot: Snapshot, joined: Snapshot | None = None) -> None:
    """Raises ``WorkspaceError`` where the branch lost rows: new ones would take their place; not where it may be meant,
    as this is another branch. Else the branch is seen as it is now.

    ``joined``: what a sync is about to bring. Where git merged that before, and the merge was taken back, what it has
    is not lost."""
    lost, checkpoint = _compare_with_seen(layout, repo, snapshot)
    if lost is None:
        remember_seen(layout, repo, snapshot, checkpoint)
        return
    if joined is not None:
        losses = filter(None, _iter_losses(layout, repo, snapshot, checkpoint))
        lost = next((each for each in losses if not _comes_back(layout, repo, each, joined)), None)
    if lost is not None and not lost.branch:
        raise WorkspaceError(str(lost), remedy=lost.remedy)


def _comes_back(layout: Layout, repo: Repository, lost: LostRows, joined: Snapshot) -> bool:
    """Whether the branch was set back, no more, and all that it lost is in what a sync brings."""
    if lost.other_news or repo.find_common_ancestor(lost.head, lost.tip) != lost.head:
        return False
    missing = _compare_rows(layout, repo, lost.tip, None, joined)
    return missing is None or not any({*ids} & {*missing.ids.get(kind, ())} for kind, ids in lost.ids.items())


def accept_sync(layout: Layout, repo: Repository) -> None:
    """Where the last that this program did to the branch is the move of a sync, take what it was moved to as seen: what
    is not there any more was done again, or others had done it. The caller holds the writer lock, and has finished what
    was interrupted."""
    if not (repo.git_dir / SYNC_RESULT).exists() and not (repo.common_dir / "reftable").is_dir():
        return
    result = repo.git.run("rev-parse", "--verify", "--quiet", SYNC_RESULT, check=False).decode("ascii").strip()
    if not result:
        return
    moved = Snapshot(repo, result)
    if repo.branch.read_remembered_commit() == result and (lost := find_lost_rows(layout, repo, moved)) is not None:
        ids = {**lost.ids, DECISIONS.key: leave_out_reverted(repo, moved, lost.ids.get(DECISIONS.key, ()))}
        forget_seen(layout, repo, moved, replace(lost, ids=ids))
    repo.git.run("update-ref", "-d", SYNC_RESULT)


def find_lost_rows(layout: Layout, repo: Repository, snapshot: Snapshot) -> LostRows | None:
    """What the branch's last commits had, and the commit of ``snapshot``, which is its commit, lacks; or that there is
    a second beginning now.

    Costs nothing where nothing came since, and little where the books are the same. Beside a commit it may name rows
    that are there: ``Host.find_lost_rows`` looks again.
    """
    return _compare_with_seen(layout, repo, snapshot)[0]


def _compare_with_seen(
    layout: Layout, repo: Repository, snapshot: Snapshot
) -> tuple[LostRows | None, Checkpoint | None]:
    """What is lost, and the checkpoint that it was compared with."""
    if (head := snapshot.commit) is None:
        return None, None
    try:
        checkpoint = read_checkpoint(repo.root)
    except WorkspaceError as error:
        return LostRows(head, head, "", CommittedRows(layout).kinds, fewer=error.message), None
    return next(filter(None, _iter_losses(layout, repo, snapshot, checkpoint)), None), checkpoint


def _iter_losses(
    layout: Layout, repo: Repository, snapshot: Snapshot, checkpoint: Checkpoint | None
) -> Iterator[LostRows | None]:
    """What each comparison finds; the later ones are for where the earlier find nothing."""
    tip, head = repo.branch.read_remembered_commit(), str(snapshot.commit)
    seen = checkpoint.branches.get(repo.branch.name) if checkpoint is not None else None
    is_there = seen is not None and repo.objects.has_commit_tree(seen.commit)
    if tip is not None and tip != head:
        is_seen = seen is not None and seen.commit == tip  # then all of it is compared, however long ago it was made
        start = None if is_seen else find_ancestor(repo, tip, MAX_COMMITS_COMPARED)
        yield _compare_rows(layout, repo, tip, start, snapshot)
    if seen is not None and seen.commit not in (head, tip) and is_there:
        yield _compare_rows(layout, repo, seen.commit, None, snapshot)
    if seen is not None and (seen.books != layout.config.paths.books or not is_there):
        yield _compare_counts(layout, seen, snapshot, is_there=is_there)
    if checkpoint is not None and (seen is None or seen.commit != head):
        known = seen.commit if seen is not None and is_there else None
        yield _find_second_beginning(layout, repo, checkpoint.beginnings, known, head)
    # In the middle of a rebase the commits of the branch are still to come.
    is_rebased = repo.branch.is_detached and repo.find_unfinished() == "rebase"
    if seen is None and checkpoint is not None and checkpoint.branches and not is_rebased:
        last = checkpoint.last_branch
        yield _compare_with_last_branch(layout, repo, last, checkpoint.branches[last], snapshot)
    last_here = tip if tip is not None and repo.objects.has_commit_tree(tip) else seen.commit if seen else head
    if seen is not None and is_there and head not in (seen.commit, last_here):
        from cleared.changes.wrong_merges import find_wrong_merge

        wrong = find_wrong_merge(layout, repo, last_here, snapshot)
        what = f"git has joined two clones, and the books are not in order: {wrong.message}" if wrong else ""
        yield LostRows(last_here, head, "", CommittedRows(layout).kinds, joined=what) if wrong else None


def remember_seen(layout: Layout, repo: Repository, snapshot: Snapshot, checkpoint: Checkpoint | None) -> None:
    """Note in the checkpoint that the branch is at this commit, and lacks nothing; only where there is one."""
    head, name = snapshot.commit, repo.branch.name
    if checkpoint is None or head is None or repo.branch.is_detached:
        return
    seen, books = checkpoint.branches.get(name), layout.config.paths.books
    if seen is not None and (seen.commit, seen.books) == (head, books):
        if checkpoint.last_branch != name:
            write_checkpoint(checkpoint.with_branch(name, seen, ()))
        return
    is_known = seen is not None and seen.books == books and repo.objects.has_commit_tree(seen.commit)
    made = _count_branch(layout, snapshot, seen if is_known else None)
    beginnings = () if is_known else list_beginnings(repo, head, None)
    write_checkpoint(checkpoint.with_branch(name, made, tuple(beginnings)))


def _count_branch(layout: Layout, snapshot: Snapshot, seen: SeenBranch | None) -> SeenBranch:
    """The branch at a commit, with its rows; only what is new since it was seen is read."""
    rows, had = CommittedRows(layout), seen.counts if seen is not None else {}
    before = Snapshot(snapshot.repo, seen.commit if seen is not None else None)
    files = ((path, snapshot.read_file(path)) for path in rows.list_changed_paths(before, snapshot))
    return SeenBranch(str(snapshot.commit), layout.config.paths.books, rows.count_rows(before, had, files))


def remember_commit(
    layout: Layout, repo: Repository, before: Snapshot, commit: str, changes: Mapping[str, bytes | None]
) -> None:
    """The same of a commit that this program has just made of these changes to ``before``: where that lacked nothing,
    this one does not, and its rows are not compared. Where it cannot be noted, they will be."""
    with suppress(WorkspaceError):
        checkpoint = read_checkpoint(repo.root)
        seen = checkpoint.branches.get(repo.branch.name) if checkpoint is not None else None
        if checkpoint is None or seen is None:
            return
        if (seen.commit, seen.books) == (before.commit, layout.config.paths.books):
            counts = CommittedRows(layout).count_rows(before, seen.counts, changes.items())
            made = replace(seen, commit=commit, counts=counts)
            write_checkpoint(checkpoint.with_branch(repo.branch.name, made, ()))


def forget_seen(layout: Layout, repo: Repository, snapshot: Snapshot, lost: LostRows) -> None:
    """Take the branch as it is now, with every beginning that it has: a person says so. The runs and decisions that are
    gone stay so: a check names what brings them back. The caller holds the lock."""
    if not lost.branch:
        begin_checkpoint(repo.root, _list_gone_decisions(snapshot, lost.ids.get(DECISIONS.key, ())))
        repo.branch.forget_remembered_commit()  # by which one that was killed before this is known
    remember_seen(layout, repo, snapshot, read_checkpoint(repo.root))


def _list_gone_decisions(snapshot: Snapshot, lost: Sequence[str]) -> list[str]:
    """Those of which no line is left: what was done again on another commit has another line, and the same id."""
    lines = b"\n".join(added_lines(None, snapshot))
    return [each for each in lost if f'"by":"{each}"'.encode() not in lines]


def _compare_with_last_branch(
    layout: Layout, repo: Repository, name: str, seen: SeenBranch, snapshot: Snapshot
) -> LostRows | None:
    """What a branch that was never seen here lacks of the one that was seen last."""
    if seen.commit == snapshot.commit:
        return None
    is_there = repo.objects.has_commit_tree(seen.commit)
    lost = _compare_rows(layout, repo, seen.commit, None, snapshot) if is_there else None
    lost = lost or _compare_counts(layout, seen, snapshot, is_there=is_there)
    if lost is None:
        return None
    short, own = name.removeprefix("refs/heads/"), repo.branch
    here = "no branch is checked out, and HEAD" if own.is_detached else f"the branch {own.short_name} is new here, and"
    lacks = f"{here} lacks {lost.summary} of {short}, which this machine saw last"
    return replace(lost, fewer=lost.other_news or lacks, branch=short)


def _find_second_beginning(
    layout: Layout, repo: Repository, accepted: tuple[str, ...], known: str | None, head: str
) -> LostRows | None:
    """A history that was joined to the one that is known. One that was written anew as a whole has its rows compared,
    and ``check`` asks who wrote it."""
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
        CommittedRows(layout).kinds,
        beginning=f"the history has a second beginning: commit {new[0][:10]} ({subject[:60]!r}){more} has no commit "
        "before it, and was not there when this machine saw the books last",
    )


def _compare_counts(layout: Layout, seen: SeenBranch, snapshot: Snapshot, *, is_there: bool) -> LostRows | None:
    rows = CommittedRows(layout)
    counts, had, kinds = _count_branch(layout, snapshot, None).counts, seen.counts, rows.counted_kinds
    if all(counts[kind.key] >= had.get(kind.key, 0) for kind in kinds):
        return None
    books = layout.config.paths.books
    now, then = (", ".join(f"{each.get(k.key, 0)} {k.counted_as}" for k in kinds) for each in (counts, had))
    head = str(snapshot.commit)
    return LostRows(
        seen.commit if is_there else head,
        head,
        "",
        rows.kinds,
        fewer=f"the books have fewer rows than this machine saw last, at commit {seen.commit[:10]}: {now} in {books}/ "
        f"now, {then} in {seen.books}/ then",
    )


def _compare_rows(layout: Layout, repo: Repository, tip: str, start: str | None, snapshot: Snapshot) -> LostRows | None:
    """Rows that were added after ``start`` up to ``tip``, and that the commit of ``snapshot`` lacks."""
    head, last, rows = str(snapshot.commit), Snapshot(repo, tip), CommittedRows(layout)
    paths = list(rows.list_changed_paths(last, snapshot))
    if all((snapshot.read_file(path) or b"").startswith(last.read_file(path) or b"") for path in paths):
        return None  # they only grew, if at all
    if start is None:
        had, has = rows.read_differing_rows(last, snapshot, paths)
        if not _count_rows(had) - _count_rows(has):
            return _find_moved(last, snapshot, paths, rows.kinds)
    is_ancestor = repo.has_in_history(tip)
    first = _count_rows(rows.read_rows(Snapshot(repo, start), paths))
    had, has = rows.read_rows(last, paths), rows.read_rows(snapshot, paths)
    wanted = (_count_rows(had) - first) - (_count_rows(has) - first)
    if wanted:
        wanted -= count_reverted_rows(rows, repo, tip, head, paths)
    if not wanted:
        return _find_moved(last, snapshot, paths, rows.kinds)
    # A row that was edited in a later commit is not lost; `check` asks who edited it.
    edited = {_row_identity(each) for each in has} if is_ancestor else set()
    names: dict[str, list[str]] = {kind: [] for kind in (each.key for each in rows.kinds)}
    there = set(has)
    for row, name in sorted(had, key=there.__contains__):  # of equal rows those are lost whose ids are not there
        if wanted[row] > 0 and _row_identity((row, name)) not in edited:
            wanted[row] -= 1
            if name not in names[row[0]]:
                names[row[0]].append(name)
    if not any(names.values()):
        return _find_moved(last, snapshot, paths, rows.kinds)
    found = {kind: tuple(ids) for kind, ids in names.items()}
    return LostRows(tip, head, _read_subject(repo, tip), rows.kinds, found)


def _find_moved(last: Snapshot, now: Snapshot, paths: list[str], kinds: Sequence[RowKind]) -> LostRows | None:
    """Whether of a file of which the last row counts another one is the last now, though none is gone."""
    for path in paths:
        moved = find_moved_rows(path, last.read_file(path) or b"", now.read_file(path) or b"")
        if moved:
            tip, row = str(last.commit), moved[0].decode("utf-8", "replace").strip()[:60]
            what = f"{path} has its rows in another order than at {tip[:10]}, and the last one counts"
            return LostRows(tip, str(now.commit), "", kinds, moved=f"{what}: {row!r} stood further below")
    return None


def _read_subject(repo: Repository, commit: str) -> str:
    message = repo.objects.read_object(commit)[1].partition(b"\n\n")[2]
    return message.partition(b"\n")[0].decode("utf-8", "replace")


def _row_identity(named: tuple[Row, str]) -> tuple[str, ...]:
    """What stays the same when a row is edited: its id; of a card's row also whether it opens or resolves the card."""
    row, name = named
    return (row[0], name, row[1]) if row[0] == CARDS.key else (row[0], name)


def _count_rows(rows: list[tuple[Row, str]]) -> Counter[Row]:
    return Counter(row for row, _ in rows)
