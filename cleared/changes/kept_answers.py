"""Which answers one command may keep for the next, so that this need not open the workspace (``surroundings``)."""

from __future__ import annotations

from contextlib import suppress

from cleared.base.errors import WorkspaceError
from cleared.changes.host import Host
from cleared.changes.lost_rows import find_lost_rows
from cleared.git import Repository, Snapshot
from cleared.workspace.surroundings import Surroundings


def can_be_kept(host: Host, repo: Repository, snapshot: Snapshot, surroundings: Surroundings) -> bool:
    """Whether what was read of this commit is all that the next command would say, while the surroundings hold."""
    waits = host.policy is not None and bool(host.policy.waiting or host.policy.problem)  # each command says it
    if surroundings.checkout.commit != snapshot.commit or host.is_outdated or waits:
        return False
    with suppress(WorkspaceError):
        return find_lost_rows(host.layout, repo, snapshot) is None
    return False
