"""Cards that ask about a row: what they look like in the queue, and how a run stages one."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from cleared.cards.kinds import CardKind
from cleared.changes.committed_cards import read_cards
from cleared.changes.host import Host
from cleared.domains.domain import RecordOutcome
from cleared.git import Snapshot
from cleared.primitives.context import Context
from cleared.records.row_changes import RowChange, describe_change
from cleared.records.table_names import Key
from cleared.records.table_rows import Row, Table

ROW_CARD = CardKind(
    "row",
    "Row to confirm",
    "row",
    "A row of a table that an agent put, to confirm or to put back.",
    "",
    actions={"confirm": "Confirm", "reject": "Put back what was there"},
    person_only=True,
)
OLDER: Final = "the row was another one by then"
"""The resolution of a card that was answered when its row had changed: nothing was decided about the row."""


def list_card_kinds() -> Sequence[CardKind]:
    """The kinds of cards about rows."""
    return (ROW_CARD,)


def read_outcomes(host: Host, snapshot: Snapshot) -> dict[str, RecordOutcome]:
    """What persons decided about rows that a script asked about: it was sure of none of them."""
    cards = read_cards(host, snapshot).list_kind(ROW_CARD.name)
    asked = (card for card in cards if card.record_id and card.status != "open" and card.resolution != OLDER)
    return {str(card.record_id): RecordOutcome(Decimal(0), card.resolution == "confirmed") for card in asked}


def stage_row_card(context: Context, table: Table, key: Key, row: Row, question: str) -> str:
    """A card that asks about a row as it is now; its id."""
    change = RowChange(table.schema, table.name, key, table.rows.get(key), row)
    said = describe_change(change)
    before: Any = said["before"]
    after: Any = said["after"]
    title = f"{change.id} {change.describe()}"[:200]
    about = (change.id, *row)
    return context.stage_card(
        ROW_CARD.name, about, title, record_id=change.id, question=question, before=before, after=after
    )
