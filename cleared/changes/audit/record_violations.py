"""Every violation in the records: of the last commit, or of a working tree that is another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cleared.base.errors import Place, WorkspaceError
from cleared.changes.audit.check_record import describe_check, is_known_right, remember_right
from cleared.changes.audit.provenance import find_unknown_origins
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource, WorkingSource
from cleared.changes.session import compare_with_commit
from cleared.changes.unfinished_merge import explain_unfinished, find_collisions
from cleared.domains.installed_domains import load_domains
from cleared.domains.record_audit import RecordAudit, Violation
from cleared.git import Repository, Snapshot


def find_violations(host: Host) -> list[Violation]:
    """Invariants, files that differ from HEAD, commits of unknown origin. Raises ``BusyError``."""
    with compare_with_commit(host, "check") as (repo, snapshot, different):
        if not different:
            return _check_unchanged_records(host, repo, snapshot)
        committed = CommittedSource(snapshot)
        unfinished = explain_unfinished(repo, host.layout)
        if unfinished is not None:
            colliding = find_collisions(host.root, host.layout)
            violations = [_describe_error(error, "provenance") for error in colliding or [unfinished]]
            violations += _ask_domains(host, lambda audit: audit.check_records(committed))
            return violations + find_unknown_origins(host, repo, snapshot)
        source = WorkingSource(host)
        violations = _ask_domains(host, lambda audit: audit.check_records(source))
        violations += _ask_domains(host, lambda audit: audit.check_edits(source, committed))
        named = {v.place.file for v in violations if v.place}
        for d in different:
            if d.path not in named:
                violations.append(
                    Violation(
                        "unchanged",
                        f"the file is {d.kind} compared with the last commit",
                        f"Look with git diff; restore it with git checkout -- {d.path}.",
                        Place(d.path),
                    )
                )
        return violations + find_unknown_origins(host, repo, snapshot)


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


def _check_unchanged_records(host: Host, repo: Repository, snapshot: Snapshot) -> list[Violation]:
    """The violations of a commit that the working tree is equal to. Nothing is judged again that was right before."""
    if is_known_right(host, repo, snapshot):
        return []
    description = describe_check(host, repo, snapshot)
    source = CommittedSource(snapshot)
    violations = _ask_domains(host, lambda audit: audit.check_records(source, snapshot))
    violations += find_unknown_origins(host, repo, snapshot)
    if not violations and describe_check(host, repo, snapshot) == description:  # nothing has changed meanwhile
        remember_right(host, description)
    return violations


def find_committed_violations(host: Host) -> list[Violation]:
    """Every violation in the records of the last commit, whatever lies in the working tree: what a card can be
    about."""
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        source = CommittedSource(snapshot)
        violations = _ask_domains(host, lambda audit: audit.check_records(source))
        return violations + find_unknown_origins(host, repo, snapshot)


def _ask_domains(host: Host, look: Callable[[RecordAudit], list[Violation]]) -> list[Violation]:
    """What a check of each domain's records finds; a file that cannot be read at all is a finding, too."""
    violations = []
    for domain in load_domains():
        try:
            violations += look(domain.audit(host.layout))
        except WorkspaceError as error:
            violations.append(_describe_error(error, "format"))
    return violations


def _describe_error(error: WorkspaceError, check: str) -> Violation:
    return Violation(check, error.message, error.remedy or "Restore the file.", error.place)
