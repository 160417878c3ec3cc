"""Invariant 9: what a bank line or an entry stands for counts once on every day, or not at all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal

from cleared.base import money
from cleared.books.ledger.bank_lines import BankLine
from cleared.books.ledger.chains import ChainEntry, Chains, find_double_count, list_links
from cleared.books.ledger.entry import Entry, entry_of_leg
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.staged_journal import Books
from cleared.domains.record_audit import Violation

_REMEDY = (
    "Void what is too much (cleared journal void ENTRY --reason ...), in the period in which it counts; "
    "cleared why ENTRY shows the chain."
)
_MAX_NAMED = 6


def check_staged_chains(books: Books, bank: BankBook) -> list[Violation]:
    """The violations of the chains and bank lines that the draft changes."""
    staged = [entry for entry in books.list_staged() if list_links(entry.tags)]
    seen: set[str] = set()
    violations = []
    for entry in staged:
        if entry.entry_id not in seen:
            members = books.chains.list_members([entry.entry_id])
            seen.update(members)
            known = [each for i in members if (each := books.find_entry(i)) is not None]
            violations += _check_chain([chain_entry(each) for each in known])
    for line_id, matches in bank.list_staged_matches():
        ids = bank.list_entry_ids(line_id) if len(matches) > 1 else []  # nearly every line has one
        resolved = bank.find_line(line_id) if len(ids) > 1 else None
        if resolved is not None:
            days = {i: each.date for i in ids if (each := books.find_entry(i)) is not None}
            violations += check_line(resolved[1], matches, days)
    return violations


def is_chained(entry: Entry) -> bool:
    """Whether an entry may be in a chain: what was taken back or amended says so by its status, and what is linked to
    it by a tag."""
    return entry.status in ("voided", "user-corrected") or "@" in entry.tags


def check_chains(entries: Sequence[ChainEntry]) -> list[Violation]:
    """The violations of all chains. ``entries``: those that may be in one."""
    chains, by_id = Chains(), {entry.entry_id: entry for entry in entries}
    for entry in entries:
        chains.add_entry(entry)
    violations = []
    for members in chains.list_chains():
        violations += _check_chain([by_id[i] for i in members if i in by_id])
    return violations


def check_line(line: BankLine, matches: Iterable[tuple[str, Decimal]], days: Mapping[str, date]) -> list[Violation]:
    """Whether on each day at most the whole of a bank line is posted, and nothing on the other side.

    ``matches``: (leg id, amount); ``days``: of the entries. Entries that are not there are another check's.
    """
    posted: dict[date, list[Decimal]] = defaultdict(list)
    for leg_id, amount in matches:
        day = days.get(entry_of_leg(leg_id))
        if day is not None:
            posted[day].append(amount)
    low, high = sorted((Decimal(0), line.amount))
    total = Decimal(0)
    for day in sorted(posted):
        total = money.total([total, *posted[day]])
        if not low <= total <= high:
            ids = list(dict.fromkeys(entry_of_leg(leg_id) for leg_id, _ in matches))
            return [
                Violation(
                    "counts_once",
                    f"of the bank line {line.posted_date} {line.amount} {line.description[:60]!r} the books hold "
                    f"{money.format_amount(total)} on {day} ({_name_entries(ids)})",
                    _REMEDY,
                    record_id=ids[-1],
                )
            ]
    return []


def _check_chain(members: Sequence[ChainEntry]) -> list[Violation]:
    double = find_double_count(members)
    if double is None:
        return []
    message = f"with {_name_entries(double.entries)} it does not count once: {double.reason}"
    return [Violation("counts_once", message, _REMEDY, record_id=double.entries[-1])]


def chain_entry(entry: Entry) -> ChainEntry:
    """What a check of a chain needs of an entry."""
    return ChainEntry(entry.entry_id, entry.date, entry.legs, entry.tags, entry.reference)


def _name_entries(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _MAX_NAMED} more" if len(ids) > _MAX_NAMED else ""
    return ", ".join(ids[:_MAX_NAMED]) + more
