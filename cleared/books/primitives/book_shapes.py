"""What primitives about the books take and give: dicts, which a script sees as ``TypedDict``s, and types of values."""

# Without annotations from __future__: each would be a text, which a TypedDict compiles.

from decimal import Decimal
from difflib import get_close_matches
from typing import Annotated, Final, NotRequired, TypedDict

from cleared.books.ledger.entry import STATUSES, parse_entry_id
from cleared.primitives.registry.vocabulary import (
    AccountId,
    Confidence,
    Date,
    DecodingContext,
    Line,
    PositiveAmount,
    Text,
    ValueType,
    decode_line,
    quote_value,
)


def _decode_status(value: object, env: DecodingContext) -> str:
    if value not in STATUSES:
        near = get_close_matches(value[:40], STATUSES, n=1) if isinstance(value, str) else []
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"{quote_value(value)} is not a status ({', '.join(STATUSES)}){hint}")
    return str(value)


def _decode_entry_id(value: object, env: DecodingContext) -> str:
    text = decode_line(value, env)
    if parse_entry_id(text) is None:
        raise ValueError(f"{text[:40]!r} is not an entry id such as 2025-01-001")
    return text


STATUS: Final = ValueType(
    "Status",
    "Status",
    {"enum": list(STATUSES)},
    _decode_status,
    gives="Status",
    definition=f"Status = Literal[{', '.join(map(repr, STATUSES))}]",
)
ENTRY_ID: Final = ValueType("EntryId", "str", {"type": "string"}, _decode_entry_id)

Status = Annotated[str, STATUS]
EntryId = Annotated[str, ENTRY_ID]
"""``YYYY-MM-NNN``, or the id of one of its legs."""


class JournalLine(TypedDict):
    """One leg: an account and exactly one of debit and credit."""

    account_id: AccountId
    debit: NotRequired[PositiveAmount]
    credit: NotRequired[PositiveAmount]


class EntrySpec(TypedDict):
    """One entry for ``journal_add_many``; either ``lines`` or debit_account + credit_account + amount."""

    date: Date
    description: Text
    lines: NotRequired[list[JournalLine]]
    debit_account: NotRequired[AccountId]
    credit_account: NotRequired[AccountId]
    amount: NotRequired[PositiveAmount]
    counterparty: NotRequired[Text | None]
    reference: NotRequired[Line | None]
    confidence: NotRequired[Confidence]
    status: NotRequired[Status]
    evidence: NotRequired[Text | None]
    tags: NotRequired[list[Line] | None]
    notes: NotRequired[Text | None]


class EntryRef(TypedDict):
    """What posting gives back. ``duplicate``: the bank line was posted before; this is that entry."""

    entry_id: str
    date: str
    status: Status
    duplicate: bool


class EntryLine(TypedDict):
    leg_id: str
    account_id: int
    debit: Decimal
    credit: Decimal


class JournalEntry(TypedDict):
    entry_id: str
    date: str
    description: str
    amount: Decimal
    status: Status
    counterparty: str
    reference: str
    confidence: Decimal
    evidence: str
    tags: list[str]
    notes: str
    lines: list[EntryLine]


class Receivable(TypedDict):
    """What a customer owes. ``since``: the day of the oldest invoice that is not settled; ``days``: from then on."""

    counterparty: str
    amount: Decimal
    since: str
    days: int


class AccountInfo(TypedDict):
    account_id: int
    account_name: str
    account_type: str
    parent_id: int | None
    tax_line: str
    description: str
    status: str


class SplitPart(TypedDict):
    """One account of a split. ``amount``: positive is a debit."""

    account_id: int
    amount: Decimal


class AccountSuggestion(TypedDict):
    """Where a line probably goes. ``confidence`` is from 0 to 1; ``evidence`` says what it rests on. ``split``: what
    goes to each account where it goes to several (``account_id`` is the largest), else empty."""

    account_id: int
    counterparty: str | None
    confidence: Decimal
    evidence: str
    split: list[SplitPart]


class BankFile(TypedDict):
    """A file in the drop folder. ``path`` is relative to the workspace, ``size`` in bytes."""

    name: str
    path: str
    size: int
    format: str
    account: str
    ledger_account: int


class Transaction(TypedDict):
    """One row of a bank file. ``amount``: negative = money out. ``reference`` identifies the line; pass it on.
    ``bank_id`` is the bank's own id, empty where the file has none. ``fee``: what a processor kept of the gross,
    negative; ``amount`` is net of it."""

    date: str
    description: str
    amount: Decimal
    reference: str
    bank_id: str
    type: str
    currency: str
    balance: Decimal | None
    fee: Decimal | None
    state: str
    account: str
    ledger_account: int


class Processed(TypedDict):
    """``path``: where the file will lie once the run is committed."""

    name: str
    path: str
    new: int
    duplicates: int


class LegInfo(TypedDict):
    """One leg; ``amount`` is debit minus credit."""

    account_id: int
    amount: Decimal


class DecisionInfo(TypedDict):
    """What a person decided about an entry; ``before`` as the agent posted it, ``after`` as it is now."""

    card_id: str
    entry_id: str
    decision: str
    by: str
    at: str
    description: str
    counterparty: str
    reference: str
    status: str
    before: list[LegInfo]
    after: list[LegInfo]
