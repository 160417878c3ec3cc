"""What the server of a fleet has beside the pages of its workspaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from msgspec import Struct

from cleared.base.errors import ClearedError
from cleared.base.terminal import count_noun
from cleared.service.fleet.fleet_status import FleetStatus, NamedWorkspace
from cleared.triggers.webhook_calls import CallKeeper
from cleared.web.access import Session
from cleared.web.client_file import ClientFile
from cleared.web.site import Site


class FleetPages(Struct, frozen=True):
    """``keep_calls``: where the calls of the workspace with a name are kept. ``read_status``: how the fleet is.
    ``clients``: the programs that may ask for that."""

    keep_calls: Callable[[str], CallKeeper]
    read_status: Callable[[], FleetStatus]
    clients: ClientFile


class ListedSite(Struct, frozen=True):
    """A workspace in the list of them. ``about``: what waits there, and what whoever looks may do."""

    site: Site
    about: str = ""


def list_needy(fleet: FleetPages, session: Session, sites: Mapping[str, Site]) -> list[ListedSite]:
    """The workspaces of a fleet that somebody may see: what is wrong first, then what waits for a person. Where the
    database cannot be asked, by name."""
    known: dict[str, NamedWorkspace] = {}
    with suppress(ClearedError):
        known = {each.name: each for each in fleet.read_status().neediest}
    names = [*(name for name in known if name in sites), *(name for name in sites if name not in known)]
    listed = [_describe(sites[name], known.get(name), session) for name in names]
    return [each for each in listed if each is not None]


def _describe(site: Site, found: NamedWorkspace | None, session: Session) -> ListedSite | None:
    """What waits, and what whoever looks may do there, where that is not all. None: they may not see it."""
    try:
        if not site.admits(session):
            return None
        role = site.find_role(session)
    except ClearedError:  # its own page says what is wrong; of whom it is cannot be asked
        return None if session.passkey else ListedSite(site, "cannot be opened")
    parts = []
    if found is not None and found.has_problem:
        parts.append("a problem")
    if found is not None and found.cards:
        parts.append(count_noun(found.cards, "card"))
    return ListedSite(site, ", ".join([*parts, *([role] if role != "owner" else [])]))
