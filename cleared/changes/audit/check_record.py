"""A record of the last commit whose books were right: the next check need not judge them and their history again.

It holds only while nothing has changed that such a check depends on: the commit (and with it all of the history), the
commit that is remembered of the branch, where a shallow clone ends, the settings, whose signatures count here, and the
program itself. Files are not trusted to it: what is in the working tree and in git's store is read, and compared with
git's ids, each time.
"""

from __future__ import annotations

import hashlib
import json
import sys
from functools import lru_cache

from cleared.base.errors import WorkspaceError
from cleared.changes import attestation
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.domains.managed_files import ManagedFiles
from cleared.git import Repository, Snapshot, blob_id
from cleared.trust.keys import own_public_key
from cleared.trust.verification import Approvals
from cleared.workspace.sealed_files import SealedFiles, digest_sources
from cleared.workspace.settings.setting_keys import to_plain_values

_NAME = "checked"


def is_known_right(host: Host, repo: Repository, snapshot: Snapshot) -> bool:
    """Whether the books of a commit were found right, nothing that this depends on has changed, and git still has them.

    The caller has compared the working tree with the commit.
    """
    files = SealedFiles(host.layout.state_dir, _program_version())
    known = files.read(_NAME)
    return known is not None and known == describe_check(host, repo, snapshot) and _can_read(host, snapshot)


def remember_right(host: Host, description: bytes) -> None:
    """Keep that a check found nothing wrong. ``description``: of what it depends on."""
    SealedFiles(host.layout.state_dir, _program_version()).write(_NAME, description)


def describe_check(host: Host, repo: Repository, snapshot: Snapshot) -> bytes:
    """A digest of all that a check depends on, but for the files of the commit: settings hold secrets. Raises
    ``WorkspaceError`` as the check does."""
    approvals = Approvals(CommittedSource(snapshot), host.root, {})
    identity, trust = approvals.identity, approvals.trust
    values = [
        str(host.root),
        repo.branch.name,
        snapshot.commit,
        repo.branch.read_remembered_commit(),
        [_digest_file(repo, name) for name in ("shallow", "info/grafts")],
        to_plain_values(host.config),
        host.decimal_places,
        sorted(attestation.trusted_signers(host, snapshot)),
        sorted(attestation.accepted_workspaces(host, snapshot)),
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
    ]
    return hashlib.sha256(json.dumps(values, default=str, sort_keys=True).encode()).digest()


def _can_read(host: Host, snapshot: Snapshot) -> bool:
    """Whether git's store has each managed file of the commit, with just the content that its id names."""
    oids: dict[str, None] = {}
    for prefix in ManagedFiles(host.layout).folders:
        oids |= dict.fromkeys(oid for mode, oid in snapshot.list_entries(prefix).values() if mode.startswith("100"))
    try:
        contents = snapshot.read_blobs(list(oids))
        return all(blob_id(content, snapshot.hash_name) == oid for oid, content in zip(oids, contents, strict=True))
    except WorkspaceError:
        return False


def _digest_file(repo: Repository, name: str) -> str:
    try:
        return hashlib.sha256((repo.common_dir / name).read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""


@lru_cache(maxsize=1)
def _program_version() -> bytes:
    """A digest of the whole program; empty where it cannot be read, and then nothing is kept."""
    digest = digest_sources("")
    return digest + sys.version.encode() if digest else b""
