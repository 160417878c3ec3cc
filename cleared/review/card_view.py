"""One open card in full: what it says, part by part, and what can be done about it. Knows no terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from cleared.base import money
from cleared.base.errors import UsageError
from cleared.base.terminal import count_noun
from cleared.books.ledger.entry import Entry
from cleared.cards.card import Card
from cleared.cards.kinds import ENTRY, FAILED_RUN, LINE, PROPOSAL, QUESTION, kind_named
from cleared.changes.decisions.shown_cards import digest_card
from cleared.review.answers import answer_choices
from cleared.review.card_details import CardSection, detail_fields, detail_tables, preview_lines
from cleared.review.card_groups import card_group, similar_entries
from cleared.review.queue_snapshot import QueueRow, QueueSnapshot


@dataclass(frozen=True, slots=True)
class CardChoice:
    """Something that can be done about a card. ``verb`` is what ``cleared.review.card_actions`` knows."""

    verb: str
    """confirm | correct | suggested | always | reject | agree | answer | approve | decline | retry"""
    label: str
    value: str = ""
    """The answer, where the verb is answer; where it is suggested, the account, or ``ACCOUNT=AMOUNT …``."""


@dataclass(frozen=True, slots=True)
class CardView:
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


def show_card(queue: QueueSnapshot, card_id: str) -> CardView:
    """A card in full. Raises ``UsageError`` where it is not open (any more)."""
    card = queue.cards.get(card_id)
    if card is None:
        raise UsageError(f"there is no open card {card_id!r}", remedy="cleared queue list shows them.")
    row, group = queue.row_of(card), card_group(queue, card_id)
    return CardView(
        card.id,
        card.kind,
        kind_named(card.kind).title,
        row.text,
        row.amount,
        tuple(_card_sections(queue, card)),
        (*card_choices(card, is_held=card_id in queue.held), *_suggested_choices(queue, card)),
        len(group.rows) if group else 1,
        has_code=card.kind == PROPOSAL.name or card.entry_id is not None,
        has_file="file" in card.details or queue.line_of(card) is not None,
    )


def card_choices(card: Card, *, is_held: bool = False) -> tuple[CardChoice, ...]:
    """What can be done about this kind of card; the first is what ``a`` does."""
    if is_held:
        return (CardChoice("retry", "Have it asked again"),)
    actions = {verb: CardChoice(verb, label) for verb, label in kind_named(card.kind).actions.items()}
    retry = [actions.pop("retry")] if "retry" in actions else []
    answers = [CardChoice("answer", f"{k}: {v}" if v else k, k) for k, v in answer_choices(card).items()]
    agree = [CardChoice("agree", f"Agree with {each.get('by')}") for each in card.agreed[-1:] if "correct" in actions]
    return (*actions.values(), *answers, *agree, *retry)


def _suggested_choices(queue: QueueSnapshot, card: Card) -> Iterator[CardChoice]:
    """What is suggested, where it is another account than the card's entry has."""
    found, entry = queue.suggestion_of(card), queue.entry_of(card)
    booked = [leg.account_id for leg in queue.changeable_legs(entry)] if entry is not None else []
    if found is not None and found.parts:
        value = " ".join(f"{account}={amount}" for account, amount in found.parts)
        yield CardChoice("suggested", f"Take the split {split_text(queue, found.parts)}", value)
    elif found is not None and found.account not in booked:
        yield CardChoice("suggested", f"Take {queue.account_label(found.account)}", str(found.account))


def group_suggestion(queue: QueueSnapshot, ids: Sequence[str]) -> CardChoice | None:
    """What is suggested for each of several cards, where it is the same for all; else None."""
    choices = {tuple(_suggested_choices(queue, queue.cards[each])) for each in ids}
    return next(iter(choices.pop()), None) if len(choices) == 1 else None


def split_text(queue: QueueSnapshot, parts: Sequence[tuple[int, Decimal]]) -> str:
    """``2500 Loans 1000.00, 5120 Interest 200.00``"""
    return ", ".join(f"{queue.account_label(account)} {money.format_amount(amount)}" for account, amount in parts)


def digest_shown_cards(queue: QueueSnapshot, ids: Sequence[str]) -> dict[str, str]:
    """What a decision about these cards is bound to: the digests of them, and of the proposals behind them, as they are
    shown (see ``changes.decisions.shown_cards``)."""
    digests: dict[str, str] = {}
    for card in (queue.cards[each] for each in ids if each in queue.cards):
        digests[card.id] = digest_card(card, queue.entry_of(card))
        shown = queue.proposal_of(card)
        if shown is not None:
            digests[shown.proposal.folder] = shown.digest
    return digests


def cards_summary(rows: Sequence[QueueRow]) -> str:
    """What a decision was about, briefly."""
    return rows[0].text if len(rows) == 1 else f"{len(rows)} cards"


def _card_sections(queue: QueueSnapshot, card: Card) -> Iterator[CardSection]:
    details = card.details
    for first in card.agreed[-1:]:
        yield CardSection(
            "The first of two", (f"{first.get('by')} decided: {first.get('says')}", f"at {first.get('at')}")
        )
    if card.kind in (ENTRY.name, LINE.name):
        yield from _bookkeeping_sections(queue, card)
    elif card.kind == PROPOSAL.name:
        yield from _proposal_sections(queue, card)
    elif card.kind == FAILED_RUN.name:
        yield CardSection("Cause", tuple(str(details.get("cause", card.title)).splitlines()))
        yield CardSection("Not done", (str(details.get("not_done", "")),))
        yield CardSection("To try again", (str(details.get("retry", "")),))
    elif card.id in queue.held or card.kind == QUESTION.name:
        yield from _question_sections(queue, card)
    else:
        yield from _detail_sections(card)
    if card.id in queue.overdue:
        days = queue.overdue[card.id]
        waiting = f"for {count_noun(days, 'day')}" if days else f"since {card.created_at}"
        yield CardSection("Waiting", (waiting,))


def _proposal_sections(queue: QueueSnapshot, card: Card) -> Iterator[CardSection]:
    """What the proposal itself says, and its code: its card is a line that anybody with the repository can write."""
    shown = queue.proposal_of(card)
    if shown is None:
        yield CardSection("It cannot be decided", ("the proposal is not there, or cannot be read: cleared agent diff",))
        return
    yield CardSection("What it would change", shown.says)
    yield CardSection("Its code, beside what is approved", shown.code_lines, is_code=True)


def _question_sections(queue: QueueSnapshot, card: Card) -> Iterator[CardSection]:
    yield CardSection("It asks", (str(card.details.get("question", card.title)),))
    if card.id in queue.held:
        yield CardSection("It cannot be answered", (queue.held[card.id],))
        return
    for choice in card.details.get("choices", ()):
        future = card.details.get("futures", {}).get(choice)
        yield CardSection(f"If you answer {choice}", tuple(preview_lines(future)))


def _bookkeeping_sections(queue: QueueSnapshot, card: Card) -> Iterator[CardSection]:
    """What the bank said, what was made of it and how surely, what was done with its like."""
    entry, line = queue.entry_of(card), queue.line_of(card)
    if line is not None:
        account, fact = line
        source = queue.imports.get(fact.file_sha256)
        where = f"{source.name}, row {fact.row}" if source else f"row {fact.row}"
        amount = f"{fact.posted_date}   {money.format_amount(fact.amount)} {fact.currency}   {account}   ({where})"
        yield CardSection("The bank said", (fact.description, amount))
    if entry is not None:
        yield from _entry_sections(queue, card, entry)
    elif line is not None:
        yield CardSection("Why it waits", (card.title.split(": ", 1)[-1],))
    else:
        yield from _detail_sections(card)
    if found := queue.suggestion_of(card):
        where = split_text(queue, found.parts) or queue.account_label(found.account)
        sure = f"{where}   {confidence_text(str(found.confidence))}"
        yield CardSection("Suggested", (sure, found.evidence))
    past = tuple(
        (e.date.isoformat(), money.format_amount(e.amount), queue.account_summary(e), e.status, e.description)
        for e in similar_entries(queue, card)
    )
    yield CardSection("Similar before", rows=past) if past else CardSection("Similar before", ("Nothing like it yet.",))


def _entry_sections(queue: QueueSnapshot, card: Card, entry: Entry) -> Iterator[CardSection]:
    legs = queue.changeable_legs(entry) or queue.effective_legs(entry)
    lines = [f"{queue.account_label(leg.account_id)}   {money.format_amount(leg.amount)}" for leg in legs]
    if entry.counterparty:
        lines.append(f"Vendor: {entry.counterparty}")
    if entry.status != "pending-review":
        lines.append(f"Status now: {entry.status}")
    if entry.notes:
        lines.append(f"Note: {entry.notes}")
    yield CardSection(f"{card.agent} decided" if card.agent else "It was booked as", tuple(lines))
    question = str(card.details.get("description", ""))
    why = [f"{confidence_text(entry.confidence)}: {entry.evidence or 'no evidence given'}"]
    if question and question not in (entry.description, entry.evidence):
        why.append(question)
    yield CardSection("How sure", tuple(why))


def confidence_text(confidence: str) -> str:
    """``0.60`` → ``60 % sure``, in words that need no colour."""
    try:
        percent = (Decimal(confidence) * 100).quantize(Decimal(1))
    except InvalidOperation:
        return "Not said how sure"
    return f"{percent} % sure" if percent else "Not sure at all"


def _detail_sections(card: Card) -> Iterator[CardSection]:
    """Whatever the card holds."""
    yield from detail_tables(card.details)
    fields = tuple(f"{label}: {value}" for label, value in detail_fields(card.details, card.title))
    if fields:
        yield CardSection("Details", fields)
