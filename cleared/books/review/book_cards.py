"""The books as ``CardFacts``: what the queue shows of cards about entries and bank lines.

One card in full: what the bank said, what was made of it, what is suggested.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from itertools import compress
from operator import attrgetter
from typing import cast

from cleared.base import money
from cleared.books.card_kinds import ENTRY, LINE
from cleared.books.ledger.entry import Entry
from cleared.books.review.book_facts import BookFacts, read_book_facts, vendor_key
from cleared.books.review.similar_entries import list_similar_entries
from cleared.cards.card import Card
from cleared.cards.card_section import CardSection
from cleared.cards.known_cards import KnownCards
from cleared.changes.host import Host
from cleared.git import Snapshot
from cleared.review.card_details import detail_sections
from cleared.review.card_facts import CardChoice, CardFacts, CardTheme, QueueRow, SourceRow
from cleared.review.queue_snapshot import QueueSnapshot


@dataclass
class BookCards(CardFacts):
    """What the books of a commit say of open cards."""

    books: BookFacts

    def find_record(self, card: Card) -> Entry | None:
        return self.books.entry_of(card)

    def describe_row(self, card: Card) -> QueueRow | None:
        entry, line = self.books.entry_of(card), self.books.line_of(card)
        if entry is not None:
            amount = line[1].amount if line else entry.amount
            return _make_row(card, entry.date, amount, entry.description)
        if line is not None:
            return _make_row(card, line[1].posted_date, line[1].amount, line[1].description)
        return None

    def list_sections(self, card: Card) -> Sequence[CardSection] | None:
        return tuple(iter_sections(self.books, card)) if card.kind in (ENTRY.name, LINE.name) else None

    def list_suggestions(self, card: Card) -> Sequence[CardChoice]:
        return tuple(iter_suggestions(self.books, card))

    def find_theme(self, card: Card) -> CardTheme | None:
        """Cards of one vendor on the same accounts; held lines of one vendor at the same bank."""
        entry = self.books.entry_of(card)
        if card.kind == ENTRY.name and entry is not None:
            vendor, accounts = self.books.find_entry_theme(entry)
            return CardTheme(entry.counterparty or vendor, ", ".join(map(self.books.account_label, accounts)))
        if card.kind == LINE.name and (line := self.books.line_of(card)) is not None:
            name = (entry.counterparty if entry is not None else "") or vendor_key("", line[1].description)
            return CardTheme(name, line[0])
        return None

    def list_alike(self, card: Card, cards: Collection[Card]) -> Sequence[Card] | None:
        entry = self.books.entry_of(card)
        if card.kind == ENTRY.name and entry is not None:
            alike = self.books.list_theme(entry) | {entry.entry_id}
            are_alike = map(alike.__contains__, map(attrgetter("record_id"), cards))
            return [each for each in compress(cards, are_alike) if each.kind == ENTRY.name]
        if card.kind == LINE.name and (theme := self._find_line_theme(card)) is not None:
            return [each for each in cards if each.kind == LINE.name and self._find_line_theme(each) == theme]
        return None

    def _find_line_theme(self, card: Card) -> tuple[str, str] | None:
        line = self.books.line_of(card)
        return (line[0], vendor_key("", line[1].description)) if line is not None else None

    def find_source(self, card: Card) -> SourceRow | None:
        line = self.books.line_of(card)
        if line is None:
            return None
        digest = line[1].file_sha256
        record = self.books.imports.get(digest)
        return SourceRow(record.name if record else "", digest, line[1].row)


def open_book_cards(host: Host, snapshot: Snapshot, cards: KnownCards) -> BookCards:
    """The cards of a commit, with what its books say of them."""
    return BookCards(read_book_facts(host, snapshot, cards))


def _make_row(card: Card, day: date, amount: Decimal, text: str) -> QueueRow:
    return QueueRow(card.id, card.kind, day.isoformat(), money.format_amount(amount), text)


def book_facts_of(queue: QueueSnapshot) -> BookFacts:
    """What the books say of the cards of a queue."""
    return cast(BookCards, queue.facts["books"]).books


def iter_sections(books: BookFacts, card: Card) -> Iterator[CardSection]:
    """What the bank said, what was made of it and how surely, what was done with its like."""
    entry, line = books.entry_of(card), books.line_of(card)
    if line is not None:
        account, fact = line
        source = books.imports.get(fact.file_sha256)
        where = f"{source.name}, row {fact.row}" if source else f"row {fact.row}"
        amount = f"{fact.posted_date}   {money.format_amount(fact.amount)} {fact.currency}   {account}   ({where})"
        yield CardSection("The bank said", (fact.description, amount), is_quoted=True)
    if entry is not None:
        yield from _entry_sections(books, card, entry)
    elif line is not None:
        yield CardSection("Why it waits", (card.title.split(": ", 1)[-1],), is_quoted=True)
    else:
        yield from detail_sections(card)
    if found := books.suggestion_of(card):
        where = split_text(books, found.parts) or books.account_label(found.account)
        sure = f"{where}   {confidence_text(str(found.confidence))}"
        yield CardSection("Suggested", (sure, found.evidence), is_quoted=True)
    if (learned := books.learned_row_of(card)) is not None:
        yield CardSection("Always so?", (f"{learned.title}.", books.history.describe_past(learned.row)), is_quoted=True)
    past = tuple(
        (e.date.isoformat(), money.format_amount(e.amount), books.account_summary(e), e.status, e.description)
        for e in list_similar_entries(books, card)
    )
    yield (
        CardSection("Similar before", rows=past)
        if past
        else CardSection("Similar before", ("Nothing like it before that day.",))
    )


def _entry_sections(books: BookFacts, card: Card, entry: Entry) -> Iterator[CardSection]:
    legs = books.changeable_legs(entry) or books.effective_legs(entry)
    lines = [f"{books.account_label(leg.account_id)}   {money.format_amount(leg.amount)}" for leg in legs]
    if entry.counterparty:
        lines.append(f"Vendor: {entry.counterparty}")
    if entry.status != "pending-review":
        lines.append(f"Status now: {entry.status}")
    if entry.notes:
        lines.append(f"Note: {entry.notes}")
    yield CardSection(f"{card.agent} decided" if card.agent else "It was booked as", tuple(lines), is_quoted=True)
    question = str(card.details.get("description", ""))
    why = [f"{confidence_text(entry.confidence)}: {entry.evidence or 'no evidence given'}"]
    if question and question not in (entry.description, entry.evidence):
        why.append(question)
    yield CardSection("How sure", tuple(why), is_quoted=True)


def iter_suggestions(books: BookFacts, card: Card) -> Iterator[CardChoice]:
    """What is suggested, where it is another account than the card's entry has."""
    found, entry = books.suggestion_of(card), books.entry_of(card)
    booked = [leg.account_id for leg in books.changeable_legs(entry)] if entry is not None else []
    if found is not None and found.parts:
        value = " ".join(f"{account}={amount}" for account, amount in found.parts)
        yield CardChoice("suggested", f"Take the split {split_text(books, found.parts)}", value, found.evidence)
    elif found is not None and found.account not in booked:
        label = f"Take {books.account_label(found.account)}"
        yield CardChoice("suggested", label, str(found.account), found.evidence)
    if (learned := books.learned_row_of(card)) is not None:
        evidence = f"{learned.title}. {books.history.describe_past(learned.row)}"
        label = f"Always {books.account_label(learned.row.account)}"
        yield CardChoice("always", label, learned.row.describe(), evidence)


def split_text(books: BookFacts, parts: Sequence[tuple[int, Decimal]]) -> str:
    """``2500 Loans 1000.00, 5120 Interest 200.00``"""
    return ", ".join(f"{books.account_label(account)} {money.format_amount(amount)}" for account, amount in parts)


def confidence_text(confidence: str) -> str:
    """``0.60`` → ``60 % sure``, in words that need no colour."""
    try:
        percent = (Decimal(confidence) * 100).quantize(Decimal(1))
    except InvalidOperation:
        return "Not said how sure"
    return f"{percent} % sure" if percent else "Not sure at all"
