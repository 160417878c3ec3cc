"""Checks what passkeys have signed in the history. It works on any clone and needs no extra: keys, records and
assertions are in the commits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cleared.base.errors import WorkspaceError
from cleared.changes.attestation import load_approvals
from cleared.changes.decisions.signatures import find_signing_key, make_violation, read_parents
from cleared.changes.host import Host
from cleared.domains.record_audit import Violation
from cleared.git import Repository, Snapshot, history
from cleared.git.history import CommitInfo
from cleared.trust.approval_record import WORKSPACE, try_parse_record
from cleared.trust.passkey_assertions import is_passkey, read_counter
from cleared.trust.passkey_records import FOLDER, passkey_path, read_passkey
from cleared.trust.reviewers import KEY, SIGNATURE
from cleared.trust.verification import Approvals

_REMEDY = (
    "Look at it (git show COMMIT); reverse what is wrong; then say that it is dealt with: "
    "cleared accept COMMIT --reason …"
)


def find_wrong_passkey_signatures(host: Host, repo: Repository, snapshot: Snapshot) -> list[tuple[str, Violation]]:
    """Commits that name a passkey as their signer and were not signed by it, or by one that nobody here registered, or
    that was removed before, or whose counter went back (a sign of a copied device); each with its commit."""
    approvals = load_approvals(host, snapshot)
    commits = history.read_log(host.root, None, grep=f"{KEY}: passkey:", files=True)
    signed: list[tuple[str, str, int, CommitInfo]] = []
    wrong: list[tuple[str, Violation]] = []
    for commit in reversed(commits):
        key = commit.trailers.get(KEY, "")
        if not any(map(is_passkey, key.split("\n"))):
            continue
        problem = _find_problem(repo, approvals, commit, key)
        if problem:
            wrong.append((commit.id, make_violation(commit, problem, _REMEDY)))
        else:
            signed.append((key, commit.trailers.get("Clock", ""), read_counter(commit.trailers[SIGNATURE]), commit))
    return [*wrong, *_find_falling_counters(signed), *(_find_late_decisions(host, repo, signed) if signed else ())]


def find_passkey_signer(host: Host, repo: Repository, commit_id: str) -> str:
    """Whose passkey has signed a decision's commit, by the record of it; empty where none has, or it does not count."""
    commit = history.read_commit(host.root, commit_id)
    key = commit.trailers.get(KEY, "")
    approvals = load_approvals(host, Snapshot(repo, repo.read_head()))
    if not is_passkey(key) or _find_problem(repo, approvals, commit, key):
        return ""
    try:
        before = Snapshot(repo, read_parents(repo, commit.id)[0])
        passkey = read_passkey(try_parse_record(before.read_file(passkey_path(key))))
    except (WorkspaceError, IndexError):
        return ""  # a shallow clone ends here
    return passkey.name if passkey is not None else ""


def _find_problem(repo: Repository, approvals: Approvals, commit: CommitInfo, key: str) -> str:
    try:
        before = Snapshot(repo, read_parents(repo, commit.id)[0])
        books = (before.read_file(WORKSPACE) or b"").decode("ascii", "replace").strip()
        signer = find_signing_key(repo, commit, books)
    except (WorkspaceError, IndexError):
        return ""  # a shallow clone ends here
    if signer != key:
        return "what the passkey has signed is not this commit"
    record = try_parse_record(before.read_file(passkey_path(key)))
    if record is None or read_passkey(record) is None or not record.is_genuine or record.workspace != books:
        return "its passkey was not registered in these books"
    if approvals.identity.pinned and (doubt := approvals.find_approver_doubt(record.key)):
        return f"{record.by} registered its passkey, {doubt}"
    return ""


def _find_late_decisions(
    host: Host, repo: Repository, signed: Sequence[tuple[str, str, int, CommitInfo]]
) -> Iterator[tuple[str, Violation]]:
    """What a passkey has signed after it was removed, with its old record brought back by git."""
    commits = {commit.id: commit for *_, commit in signed}
    paths = {passkey_path(key) for key, *_ in signed}
    for change in history.commits_touching(host.root, [FOLDER]):
        for path in paths.intersection(change.files or ()):
            old, new = (_read_record_id(repo, each, path) for each in (*read_parents(repo, change.id)[:1], change.id))
            if not old or old == new:
                continue
            later = history.read_log(host.root, None, grep=f"{KEY}: passkey:", since=change.id)
            for commit in (commits[each.id] for each in later if each.id in commits):
                is_same = passkey_path(commit.trailers[KEY]) == path and old == _read_record_id(repo, commit.id, path)
                if is_same and history.find_merge_base(host.root, [change.id, commit.id]) == change.id:
                    yield commit.id, make_violation(commit, "its passkey had been removed before", _REMEDY)


def _read_record_id(repo: Repository, commit: str, path: str) -> str:
    record = try_parse_record(Snapshot(repo, commit).read_file(path))
    return record.id if record is not None else ""


def _find_falling_counters(signed: list[tuple[str, str, int, CommitInfo]]) -> list[tuple[str, Violation]]:
    """Of each passkey, by the time that it signed itself: two clones may be merged in any order."""
    wrong: list[tuple[str, Violation]] = []
    highest: dict[str, tuple[int, str]] = {}
    for key, at, counter, commit in sorted(signed, key=lambda each: each[:3]):
        most, since = highest.get(key, (0, ""))
        if counter <= most and at > since and most > 0:
            text = f"the counter of its passkey went back, from {most} to {counter}: the passkey may have been copied"
            wrong.append((commit.id, make_violation(commit, text, _REMEDY)))
        if counter >= most:
            highest[key] = (counter, at)
    return wrong
