"""Cards that ask about entries: staging them, and telling which entries they mean.

A card names entries by their numbers. Git may take an entry back and leave the lines of the queue, as they are only
ever appended to; then the number is given again. So the card says what it asks about, too. A card whose entry is gone
is void: it decides nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Final

from cleared.base.clock import check_deadline, format_iso
from cleared.books.card_kinds import ENTRY, RECEIPT, TRANSFER
from cleared.books.ledger.entry import Entry
from cleared.cards.card import Card, card_id, list_texts
from cleared.cards.card_draft import VOID, CardDraft
from cleared.primitives.context import Context

WAITING: Final = "pending-review"
"""The status of an entry that a person has to decide. Without a card it would wait for ever."""
UNASKED: Final = "the script left it for a person to confirm"
ASKED_AGAIN: Final = "it waits again, as what was decided about it is gone"

MARKS: Final = "_postings"
"""The detail of a card that says what it asks about: see ``mark_postings``."""
_KINDS: Final = (ENTRY.name, RECEIPT.name, TRANSFER.name)

FindEntry = Callable[[str], Entry | None]


def stage_entry_card(context: Context, entry: Entry, title: str, description: str, confidence: str) -> str:
    """Stage a card that asks about an entry, unless it was asked about before; its id. One that waits is asked about
    again where its card is settled, as git may have taken the decision back."""
    return context.stage_card(
        ENTRY.name,
        tuple(choose_key(context.cards, ENTRY.name, [entry.entry_id], [entry], again=entry.status == WAITING)),
        title,
        record_id=entry.entry_id,
        description=description,
        confidence=confidence,
        amount=str(entry.amount),
        evidence=entry.evidence,
        accounts=[leg.account_id for leg in entry.legs],
        _postings=mark_postings([entry]),
    )


def stage_unasked_cards(context: Context, waiting: Iterable[Entry], why: str = UNASKED) -> None:
    """Stage the card of each of these entries that no open card asks about."""
    for entry in list_unasked(check_deadline(waiting), context.cards.open_cards(ENTRY.name)):
        title = f"{entry.date} {entry.amount} {entry.description[:120]}"
        stage_entry_card(context, entry, title, why, entry.confidence)
        context.log_action("queue_add_review", why, entry.entry_id)


def list_unasked(waiting: Iterable[Entry], open_cards: Iterable[Card]) -> list[Entry]:
    """Those of the entries that no card of ``open_cards`` asks about."""
    asked: defaultdict[str, list[Card]] = defaultdict(list)
    for card in open_cards:
        asked[card.record_id or ""].append(card)
    return [
        entry
        for entry in waiting
        if all(find_asked(card, {entry.entry_id: entry}.get) is None for card in asked.get(entry.entry_id, ()))
    ]


def mark_postings(entries: Sequence[Entry]) -> list[str]:
    """What tells entries from others of their numbers: what never changes of them, but for the day, which is another
    one where an undo brings an entry back."""
    return [entry.digest_posting(with_day=False) for entry in entries]


def list_asked(card: Card) -> list[str]:
    """The numbers of the entries that a card asks about."""
    if card.kind == ENTRY.name:
        return [card.record_id] if card.record_id else []
    if card.kind == RECEIPT.name:
        return [str(card.details.get("entry"))]
    return list_texts(card.details, "entries") if card.kind == TRANSFER.name else []


def find_asked(card: Card, find_entry: FindEntry) -> list[Entry] | None:
    """The entries that a card asks about; None where one of them is not there any more."""
    found = [find_entry(entry_id) for entry_id in list_asked(card)]
    entries = [entry for entry in found if entry is not None]
    return entries if len(entries) == len(found) and _asks_about(card, entries) else None


def choose_key(cards: CardDraft, kind: str, key: Sequence[str], entries: Sequence[Entry], *, again: bool) -> list[str]:
    """The key of the card that asks about entries: another one than ``key`` where a card has that which asked about
    others, or is void. ``again``: also where one has it that is settled."""
    key = list(key)
    while (known := cards.committed_cards.get(card_id(kind, *key))) is not None:
        if _asks_about(known, entries) and known.resolution != VOID and not (again and known.status != "open"):
            break
        key += mark_postings(entries)
    return key


def settle_void_cards(context: Context, find_entry: FindEntry, numbers: Set[str] | None = None) -> None:
    """Settle the open cards whose entries are gone. ``numbers``: of those that name one of these; None: of all."""
    for card in context.cards.open_cards(*_KINDS):
        is_meant = numbers is None or not numbers.isdisjoint(list_asked(card))
        if is_meant and card.id not in context.cards.added and find_asked(card, find_entry) is None:
            context.cards.resolve_card(card.id, format_iso(context.now), context.agent, VOID)


def _asks_about(card: Card, entries: Sequence[Entry]) -> bool:
    marks = mark_postings(entries)
    return bool(card.details.get(MARKS, marks) == marks)
