"""The checks of a draft, and of a working tree against its commit; ``books_check`` has those of all months.

The checks of a draft read the very bytes that are about to be committed, not the values they were made from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Final

from msgspec import structs

from cleared.base import money
from cleared.base.clock import check_deadline
from cleared.base.errors import Place
from cleared.base.file_source import FileSource
from cleared.books.ledger.chart import INCOME_TYPES
from cleared.books.ledger.entry import TRANSITIONS, Entry
from cleared.books.ledger.journal import JournalMonth, check_accounts, parse_month, parse_month_once
from cleared.books.ledger.single_count import check_staged_chains
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.staged_journal import Books
from cleared.domains.record_audit import Violation

_MAX_SHARED_MONTH: Final = 1 << 20
"""Bytes of a month's journal, some 3,000 entries, that is held for the next reader."""


_NO_AMENDMENTS: Final[Mapping[str, Mapping[str, str]]] = {}


def check_draft(books: Books, bank: BankBook) -> list[Violation]:
    """Every violation of the nine invariants in base + draft, over the months the draft touches."""
    return _check_journal(books) + _check_lines_accounted(bank) + check_staged_chains(books, bank)


def _check_journal(books: Books) -> list[Violation]:
    changes = books.render_files()
    violations: list[Violation] = []
    by_path = {books.paths.journal_path(*key): key for key in books.list_months()}
    for path, data in changes.items():
        year, month = by_path[path]
        # Cached: the next reader of this month does not parse it again. A large one would only take its memory.
        parse = parse_month_once if len(data) <= _MAX_SHARED_MONTH else parse_month
        after = parse(data, year, month, path, books.bounds.places)
        violations += after.damage
        violations += check_accounts([after], books.chart.accounts)
        violations += _check_unchanged(books.committed_month(year, month), after, books.amendments)
        violations += _check_new_entries(books, after)
    return violations or _check_closed_accounts(books)


def _check_closed_accounts(books: Books) -> list[Violation]:
    """An entry dated before the day on which an account was closed leaves nothing on it; of income and expenses only
    the figures of that year change."""
    if not books.staged:  # nor is a chart needed then that may be missing
        return []
    closed = {
        account.account_id: account
        for account in books.chart.accounts.values()
        if account.status == "closed" and account.closed_on and account.account_type not in INCOME_TYPES
    }
    last_users = {leg.account_id: e for e in books.list_staged() for leg in e.legs} if closed else {}
    violations = []
    for account_id in last_users.keys() & closed.keys():
        account, entry = closed[account_id], last_users[account_id]
        balance = books.account_balance(account_id)
        if balance:
            violations.append(
                Violation(
                    "account_exists",
                    f"account {account_id} {account.account_name} is closed from {account.closed_on} on, "
                    f"and would have a balance of {money.format_amount(balance)}",
                    f"Use an open account, or open it again: cleared accounts reopen {account_id}.",
                    Place(books.paths.journal_path(entry.date.year, entry.date.month)),
                    entry.entry_id,
                )
            )
    return violations


def _check_new_entries(books: Books, after: JournalMonth) -> list[Violation]:
    violations = []
    bounds, periods = books.bounds, books.periods
    base = books.committed_month(after.year, after.month).entries
    postable: dict[tuple[int, date], tuple[str, str] | None] = {}
    for number, entry in check_deadline(after.entries.items()):
        if number in base:
            continue
        day, faults = entry.date, []
        if periods.is_closed(day):
            why = f"{day} lies in a period closed through {periods.closed_through}"
            faults.append(("period_open", why, f"Date it {periods.first_open(day)} or later."))
        if not bounds.min_date <= day <= bounds.max_date:
            faults.append(("month", f"{day} is out of bounds", "Correct the date."))
        for leg in entry.legs:
            account, debit, credit = leg.account_id, leg.debit, leg.credit
            if (account, day) not in postable:
                postable[account, day] = books.chart.why_not_postable(account, day)
            not_postable = postable[account, day]
            if not_postable and books.chart.find_account(account) is not None:
                faults.append(("account_exists", *not_postable))
            if debit > bounds.max_amount or credit > bounds.max_amount:
                why = f"{max(debit, credit)} is larger than limits.max_amount"
                faults.append(("exact", why, "Correct the amount, or raise the limit."))
        for fault in faults:
            violations.append(Violation(*fault, Place(after.file, after.lines.get(number)), entry.entry_id))
    return violations


def _check_unchanged(
    before: JournalMonth, after: JournalMonth, amendments: Mapping[str, Mapping[str, str]] = _NO_AMENDMENTS
) -> list[Violation]:
    """Committed entries stay as they are, but for a status that moves forwards, and for what a decision amends.

    ``amendments``: entry id → column → its new text.
    """
    violations = []
    for number, entry in check_deadline(before.entries.items()):
        now = after.entries.get(number)
        if now is entry:
            continue
        if now is None:
            violations.append(
                Violation(
                    "unchanged",
                    "the entry is gone",
                    "Entries are voided, never deleted; restore it.",
                    Place(after.file),
                    entry.entry_id,
                )
            )
            continue
        if now == entry:
            continue
        place = Place(after.file, after.lines.get(number))
        if now.status != entry.status and now.status not in TRANSITIONS.get(entry.status, frozenset()):
            violations.append(
                Violation(
                    "unchanged",
                    f"the status went from {entry.status} to {now.status}",
                    "A status only moves forwards.",
                    place,
                    entry.entry_id,
                )
            )
        amended = amendments.get(entry.entry_id, {})
        for field, old, new in _list_differences(structs.replace(entry, **amended), now):
            violations.append(
                Violation(
                    "unchanged",
                    f"{field} was {old}, now {new}",
                    "Restore it, and correct it with a new entry.",
                    place,
                    entry.entry_id,
                )
            )
    return violations


def _list_differences(old: Entry, new: Entry) -> list[tuple[str, str, str]]:
    differences = []
    for name in (
        "date",
        "description",
        "counterparty",
        "reference",
        "confidence",
        "evidence",
        "receipt_hash",
        "tags",
        "notes",
    ):
        a, b = getattr(old, name), getattr(new, name)
        if a != b:
            differences.append((name, repr(str(a)), repr(str(b))))
    if old.legs != new.legs:
        differences.append(("the posting", _format_legs(old), _format_legs(new)))
    return differences


def _format_legs(entry: Entry) -> str:
    return " ".join(f"{leg.account_id}:{money.format_amount(leg.amount)}" for leg in entry.legs)


def _check_lines_accounted(bank: BankBook) -> list[Violation]:
    """Invariant 7, over the lines of the files marked processed and every line that the draft posts or sets aside."""
    violations = []
    staged = bank.staged_line_ids()
    for line_id in check_deadline([*bank.new_lines, *sorted(staged - bank.new_lines.keys())]):
        if line_id in bank.new_lines and line_id not in bank.processed_line_ids and line_id not in staged:
            continue
        resolved = bank.find_line(line_id)
        posted = bank.posted_amount(line_id)
        if resolved is None or bank.is_accounted(resolved[1], posted):
            continue
        account, line = resolved
        part = f"only {posted} of it is posted" if posted else "it is neither posted, held nor ignored"
        violations.append(
            Violation(
                "lines_accounted",
                f"{account} {line.posted_date} {line.amount} {line.description[:60]!r} (row {line.row}): {part}",
                "Post it with its reference, or call importer_ignore(reference, reason).",
                Place(field=line_id),
            )
        )
    return violations


def check_against_commit(books: Books, committed: FileSource, months: Iterable[tuple[int, int]]) -> list[Violation]:
    """How the working journal differs from the committed one, entry by entry."""
    violations = []
    for key in months:
        path = books.paths.journal_path(*key)
        data = committed.read(path)
        if data == books.source.read(path):
            continue
        before = parse_month(data, *key, path, books.bounds.places)
        after = books.committed_month(*key)
        violations += _check_unchanged(before, after)
        for number, entry in after.entries.items():
            if number not in before.entries:
                violations.append(
                    Violation(
                        "unchanged",
                        "the entry was written by hand and is not committed",
                        "Remove it, and post it through an agent or a decision.",
                        Place(path, after.lines.get(number)),
                        entry.entry_id,
                    )
                )
    return violations
