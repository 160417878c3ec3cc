"""Entries that a person writes: posted without a script, through the path of every decision."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Final

from cleared.approvals.person_only import refuse_in_job
from cleared.changes import commit_messages
from cleared.changes.host import Host
from cleared.decisions.decision_context import UNDO_TRAILER, Decision, DecisionContext, commit_decision, require_commit
from cleared.errors import Place, UsageError
from cleared.ledger.corrections import make_leg
from cleared.ledger.entry import Entry
from cleared.ledger.staged_journal import Bounds
from cleared.schema import money

MAX_TEXT: Final = 500
"""Characters of a description, a name or a note."""


def add_entry_by_hand(
    host: Host, day: date, description: str, lines: Sequence[tuple[int, Decimal]], *, counterparty: str = "",
    tags: Sequence[str] = (), note: str = "",
) -> tuple[Entry, str]:  # fmt: skip
    """Post one entry; it and the commit. ``lines``: (account, amount) each; positive is a debit, negative a credit.

    It is the person's decision, so it is ``user-confirmed``; ``cleared queue undo`` takes it back. Raises
    ``UsageError`` for texts and amounts that no entry can have, ``PrimitiveError`` where it does not balance, an
    account is unknown, closed or a heading, or the day lies in a closed period.
    """
    refuse_in_job()
    description = check_line(host, "description", description, required=True)
    counterparty, note = check_line(host, "counterparty", counterparty), check_line(host, "note", note)
    tags = [_check_tag(host, tag) for tag in tags]
    for account, amount in lines:
        _check_amount(account, amount, host.bounds)
    posted: list[Entry] = []

    def stage_entry(decision_context: DecisionContext) -> Decision:
        context = decision_context.context
        entry = context.books.add_entry(
            day, description, [make_leg(account, amount) for account, amount in lines], field="lines",
            status="user-confirmed", counterparty=counterparty, confidence="1.00",
            evidence=f"written by {decision_context.by}", tags=";".join(tags), notes=note,
        )  # fmt: skip
        context.log_action("journal_add", f"{day} {entry.amount} {description}"[:200], entry.entry_id)
        posted.append(entry)
        subject = commit_messages.entry_written(entry.entry_id, description)
        return Decision(subject, trailers=((UNDO_TRAILER, entry.entry_id),), subject=_subject_of(entry))

    commit = require_commit(commit_decision(host, "journal add", stage_entry, collects=[posted]))
    return posted[0], commit


def list_bank_accounts_of(host: Host, lines: Sequence[tuple[int, Decimal]]) -> list[str]:
    """The bank accounts (ids) whose account in the books a line names: what is posted there by hand, a bank's file
    may bring again."""
    named = {account for account, _ in lines}
    return [bank for bank, account in host.ledger_accounts.items() if account in named]


def _subject_of(entry: Entry) -> tuple[str, ...]:
    """What two reviewers agree to: the entry but for its id."""
    legs = (f"{leg.account_id}={money.format_amount(leg.amount.normalize())}" for leg in entry.legs)
    return ("journal add", entry.date.isoformat(), entry.description, *legs)


def _check_amount(account: int, amount: Decimal, bounds: Bounds) -> None:
    """Raises ``UsageError`` for what is no amount of money."""
    if not amount.is_finite() or not 0 < abs(amount) <= bounds.max_amount or amount != round(amount, bounds.places):
        raise UsageError(
            f"{account}={str(amount)[:40]} is no amount of money",
            place=Place(field="lines"),
            remedy=f"Not zero, at most {bounds.places} decimals and {bounds.max_amount}: 5220=120.00 1590=-120.00.",
        )


def check_line(host: Host, field: str, text: str, *, required: bool = False) -> str:
    """A text on one line, without secrets. Raises ``UsageError``."""
    text = " ".join(host.redactor.redact_text(text).split())
    if (required and not text) or len(text) > MAX_TEXT or not text.isprintable():
        raise UsageError(
            f"{text[:60]!r} cannot be the {field} of an entry",
            place=Place(field=field),
            remedy=f"Write {'one to' if required else 'at most'} {MAX_TEXT} characters on one line.",
        )
    return text


def _check_tag(host: Host, tag: str) -> str:
    """Raises ``UsageError`` for what is no tag of a person's."""
    tag = check_line(host, "tag", tag, required=True)
    if tag.startswith("@") or ";" in tag:
        raise UsageError(f"{tag[:60]!r} is not a tag", remedy="A tag is a word without ; and without @ before it.")
    return tag
