"""Finds commits that changed the books without a run or a decision, merges that changed rows, and cards that were
settled by nobody who may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from cleared.approvals.approval_record import CONFIG, try_parse_record
from cleared.approvals.reviewers import review_rules
from cleared.audit.chart_changes import describe_chart_changes
from cleared.audit.commit_origins import CommitOrigins, Origin
from cleared.audit.double_decisions import find_double_decisions
from cleared.audit.lost_receipts import find_lost_receipts
from cleared.cards import queue_files
from cleared.changes.book_sources import CommittedSource
from cleared.changes.consumed_events import find_unattested_cards
from cleared.changes.host import Host
from cleared.changes.lost_rows import REMEDY, find_lost_rows
from cleared.clock import format_iso
from cleared.decisions.decision_context import ORIGIN_TRAILERS
from cleared.decisions.passkey_signatures import find_wrong_passkey_signatures
from cleared.decisions.signatures import ACCEPTS_TRAILER, find_unauthorized_commits, read_parents
from cleared.errors import Place, WorkspaceError
from cleared.ledger.violations import TWO_CLONES_PAGE, Violation
from cleared.vcs import Repository, Snapshot, history

if TYPE_CHECKING:
    from cleared.vcs.history import CommitInfo

_MAX_SHOWN: Final = 3
_LOST: Final = "lost"


def find_unknown_origins(host: Host, repo: Repository, snapshot: Snapshot) -> list[Violation]:
    """What the branch has lost; what changed the books, up to this commit, without being a run, a decision or a mere
    merge of such; and what was decided by those who may not."""
    lost = find_lost_rows(host.layout, repo, snapshot)
    violations = [] if lost is None else [Violation("lost", str(lost), REMEDY)]
    violations += (violation for _, violation in find_unexplained_commits(host, repo, snapshot))
    return [
        *violations, *_check_settled_cards(host, repo, snapshot), *find_double_decisions(host, snapshot),
        *find_lost_receipts(host, snapshot),
    ]  # fmt: skip


def find_unexplained_commits(host: Host, repo: Repository, snapshot: Snapshot) -> list[tuple[str, Violation]]:
    """The commits that a check names, and for what; one that is not a reviewer's is named for that alone."""
    unsigned = find_unauthorized_commits(host, repo)
    theirs = {commit for commit, _ in unsigned}
    commits = history.commits_touching(host.root, _audited_roots(host))
    origins = CommitOrigins(host, repo, snapshot, commits)
    accepted: dict[str, set[Origin]] = {}
    for commit in commits:
        for each in commit.trailers.get(ACCEPTS_TRAILER, "").split("\n"):
            accepted.setdefault(each, set()).add(origins.find_origin(commit))
    unexplained = []
    for commit in commits:
        answered, origin = accepted.get(commit.id, set()), origins.find_origin(commit)
        claims = any(mark in commit.trailers for mark in ORIGIN_TRAILERS)
        if not (claims and commit.id in theirs) and origin != "ours" and "ours" not in answered:
            enough = "genuine" in answered or (claims and not origins.touches_books(commit))
            violations = _explain_commit(host, repo, commit, origins, origin, answered=enough)
            unexplained += [(commit.id, violation) for violation in violations]
    wrong = find_wrong_passkey_signatures(host, repo, snapshot)
    return unexplained + unsigned + [each for each in wrong if "ours" not in accepted.get(each[0], set())]


def _explain_commit(
    host: Host, repo: Repository, commit: CommitInfo, origins: CommitOrigins, origin: Origin, *, answered: bool
) -> Iterator[Violation]:  # fmt: skip
    """What speaks against a commit that is no run or decision of a machine that counts here. ``answered``: by
    somebody whom nobody here knows, or it is about the queue and logs alone; then only what it alters counts."""
    short = commit.id[:10]
    label = f"commit {short} ({commit.subject[:60]!r}, {commit.author}, {format_iso(commit.when)})"
    before = read_parents(repo, commit.id)
    accept = f"cleared journal accept {short} --reason …"
    look = f"Look at it (git show {short}); reverse what is wrong with new entries, or say that it is right: {accept}"
    if len(before) > 1:
        for path, what in _find_merge_changes(host, repo, commit.id, before):
            if not (what.startswith(_LOST) or not (answered or origin == "genuine")):
                continue
            yield Violation(
                "provenance", f"{label} merged two clones, and {what}",
                f"{TWO_CLONES_PAGE} says how the lost side is done again; or, where it is right as it is: {accept}",
                Place(path),
            )  # fmt: skip
        return
    if not origins.touches_more_than_chart(commit):
        if origin != "genuine" and not answered and before:
            changed = describe_chart_changes(Snapshot(repo, before[0]), Snapshot(repo, commit.id), host.layout.chart)
            if changed:
                more = f" and {len(changed) - _MAX_SHOWN} more" if len(changed) > _MAX_SHOWN else ""
                yield Violation(
                    "provenance",
                    f"{label} changed accounts without a decision: {'; '.join(changed[:_MAX_SHOWN])}{more}",
                    f"{look} To rename or close an account: cleared accounts.",
                    Place(host.layout.chart),
                )
        return
    if origin == "genuine" or answered:
        for path, rows in origins.find_altered_rows(commit, before[0]) if before else ():
            yield Violation(
                "provenance",
                f"{label} removed or changed what was committed ({_quote_rows(rows)}), and no machine that "
                "counts here attests it",
                f"{look}; where it is a colleague's: cleared trust.",
                Place(path),
            )
        return
    called = next((name for name in ORIGIN_TRAILERS if name in commit.trailers), "")
    calling = {"Run": "a run", "Decision": "a decision", "Proposed": "a proposal"}.get(called)
    if calling is None:
        yield Violation("provenance", f"{label} changed the books without a run or a decision", look)
    elif origin == "untrusted":
        yield Violation(
            "provenance", f"{label} calls itself {calling}, but no machine that is trusted here attests it",
            f"Where it is a colleague's machine, trust that: cleared trust. Else: {look}",
        )  # fmt: skip
    else:
        yield Violation("provenance", f"{label} calls itself {calling}, but no machine attests it", look)


def find_merge_collisions(host: Host) -> list[Violation]:
    """Files of the books that a merge which is under way could not join."""
    return [
        Violation(
            "provenance", "two clones have both written here, and git cannot join what they wrote",
            f"Do not join it by hand: git merge --abort (or git rebase --abort), and then as {TWO_CLONES_PAGE} says.",
            Place(path),
        )
        for path in history.list_unmerged_paths(host.root) if host.layout.is_managed(path)
    ]  # fmt: skip


def _audited_roots(host: Host) -> list[str]:
    return [p.rstrip("/") for p in host.layout.managed_prefixes() if p != f"{host.layout.approvals_dir}/"]


def _find_merge_changes(host: Host, repo: Repository, merge: str, before: list[str]) -> list[tuple[str, str]]:
    """What a merge has that none of its parents had, and what it lacks that one of them had brought; by file."""
    try:
        after, sides = Snapshot(repo, merge), [Snapshot(repo, parent) for parent in before]
        base_id = history.find_merge_base(host.root, before)
    except WorkspaceError:  # a shallow clone ends here
        return []
    base = Snapshot(repo, base_id) if base_id else None
    paths: set[str] = set()
    for root in _audited_roots(host):
        for each in (after, *sides):
            paths |= each.list_entries(root).keys()
    changes = []
    for path in sorted(paths):
        if len({each.find_blob_id(path) for each in (after, *sides)}) == 1:
            continue
        now, then = _count_lines(after.read_file(path)), [_count_lines(side.read_file(path)) for side in sides]
        start = _count_lines(base.read_file(path) if base is not None else None)
        brought: Counter[bytes] = Counter()
        for side in then:
            brought |= side - start
        kept = start
        for side in then:
            kept &= side
        lost = (brought | kept) - now
        new = Counter({row: count for row, count in now.items() if not any(row in side for side in then)})
        for rows, what in ((lost, _LOST), (new, "added what neither had:")):
            if rows:
                changes.append((path, f"{what} {_quote_rows(rows)}"))
    return changes


def _count_lines(data: bytes | None) -> Counter[bytes]:
    return Counter((data or b"").splitlines())


def _quote_rows(rows: Iterable[bytes]) -> str:
    texts = [row.decode("utf-8", "replace")[:60] for row in rows]
    more = f" and {len(texts) - _MAX_SHOWN} more lines" if len(texts) > _MAX_SHOWN else ""
    return ", ".join(repr(text) for text in texts[:_MAX_SHOWN]) + more


def _check_settled_cards(host: Host, repo: Repository, snapshot: Snapshot) -> list[Violation]:
    record = try_parse_record(snapshot.read_file(CONFIG))
    if (
        record is not None and review_rules(record.policy).is_restricted
    ):  # reviewers sign: ``unauthorised`` judges that anywhere
        return []
    try:
        cards = queue_files.load_cards(CommittedSource(snapshot), host.layout.queue_dir)
    except WorkspaceError as error:
        return [Violation("format", error.message, error.remedy or "Restore the file.", error.place)]
    return [
        Violation(
            "provenance",
            f"the card {card.id} ({card.title[:60]!r}) is settled ({card.resolution!r}, {card.resolved_by}), and no "
            "run or decision of a machine that is trusted here did that",
            f"Find the line (git log -S{card.id} -- queue). Where a colleague's machine did it, trust that: cleared "
            "trust. Else take it back with git, and decide again.",
            Place(queue_files.shard_path(host.layout.queue_dir, card.resolved_at or "")), card.entry_id,
        )
        for card in find_unattested_cards(host, repo, snapshot, cards)
    ]  # fmt: skip
