"""What the records of a domain say of open cards: rows of a list, parts of a card, what is suggested, what is alike.

Texts are as they came from outside or from a script: whoever shows them escapes them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from cleared.cards.card import Card
from cleared.cards.card_section import CardSection


class QueueRow(Struct, frozen=True):
    """A card in a list."""

    id: str
    kind: str
    date: str
    amount: str
    text: str


class CardChoice(Struct, frozen=True):
    """Something that can be done about a card. ``verb`` is what ``cleared.review.card_actions`` knows, or a domain."""

    verb: str
    """confirm | correct | suggested | always | reject | agree | answer | approve | decline | retry"""
    label: str
    value: str = ""
    """The answer, where the verb is answer; where it is suggested, what ``RecordReview.read_suggestion`` takes."""
    evidence: str = ""
    """What a suggestion rests on, in one sentence."""

    @property
    def meaning(self) -> str:
        """What is answered, in words where it has some; of other choices, what they take."""
        return self.label.removeprefix(f"{self.value}: ").rstrip(".") if self.verb == "answer" else self.value


class CardTheme(Struct, frozen=True):
    """What cards have in common that one decision could cover."""

    name: str
    """It, in words, such as a vendor."""
    detail: str = ""
    """What else is the same, such as the accounts."""


class SourceRow(Struct, frozen=True):
    """The row of a file that was taken in, which a card is about."""

    name: str
    """Of the file, as it was called then; empty where that is not known."""
    sha256: str
    row: int
    """Its line, from 1."""


class CardFacts:
    """What the records of one domain, as of a commit, say of open cards. By itself nothing: a domain says more where it
    can."""

    def find_record(self, card: Card) -> object | None:
        """The record that a card is about, as ``RecordReview.find_record`` has it: what a decision is bound to."""

    def describe_row(self, card: Card) -> QueueRow | None:
        """The card in a list; None where the domain knows no more than the card says."""

    def list_sections(self, card: Card) -> Sequence[CardSection] | None:
        """The card in full, part by part; None where the domain knows no more than the card says."""

    def list_suggestions(self, card: Card) -> Sequence[CardChoice]:
        """What could be decided because the like was decided before."""
        return ()

    def find_theme(self, card: Card) -> CardTheme | None:
        """What other cards can be decided together with this one; None for a kind of card that has no groups."""

    def list_alike(self, card: Card, cards: Collection[Card]) -> Sequence[Card] | None:
        """Those of ``cards`` that have its theme, in their order; None for a kind of card that has no groups."""

    def find_source(self, card: Card) -> SourceRow | None:
        """The row of a file that it is about."""
