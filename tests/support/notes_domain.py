"""A second domain, as small as it gets: notes that runs and decisions write into ``notes/list.csv``, one a row.

The last row of a note counts. ``notes_review`` says how they are reviewed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from cleared.base.effects import Effect
from cleared.base.errors import Place
from cleared.base.file_source import FileSource
from cleared.cards.kinds import CardKind
from cleared.domains.domain import Domain, DraftDescription, Opening, Staged, import_when_called
from cleared.domains.record_audit import NamedRow, RecordAudit, RowKind, Violation
from cleared.domains.record_comparison import Record, RecordComparison, RecordSummary
from cleared.git import Snapshot
from cleared.primitives.context import Context
from cleared.primitives.registry import primitive as declaration
from cleared.primitives.registry.vocabulary import Line
from cleared.workspace.location import Layout

PATH = "notes/list.csv"
HEADER = "id,text\n"


def parse_notes(text: str) -> dict[str, str]:
    """Id → text."""
    return dict(line.partition(",")[::2] for line in text.splitlines()[1:])


def find_empty(notes: Mapping[str, str]) -> list[Violation]:
    return [
        Violation("note", f"the note {name} says nothing", "Write something.", Place(PATH))
        for name, text in notes.items()
        if not text
    ]


def read_rows(text: str) -> Iterator[NamedRow]:
    yield from (((name, said), name) for name, said in parse_notes(text).items())


NOTES_ROWS = RowKind("notes", ("note", "notes"), read_rows, counted_as="notes", shows_ids=True)


NOTE_CARD = CardKind(
    "note",
    "Note to confirm",
    "note",
    "A note to confirm.",
    "",
    actions={"confirm": "Confirm"},
    person_only=True,
)


class NotesComparison(RecordComparison):
    """Corrections hold texts by the texts that they should have been instead of."""

    correction_key = "texts"

    def strip_ids(self, record: Record) -> Record:
        return {"text": record["text"]}

    def summarise(self, record: Record) -> RecordSummary:
        return RecordSummary(str(record["text"]), str(record["text"]))

    def read_added(
        self, layout: Layout, before: FileSource, after: FileSource, files: Collection[str]
    ) -> Mapping[str, Record]:
        old, new = (parse_notes((each.read(PATH) or HEADER.encode()).decode()) for each in (before, after))
        return {name: {"note_id": name, "text": text} for name, text in new.items() if name not in old}

    def compare_correction(self, expected: Any, records: Sequence[Record]) -> list[str]:
        texts = {record["text"] for record in records}
        return [f"{was} should be {text}" for was, text in expected.items() if was in texts or text not in texts]


class NotesAudit(RecordAudit):
    folders = ("notes",)
    row_kinds = (NOTES_ROWS,)

    def check_records(self, source: FileSource, commit: Snapshot | None = None) -> list[Violation]:
        return find_empty(parse_notes((source.read(PATH) or b"").decode()))

    def is_record_file(self, path: str) -> bool:
        return path.startswith("notes/")

    def find_row_kind(self, path: str) -> RowKind | None:
        return NOTES_ROWS if path == PATH else None

    def list_roots(self, commit: Snapshot) -> Collection[str]:
        return ("notes",)


@dataclass
class StagedNotes(Staged):
    source: FileSource
    added: dict[str, str] = field(default_factory=dict)

    @property
    def has_changes(self) -> bool:
        return bool(self.added)

    def draft_key(self) -> object:
        return len(self.added)

    def describe_draft(self) -> DraftDescription:
        return DraftDescription({name: {"note_id": name, "text": text} for name, text in self.added.items()})

    def list_effects(self) -> list[Effect]:
        return [Effect(f"note {text}", None, record=name) for name, text in self.added.items()]

    def find_violations(self) -> list[Violation]:
        return find_empty(self.added)

    @property
    def notes(self) -> dict[str, str]:
        """Id → text, with the draft."""
        return parse_notes((self.source.read(PATH) or HEADER.encode()).decode()) | self.added

    def render_files(self, run_id: str) -> Mapping[str, bytes | None]:
        before = self.source.read(PATH) or HEADER.encode()
        rows = "".join(f"{name},{text}\n" for name, text in self.added.items())
        return {PATH: before + rows.encode()} if rows else {}


def open_notes(opening: Opening) -> StagedNotes:
    return StagedNotes(opening.source)


def notes_of(context: Context) -> StagedNotes:
    return cast(StagedNotes, context.parts["notes"])


@declaration.primitive(effect=declaration.Effect.STAGE, grant="notes.write")
def note_put(ctx: Context, text: Line) -> str:
    """Put a note; its id."""
    staged = notes_of(ctx)
    name = f"N{len(staged.notes) + 1}"
    staged.added[name] = text
    return name


@declaration.primitive(effect=declaration.Effect.STAGE, grant="notes.write")
def note_ask(ctx: Context, name: Line) -> None:
    """Ask whether a note is right."""
    ctx.stage_card(NOTE_CARD.name, (name,), notes_of(ctx).notes[name], record_id=name)


NOTES = Domain(
    "notes",
    "Notes.",
    record_noun=("note", "notes"),
    open=open_notes,
    primitive_modules=("notes_domain",),
    latest_rows={"list.csv": (0,)},
    list_checks=lambda: {"note": "A note says something."},
    audit=NotesAudit,
    comparison=NotesComparison,
    list_card_kinds=lambda: (NOTE_CARD,),
    review=import_when_called("notes_review:NotesReview"),
)
