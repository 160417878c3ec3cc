"""Cards that a successful run resolves by itself, so that no person has to: those of its earlier failures, and those
of files that were set aside and are imported now."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from cleared.base.clock import format_iso
from cleared.cards.card import Card, list_texts
from cleared.cards.kinds import BAD_FILE, FAILED_RUN, SET_ASIDE
from cleared.changes.consumed_events import is_only_failure
from cleared.changes.host import Host
from cleared.git import Repository, Snapshot
from cleared.primitives.context import Context, taken_files
from cleared.sandbox.trigger_kinds import FILE_WATCH, ON_DEMAND
from cleared.workspace.watched_names import FAILED_FOLDER

RESOLVED_BY = "cleared"
MAX_CARD_FILES: Final = 100
"""Files that the card of a failed run names; of more it is not known which they were."""


def resolve_cards(host: Host, repo: Repository, snapshot: Snapshot, context: Context) -> None:
    """Stage the answers of the cards that this run resolves."""
    event = context.event
    has_payload = event["kind"] == ON_DEMAND.name and event["payload"] is not None
    if has_payload or (
        event["kind"] != ON_DEMAND.name and is_only_failure(host, repo, snapshot, context.agent, str(event["id"]))
    ):
        for card in context.cards.open_cards(FAILED_RUN.name):
            if card.agent == context.agent and card.details.get("event_id") == event["id"]:
                context.cards.resolve_card(
                    card.id, format_iso(context.now), RESOLVED_BY, f"it went well at another try: {context.run_id}"
                )
    handled = _list_handled_files(host, context)
    for card in context.cards.open_cards(BAD_FILE.name) if handled else ():
        from cleared.cards.refused_files import list_card_files  # late: seldom does such a card wait

        files = list_card_files(card) if card.id not in context.cards.added else []
        if files and handled.issuperset(files):
            context.cards.resolve_card(
                card.id, format_iso(context.now), RESOLVED_BY, f"it was taken by {context.run_id}"
            )
    for part in context.parts.values():
        for card_id, answer in list(part.find_answered_cards(context)):
            context.cards.resolve_card(card_id, format_iso(context.now), RESOLVED_BY, answer)
    imported = {file.sha256 for file in taken_files(context).values()}
    is_plain_run = event["kind"] == ON_DEMAND.name and event["payload"] is None
    for card in context.cards.open_cards(FAILED_RUN.name):
        if card.agent == context.agent and _is_done_now(card, imported, is_plain_run):
            context.cards.resolve_card(
                card.id, format_iso(context.now), RESOLVED_BY, f"it went well since: {context.run_id}"
            )
    if imported and _has_files_set_aside(host, snapshot):
        for card in context.cards.open_cards(SET_ASIDE.name):
            if card.details.get("sha256") in imported:
                context.cards.resolve_card(
                    card.id, format_iso(context.now), RESOLVED_BY, f"it was imported by {context.run_id}"
                )


def _is_done_now(card: Card, imported: Collection[str], is_plain_run: bool) -> bool:
    """Whether a run that went well has done what a failed one was to do: it imported its files, or both were runs for
    nothing in particular."""
    if files := list_texts(card.details, "files"):
        return len(files) < MAX_CARD_FILES and all(digest in imported for digest in files)
    return is_plain_run and "event_id" not in card.details and "event" not in card.details


def _list_handled_files(host: Host, context: Context) -> frozenset[str]:
    """The files outside of the drop folder that the run is for."""
    if context.event["kind"] != FILE_WATCH.name:
        return frozenset()
    files = (str(path) for path in context.event["payload"]["files"])
    return frozenset(path for path in files if not path.startswith(f"{host.layout.import_dir}/"))


def _has_files_set_aside(host: Host, snapshot: Snapshot) -> bool:
    """Whether files are, or were, set aside."""
    folder = f"{host.layout.import_dir}/{FAILED_FOLDER}"
    return snapshot.find_entry(folder) is not None or (host.root / folder).exists()


def find_restored_files(host: Host, snapshot: Snapshot, context: Context) -> list[str]:
    """Paths in git of files that were set aside, put back by a person, and are imported now."""
    folder = f"{host.layout.import_dir}/{FAILED_FOLDER}"
    if snapshot.find_entry(folder) is None:
        return []
    imported = {file.data for file in taken_files(context).values()}
    missing = [path for path in snapshot.list_entries(folder) if not (host.root / path).exists()]
    return [path for path in missing if snapshot.read_file(path) in imported]
