"""The books as a domain: what the runtime is told of them."""

from __future__ import annotations

from typing import Final

from cleared.domains.domain import Domain, import_when_called

INBOX_ACTOR: Final = "receipts inbox"
"""Who keeps what was put into the inbox of receipts, where the service looks there."""
PAGE_ACTOR: Final = "the page"
"""Who keeps what was handed in there, whoever it was: keeping is nobody's decision."""

BOOKS: Final = Domain(
    name="books",
    about="Bank files in, a balanced double-entry journal out.",
    record_noun=("entry", "entries"),
    count_records=import_when_called("cleared.books.queries:count_entries"),
    record_schema=import_when_called("cleared.books.ledger.entry_schema:describe_entry_schema"),
    primitive_modules=(
        "cleared.books.primitives.importer",
        "cleared.books.primitives.journal",
        "cleared.books.primitives.receivables",
        "cleared.books.primitives.accounts",
        "cleared.books.primitives.suggest",
        "cleared.books.primitives.queue_entries",
    ),
    list_header_keys=import_when_called("cleared.books.staged_books:list_header_keys"),
    list_grants=import_when_called("cleared.books.book_grants:list_grants"),
    lint_modules=("cleared.books.script_rules",),
    read_lint_facts=import_when_called("cleared.books.script_rules:read_chart"),
    operation_modules=("cleared.books.book_operations",),
    job_type_modules=("cleared.books.book_jobs",),
    find_setting_faults=import_when_called("cleared.books.bank_ledger_accounts:find_setting_faults"),
    open=import_when_called("cleared.books.books_draft:open_books_draft"),
    open_card_facts=import_when_called("cleared.books.entry_facts:open_card_facts"),
    find_sample_time=import_when_called("cleared.books.sample_files:find_open_time"),
    make_sample_files=import_when_called("cleared.books.sample_files:make_sample_files"),
    make_probe_files=import_when_called("cleared.books.sample_files:make_probe_files"),
    read_imported_files=import_when_called("cleared.books.staged_books:read_imported_files"),
    actors=(INBOX_ACTOR, PAGE_ACTOR),
    make_duties=import_when_called("cleared.books.receipt_inbox:make_duties"),
    comparison=import_when_called("cleared.books.entry_comparison:EntryComparison"),
    list_card_kinds=import_when_called("cleared.books.card_kinds:list_card_kinds"),
    latest_rows={"periods.csv": (), "outcomes.csv": (0,), "reconciliations.csv": (0, 1), "receipts.csv": (0,)},
    list_checks=import_when_called("cleared.books.audit.book_checks:list_checks"),
    standing_name="accounts",
    read_standing=import_when_called("cleared.books.decisions.bank_agreement:read_standing"),
    list_acts=import_when_called("cleared.books.decisions.book_acts:list_acts"),
    review=import_when_called("cleared.books.review.book_review:BookReview"),
    read_outcomes=import_when_called("cleared.books.queries:read_outcomes"),
    find_lessons=import_when_called("cleared.books.teaching.book_lessons:find_lessons"),
    describe_rows=import_when_called("cleared.books.teaching.row_sentences:describe_rows"),
    audit=import_when_called("cleared.books.audit.book_audit:BookAudit"),
    redo=import_when_called("cleared.books.redone_changes:redo_changes"),
    join_file=import_when_called("cleared.books.joined_chart:join_chart"),
)
