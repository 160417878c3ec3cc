"""Which tests are approved: a signed record for each, so that git joins what two clones have approved.

A record that says that a test was removed stays for ever. So a record that was there and is not shows in the history
that somebody has taken it away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from cleared.base.errors import Place, PolicyError, RestoreRemedy, quote_path
from cleared.git import Snapshot, history
from cleared.git.history import VersionSearch
from cleared.sandbox.finding import Finding
from cleared.trust.approval_record import CASES, FOLDER, case_record_path, digest_of, try_parse_record
from cleared.trust.verification import Approvals


def list_approved_tests(approvals: Approvals) -> dict[str, str]:
    """Path of a test → the digest of its approved text; of those whose approval counts here."""
    records = (approvals.read_record(where) for where in _list_records(approvals))
    return {record.path: record.digest for record in records if record is not None and record.digest}


def find_approved_digest(approvals: Approvals, path: str) -> str:
    """The digest of the approved text of a test; empty where there is none, or its approval does not count here."""
    record = approvals.read_record(case_record_path(path))
    return record.digest if record is not None else ""


def is_approved_test(approvals: Approvals, path: str, data: bytes | None) -> bool:
    """Whether this is the approved text of the test at ``path``."""
    return data is not None and find_approved_digest(approvals, path) == digest_of(data)


def require_verifiable(approvals: Approvals, path: str) -> None:
    """Raises ``PolicyError`` where there is an approval of the test at ``path``, and it does not count here."""
    where = case_record_path(path)
    if approvals.source.read(where) is not None and approvals.read_record(where) is None:
        raise PolicyError(
            "the approval of a test cannot be verified on this machine",
            place=Place(where),
            remedy="Say whether you trust who approved it: cleared trust. Where somebody has damaged it, cleared check "
            "names the version to go back to.",
        )


def find_changed_tests(snapshot: Snapshot, approvals: Approvals, proposed: Iterable[str]) -> list[Finding]:
    """Findings for tests that are not as approved, other than those that the proposal itself changes."""
    proposed, findings, search = frozenset(proposed), [], VersionSearch(snapshot)
    for where in _list_records(approvals):
        try:
            require_verifiable(approvals, where.removeprefix(f"{FOLDER}/"))
        except PolicyError as error:
            findings.append(Finding("regression-unknown", error.message, Place(where), error.remedy or ""))
    for path in sorted(list_approved_tests(approvals)):
        data = snapshot.read_file(path)
        if path not in proposed and not is_approved_test(approvals, path, data):
            remedy = RestoreRemedy(path, f"To change it, propose it then: cleared agent propose {path}")
            findings.append(
                Finding(
                    "regression-changed",
                    f"this test {'is gone' if data is None else 'was changed'} without having been approved",
                    Place(path),
                    search.name_version(remedy, partial(is_approved_test, approvals, path)),
                )
            )
    return [*findings, *_find_removed_approvals(snapshot, approvals)]


def _list_records(approvals: Approvals) -> list[str]:
    return [where for where in approvals.source.list_paths(CASES) if where.endswith(".json")]


def _find_removed_approvals(snapshot: Snapshot, approvals: Approvals) -> Iterator[Finding]:
    """Findings for approvals of tests that were there and are there no more: no decision removes one."""
    if not approvals.workspace:
        return
    seen = set(_list_records(approvals))
    for commit in history.commits_touching(approvals.root, [CASES]):
        for where, (_, blob) in sorted((commit.changes or {}).items()):
            if where in seen or not blob or not where.startswith(f"{CASES}/"):
                continue
            record = try_parse_record(snapshot.at_commit(commit.id).read_file(where))
            if record is not None and record.file == where and record.digest and not approvals.find_doubt(record):
                seen.add(where)
                yield Finding(
                    "regression-unknown",
                    "the approval of a test was removed",
                    Place(where),
                    f"Bring both back: git checkout {commit.short} -- {quote_path(where)} {quote_path(record.path)}; "
                    f"then commit that. If the test is to go, propose that then: cleared agent propose {record.path}.",
                )
