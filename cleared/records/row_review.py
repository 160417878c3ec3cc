"""Rows in the review: scripts ask about them; people confirm them or put back what was there, and are told why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from cleared.base.clock import format_iso
from cleared.base.csv_text import format_record
from cleared.base.errors import ClearedError, PolicyError, UsageError
from cleared.base.file_source import FileSource
from cleared.cards.card import Card
from cleared.cards.card_section import CardSection
from cleared.cards.known_cards import KnownCards
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.git import Snapshot
from cleared.primitives.context import Context
from cleared.records.records_domain import tables_of
from cleared.records.row_cards import OLDER, ROW_CARD
from cleared.records.row_changes import RowChange, RowComparison, describe_change, find_row, list_changes_between
from cleared.records.row_correction import correct_row
from cleared.records.row_reading import is_reading
from cleared.records.table_names import FOLDER, parse_row_id, row_id, table_path
from cleared.records.table_rows import Row, Table, describe_row
from cleared.review.card_facts import CardFacts, QueueRow
from cleared.review.record_review import (
    CorrectedRecord,
    DecisionCase,
    FoundRecord,
    RecordOrigin,
    RecordPlace,
    RecordReview,
    RevertCase,
    UndoCase,
)
from cleared.workspace.location import Layout


@dataclass
class RowCards(CardFacts):
    """What the tables of a commit say of open cards."""

    source: CommittedSource

    def find_record(self, card: Card) -> Row | None:
        found = find_row(self.source, card.record_id or "")
        return found[2] if found is not None else None

    def describe_row(self, card: Card) -> QueueRow | None:
        if card.kind != ROW_CARD.name or self.find_record(card) is None:
            return None
        return QueueRow(card.id, card.kind, card.created_at[:10], "", card.title)

    def list_sections(self, card: Card) -> Sequence[CardSection] | None:
        found = find_row(self.source, card.record_id or "") if card.kind == ROW_CARD.name else None
        if found is None:
            return None
        table, _, row = found
        before = _read_before(card, table)
        back = describe_row(table, before) if before is not None else "nothing: the row goes"
        what = ("Putting back", back)
        if not _is_as_asked(card, table, row):
            what = ("Another one since that was asked", "It stays so; only the card is settled.")
        return [
            CardSection("Asked", (str(card.details.get("question", "")),), is_quoted=True),
            CardSection(str(card.record_id), (describe_row(table, row),), is_quoted=True),
            CardSection(what[0], (what[1],), is_quoted=True),
        ]


class RowReview(RecordReview):
    """A row as a record: its id is that of ``table_put``, its value the texts of the row."""

    record_kind = ROW_CARD.name
    card_kinds: ClassVar = (ROW_CARD.name,)
    maker_primitives: ClassVar = {"table_put": False}

    def find_record(self, context: Context, name: str) -> FoundRecord | None:
        parsed, tables = parse_row_id(name), tables_of(context)
        if parsed is None:
            return None
        try:
            row = tables.find_row(tables.get_table(parsed[0]), parsed[1])
        except ClearedError:  # no table is called so, or none that counts
            return None
        return FoundRecord(name, row) if row is not None else None

    def stage_confirmation(self, case: DecisionCase) -> str:
        card, parsed = case.target.card, parse_row_id(case.target.name)
        if card is not None and parsed is not None:
            table = tables_of(case.context).get_table(parsed[0])
            row = tables_of(case.context).find_row(table, parsed[1])
            if not _is_as_asked(card, table, row):
                return _settle_older_card(case, card, table, row)
        case.settle("confirmed")
        return case.target.name

    def stage_correction(self, case: DecisionCase) -> str:
        parsed = parse_row_id(case.target.name)
        row = case.target.record.value if case.target.record is not None else None
        if parsed is None or not isinstance(row, tuple):
            raise self._make_refusal(case, "corrected")
        tables = tables_of(case.context)
        table = tables.get_table(parsed[0])
        right = correct_row(table, row, case.request)
        change = RowChange(table.schema, table.name, parsed[1], row, right)
        if not tables.set_row(table, parsed[1], right):
            raise UsageError(f"{case.target.name} is so already", remedy="Confirm it: cleared queue approve.")
        values = {name: new for name, _, new in change.list_differences()}
        case.settle(f"corrected: {', '.join(f'{name} {new}' for name, new in values.items())}"[:300])
        assert case.target.record is not None
        case.result.corrected[change.id] = CorrectedRecord(
            self,
            case.target.record,
            f"{case.context.now:%Y-%m}",
            {change.id: values},
            RowComparison.correction_key,
        )
        return case.target.name

    def stage_rejection(self, case: DecisionCase) -> str:
        card, parsed = case.target.card, parse_row_id(case.target.name)
        if card is None or parsed is None:
            raise UsageError(f"nothing asks about {case.target.name}", remedy="Have an agent put or remove the row.")
        tables = tables_of(case.context)
        table = tables.get_table(parsed[0])
        before, now = _read_before(card, table), tables.find_row(table, parsed[1])
        if _is_as_asked(card, table, now):
            tables.set_row(table, parsed[1], before)
        elif now != before:
            return _settle_older_card(case, card, table, now)
        case.settle(f"rejected: {case.request['reason']}")
        return case.target.name

    def open_facts(self, host: Host, snapshot: Snapshot, cards: KnownCards) -> CardFacts:
        return RowCards(CommittedSource(snapshot))

    def take_back(self, case: UndoCase) -> Mapping[str, bytes | None]:
        before, after = CommittedSource(case.before), CommittedSource(case.after)
        tables = tables_of(case.context)
        for change in list_changes_between(before, after, case.commit.files or ()):
            table = tables.get_table(change.table)
            if tables.find_row(table, change.key) != change.after:
                raise PolicyError(f"{change.id} has changed since", remedy="Put back by an agent what is to be there.")
            tables.set_row(table, change.key, change.before)
            case.result.records.append(change.id)
        return {}

    def stage_revert(self, case: RevertCase) -> None:
        before, after = CommittedSource(case.before), CommittedSource(case.after)
        tables = tables_of(case.context)
        for change in list_changes_between(before, after, case.commit.files or ()):
            table = tables.get_table(change.table)
            if tables.find_row(table, change.key) != change.after:
                case.run.kept.append(change.id)
                continue
            tables.set_row(table, change.key, change.before)
            case.run.voided.append(change.id)
        if case.run.voided and not case.run.again:
            case.run.again.append(f"cleared agent run {case.run.agent}")

    def is_reading(self, source: FileSource, agent: str, call: Mapping[str, Any], record_id: str) -> bool | None:
        return is_reading(source, call, record_id)

    def locate_record(self, layout: Layout, record: FoundRecord) -> RecordPlace | None:
        parsed = parse_row_id(record.id)
        return _place_row(parsed[0], record.value) if parsed and isinstance(record.value, tuple) else None

    def trace_record(self, host: Host, snapshot: Snapshot, name: str) -> RecordOrigin | None:
        found = find_row(CommittedSource(snapshot), name)
        if found is None:
            return None
        table, key, row = found
        said = describe_change(RowChange(table.schema, table.name, key, None, row))["after"]
        words = [("row", f"{name}  {describe_row(table, row)}")]
        return RecordOrigin(name, _place_row(table.name, row), {"row": {"row_id": name, "values": said}}, words)

    def list_changes(
        self, layout: Layout, before: Snapshot, after: Snapshot, record_id: str, *, by_hand: bool = False
    ) -> Sequence[tuple[str, str, str]]:
        parsed = parse_row_id(record_id)
        files = (table_path(parsed[0]),) if parsed is not None else ()
        changes = list_changes_between(CommittedSource(before), CommittedSource(after), files)
        return next((change.list_differences() for change in changes if change.id == record_id), [])


def _read_before(card: Card, table: Table) -> Row | None:
    """The row that putting back brings, by what the card says; None: none. Anybody who can push may have written the
    card: what is no row of the table is refused. Raises ``UsageError``."""
    before = card.details.get("before")
    if before is None:
        return None
    try:
        columns = table.schema.columns.values()
        row = tuple(column.take_text(str(before[column.name])) for column in columns)
        if row_id(table.name, table.key_of(row)) != card.record_id:
            raise ValueError("another row")
        return row
    except (KeyError, TypeError, ValueError):
        what = f"what the card would put back does not fit {FOLDER}/{table.name}.yaml any more"
        raise UsageError(what, remedy="Confirm it, and have an agent put the row.") from None


def _settle_older_card(case: DecisionCase, card: Card, table: Table, row: Row | None) -> str:
    """Stage that only a card is settled, as its row is another one by now, and say so; what it was about."""
    stands = describe_row(table, row) if row is not None else "no such row"
    said = f"{case.target.name} is another one since that was asked: {stands}"
    case.result.messages.append(f"{said}. It stays so; only the card is settled.")
    case.context.cards.resolve_card(card.id, format_iso(case.context.now), case.by, OLDER)
    case.result.cards.append(card.id)
    return case.target.name


def _is_as_asked(card: Card, table: Table, row: Row | None) -> bool:
    """Whether the row is still what the card asked about: what was put or decided since is newer than its answer."""
    asked = card.details.get("after")
    if not isinstance(asked, Mapping):
        return True
    texts = dict(zip(table.schema.columns, row, strict=True)) if row is not None else {}
    return all(texts.get(name) == text for name, text in asked.items() if name in table.schema.columns)


def _place_row(table: str, row: Row) -> RecordPlace:
    return RecordPlace(table_path(table), f"\n{format_record(row)}".encode())
