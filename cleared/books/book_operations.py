"""What programs may ask of the books: only to read them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from cleared.base.schema_parts import (
    INTEGER,
    MAYBE_INTEGER,
    MAYBE_TEXT,
    TEXT,
    list_of,
    object_of,
)
from cleared.books import entry_sums, queries
from cleared.books.ledger.entry import STATUSES
from cleared.books.ledger.entry_schema import ENTRY
from cleared.gate.operation import Operation, Parameter

_ENTRIES: Final = list_of(ENTRY)
_SUMS: Final = list_of({"type": "object"})
_BALANCES: Final = list_of(object_of(account_id=INTEGER, account_name=TEXT, account_type=TEXT, balance=TEXT))
_ACCOUNTS: Final = list_of(
    object_of(
        account_id=INTEGER,
        account_name=TEXT,
        account_type=TEXT,
        parent_id=MAYBE_INTEGER,
        tax_line=TEXT,
        description=TEXT,
        status=TEXT,
    )
)
_PERIODS: Final = list_of(object_of(through=MAYBE_TEXT, state=TEXT, by=TEXT, at=TEXT, reason=TEXT, digest=TEXT))
_MONTH: Final = Parameter("month", "string", None, doc="Only this month, YYYY-MM.")
_ACCOUNT: Final = Parameter("account", "integer", None, doc="Only this account, by its number.")


def _write_entry(entry: Mapping[str, Any]) -> str:
    """Id, date, amount, accounts (debited ← credited), status, text."""
    debited, credited = (
        "+".join(str(line["account_id"]) for line in entry["lines"] if Decimal(line[side] or 0))
        for side in ("debit", "credit")
    )
    words = [entry[key] for key in ("entry_id", "date", "amount")]
    payee = entry.get("counterparty")
    text = [entry["description"], *([f"({payee})"] if payee and payee != entry["description"] else [])]
    return "  ".join([*map(str, words), f"{debited} ← {credited}", str(entry["status"]), " ".join(text)])


OPERATIONS: Final = (
    Operation(
        "journal.list",
        "Entries in the order of their ids; month is YYYY-MM.",
        "read",
        queries.read_journal,
        (
            _MONTH,
            Parameter("status", "string", None, STATUSES, doc="Only entries of this status."),
            _ACCOUNT,
            Parameter("text", "string", None, doc="Only entries that hold this text."),
            Parameter("limit", "integer", None, least=1, doc="At most so many."),
        ),
        _ENTRIES,
        is_oldest_first=True,
        write_line=_write_entry,
    ),
    Operation(
        "journal.sums",
        "Income and expenses by account, month or counterparty; of one account, what moved on it.",
        "read",
        entry_sums.read_sums,
        (
            Parameter("by", "string", "account", entry_sums.GROUPS, doc="What each sum is of."),
            _ACCOUNT,
            Parameter("text", "string", None, doc="Only entries that hold this text."),
            Parameter("date_from", "string", None, doc="The first day, YYYY-MM-DD."),
            Parameter("date_to", "string", None, doc="The last day, YYYY-MM-DD."),
        ),
        _SUMS,
    ),
    Operation(
        "journal.balance",
        "The trial balance, or one account's balance.",
        "read",
        queries.read_balances,
        (_ACCOUNT, _MONTH, Parameter("as_of", "string", None, doc="At the end of this day, YYYY-MM-DD.")),
        _BALANCES,
    ),
    Operation("accounts.list", "The chart of accounts.", "read", queries.read_accounts, result=_ACCOUNTS),
    Operation(
        "period.list",
        "Every closing and reopening, oldest first.",
        "read",
        queries.read_periods,
        result=_PERIODS,
    ),
)
