"""Where the contents of the books' files came from: commits of no run or decision, merges that did more than merge, and
cards that nobody settled who could."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from cleared.approvals.authority import rules_in
from cleared.approvals.record import CONFIG, parsed
from cleared.cards import store
from cleared.clock import iso
from cleared.errors import Place, WorkspaceError
from cleared.ledger.violations import TWO_CLONES, Violation
from cleared.runs.consumed import settled_by_nobody
from cleared.runs.desk import ORIGINS
from cleared.runs.host import Host
from cleared.runs.lost import REMEDY, find_lost
from cleared.runs.signatures import ACCEPTS, parents, unauthorised
from cleared.runs.source import CommittedSource
from cleared.vcs import Repository, Snapshot, history

_SHOWN: Final = 3


def unknown_origin(host: Host, repo: Repository, snapshot: Snapshot) -> list[Violation]:
    """What the branch has lost; what changed the books, up to this commit, without being a run, a decision or a mere
    merge of such; and what was decided by those who may not."""
    lost = find_lost(host.layout, repo, snapshot)
    found = [] if lost is None else [Violation("lost", str(lost), REMEDY)]
    roots = _roots(host)
    commits = history.commits_touching(host.root, roots)
    accepted = {c for commit in commits for c in commit.trailers.get(ACCEPTS, "").split("\n")}
    for commit in commits:
        if commit.id in accepted or any(mark in commit.trailers for mark in ORIGINS):
            continue
        short = commit.id[:10]
        said = f"commit {short} ({commit.subject[:60]!r}, {commit.author}, {iso(commit.when)})"
        before = parents(repo, commit.id)
        accept = f"cleared journal accept {short} --reason …"
        if len(before) > 1:
            for path, what in _beyond_merging(host, repo, commit.id, before):
                found.append(
                    Violation(
                        "provenance", f"{said} merged two clones, and {what}",
                        f"{TWO_CLONES} says how the lost side is done again; or, where it is right as it is: {accept}",
                        Place(path),
                    )
                )  # fmt: skip
            continue
        found.append(
            Violation(
                "provenance", f"{said} changed the books without a run or a decision",
                f"Look at it (git show {short}); reverse what is wrong with new entries, or say that it is right: "
                f"{accept}",
            )
        )  # fmt: skip
    return [*found, *_cards(host, repo, snapshot), *(violation for _, violation in unauthorised(host, repo))]


def collisions(host: Host) -> list[Violation]:
    """Files of the books that a merge which is under way could not join."""
    return [
        Violation(
            "provenance", "two clones have both written here, and git cannot join what they wrote",
            f"Do not join it by hand: git merge --abort (or git rebase --abort), and then as {TWO_CLONES} says.",
            Place(path),
        )
        for path in history.unmerged(host.root) if host.layout.is_managed(path)
    ]  # fmt: skip


def _roots(host: Host) -> list[str]:
    return [p.rstrip("/") for p in host.layout.managed_prefixes() if not p.startswith(("accounts", "agents"))]


def _beyond_merging(host: Host, repo: Repository, merge: str, before: list[str]) -> list[tuple[str, str]]:
    """What a merge has that none of its parents had, and what it lacks that one of them had brought; by file."""
    try:
        after, sides = Snapshot(repo, merge), [Snapshot(repo, parent) for parent in before]
        base_id = history.merge_base(host.root, before)
    except WorkspaceError:  # a shallow clone ends here
        return []
    base = Snapshot(repo, base_id) if base_id else None
    paths: set[str] = set()
    for root in _roots(host):
        for each in (after, *sides):
            paths |= each.entries(root).keys()
    found = []
    for path in sorted(paths):
        if len({each.oid_of(path) for each in (after, *sides)}) == 1:
            continue
        now, then = _rows(after.read(path)), [_rows(side.read(path)) for side in sides]
        start = _rows(base.read(path) if base is not None else None)
        brought: Counter[bytes] = Counter()
        for side in then:
            brought |= side - start
        kept = start
        for side in then:
            kept &= side
        lost = (brought | kept) - now
        new = Counter({row: count for row, count in now.items() if not any(row in side for side in then)})
        for rows, what in ((lost, "lost"), (new, "added what neither had:")):
            if rows:
                found.append((path, f"{what} {_shown(rows)}"))
    return found


def _rows(data: bytes | None) -> Counter[bytes]:
    return Counter((data or b"").splitlines())


def _shown(rows: Iterable[bytes]) -> str:
    texts = [row.decode("utf-8", "replace")[:60] for row in rows]
    more = f" and {len(texts) - _SHOWN} more lines" if len(texts) > _SHOWN else ""
    return ", ".join(repr(text) for text in texts[:_SHOWN]) + more


def _cards(host: Host, repo: Repository, snapshot: Snapshot) -> list[Violation]:
    record = parsed(snapshot.read(CONFIG))
    if (
        record is not None and rules_in(record.policy).restricted
    ):  # reviewers sign: ``unauthorised`` judges that anywhere
        return []
    try:
        cards = store.load(CommittedSource(snapshot), host.layout.queue_dir)
    except WorkspaceError as error:
        return [Violation("format", error.message, error.remedy or "Restore the file.", error.place)]
    return [
        Violation(
            "provenance",
            f"the card {card.id} ({card.title[:60]!r}) is settled ({card.resolution!r}, {card.resolved_by}), and no "
            "run or decision of a machine that is trusted here did that",
            f"Find the line (git log -S{card.id} -- queue) and take it back with git; where a colleague's machine did "
            "it, trust that: cleared trust.",
            Place(store.shard(host.layout.queue_dir, card.resolved_at or "")), card.entry_id,
        )
        for card in settled_by_nobody(host, repo, snapshot, cards)
    ]  # fmt: skip
