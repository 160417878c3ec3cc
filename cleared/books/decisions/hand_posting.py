"""Entries that a person writes: posted without a script, through the path of every decision."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from msgspec import Struct

from cleared.base import money
from cleared.base.errors import Place, PolicyError, UsageError
from cleared.books.decisions import book_subjects
from cleared.books.ledger.corrections import make_leg
from cleared.books.ledger.entry import Bounds, Entry, find_amount_fault
from cleared.books.staged_books import books_of, journal_bounds, ledger_accounts, open_books
from cleared.changes.audit.git_reverts import find_git_revert
from cleared.changes.consumed_events import KEY_TRAILER
from cleared.changes.decisions.decision_context import (
    UNDO_TRAILER,
    Decision,
    DecisionContext,
    commit_decision,
    require_commit,
)
from cleared.changes.decisions.keyed_decisions import OTHER_KEY, find_keyed_commit
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.git import Snapshot
from cleared.trust.person_only import refuse_in_job

MAX_TEXT: Final = 500
"""Characters of a description, a name or a note."""
_MOST_AHEAD: Final = timedelta(days=366)
"""How long after today an entry may be dated: a later one is a year mistyped, and would be missed in each report."""

_WRITTEN: Final = ("date", "description", "legs", "counterparty", "tags", "notes")
"""What a person says of an entry; the rest follows from it."""
_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+-]{0,99}")


class HandPosting(Struct, frozen=True):
    """An entry that a person wrote, and its commit. ``is_new``: it was posted now, and not by an earlier call with the
    same key."""

    entry: Entry
    commit: str
    is_new: bool


def add_entry_by_hand(
    host: Host,
    day: date,
    description: str,
    lines: Sequence[tuple[int, Decimal]],
    *,
    counterparty: str = "",
    tags: Sequence[str] = (),
    note: str = "",
    key: str = "",
    refuse: Callable[[DecisionContext], None] | None = None,
) -> HandPosting:
    """Post one entry. ``lines``: (account, amount) each; positive is a debit, negative a credit. ``key``: with the same
    key the same entry is posted once, however often this is called. ``refuse``: raises where it may not be posted on
    the books as they are once nobody else writes.

    It is the person's decision, so it is ``user-confirmed``; ``cleared queue undo`` takes it back. Raises
    ``UsageError`` for texts, amounts and keys that cannot be, ``PrimitiveError`` where it does not balance, an
    account is unknown, closed or a heading, or the day lies in a closed period; ``PolicyError`` where another entry has
    the key, or this one was taken back.
    """
    refuse_in_job()
    _check_key(host, key)
    description = check_line(host, "description", description, required=True)
    counterparty, note = check_line(host, "counterparty", counterparty), check_line(host, "note", note)
    tags = [_check_tag(host, tag) for tag in tags]
    for account, amount in lines:
        _check_amount(account, amount, journal_bounds(host.config))
    if len(lines) > 1 and len({account for account, _ in lines}) == 1:
        raise UsageError(
            f"all lines are on account {lines[0][0]}",
            place=Place(field="lines"),
            remedy="An entry moves an amount from one account to another.",
        )
    legs = [make_leg(account, amount) for account, amount in lines]
    texts = {"counterparty": counterparty, "tags": ";".join(tags), "notes": note}
    posted: list[Entry] = []
    known: list[HandPosting] = []

    def stage_entry(decision_context: DecisionContext) -> Decision | None:
        context = decision_context.context
        if day > context.today + _MOST_AHEAD:
            raise UsageError(
                f"{day} is more than a year ahead; today is {context.today}",
                place=Place(field="date"),
                remedy="Correct the year.",
            )
        if refuse is not None:
            refuse(decision_context)
        if earlier := _find_posting(decision_context, key):
            require_same_posting(earlier.entry, key, Entry("", day, description, tuple(legs), **texts))
            known.append(earlier)
            return None
        entry = books_of(context).books.add_entry(
            day,
            description,
            legs,
            field="lines",
            status="user-confirmed",
            confidence="1.00",
            evidence=f"written by {decision_context.by}",
            **texts,
        )
        context.log_action("journal_add", f"{day} {entry.amount} {description}"[:200], entry.entry_id)
        posted.append(entry)
        subject = book_subjects.entry_written(entry.entry_id, description)
        marks = ((UNDO_TRAILER, entry.entry_id), *(((KEY_TRAILER, key),) if key else ()))
        return Decision(subject, trailers=marks, subject=_subject_of(entry))

    commit = commit_decision(host, "journal add", stage_entry, collects=[posted, known])
    return known[0] if known else HandPosting(posted[0], require_commit(commit), is_new=True)


def _find_posting(decision_context: DecisionContext, key: str) -> HandPosting | None:
    """The entry that was posted with this key, as it was posted. Raises ``PolicyError`` where it was taken back since,
    or cannot be found."""
    host, repo = decision_context.host, decision_context.repo
    commit = find_keyed_commit(host, repo, decision_context.snapshot, key) if key else None
    if commit is None:
        return None
    entry_id = commit.trailers.get(UNDO_TRAILER, "")
    now = books_of(decision_context.context).books.find_entry(entry_id)
    reverted = find_git_revert(host, repo, decision_context.snapshot, commit)
    if reverted is not None or (now is not None and now.status == "voided"):
        how = reverted.outcome if reverted is not None else "taken back"
        raise PolicyError(f"the entry with the key {key} was {entry_id}, and it was {how}", remedy=OTHER_KEY)
    books, _ = open_books(host.layout, CommittedSource(Snapshot(repo, commit.id)))
    if (entry := books.find_entry(entry_id)) is None:
        raise PolicyError(f"the entry with the key {key} is not in the commit {commit.short}", remedy=OTHER_KEY)
    return HandPosting(entry, commit.id, is_new=False)


def require_same_posting(entry: Entry, key: str, wanted: Entry) -> None:
    """Raises ``PolicyError`` where what a person writes of an entry is not what is ``wanted``."""
    others = [name for name in _WRITTEN if getattr(entry, name) != getattr(wanted, name)]
    if others:
        raise PolicyError(
            f"the entry with the key {key} is {entry.entry_id}, and differs in its {', '.join(others)}; "
            "nothing was posted",
            remedy=f"{OTHER_KEY} Or correct that one: cleared queue correct {entry.entry_id}.",
        )


def list_bank_accounts_of(host: Host, lines: Sequence[tuple[int, Decimal]]) -> list[str]:
    """The bank accounts (ids) whose account in the books a line names: what is posted there by hand, a bank's file
    may bring again."""
    named = {account for account, _ in lines}
    return [bank for bank, account in ledger_accounts(host.config).items() if account in named]


def _subject_of(entry: Entry) -> tuple[str, ...]:
    """What two reviewers agree to: the entry but for its id."""
    legs = (f"{leg.account_id}={money.format_amount(leg.amount.normalize())}" for leg in entry.legs)
    return ("journal add", entry.date.isoformat(), entry.description, *legs)


def _check_amount(account: int, amount: Decimal, bounds: Bounds) -> None:
    """Raises ``UsageError`` for what is no amount of money."""
    if fault := find_amount_fault(amount, bounds):
        raise UsageError(
            f"{account}={str(amount)[:40]} {fault}",
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


def _check_key(host: Host, key: str) -> None:
    """Raises ``UsageError`` for what is no key."""
    if key and (not _KEY.fullmatch(key) or host.redactor.redact_text(key) != key):
        raise UsageError(
            f"{key[:60]!r} is not a key",
            place=Place(field="key"),
            remedy="A key is up to 100 letters, digits and . _ : / + -, such as depreciation-2025-03.",
        )


def _check_tag(host: Host, tag: str) -> str:
    """Raises ``UsageError`` for what is no tag of a person's."""
    tag = check_line(host, "tag", tag, required=True)
    if tag.startswith("@") or ";" in tag:
        raise UsageError(f"{tag[:60]!r} is not a tag", remedy="A tag is a word without ; and without @ before it.")
    return tag
