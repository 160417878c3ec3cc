"""The cards of a commit, as this machine knows them: see ``cards.known_cards``."""

from __future__ import annotations

from typing import Final

from cleared.cards.known_cards import KnownCards
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.git import Snapshot
from cleared.workspace.sealed_files import SealedFiles, digest_sources

_SOURCES: Final = ("cards", "workspace")
"""The folders of the program that decide what is kept."""


def read_cards(host: Host, snapshot: Snapshot) -> KnownCards:
    """The cards of the commit. Raises ``WorkspaceError`` for a damaged line of the queue."""
    source, queue = CommittedSource(snapshot), host.layout.queue_dir
    if type(snapshot) is not Snapshot:  # one that shows other files than the commit has, or notes what is read
        return KnownCards(source, queue)
    return KnownCards(
        source,
        queue,
        {path: oid for path, (_, oid) in snapshot.list_entries(queue).items()},
        SealedFiles(host.layout.state_dir, digest_sources(*_SOURCES)),
        keeps=snapshot.commit == snapshot.repo.find_head(),
    )
