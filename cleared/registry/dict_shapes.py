"""The dicts primitives take and give. A script sees them as ``TypedDict``s."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NotRequired, TypedDict

from cleared.registry.vocabulary import (
    AccountId,
    Confidence,
    Date,
    Line,
    PositiveAmount,
    Status,
    Text,
)

# -- taken ------------------------------------------------------------------------------------------------------


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


# -- given ------------------------------------------------------------------------------------------------------


class EntryRef(TypedDict):
    """What posting gives back. ``duplicate``: the bank line was posted before; this is that entry."""

    entry_id: str
    date: str
    status: str
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
    status: str
    counterparty: str
    reference: str
    confidence: Decimal
    evidence: str
    tags: list[str]
    notes: str
    lines: list[EntryLine]


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


class CommitResult(TypedDict):
    """``commit_hash`` is ``run:<id>`` (a commit cannot hold its own hash), or None where nothing is staged."""

    success: bool
    commit_hash: str | None


class CommitInfo(TypedDict):
    commit_hash: str
    date: str
    author: str
    message: str


class CardInfo(TypedDict):
    id: str
    kind: str
    entry_id: str | None
    title: str
    created_at: str


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


class LegInfo(TypedDict):
    """One leg; ``amount`` is debit minus credit."""

    account_id: int
    amount: Decimal


class LoopAsked(TypedDict):
    """A job that was asked for. It has no id before the loop has taken it in."""

    kind: str
    target: str


class LoopStatus(TypedDict):
    """How the loop is. ``status``: none (there has never been one), idle, running, sleeping, paused or stopped;
    ``queued``: how many jobs wait; ``succeeded``, ``failed``, ``failed_or_no_result``: how many have ended so."""

    up: bool
    status: str
    paused: bool
    stop_reason: str | None
    cycles: int
    running: str | None
    queued: int
    succeeded: int
    failed: int
    failed_or_no_result: int
    last_job: str | None


class LoopResult(TypedDict):
    """A job. ``status``: queued, running, succeeded, failed or failed_or_no_result; times are UTC, ISO 8601."""

    job_id: str
    kind: str
    target: str
    status: str
    started_at: str | None
    ended_at: str | None
    duration_sec: float | None
    exit_code: int | None
    summary: str


class LoopJob(LoopResult):
    """A job, and who asked for it: person, rotation or ``run:<id>``; empty where that is not known any more."""

    by: str


class Classification(TypedDict):
    """What a language model suggests. ``source``: model, local or none."""

    choice: str | None
    confidence: float
    source: str
    reason: str


class Summary(TypedDict):
    """What a language model says in short. ``source``: model or none."""

    text: str | None
    source: str
    reason: str


class MessageStaged(TypedDict):
    """A message that is sent once the run is committed."""

    subject: str
    cards: int


class TaskContext(TypedDict):
    """What a task names."""

    files: list[str]
    docs: list[str]
    skills: list[str]


class TaskInfo(TypedDict):
    """A task with its newest state; None: it is not in the ledger."""

    id: str
    title: str
    description: str
    requires: list[str]
    context: TaskContext
    acceptance_criteria: list[str]
    verification_command: str
    status: str | None
    updated_at: str | None
    summary: str


class NextTaskInfo(TypedDict):
    """Which task comes next, or why none does. ``state``: ready, done or blocked."""

    state: str
    id: str | None
    reasons: list[str]


class EventInfo(TypedDict):
    """Why the run happens."""

    id: str
    kind: str
    name: str
    payload: Any
