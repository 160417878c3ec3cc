"""A second domain, as small as it gets: notes that runs and decisions write into ``notes/list.csv``, one a row."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from cleared.base.errors import Place
from cleared.base.file_source import FileSource
from cleared.domains.domain import Domain, DraftDescription, Opening, Staged
from cleared.domains.effects import Effect
from cleared.domains.record_audit import NamedRow, RecordAudit, RowKind
from cleared.domains.violations import Violation
from cleared.git import Snapshot
from cleared.primitives.context import Context
from cleared.primitives.registry import primitive as declaration
from cleared.primitives.registry.vocabulary import Line

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

    def render_files(self, run_id: str) -> Mapping[str, bytes | None]:
        before = self.source.read(PATH) or HEADER.encode()
        rows = "".join(f"{name},{text}\n" for name, text in self.added.items())
        return {PATH: before + rows.encode()} if rows else {}


def open_notes(opening: Opening) -> StagedNotes:
    return StagedNotes(opening.source)


@declaration.primitive(effect=declaration.Effect.STAGE, grant="notes.write")
def note_put(ctx: Context, text: Line) -> str:
    """Put a note; its id."""
    added = cast(StagedNotes, ctx.parts["notes"]).added
    name = f"N{len(added) + 1}"
    added[name] = text
    return name


NOTES = Domain(
    "notes",
    "Notes.",
    record_noun=("note", "notes"),
    open=open_notes,
    primitive_modules=("notes_domain",),
    list_checks=lambda: {"note": "A note says something."},
    audit=NotesAudit,
)
