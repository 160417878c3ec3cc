"""One open card in full: what it says, part by part, and what can be done about it. Knows no terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from cleared.base.errors import UsageError
from cleared.base.terminal import count_noun
from cleared.cards.card import Card, list_texts
from cleared.cards.card_section import CardSection
from cleared.cards.kinds import BRANCH, FAILED_RUN, PROPOSAL, QUESTION, kind_named
from cleared.changes.decisions.shown_cards import digest_card
from cleared.gate.shadow import describe_shadow
from cleared.review.answers import answer_choices
from cleared.review.card_details import describe_event, detail_sections, preview_lines
from cleared.review.card_facts import CardChoice, QueueRow
from cleared.review.card_groups import count_group
from cleared.review.queue_snapshot import QueueSnapshot
from cleared.review.source_files import has_bank_file


class CardView(Struct, frozen=True):
    """One card in full."""

    id: str
    kind: str
    heading: str
    """What sort of card it is, in words."""
    title: str
    amount: str
    sections: tuple[CardSection, ...]
    choices: tuple[CardChoice, ...]
    group: int
    """How many open cards one decision could cover, this one included."""
    has_code: bool
    has_file: bool
    parts: tuple[str, ...] = ()
    """Of a branch: the files that can be left out of a merge."""


def show_card(queue: QueueSnapshot, card_id: str, key: str = "") -> CardView:
    """A card in full, for somebody with a key (of a passkey; empty: this user's). Raises ``UsageError`` where it is not
    open (any more)."""
    card = queue.cards.get(card_id)
    if card is None:
        raise UsageError(f"there is no open card {card_id!r}", remedy="cleared queue list shows them.")
    row = queue.row_of(card)
    return CardView(
        card.id,
        card.kind,
        kind_named(card.kind).title,
        row.text,
        row.amount,
        tuple(_card_sections(queue, card)),
        _list_choices(queue, card, key),
        count_group(queue, card_id),
        has_code=card.kind == PROPOSAL.name or (card.record_id is not None and bool(card.agent)),
        has_file=has_bank_file(queue, card),
        parts=tuple(list_texts(card.details, "files")) if card.kind == BRANCH.name else (),
    )


def _list_choices(queue: QueueSnapshot, card: Card, key: str) -> tuple[CardChoice, ...]:
    is_held = queue.find_held(card) is not None
    if is_held and card.kind != QUESTION.name:
        return ()
    choices = (*card_choices(card, is_held=is_held), *queue.list_suggestions(card))
    if card.agreed and queue.is_first(card, key):
        return tuple(choice for choice in choices if choice.verb != "agree")
    return choices


def card_choices(card: Card, *, is_held: bool = False) -> tuple[CardChoice, ...]:
    """What can be done about this kind of card; the first is what ``a`` does."""
    if is_held:
        return (CardChoice("retry", "Have it asked again"),)
    actions = {verb: CardChoice(verb, label) for verb, label in kind_named(card.kind).actions.items()}
    retry = [actions.pop("retry")] if "retry" in actions else []
    answers = [CardChoice("answer", f"{k}: {v}" if v else k, k) for k, v in answer_choices(card).items()]
    agree = [CardChoice("agree", f"Agree with {each.get('by')}") for each in card.agreed[-1:] if "correct" in actions]
    return (*actions.values(), *answers, *agree, *retry)


def group_suggestion(queue: QueueSnapshot, ids: Sequence[str]) -> CardChoice | None:
    """What is suggested for each of several cards, where it is the same for all; else None."""
    offered = [[c for c in queue.list_suggestions(queue.cards[each]) if c.verb == "suggested"] for each in ids]
    is_same = len({tuple((c.label, c.value) for c in each) for each in offered}) == 1
    return next(iter(offered[0]), None) if is_same else None


def digest_shown_cards(queue: QueueSnapshot, ids: Sequence[str]) -> dict[str, str]:
    """What a decision about these cards is bound to: the digests of them, and of the proposals behind them, as they are
    shown (see ``changes.decisions.shown_cards``)."""
    digests: dict[str, str] = {}
    for card in (queue.cards[each] for each in ids if each in queue.cards):
        digests[card.id] = digest_card(card, queue.record_of(card))
        shown = queue.proposal_of(card)
        if shown is not None:
            digests[shown.proposal.folder] = shown.digest
    return digests


def cards_summary(rows: Sequence[QueueRow]) -> str:
    """What a decision was about, briefly."""
    return rows[0].text if len(rows) == 1 else f"{len(rows)} cards"


def _card_sections(queue: QueueSnapshot, card: Card) -> Iterator[CardSection]:
    details, is_question = card.details, card.kind == QUESTION.name
    if not is_question and (why := queue.find_held(card)) is not None:
        yield CardSection("It cannot be decided", (why,))
    for first in card.agreed[-1:]:
        yield CardSection(
            "The first of two", (f"{first.get('by')} decided: {first.get('says')}", f"at {first.get('at')}")
        )
    if (known := queue.list_sections(card)) is not None:
        yield from known
    elif card.kind == PROPOSAL.name:
        yield from _proposal_sections(queue, card)
    elif card.kind == FAILED_RUN.name:
        yield CardSection("Cause", tuple(str(details.get("cause", card.title)).splitlines()), is_quoted=True)
        if remedy := str(details.get("remedy", "")):
            yield CardSection("What helps", (remedy,))
        event = details.get("event")
        if isinstance(event, Mapping):
            yield CardSection("Started by", (describe_event(event),), is_quoted=True)
        yield CardSection("Not done", (str(details.get("not_done", "")),))
        yield CardSection("To try again", (str(details.get("retry", "")),))
    elif is_question:
        yield from _question_sections(queue, card)
    else:
        yield from detail_sections(card)
    yield from queue.branches.get(card.id, ())
    if (days := queue.count_days_overdue(card)) is not None:
        waiting = f"for {count_noun(days, 'day')}" if days else f"since {card.created_at}"
        yield CardSection("Waiting", (waiting,))


def _proposal_sections(queue: QueueSnapshot, card: Card) -> Iterator[CardSection]:
    """What the proposal itself says, and its code: its card is a line that anybody with the repository can write."""
    shown = queue.proposal_of(card)
    if shown is None:
        yield CardSection("It cannot be decided", ("the proposal is not there, or cannot be read: cleared agent diff",))
        return
    yield from shown.card
    if (shadow := queue.shadows.get(shown.proposal.folder)) is not None:
        yield CardSection("Beside the live version", tuple(describe_shadow(shadow)))


def _question_sections(queue: QueueSnapshot, card: Card) -> Iterator[CardSection]:
    yield CardSection("It asks", (str(card.details.get("question", card.title)),), is_quoted=True)
    if (why := queue.find_held(card)) is not None:
        yield CardSection("It cannot be answered", (why,))
        return
    futures = card.details.get("futures")
    for choice in list_texts(card.details, "choices"):
        future = futures.get(choice) if isinstance(futures, Mapping) else None
        yield CardSection(f"If you answer {choice}", tuple(preview_lines(future)))
