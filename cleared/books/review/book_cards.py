"""The books as ``CardFacts``: what the queue shows of cards about entries and bank lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import cast

from cleared.base import money
from cleared.books.ledger.entry import Entry
from cleared.books.review.book_facts import BookFacts, vendor_key
from cleared.books.review.entry_sections import iter_sections, iter_suggestions
from cleared.cards.card import Card
from cleared.cards.kinds import ENTRY, LINE
from cleared.review.card_details import CardSection
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
            return _make_row(card, entry.date, amount, entry.description, entry.entry_id)
        if line is not None:
            return _make_row(card, line[1].posted_date, line[1].amount, line[1].description, None)
        return None

    def list_sections(self, card: Card) -> Sequence[CardSection] | None:
        return tuple(iter_sections(self.books, card)) if card.kind in (ENTRY.name, LINE.name) else None

    def list_suggestions(self, card: Card) -> Sequence[CardChoice]:
        return tuple(iter_suggestions(self.books, card))

    def find_theme(self, card: Card) -> CardTheme | None:
        """Cards of one vendor on the same accounts; held lines of one vendor at the same bank."""
        entry, line = self.books.entry_of(card), self.books.line_of(card)
        if card.kind == ENTRY.name and entry is not None:
            vendor = vendor_key(entry.counterparty, entry.description)
            accounts = tuple(sorted(leg.account_id for leg in self.books.changeable_legs(entry)))
            labels = ", ".join(map(self.books.account_label, accounts))
            return CardTheme((ENTRY.name, vendor, accounts), entry.counterparty or vendor, labels)
        if card.kind == LINE.name and line is not None:
            vendor = vendor_key("", line[1].description)
            name = (entry.counterparty if entry is not None else "") or vendor
            return CardTheme((LINE.name, vendor, line[0]), name, line[0])
        return None

    def find_source(self, card: Card) -> SourceRow | None:
        line = self.books.line_of(card)
        if line is None:
            return None
        digest = line[1].file_sha256
        record = self.books.imports.get(digest)
        return SourceRow(record.name if record else "", digest, line[1].row)


def _make_row(card: Card, day: date, amount: Decimal, text: str, entry_id: str | None) -> QueueRow:
    return QueueRow(card.id, card.kind, day.isoformat(), money.format_amount(amount), text, entry_id)


def book_facts_of(queue: QueueSnapshot) -> BookFacts:
    """What the books say of the cards of a queue."""
    return cast(BookCards, queue.facts["books"]).books
