"""Notes in the review: they are confirmed, corrected, taken back and explained."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from notes_domain import HEADER, NOTE_CARD, PATH, NotesComparison, notes_of, parse_notes

from cleared.base.errors import UsageError
from cleared.cards.card import Card
from cleared.cards.card_section import CardSection
from cleared.changes.host import Host
from cleared.git import Snapshot
from cleared.primitives.context import Context
from cleared.review.card_facts import CardChoice, CardFacts, CardTheme, QueueRow
from cleared.review.record_review import (
    CorrectedRecord,
    DecisionCase,
    FoundRecord,
    RecordOrigin,
    RecordPlace,
    RecordReview,
    UndoCase,
)
from cleared.workspace.location import Layout


@dataclass(frozen=True)
class NewText:
    """What a note should have said."""

    text: str

    def to_data(self) -> Mapping[str, Any]:
        return {"text": self.text}


def read_notes(snapshot: Snapshot) -> dict[str, str]:
    return parse_notes((snapshot.read_file(PATH) or HEADER.encode()).decode())


@dataclass
class NoteCards(CardFacts):
    notes: Mapping[str, str]

    def find_record(self, card: Card) -> str | None:
        return self.notes.get(card.record_id or "")

    def describe_row(self, card: Card) -> QueueRow | None:
        text = self.find_record(card)
        return QueueRow(card.id, card.kind, card.created_at[:10], "", text) if text else None

    def list_sections(self, card: Card) -> Sequence[CardSection] | None:
        text = self.find_record(card)
        return [CardSection("It says", (text,))] if text else None

    def list_suggestions(self, card: Card) -> Sequence[CardChoice]:
        text = self.find_record(card)
        return [CardChoice("suggested", "Louder", text.upper())] if text else ()

    def find_theme(self, card: Card) -> CardTheme | None:
        text = self.find_record(card)
        return CardTheme(text.split()[0]) if text else None

    def list_alike(self, card: Card, cards: Collection[Card]) -> Sequence[Card] | None:
        theme = self.find_theme(card)
        return [each for each in cards if self.find_theme(each) == theme] if theme is not None else None


class NotesReview(RecordReview):
    record_kind = NOTE_CARD.name
    maker_primitives: ClassVar = {"note_put": False}

    def find_record(self, context: Context, name: str) -> FoundRecord | None:
        text = notes_of(context).notes.get(name)
        return FoundRecord(name, text) if text is not None else None

    def stage_confirmation(self, case: DecisionCase) -> str:
        case.settle("confirmed")
        return case.target.name

    def stage_correction(self, case: DecisionCase) -> str:
        record, text = case.target.record, case.request.get("text")
        if record is None or not isinstance(text, str):
            raise UsageError(f"that is no text for a note ({case.target.name})", remedy="Write one.")
        notes_of(case.context).added[record.id] = text
        case.result.corrected[record.id] = CorrectedRecord(
            self, record, f"{case.context.now:%Y-%m}", {str(record.value): text}, NotesComparison.correction_key
        )
        case.settle(f"corrected: {text}")
        return record.id

    def read_suggestion(self, value: str) -> NewText:
        return NewText(value)

    def open_facts(self, host: Host, snapshot: Snapshot, cards: Mapping[str, Card]) -> NoteCards:
        return NoteCards(read_notes(snapshot))

    def take_back(self, case: UndoCase) -> Mapping[str, bytes | None]:
        before, after = read_notes(case.before), read_notes(case.after)
        for name in [name for name, text in before.items() if after[name] != text]:
            notes_of(case.context).added[name] = before[name]
            case.result.records.append(name)
        return {}

    def locate_record(self, layout: Layout, record: FoundRecord) -> RecordPlace | None:
        return RecordPlace(PATH, f"\n{record.id},".encode())

    def trace_record(self, host: Host, snapshot: Snapshot, name: str) -> RecordOrigin | None:
        text = read_notes(snapshot).get(name)
        if text is None:
            return None
        place = RecordPlace(PATH, f"\n{name},".encode())
        return RecordOrigin(name, place, {"note": {"note_id": name, "text": text}}, [("note", f"{name}  {text}")])

    def list_changes(
        self, layout: Layout, before: Snapshot, after: Snapshot, record_id: str, *, by_hand: bool = False
    ) -> Sequence[tuple[str, str, str]]:
        old, new = (read_notes(each).get(record_id, "") for each in (before, after))
        return [("text", old, new)] if old != new else ()
