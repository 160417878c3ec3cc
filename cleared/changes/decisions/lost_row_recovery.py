"""Brings back rows that were committed here and that the branch has lost, in one commit on top of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from cleared.base.csv_text import split_rows
from cleared.base.errors import CheckFailed
from cleared.base.safe_files import write_atomic
from cleared.changes import commit_messages
from cleared.changes.agent_log import choose_log
from cleared.changes.attestation_lines import ORIGIN_TRAILERS
from cleared.changes.decisions.decision_context import (
    RECOVER_COMMAND,
    Decision,
    DecisionContext,
    commit_decision,
)
from cleared.changes.decisions.shown_cards import digest_shown, require_shown
from cleared.changes.host import Host
from cleared.changes.lost_rows import MAX_COMMITS_COMPARED, LostRows, find_lost_rows, forget_seen
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import load_domains
from cleared.domains.record_audit import RecordsViolated
from cleared.git import Repository, Snapshot, find_ancestor, history, parse_parents
from cleared.trust.person_only import refuse_in_job

SHOWN: Final = "lost"
"""As ``changes.decisions.shown_cards`` names what was lost."""
_ROW_SUFFIXES = (".csv", ".jsonl")


class Recovery(Struct, frozen=True):
    """What was lost, the commit that brought it back (empty: none was needed), the paths it brought back, and those
    that somebody has changed otherwise since, which were left."""

    lost: LostRows | None = None
    commit: str = ""
    files: tuple[str, ...] = ()
    left_files: tuple[str, ...] = ()


def recover_lost(host: Host) -> Recovery:
    """Bring back all that runs and decisions had committed here and the branch has lost: entries, bank lines, cards,
    files that were moved, log rows.

    The commit they were in becomes a parent of the new one where it is in the branch's history no more, so that who
    did what, and which events have had their run, is known again. Raises ``CheckFailed`` where it does not fit to what
    the branch has now; nothing is changed then.
    """
    done: list[Recovery] = []

    def stage_recovery(decision_context: DecisionContext) -> Decision | None:
        done.clear()
        lost = find_lost_rows(host.layout, decision_context.repo, decision_context.snapshot)
        if lost is None:
            done.append(Recovery())
            return None
        if lost.other_news:
            raise CheckFailed(str(lost), remedy=lost.remedy)
        base = decision_context.repo.find_common_ancestor(lost.head, lost.tip)
        is_behind = base != lost.tip
        since = base if is_behind else find_ancestor(decision_context.repo, lost.tip, MAX_COMMITS_COMPARED)
        files, left = _merge_lost_files(host, decision_context.repo, lost, since)
        if not files:
            raise CheckFailed(
                f"{lost}; other rows are there in place of them",
                remedy="Bring the files back with git (see what they lost: git diff "
                f"{lost.tip[:10]} HEAD). If that is meant: cleared recover --forget.",
            )
        source = _OverlaidSource(CommittedSource(decision_context.snapshot), files)
        violations = [v for domain in load_domains() for v in domain.audit(host.layout).check_records(source)]
        if violations:
            raise CheckFailed(
                f"{lost}; it does not fit to what the branch has now: {RecordsViolated(violations)}",
                remedy="Put the bank files back (git show "
                f"{lost.tip[:10]}:{host.layout.processed_dir}/NAME > {host.layout.import_dir}/NAME), then: "
                "cleared recover --forget, import them again, and decide again.",
            )
        _restore_committed_files(host, decision_context, lost, files)
        decision_context.context.log_action(RECOVER_COMMAND, str(lost)[:2_000])
        done.append(Recovery(lost, "", tuple(files), tuple(left)))
        subject = commit_messages.lost_rows_recovered(lost.count_rows())
        return Decision(subject, files, merged_commit=lost.tip if is_behind else None)

    commit = commit_decision(host, RECOVER_COMMAND, stage_recovery, collects=[done])
    recovery = done[0]
    return Recovery(recovery.lost, commit or "", recovery.files, recovery.left_files)


def read_lost(host: Host) -> LostRows | None:
    """What the branch has lost; None where it has lost nothing."""
    with host.open_for_reading() as repo:
        return find_lost_rows(host.layout, repo, Snapshot(repo, repo.read_head()))


def digest_lost(lost: LostRows) -> str:
    """The digest of what is shown of it."""
    return digest_shown([str(lost), lost.to_dict()])


def forget_lost(host: Host) -> LostRows | None:
    """Accept that the branch has lost rows; which ones, or None where it has lost none. Raises ``PolicyError`` where
    they are not those that a person was shown, and inside a job."""
    refuse_in_job()
    with host.open_for_writing(RECOVER_COMMAND) as repo:
        lost = find_lost_rows(host.layout, repo, Snapshot(repo, repo.read_head()))
        if lost is not None:
            require_shown(SHOWN, "what the branch has lost", digest_lost(lost), "cleared recover --forget")
            forget_seen(host.layout, repo, Snapshot(repo, repo.read_head()), lost)
        return lost


def _merge_lost_files(
    host: Host, repo: Repository, lost: LostRows, since: str | None
) -> tuple[dict[str, bytes | None], list[str]]:
    """The files as they are to be, and the paths that were left as they are."""
    now, then, base = Snapshot(repo, lost.head), Snapshot(repo, lost.tip), Snapshot(repo, since)
    earlier: dict[str, set[str | None]] = {}
    for commit in history.read_log(host.root, None, files=True, since=since, rev=lost.tip):
        if any(mark in commit.trailers for mark in ORIGIN_TRAILERS):
            parents = parse_parents(repo.objects.read_object(commit.id)[1])
            before = Snapshot(repo, parents[0] if parents else None)
            for path in commit.files or ():
                earlier.setdefault(path, {base.find_blob_id(path)}).add(before.find_blob_id(path))
    files: dict[str, bytes | None] = {}
    left = []
    for path, olds in sorted(earlier.items()):
        current_id, lost_id = now.find_blob_id(path), then.find_blob_id(path)
        if current_id == lost_id:
            continue
        if current_id in olds:  # it is as it was before
            files[path] = then.read_file(path)
        elif path.endswith(_ROW_SUFFIXES) and current_id is not None and lost_id is not None:
            merged = join_rows(now.read_file(path) or b"", base.read_file(path) or b"", then.read_file(path) or b"")
            if merged != now.read_file(path):
                files[path] = merged
        else:
            left.append(path)
    return files, left


def _restore_committed_files(
    host: Host, decision_context: DecisionContext, lost: LostRows, files: Mapping[str, bytes | None]
) -> None:
    """Files that git left as the lost commit had them, and that will be others now: as the branch has them, so that
    nothing stands in the way. What they had, that commit has."""
    then = Snapshot(decision_context.repo, lost.tip)
    log = choose_log(CommittedSource(decision_context.snapshot), decision_context.context.now)
    for path in (*files, log):
        file = host.root / path
        before, after = decision_context.snapshot.read_file(path), then.read_file(path)
        stays = not path.startswith(f"{host.layout.logs_dir}/") and files[path] == after  # to logs this commit adds
        if file.is_file() and not file.is_symlink() and not stays and file.read_bytes() == after != before:
            if before is None:
                file.unlink()
            else:
                write_atomic(file, before)


def join_rows(ours: bytes, base: bytes, theirs: bytes) -> bytes:
    """``ours`` with what ``theirs`` has done to ``base``: rows that it changed (told by their first field) in their
    places, and rows that it added before those that came after them, or at the end."""
    mine, old, new = (split_rows(text) for text in (ours, base, theirs))
    before, after, have = set(old), set(new), set(mine)
    added = [row for row in new if row not in before and row not in have]
    changed = {_row_key(row): row for row in old if row not in after}
    instead = {changed[_row_key(row)]: row for row in added if _row_key(row) in changed}
    rows = [instead.get(row, row) for row in mine]
    places, missing, at = {row: place for place, row in enumerate(rows)}, set(added), len(rows)
    inserted: dict[int, list[bytes]] = {}
    for row in reversed(new):
        if row in places:
            at = min(at, places[row])
        elif row in missing:
            inserted.setdefault(at, []).append(row)
    return b"".join(b"".join([*reversed(inserted.get(at, [])), row]) for at, row in enumerate([*rows, b""]))


def _row_key(row: bytes) -> bytes:
    return row.partition(b",")[0]


class _OverlaidSource(Struct, frozen=True):
    """The files of a commit, with others in place of some (a ``FileSource``)."""

    below: CommittedSource
    files: Mapping[str, bytes | None]

    def read(self, path: str) -> bytes | None:
        return self.files[path] if path in self.files else self.below.read(path)

    def list_paths(self, prefix: str) -> list[str]:
        under = f"{prefix}/" if prefix else ""
        paths = {p for p in self.below.list_paths(prefix) if p not in self.files}
        return sorted(paths | {p for p, data in self.files.items() if data is not None and p.startswith(under)})
