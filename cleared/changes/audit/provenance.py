"""Finds commits that changed the books without a run or a decision, merges that changed rows, and cards that were
settled by nobody who may, or by two clones differently before git merged them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from cleared.base.errors import Place, WorkspaceError
from cleared.base.file_source import find_whole
from cleared.base.short_text import list_first
from cleared.cards import queue_files
from cleared.cards.card import Card
from cleared.cards.card_events import CardEvents, read_events
from cleared.changes.agent_log import list_logs
from cleared.changes.attestation import load_approvals
from cleared.changes.attestation_lines import ORIGIN_TRAILERS
from cleared.changes.audit.attested_state import find_unattested_states
from cleared.changes.audit.commit_naming import describe_commit, quote_rows
from cleared.changes.audit.commit_origins import CommitOrigins, judge_history
from cleared.changes.audit.damaged_approvals import find_damaged_approvals
from cleared.changes.audit.merge_changes import BROUGHT_BACK, LOST, find_merge_changes
from cleared.changes.committed_cards import read_cards
from cleared.changes.consumed_events import find_unattested_cards
from cleared.changes.decisions.passkey_signatures import find_wrong_passkey_signatures
from cleared.changes.decisions.signatures import (
    find_unauthorized_commits,
    read_parents,
    read_settlements,
)
from cleared.changes.decisions.signed_commits import list_signed_commits
from cleared.changes.definitions import find_unapproved_definitions
from cleared.changes.doubtful_cards import list_doubtful_openings
from cleared.changes.host import Host
from cleared.changes.line_worth import Origin
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import load_domains
from cleared.domains.record_audit import TWO_CLONES_PAGE, Violation, describe_error
from cleared.git import Repository, Snapshot
from cleared.git.history import CommitInfo
from cleared.trust.checkpoint import read_forgotten

_MAX_SHOWN: Final = 3


def find_unknown_origins(
    host: Host, repo: Repository, snapshot: Snapshot, *, judged: bool = False, since: str | None = None
) -> list[Violation]:
    """What the branch has lost; what changed the books, up to this commit, without being a run, a decision or a mere
    merge of such; and what was decided by those who may not. ``since``: each commit up to that one was judged, and is
    in order, and the others can be judged apart from them; ``judged``: these are in order, too."""
    violations = find_lost_records(host, repo, snapshot)
    before = Snapshot(repo, since) if since is not None else None
    if not judged:
        violations += (violation for _, violation in find_unexplained_commits(host, repo, snapshot, since))
        cards = _list_touched_cards(host, before, snapshot) if before is not None else None
        violations += check_settled_cards(host, repo, snapshot, cards)
        violations += find_double_decisions(host, snapshot, cards)
    approvals = host.layout.approvals_dir
    if before is None or before.find_entry(approvals) != snapshot.find_entry(approvals):
        violations += find_damaged_approvals(host, CommittedSource(snapshot))
    audits = [domain.audit(host.layout) for domain in load_domains()]
    return [
        *violations,
        *find_unapproved_definitions(host, CommittedSource(snapshot)),
        *(violation for audit in audits for violation in audit.check_history(snapshot, before)),
    ]


def find_lost_records(host: Host, repo: Repository, snapshot: Snapshot) -> list[Violation]:
    """What the branch has lost. Of one that is new here each command tells; that it lacks something may be meant."""
    lost = host.find_lost_rows(repo, snapshot)
    return [] if lost is None or lost.branch else [Violation("lost", str(lost), lost.remedy)]


def find_unexplained_commits(
    host: Host, repo: Repository, snapshot: Snapshot, since: str | None = None
) -> list[tuple[str, Violation]]:
    """The commits (after ``since``) that a check names, and for what; one that is not a reviewer's is named for that
    alone."""
    unsigned = find_unauthorized_commits(host, repo)
    theirs = {commit for commit, _ in unsigned}
    origins = judge_history(host, repo, snapshot, since)
    commits = origins.commits
    origin_of = {commit.id: origins.find_origin(commit) for commit in commits}
    accepted: dict[str, set[Origin]] = {}
    for commit in commits:
        for each in origins.list_answered(commit):
            accepted.setdefault(each, set()).add(origin_of[commit.id])
    unexplained, forgotten = [], read_forgotten(host.root)
    for commit in commits:
        if commit.id in origins.cut:
            unexplained.append((commit.id, _describe_cut(commit)))
            continue
        answered, origin = accepted.get(commit.id, set()), origin_of[commit.id]
        again = sorted(forgotten & origins.list_attested(commit))
        if again and "ours" not in answered:
            unexplained.append((commit.id, _describe_return(commit, again)))
        claims = any(mark in commit.trailers for mark in ORIGIN_TRAILERS)
        is_told = origin == "ours" and len(read_parents(repo, commit.id)) < 2  # a merge has more than its own changes
        if not (claims and commit.id in theirs) and not is_told and "ours" not in answered:
            enough = "genuine" in answered or (claims and not origins.touches_records(commit))
            violations = list(_explain_commit(host, repo, commit, origins, origin, answered=enough))
            violations = violations or list(_name_opened_cards(host, repo, snapshot, commit))
            violations = violations or list(_name_foreign_lines(origins, commit))
            unexplained += [(commit.id, violation) for violation in violations]
    wrong = find_wrong_passkey_signatures(host, repo, snapshot)
    unexplained += unsigned + [each for each in wrong if "ours" not in accepted.get(each[0], set())]
    named = {commit for commit, _ in unexplained}
    return [*unexplained, *find_unattested_states(host, repo, snapshot, origins, named)]


def _name_opened_cards(host: Host, repo: Repository, snapshot: Snapshot, commit: CommitInfo) -> Iterator[Violation]:
    """What speaks against a commit that only opens cards: those that nothing vouches for."""
    folder = f"{host.layout.queue_dir}/"
    if load_approvals(host, snapshot).identity.counts_alone:
        return
    if cards := list_doubtful_openings(host, repo, snapshot, commit.id):
        yield Violation(
            "provenance",
            f"{describe_commit(commit)} opens cards, "
            "and no run or decision of a machine that is trusted here attests them: "
            + list_first([f"{card.id} ({card.title[:60]!r})" for card in cards], _MAX_SHOWN),
            "Where a colleague's machine did it, trust that: cleared trust. Else look at it (git show "
            f"{commit.id}); take it back with git, or say that it is right: cleared accept {commit.id[:10]} "
            "--reason …",
            Place(folder),
        )


def _name_foreign_lines(origins: CommitOrigins, commit: CommitInfo) -> Iterator[Violation]:
    """What speaks against a commit that only adds attestations: those of runs and decisions that it is not."""
    own = {commit.trailers.get(mark) for mark in ORIGIN_TRAILERS}
    foreign = sorted(each for each in origins.list_counting(commit) if each not in own)
    if foreign:
        yield Violation(
            "provenance",
            f"{describe_commit(commit)} adds attestations of other runs or decisions: "
            + list_first(foreign, _MAX_SHOWN),
            f"Look at it (git show {commit.id}), and for what they did; where that is in the history: cleared accept "
            f"{commit.id[:10]} --reason …",
        )


def _describe_cut(commit: CommitInfo) -> Violation:
    return Violation(
        "provenance",
        f"this clone is shallow: who made what the books had up to commit {commit.short} ({commit.subject[:60]!r}) "
        "cannot be told here",
        "Fetch the rest of the history: git fetch --unshallow.",
    )


def _describe_return(commit: CommitInfo, again: Sequence[str]) -> Violation:
    short = commit.id[:10]
    return Violation(
        "provenance",
        f"{describe_commit(commit)} brings back what was taken away here (cleared recover --forget): "
        + list_first(again, 3),
        f"Who pushed it again? Take it away: git reset --keep {short}~1 (what came since goes with it), or git revert "
        f"{short}. Where it is to stand, or is reverted: cleared accept {short} --reason …",
    )


def _explain_commit(
    host: Host, repo: Repository, commit: CommitInfo, origins: CommitOrigins, origin: Origin, *, answered: bool
) -> Iterator[Violation]:
    """What speaks against a commit that is no run or decision of a machine that counts here. ``answered``: by
    somebody whom nobody here knows, or it is about the queue and logs alone; then only what it alters counts."""
    short, label = commit.id[:10], describe_commit(commit)
    before = read_parents(repo, commit.id)
    accept = f"cleared accept {short} --reason …"
    # The whole id: a tag may be named like its beginning.
    look = f"Look at it (git show {commit.id}); reverse what is wrong, or say that it is right: {accept}"
    if len(before) > 1:
        for path, what in find_merge_changes(host, repo, commit.id, before, is_cut=bool(origins.cut)):
            if not (what.startswith((LOST, BROUGHT_BACK)) or not (answered or origin in ("ours", "genuine"))):
                continue
            yield Violation(
                "provenance",
                f"{label} merged two clones, and {what}",
                f"{TWO_CLONES_PAGE} says how the lost side is done again; or, where it is right as it is: {accept}",
                Place(path),
            )
        return
    if not origins.touches_more_than_shared(commit):
        if origin != "genuine" and not answered and before:
            yield from _describe_hand_changes(
                origins, Snapshot(repo, before[0]), Snapshot(repo, commit.id), label, look
            )
        return
    if origin == "genuine" or answered:
        for path, rows in origins.find_altered_rows(commit, before[0]) if before else ():
            yield Violation(
                "provenance",
                f"{label} removed or changed what was committed ({quote_rows(rows)}), and no machine that "
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
            "provenance",
            f"{label} calls itself {calling}, but no machine that is trusted here attests it",
            f"Where it is a colleague's machine, trust that: cleared trust. Else: {look}",
        )
    else:
        yield Violation("provenance", f"{label} calls itself {calling}, but no machine attests it", look)


def _describe_hand_changes(
    origins: CommitOrigins, before: Snapshot, after: Snapshot, label: str, look: str
) -> Iterator[Violation]:
    """What a commit by hand altered in files to which people may add."""
    for shared in origins.shared_files.values():
        changed = shared.describe_changes(before, after)
        if changed:
            yield Violation(
                "provenance",
                f"{label} changed {shared.noun} without a decision: {list_first(changed, _MAX_SHOWN, '; ')}",
                f"{look} {shared.remedy}",
                Place(shared.path),
            )


def _list_touched_cards(host: Host, before: Snapshot, after: Snapshot) -> list[str] | None:
    """The ids of the cards about which the queue says more than in a commit ``before``; None where it does not say all
    that it did, or not so that a card can be told."""
    ids = set()
    for path in after.list_changes(before, host.layout.queue_dir):
        if path.endswith(queue_files.SUFFIX):
            old, new = before.read_file(path) or b"", after.read_file(path) or b""
            if not new.startswith(old) or not (old or b"\n").endswith(b"\n"):
                return None
            try:
                ids |= {str(event["id"]) for event in read_events(path, new[len(old) :], CardEvents().add_event)}
            except (WorkspaceError, KeyError):
                return None
    return sorted(ids)


def check_settled_cards(
    host: Host, repo: Repository, snapshot: Snapshot, ids: Collection[str] | None = None
) -> list[Violation]:
    """Cards that neither a run or decision of a machine that counts here has settled, nor a reviewer. ``ids``: of all
    others it is known; None: of none."""
    try:
        if ids is None:
            cards = queue_files.load_cards(CommittedSource(snapshot), host.layout.queue_dir)
        else:
            known = read_cards(host, snapshot)
            cards = {each: known[each] for each in ids if each in known}
    except WorkspaceError as error:
        return [describe_error(error)]
    unattested = find_unattested_cards(host, repo, snapshot, cards)
    signed = _find_signed_settlements(host, repo, snapshot) if unattested else set()
    return [
        Violation(
            "provenance",
            f"the card {card.id} ({card.title[:60]!r}) is settled ({card.resolution!r}, {card.resolved_by}), and no "
            "run or decision of a machine that is trusted here did that",
            f"Find the line (git log -S{card.id} -- queue). Where a colleague's machine did it, trust that: cleared "
            "trust. Else take it back with git, and decide again.",
            Place(_find_settling_file(host, snapshot, card)),
            card.record_id,
        )
        for card in sorted(unattested, key=lambda card: card.id)
        if (card.id, card.resolved_by, card.resolution) not in signed
    ]


def _find_settling_file(host: Host, snapshot: Snapshot, card: Card) -> str:
    """The file of the queue that has the line which settles a card."""
    month = queue_files.shard_path(host.layout.queue_dir, card.resolved_at or "")
    parts = sorted(snapshot.read_files(host.layout.queue_dir).items())
    named = (path for path, data in parts if find_whole(path) == month and card.id.encode() in data)
    return max(named, default=month)


def _find_signed_settlements(host: Host, repo: Repository, snapshot: Snapshot) -> set[tuple[object, object, object]]:
    """Card, by whom, and answer of what reviewers have signed, on machines that may be trusted nowhere."""
    layout = host.layout
    return {
        (event.get("id"), event.get("by"), event.get("resolution"))
        for commit in list_signed_commits(host, repo, snapshot, layout.queue_dir)
        for event in read_settlements(
            layout, commit, Snapshot(repo, read_parents(repo, commit.id)[0]), Snapshot(repo, commit.id)
        )
    }


def find_double_decisions(host: Host, snapshot: Snapshot, ids: Collection[str] | None = None) -> list[Violation]:
    """Cards with two answers, with two runs that went on, or with a run that went on though they were rejected.
    ``ids``: as for ``check_settled_cards``."""
    answers: dict[str, dict[str, None]] = {}
    runs: dict[str, dict[str, None]] = {}
    ticketed: set[str] = set()
    for event in _read_events(host, snapshot, ids):
        card, kind = str(event.get("id")), event.get("event")
        details = event.get("details")
        if kind == "open" and isinstance(details, dict) and "ticket" in details:
            ticketed.add(card)
        elif kind == "went_on":
            runs.setdefault(card, {})[str(event.get("run"))] = None
        elif kind == "resolve" and (card not in ticketed or "signature" in event):
            answers.setdefault(card, {})[str(event.get("resolution"))] = None
    violations = []
    for card in sorted({**answers, **runs}):
        resolutions, resumed = list(answers.get(card, ())), list(runs.get(card, ()))
        what = []
        if len(resolutions) > 1:
            what.append(f"is settled twice, with different answers ({', '.join(repr(a[:60]) for a in resolutions)})")
        if len(resumed) > 1:
            what.append(f"was gone on with by {len(resumed)} runs ({', '.join(resumed)})")
        if resumed and len(resolutions) == 1 and resolutions[0].startswith("rejected"):
            what.append(f"was rejected, and gone on with by the run {resumed[0]}")
        if what:
            made = _list_made_records(snapshot, resumed)
            which = f"Of them are {', '.join(made)}. " if made else ""
            violations.append(
                Violation(
                    "provenance",
                    f"the card {card} {' and '.join(what)}",
                    f"{which}Look at what each did (cleared queue show {card}), and take back what is not to stand: "
                    f"cleared revert RUN --reason …; {TWO_CLONES_PAGE} tells how this comes about.",
                )
            )
    return violations


def _read_events(host: Host, snapshot: Snapshot, ids: Collection[str] | None) -> list[Mapping[str, Any]]:
    """What the queue says of cards, first what opens them."""
    events: list[Mapping[str, Any]] = []
    if ids is not None:
        with suppress(WorkspaceError):  # ``format`` names what is damaged
            events = read_cards(host, snapshot).list_events(ids)
    else:
        for path, data in sorted(snapshot.read_files(host.layout.queue_dir).items()):
            if path.endswith(queue_files.SUFFIX):
                events += read_events(path, data, readable_only=True)
    return sorted(events, key=lambda event: event.get("event") != "open")


def _list_made_records(snapshot: Snapshot, runs: Iterable[str]) -> list[str]:
    """The ids of records that these runs have to do with, by the log."""
    marks = {f"run:{run}" for run in runs}
    if not marks:
        return []
    logs = (snapshot.read_file(path) or b"" for path in list_logs(CommittedSource(snapshot)))
    text = b"".join(logs).decode("utf-8", "replace")
    with suppress(csv.Error):
        rows = csv.reader(io.StringIO(text, newline=""))
        return sorted({row[4] for row in rows if len(row) > 5 and row[5] in marks and row[4]})
    return []
