"""Every violation in the records: of the last commit, or of a working tree that is another.

A commit whose books were right is recorded: the next check need not judge them and their history again. The record
holds only while nothing has changed that such a check depends on: the commit (and with it all of the history), the
commit that is remembered of the branch, where a shallow clone ends, the settings, whose signatures count here, and the
program itself. Where only plain runs and decisions came since (``own_commits``), and all else is as it was, their
commits alone are judged. Files are not trusted to it: what is in the working tree and in git's store is compared with
git's ids each time, and read where it is not known to be as it was read last.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from cleared.base.errors import Place, WorkspaceError, quote_path
from cleared.base.file_source import FileSource
from cleared.cards.queue_files import load_cards
from cleared.changes import attestation
from cleared.changes.audit.damaged_approvals import find_damaged_approvals
from cleared.changes.audit.own_commits import can_be_judged_apart, is_carried_on, keeps_approvals
from cleared.changes.audit.provenance import find_lost_records, find_unknown_origins
from cleared.changes.audit.right_versions import name_right_versions
from cleared.changes.decisions.signatures import had_reviewers
from cleared.changes.host import Host
from cleared.changes.line_worth import LineWorth
from cleared.changes.record_sources import CommittedSource, WorkingSource
from cleared.changes.session import compare_with_commit
from cleared.changes.unfinished_merge import list_unfinished
from cleared.domains.installed_domains import ManagedFiles, load_domains
from cleared.domains.record_audit import RecordAudit, Violation, describe_error
from cleared.git import Difference, Repository, Snapshot, blob_id
from cleared.git.known_files import KnownFiles
from cleared.git.known_objects import KnownObjects
from cleared.trust.checkpoint import read_forgotten
from cleared.trust.keys import own_public_key
from cleared.workspace.sealed_files import SealedFiles, program_version
from cleared.workspace.settings.setting_keys import to_plain_values


def find_violations(host: Host) -> list[Violation]:
    """Invariants, files that differ from HEAD, commits of unknown origin. Raises ``BusyError``."""
    known = KnownFiles(host.layout.state_dir, in_turns=True)
    with compare_with_commit(host, "check", known) as (repo, snapshot, different):
        unfinished = [describe_error(error, "provenance") for error in list_unfinished(repo, host.layout)]
        if not different:
            violations = check_committed_records(host, repo, snapshot)
        else:
            committed = CommittedSource(snapshot)
            if unfinished:
                violations = _ask_domains(host, lambda audit: audit.check_records(committed))
            else:
                violations = _check_working_tree(host, committed, different)
            violations += _find_unknown_origins(host, repo, snapshot, _find_judged(host, repo, snapshot))
        return unfinished + name_right_versions(snapshot, violations, partial(_judge_files, host))


def _judge_files(host: Host, source: FileSource) -> list[Violation]:
    """What is wrong with the files of a source, whoever changed them."""
    violations = _ask_domains(host, lambda audit: audit.check_records(source))
    violations += _ask_domains(host, lambda audit: [*audit.find_damage(source)])
    violations += find_damaged_approvals(host, source)
    try:
        load_cards(source, host.layout.queue_dir)
    except WorkspaceError as error:
        violations.append(describe_error(error, "format"))
    return violations


def _check_working_tree(host: Host, committed: CommittedSource, different: Sequence[Difference]) -> list[Violation]:
    """``different``: how its files differ from the last commit."""
    source = WorkingSource(host.root)
    violations = _ask_domains(host, lambda audit: audit.check_records(source))
    violations += _ask_domains(host, lambda audit: audit.check_edits(source, committed))
    named = {v.place.file for v in violations if v.place}
    return violations + [
        Violation(
            "unchanged",
            f"the file is {d.kind} compared with the last commit",
            f"Look with git diff HEAD; restore it with git checkout HEAD -- {quote_path(d.path)}.",
            Place(d.path),
        )
        for d in different
        if d.path not in named
    ]


def describe_violations(host: Host) -> list[dict[str, Any]]:
    """What ``find_violations`` finds, in values that JSON takes."""
    return [
        {
            "check": v.check,
            "message": v.message,
            "remedy": v.remedy,
            "place": str(v.place) if v.place else None,
            "record_id": v.record_id,
        }
        for v in find_violations(host)
    ]


def check_committed_records(host: Host, repo: Repository, snapshot: Snapshot) -> list[Violation]:
    """The violations of the last commit, whose managed files the working tree has as they are. Nothing is judged again
    that was right before."""
    if is_known_right(host, repo, snapshot):
        return []
    description = describe_check(host, repo, snapshot)
    source = CommittedSource(snapshot)
    # A first check reads all of git's files; later ones trust what was found of a file while git has it as it was.
    is_first = SealedFiles(host.layout.state_dir, program_version()).read(_NAME) is None
    may_trust = is_first or _can_read(host, repo, snapshot)
    since = _find_judged(host, repo, snapshot) if may_trust else None
    violations = _ask_domains(host, lambda audit: audit.check_records(source, snapshot if may_trust else None))
    violations += _find_unknown_origins(host, repo, snapshot, since)
    if not violations and describe_check(host, repo, snapshot) == description:  # nothing has changed meanwhile
        remember_right(host, description)
        _remember_judged(host, repo, snapshot, since)
    return violations


def find_committed_violations(host: Host) -> list[Violation]:
    """Every violation in the records of the last commit, whatever lies in the working tree: what a card can be
    about."""
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        source = CommittedSource(snapshot)
        violations = _ask_domains(host, lambda audit: audit.check_records(source))
        violations += _find_unknown_origins(host, repo, snapshot, _find_judged(host, repo, snapshot))
        return name_right_versions(snapshot, violations, partial(_judge_files, host))


def _find_unknown_origins(host: Host, repo: Repository, snapshot: Snapshot, since: str | None) -> list[Violation]:
    """``since``: the newest commit up to which the history was found right, if any is known."""
    if since is None:
        return find_unknown_origins(host, repo, snapshot)
    worth = LineWorth(host, snapshot)
    if is_carried_on(host, repo, snapshot, worth, since):
        return find_unknown_origins(host, repo, snapshot, since=since, judged=True)
    apart = can_be_judged_apart(host, repo, snapshot, worth, since)
    return find_unknown_origins(host, repo, snapshot, since=since if apart else None)


def _ask_domains(host: Host, look: Callable[[RecordAudit], list[Violation]]) -> list[Violation]:
    """What a check of each domain's records finds; a file that cannot be read at all is a finding, too."""
    violations = []
    for domain in load_domains():
        try:
            violations += look(domain.audit(host.layout))
        except WorkspaceError as error:
            violations.append(describe_error(error, "format"))
    return violations


_NAME = "checked"


def is_known_right(host: Host, repo: Repository, snapshot: Snapshot) -> bool:
    """Whether the books of a commit were found right, nothing that this depends on has changed, git still has them, and
    the branch has lost nothing since.

    The caller has compared the working tree with the commit.
    """
    files = SealedFiles(host.layout.state_dir, program_version())
    known = files.read(_NAME)
    return (
        known is not None
        and known == describe_check(host, repo, snapshot)
        and _can_read(host, repo, snapshot)
        and not find_lost_records(host, repo, snapshot)
    )


def remember_right(host: Host, description: bytes) -> None:
    """Keep that a check found nothing wrong. ``description``: of what it depends on."""
    SealedFiles(host.layout.state_dir, program_version()).write(_NAME, description)


def describe_check(host: Host, repo: Repository, snapshot: Snapshot) -> bytes:
    """A digest of all that a check depends on, but for the files of the commit: settings hold secrets. Raises
    ``WorkspaceError`` as the check does."""
    commits = [repo.branch.name, snapshot.commit, repo.branch.read_remembered_commit()]
    return _digest_values([*commits, *_list_surroundings(host, repo, snapshot)])


def _list_surroundings(host: Host, repo: Repository, snapshot: Snapshot) -> list[object]:
    """What a check depends on beside the history."""
    approvals = attestation.load_approvals(host, snapshot)
    identity, trust, counting = approvals.identity, approvals.trust, attestation.find_counting(host, snapshot)
    return [
        str(host.root),
        [_digest_file(repo, name) for name in ("shallow", "info/grafts")],
        to_plain_values(host.config),
        host.decimal_places,
        sorted(counting.keys),
        sorted(counting.books),
        own_public_key(host.root),
        identity.id,
        identity.pinned,
        identity.claimed,
        str(identity.problem),
        sorted(trust.keys.items()),
        sorted(trust.withdrawn),
        sorted(trust.barred.items()),
        sorted(trust.newest.items()),
        sorted(trust.runs.items()),
        sorted(read_forgotten(host.root)),
    ]


def _digest_values(values: list[object]) -> bytes:
    return hashlib.sha256(json.dumps(values, default=str, sort_keys=True).encode()).digest()


_JUDGED: Final = "judged"
"""The newest commit whose history was found right, and a digest of what that depends on."""


def _find_judged(host: Host, repo: Repository, snapshot: Snapshot) -> str | None:
    """The newest commit up to which the history was found right, where all that this depends on is as it was."""
    known = SealedFiles(host.layout.state_dir, program_version()).read(_JUDGED)
    if known is None:
        return None
    digest, _, since = known.rpartition(b" ")
    is_there = repo.objects.has_commit_tree(since.decode("ascii"))  # git forgets a commit that was amended
    is_same = is_there and digest == _digest_values(_list_surroundings(host, repo, snapshot))
    return since.decode("ascii") if is_same else None


def _remember_judged(host: Host, repo: Repository, snapshot: Snapshot, since: str | None) -> None:
    """Keep that the history is right; not where there were reviewers, as each decision is judged by the rules then.
    ``since``: the commit up to which it was known to be."""
    is_kept = since is not None and keeps_approvals(host, repo, snapshot, since)
    if is_kept or not had_reviewers(host, repo, since):
        digest = _digest_values(_list_surroundings(host, repo, snapshot))
        files = SealedFiles(host.layout.state_dir, program_version())
        files.write(_JUDGED, digest + f" {snapshot.commit}".encode("ascii"))


def _can_read(host: Host, repo: Repository, snapshot: Snapshot) -> bool:
    """Whether git's store has each managed file of the commit, with just the content that its id names."""
    oids: dict[str, None] = {}
    for prefix in ManagedFiles(host.layout).folders:
        oids |= dict.fromkeys(oid for mode, oid in snapshot.list_entries(prefix).values() if mode.startswith("100"))
    known = KnownObjects(repo, SealedFiles(host.layout.state_dir, program_version()))
    unread = known.find_unknown(list(oids))
    try:
        contents = snapshot.read_blobs(unread)
        is_right = all(blob_id(data, snapshot.hash_name) == oid for oid, data in zip(unread, contents, strict=True))
    except WorkspaceError:
        return False
    if is_right:
        known.note_right(unread)
    return is_right


def _digest_file(repo: Repository, name: str) -> str:
    try:
        return hashlib.sha256((repo.common_dir / name).read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""
