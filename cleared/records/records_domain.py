"""Tables as a domain: what the runtime is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from cleared.domains.domain import Domain, import_when_called

if TYPE_CHECKING:
    from cleared.primitives.context import Context
    from cleared.records.staged_tables import StagedTables

RECORDS: Final = Domain(
    name="records",
    about="Typed tables in git; agents put and remove rows.",
    record_noun=("row", "rows"),
    count_records=import_when_called("cleared.records.table_queries:count_rows"),
    record_schema=import_when_called("cleared.records.row_changes:describe_record_schema"),
    primitive_modules=("cleared.records.table_primitives",),
    operation_modules=("cleared.records.table_queries",),
    list_grants=import_when_called("cleared.records.table_grants:list_grants"),
    list_header_keys=import_when_called("cleared.records.table_grants:list_header_keys"),
    open=import_when_called("cleared.records.staged_tables:StagedTables"),
    opens_late=True,
    describe_number=import_when_called("cleared.records.row_changes:count_changes"),
    comparison=import_when_called("cleared.records.row_changes:RowComparison"),
    audit=import_when_called("cleared.records.table_audit:TableAudit"),
    redo=import_when_called("cleared.records.redone_rows:redo_rows"),
    read_outcomes=import_when_called("cleared.records.row_cards:read_outcomes"),
    review=import_when_called("cleared.records.row_review:RowReview"),
    find_lessons=import_when_called("cleared.records.row_lessons:find_lessons"),
    list_card_kinds=import_when_called("cleared.records.row_cards:list_card_kinds"),
    list_checks=import_when_called("cleared.records.table_audit:list_checks"),
)


def tables_of(context: Context) -> StagedTables:
    """The tables that a run or decision works on."""
    return cast("StagedTables", context.parts[RECORDS.name])
