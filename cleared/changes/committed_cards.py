"""The cards of a commit, as this machine knows them: see ``cards.known_cards``."""

from __future__ import annotations

from functools import partial
from typing import Final

from cleared.base.last_values import LastValues
from cleared.cards.known_cards import KnownCards, ReadCards
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.git import Snapshot
from cleared.workspace.location import Layout
from cleared.workspace.sealed_files import SealedFiles, digest_sources

_SOURCES: Final = ("cards", "workspace")
"""The folders of the program that decide what is kept."""
_MAX_WORKSPACES: Final = 4
_last_read: Final = LastValues[ReadCards](_MAX_WORKSPACES)
"""What this process read last of the queue of each workspace, for those that it reads again and again."""


def read_cards(host: Host, snapshot: Snapshot) -> KnownCards:
    """The cards of the commit. Raises ``WorkspaceError`` for a damaged line of the queue."""
    return read_layout_cards(host.layout, snapshot, reads_again=host.reads_again)


def read_layout_cards(layout: Layout, snapshot: Snapshot, *, reads_again: bool = False) -> KnownCards:
    """The same, for who has no host. ``reads_again``: whether what is read stays in memory."""
    source, queue = CommittedSource(snapshot), layout.queue_dir
    if type(snapshot) is not Snapshot:  # one that shows other files than the commit has, or notes what is read
        return KnownCards(source, queue)
    place, is_last = (layout.root, queue), snapshot.commit == snapshot.repo.find_head()
    cards = KnownCards(
        source,
        queue,
        {path: oid for path, (_, oid) in snapshot.list_entries(queue).items()},
        SealedFiles(layout.state_dir, partial(digest_sources, *_SOURCES)),
        keeps=is_last,
        before=_last_read.find(place) if reads_again else None,
    )
    if is_last and reads_again:
        _last_read.keep(place, cards.read)
    return cards
