"""The first lines of commits that decide about the books: one function for each, as in ``changes.commit_messages``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from cleared.base.terminal import count_noun
from cleared.changes.commit_messages import CommitSubject, compose_subject, join_lines


def entry_voided(entry_id: str, reason: str) -> CommitSubject:
    return compose_subject("void", f"{entry_id}: {join_lines(reason)}")


def entry_written(entry_id: str, description: str) -> CommitSubject:
    """A person wrote an entry."""
    return compose_subject("post", f"{entry_id} {join_lines(description)}")


def opening_balances_posted(count: int) -> CommitSubject:
    return compose_subject("bootstrap", f"opening balances of {count_noun(count, 'account')}")


def books_moved_in(entries: int, openings: int, file: str) -> CommitSubject:
    """Books of another program."""
    counts = [
        count_noun(n, what, many)
        for n, what, many in ((openings, "opening balance", ""), (entries, "entry", "entries"))
        if n
    ]
    return compose_subject("bootstrap", f"{' and '.join(counts)} from {join_lines(file)}")


def period_closed(through: date, unsettled: int, despite: str, pending: int = 0) -> CommitSubject:
    """``unsettled``: how many bank lines are not in the books; ``despite``: why it is closed all the same.
    ``pending``: how many decisions about it still wait."""
    waiting = f", with {pending} pending" if pending else ""
    exception = f", despite {count_noun(unsettled, 'open matter')}: {despite}" if unsettled else ""
    return compose_subject("close", f"through {through}{waiting}{exception}")


def period_reopened(start: date, reason: str) -> CommitSubject:
    return compose_subject("close", f"reopened from {start}: {join_lines(reason)}")


def transfer_paired(ids: Sequence[str]) -> CommitSubject:
    """A person said that two entries are both sides of one transfer."""
    return compose_subject("correct", f"{' and '.join(ids)} are one transfer")


def receipts_kept(names: Sequence[str], entry_id: str | None) -> CommitSubject:
    """Receipts came, perhaps for an entry."""
    what = join_lines(names[0]) if len(names) == 1 else count_noun(len(names), "receipt")
    return compose_subject("confirm", f"kept {what}{f' for {entry_id}' if entry_id else ''}")


def receipt_linked(name: str, entry_id: str) -> CommitSubject:
    """A person said which entry a receipt proves."""
    return compose_subject("confirm", f"{entry_id} has the receipt {join_lines(name)}")


def receipt_unlinked(name: str, entry_id: str) -> CommitSubject:
    """A person took that back."""
    return compose_subject("correct", f"{entry_id} has not the receipt {join_lines(name)}")


def receipt_removed(name: str) -> CommitSubject:
    """A person keeps a receipt no more."""
    return compose_subject("correct", f"removed the receipt {join_lines(name)}")


def account_reconciled(account: int, day: date, balance: Decimal) -> CommitSubject:
    """A person found that books and bank agree."""
    return compose_subject("confirm", f"{account} reconciled on {day}: {balance}")


def reconciliation_withdrawn(account: int, day: date, reason: str) -> CommitSubject:
    return compose_subject("confirm", f"{account} of {day} is not reconciled any more: {join_lines(reason)}")


def import_undone(names: Sequence[str], entries: int, reason: str) -> CommitSubject:
    """A person took back the import of these files; ``entries``: how many were voided."""
    files = f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]
    why = f": {join_lines(reason)}" if reason else ""
    return compose_subject(
        "void", f"import of {join_lines(files)[:80]}, {count_noun(entries, 'entry', 'entries')}{why}"
    )


def account_added(account_id: int, name: str) -> CommitSubject:
    return compose_subject("accounts", f"add {account_id} {name}")


def account_renamed(account_id: int, old: str, new: str) -> CommitSubject:
    return compose_subject("accounts", f"rename {account_id} {old} to {new}")


def account_closed(account_id: int, name: str, day: date) -> CommitSubject:
    return compose_subject("accounts", f"close {account_id} {name} from {day}")


def account_reopened(account_id: int, name: str) -> CommitSubject:
    return compose_subject("accounts", f"reopen {account_id} {name}")


def bank_added(accounts: Sequence[str], format: str) -> CommitSubject:
    return compose_subject("config", f"bank account {', '.join(accounts)} ({join_lines(format)})")
