"""How many cards wait, as the status says it: kept between commands, as a long queue takes long to read.

The file is sealed (``workspace.sealed_files``), and says of which queue it is, by the id that git gives its folder.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from cleared.base.errors import WorkspaceError
from cleared.cards import queue_files
from cleared.cards.kinds import FAILED_RUN
from cleared.changes.committed_cards import read_cards
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.git import Snapshot
from cleared.workspace.sealed_files import FOLDER, SealedFiles, digest_sources

FEWEST: Final = 100
"""Fewer cards are read in less time than a file is looked after."""
_NAME: Final = "waiting-cards"
_SOURCES: Final = ("cards", "service")


class WaitingCards(NamedTuple):
    """What the open cards of a commit come to."""

    open_cards: int
    failed_agents: list[str | None]
    """Agents of whose failed runs nobody has decided."""
    damage: str = ""
    """Where the queue is damaged, and what mends it; the cards are those that can be read then."""


def read_waiting_cards(host: Host, snapshot: Snapshot) -> WaitingCards:
    """What the queue of a commit comes to."""
    folder, path = snapshot.find_entry(host.layout.queue_dir), host.layout.state_dir / FOLDER / _NAME
    if folder is None:
        return WaitingCards(0, [])
    if path.exists():
        known = SealedFiles(host.layout.state_dir, digest_sources(*_SOURCES)).read(_NAME)
        of, *facts = json.loads(known) if known is not None else (None,)
        if of == folder.oid:
            return WaitingCards(*facts)
    source, damage = CommittedSource(snapshot), ""
    try:
        cards = read_cards(host, snapshot)
        count, waiting = len(cards), cards.list_open()
    except WorkspaceError as error:
        readable, damage = queue_files.load_cards(source, host.layout.queue_dir, readable_only=True), str(error)
        count, waiting = len(readable), [card for card in readable.values() if card.status == "open"]
    agents = {card.agent for card in waiting if card.kind == FAILED_RUN.name}
    found = WaitingCards(len(waiting), sorted(agents, key=str), damage)
    if count >= FEWEST:
        files = SealedFiles(host.layout.state_dir, digest_sources(*_SOURCES))
        files.write(_NAME, json.dumps([folder.oid, *found]).encode())
    return found
