"""``cleared sync``: this clone and the one that it follows have the same history afterwards.

What was not pushed is done again on top of what others have pushed, as a chain of commits that nothing names; then the
branch is moved to it, once, and pushed plainly. A kill before that leaves everything as it was. What the branch was
before stays under ``refs/cleared/before-sync/``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.base.errors import Place, WorkspaceError
from cleared.base.terminal import count_noun
from cleared.changes.change_digests import CARDS, DECISIONS, CommittedRows, Row
from cleared.changes.decisions.signatures import read_parents
from cleared.changes.host import Host, refuse_tracked_state
from cleared.changes.lost_rows import SYNC_RESULT, accept_sync, refuse_lost_rows
from cleared.changes.session import refuse_changed_files
from cleared.changes.sync.branch_move import move_branch
from cleared.changes.sync.redone_work import RedoneStep, WorkRedoing
from cleared.changes.sync.unanswered_work import find_unanswered_commits, refuse_unanswered_commits
from cleared.changes.sync.unpushed_work import BY_HAND, find_cancelled, list_steps
from cleared.changes.wrong_merges import find_new_violation
from cleared.domains.renamed_records import WorkConflict, group_renames
from cleared.git import Repository, Snapshot
from cleared.git.remote_branch import RemoteBranch, fetch_branch, find_remote_branch, push_commit
from cleared.trust.approval_record import CONFIG, try_parse_record
from cleared.trust.keys import KeyLocked
from cleared.trust.person_only import refuse_in_job

_BEFORE: Final = "refs/cleared/before-sync/"
_TRIES: Final = 3
_MEANING: Final = ("business", "paths", "bank_accounts", "limits")
"""Settings by which what was done is read."""


class SyncReport(Struct, frozen=True):
    """What was done. ``renamed``: records of this clone that have another id now: old → new."""

    remote: str
    relation: Literal["same", "ahead", "behind", "diverged", "new"]
    commit: str
    fetched: int = 0
    """Commits of others that are here now."""
    steps: Sequence[RedoneStep] = ()
    renamed: Mapping[str, str] = {}
    pushed: int = 0
    """Commits that others can fetch now."""


def sync_clone(host: Host, remote: str | None = None, *, dry_run: bool = False) -> SyncReport:
    """Bring what others have pushed here, and what is new here there. ``dry_run``: only say what would be done.

    Raises ``WorkConflict`` for what this machine would have to vouch for and has not made, and where others have
    changed settings by which work is read, ``WorkspaceError`` where files are in the way or the other repository cannot
    be reached; nothing is changed then. What alone would mean something else there is left out, and a card says so.
    """
    refuse_in_job()
    for _ in range(_TRIES):
        with host.open_for_reading(tells_losses=False) as repo:
            branch = find_remote_branch(repo, remote)
            theirs = fetch_branch(repo, branch)
        try:
            report = _join_locked(host, branch, theirs, dry_run=dry_run)
        except KeyLocked as locked:  # a reviewer's signature is made anew
            locked.key.unlock()
            report = _join_locked(host, branch, theirs, dry_run=dry_run)
        if report is not None:
            return report
        host.show_message(f"somebody has pushed to {branch.shown} meanwhile; once more, on top of that")
    raise WorkspaceError(
        f"others push to {branch.shown} faster than this clone", remedy="Your work is committed here. Say it again."
    )


def _join_locked(host: Host, branch: RemoteBranch, theirs: str | None, *, dry_run: bool) -> SyncReport | None:
    """What was done, or would be; None where somebody has pushed meanwhile."""
    with host.open_for_writing("sync") as repo:
        report = _join_histories(host, repo, branch, theirs, dry_run=dry_run)
        return report if dry_run or not report.pushed or push_commit(repo, branch, report.commit) else None


def _join_histories(
    host: Host, repo: Repository, branch: RemoteBranch, theirs: str | None, *, dry_run: bool
) -> SyncReport:
    own = repo.read_head()
    is_joined = theirs is not None and not repo.has_in_history(theirs)
    refuse_lost_rows(host.layout, repo, Snapshot(repo, own), Snapshot(repo, theirs) if is_joined else None)
    if theirs == own:
        return SyncReport(branch.shown, "same", own)
    if theirs is None:
        refuse_unanswered_commits(find_unanswered_commits(host, repo, Snapshot(repo, own), None))
        return SyncReport(branch.shown, "new", own, pushed=_count_commits(repo, own, ""))
    if repo.has_in_history(theirs):
        unanswered = find_unanswered_commits(host, repo, Snapshot(repo, own), theirs)
        # What a merge of git joins is done again on top of what others have.
        refuse_unanswered_commits([each for each in unanswered if len(read_parents(repo, each[0])) < 2])
        if not unanswered:
            return SyncReport(branch.shown, "ahead", own, pushed=_count_commits(repo, own, theirs))
    refuse_changed_files(host, Snapshot(repo, own))
    refuse_tracked_state(repo, host.layout.state, theirs)
    fetched = _count_commits(repo, theirs, own)
    base = repo.find_common_ancestor(own, theirs)
    if base is None:
        raise WorkConflict(f"{branch.shown} has other books: no commit is in both", place=Place(branch.remote))
    _refuse_taken_away(host, Snapshot(repo, base), Snapshot(repo, theirs), branch)
    steps: list[RedoneStep] = []
    redoing = WorkRedoing(host, repo, theirs)
    if base != own:
        _refuse_other_settings(repo, base, theirs)
        listed = list_steps(host, repo, theirs, own)
        redoing.reverted.update(step.reverts for step in listed)
        redoing.cancelled = find_cancelled(host.layout, listed)
        for step in listed:
            steps.append(redoing.redo_step(step))
        if left_out := [each for each in steps if each.conflict]:
            redoing.record_left_out(left_out)
    result = str(redoing.snapshot.commit)
    if (wrong := find_new_violation(host.layout, repo, base, redoing.snapshot)) is not None:
        raise WorkspaceError(
            f"with what others have pushed the books would not be in order: {wrong.message}",
            place=wrong.place,
            remedy=f"Have who pushed it mend it ({branch.shown}); nothing was changed here.",
        )
    _refuse_losses(host, Snapshot(repo, own), redoing, steps)
    report = SyncReport(
        branch.shown,
        "behind" if base == own else "diverged",
        result,
        fetched,
        steps,
        dict(redoing.renamed.now),
        _count_commits(repo, result, theirs),
    )
    if not dry_run:
        _move_branch(host, repo, own, result, branch)
    return report


def _refuse_other_settings(repo: Repository, base: str, theirs: str) -> None:
    """Raises ``WorkConflict`` where others have approved settings by which what was done means something else."""
    records = [try_parse_record(Snapshot(repo, commit).read_file(CONFIG)) for commit in (base, theirs)]
    was, now = (dict(each.policy) if each is not None else {} for each in records)
    changed = [key for key in sorted({*was, *now}) if was.get(key) != now.get(key) and key.split(".")[0] in _MEANING]
    if changed:
        raise WorkConflict(
            f"others have changed settings by which work means something else: {', '.join(changed)}",
            place=Place(CONFIG),
            remedy=BY_HAND,
        )


def _refuse_taken_away(host: Host, base: Snapshot, theirs: Snapshot, branch: RemoteBranch) -> None:
    """Raises ``WorkspaceError`` where others have removed records that were here and there: this machine has seen them,
    and must not forget them because somebody can push."""
    rows = CommittedRows(host.layout)
    lost, new = rows.read_differing_rows(base, theirs, list(rows.list_changed_paths(base, theirs)))
    names = {row: name or " ".join(map(str, row)) for row, name in lost}
    gone = Counter(row for row, _ in lost) - Counter(row for row, _ in new)
    if gone:
        raise WorkspaceError(
            f"others have taken away what was in the books: {names[next(iter(gone))][:80]}",
            place=Place(branch.shown),
            remedy=f"Look at it: git log -p HEAD..{branch.shown}. Where it is meant, take it over by git (git merge), "
            "then cleared recover --forget.",
        )


def _refuse_losses(host: Host, own: Snapshot, redoing: WorkRedoing, steps: Sequence[RedoneStep]) -> None:
    """Raises ``WorkspaceError`` where a record of this clone is not in the result, under whatever id, and was not left
    out: a second look, by what the files hold, before anything is moved."""
    rows, mask = CommittedRows(host.layout), redoing.renamed.make_mask()

    def read(snapshot: Snapshot, paths: Sequence[str]) -> list[tuple[Row, str]]:
        found = (each for each in rows.read_rows(snapshot, paths) if each[0][0] not in (CARDS.key, DECISIONS.key))
        return [((row[0], *map(mask, row[1:])), name) for row, name in found]

    paths = list(rows.list_changed_paths(own, redoing.snapshot))
    here = read(redoing.snapshot, paths)
    names, explained = {(row[0], name) for row, name in here}, Counter(row for row, _ in here)
    for step in (each.step for each in steps if each.conflict):
        changed = list(rows.list_changed_paths(step.before, step.after))
        made = Counter(row for row, _ in read(step.after, changed)) - Counter(
            row for row, _ in read(step.before, changed)
        )
        for row, number in made.items():
            explained[row] += number
    for row, name in read(own, paths):
        if explained[row] > 0:
            explained[row] -= 1
        elif name not in redoing.renamed.doubles or (row[0], redoing.renamed.now.get(name, name)) not in names:
            raise WorkspaceError(
                f"{name or ' '.join(map(str, row))} would be lost; nothing was changed",
                remedy="Join the clones as docs/howto/two-clones.md says, by hand, and report this.",
            )


def _move_branch(host: Host, repo: Repository, own: str, result: str, branch: RemoteBranch) -> None:
    """Let the branch, git's index and the files be as the result has them. Raises ``WorkspaceError`` where a file that
    somebody has edited is in the way."""
    stamp = format_iso(host.clock.now()).replace(":", "").replace("-", "")
    repo.git.run("update-ref", f"{_BEFORE}{repo.branch.short_name}/{stamp}-{own[:8]}", own)
    repo.git.run("update-ref", SYNC_RESULT, result)
    move_branch(host, repo, own, result, f"sync with {branch.shown}")
    accept_sync(host.layout, repo)


def _count_commits(repo: Repository, commit: str, known: str) -> int:
    out = repo.git.run("rev-list", "--count", commit, *([f"^{known}"] if known else []))
    return int(out)


def describe_report(report: SyncReport, *, dry_run: bool) -> list[str]:
    """The report in sentences."""
    lines = []
    if report.fetched:
        verb = "To be fetched" if dry_run else "Fetched"
        lines.append(f"{verb} from {report.remote}: {count_noun(report.fetched, 'commit')}.")
    for each in report.steps:
        said = f"done again ({each.commit[:10]})" if each.commit else "dropped: others had done it"
        lines.append(f"  {each.step.subject[:80]}: {f'left out: {each.conflict}' if each.conflict else said}")
    for old, new in group_renames(report.renamed):
        lines.append(f"  {old} {'are' if '…' in old else 'is'} {new} now")
    if report.pushed:
        verb = "To be pushed" if dry_run else "Pushed"
        lines.append(f"{verb} to {report.remote}: {count_noun(report.pushed, 'commit')}.")
    return lines or [f"Nothing to do: this clone and {report.remote} have the same history."]
