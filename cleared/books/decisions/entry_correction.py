"""What a decision does to an entry: correcting, replacing, voiding. Nothing is edited in place.

A correction reclassifies where the bank's legs stay as they are: one further entry takes the old legs back and posts
the new ones, tagged ``@corrects=<id>``. Where more changes, the entry is voided and posted again, tagged
``@replaces=<id>``. ``Books.date_change`` dates both. What moves no money is changed where it stands
(``entry_amending``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.base import money
from cleared.base.errors import Place, PolicyError, PrimitiveError, UsageError
from cleared.books.decisions.entry_amending import list_amendments, stage_amendments
from cleared.books.decisions.split_parts import refuse_odd_parts
from cleared.books.ledger import corrections
from cleared.books.ledger.bank_lines import BankLine
from cleared.books.ledger.chains import CORRECTS, REPLACES, RESTORES, date_tags
from cleared.books.ledger.corrections import effective_legs, find_corrections, make_leg
from cleared.books.ledger.entry import KIND, ZERO, Entry, Leg, entry_to_json, find_amount_fault
from cleared.books.ledger.posting import post_entry
from cleared.books.ledger.staged_journal import Books
from cleared.books.ledger.voided_lines import unmatch_entries
from cleared.books.staged_books import books_of
from cleared.changes.decisions.shown_cards import digest_shown, refuse_changed_record
from cleared.primitives.context import Context


class Correction(Struct, frozen=True):
    """What an entry should have been; None: as it is. ``account`` replaces the only leg that is not of a bank;
    ``lines`` (account, amount: positive is a debit) replace all that are not; ``mixed``: parts of both signs are
    meant."""

    account: int | None = None
    lines: tuple[tuple[int, Decimal], ...] = ()
    day: date | None = None
    counterparty: str | None = None
    tags: tuple[str, ...] | None = None
    note: str | None = None
    mixed: bool = False

    def to_data(self) -> dict[str, Any]:
        """It as plain data: see ``read_correction``."""
        return {
            "account": self.account,
            "lines": [[account, str(amount)] for account, amount in self.lines],
            "day": self.day.isoformat() if self.day else None,
            "counterparty": self.counterparty,
            "tags": list(self.tags) if self.tags is not None else None,
            "note": self.note,
            "mixed": self.mixed,
        }


_DETAIL: Final = re.compile(r"""\s*(date|vendor|tags)=("[^"]*"|\S*)""")


def add_typed_details(correction: Correction, text: str) -> Correction:
    """The correction with what a person typed behind the account: ``date=2025-01-31 vendor="A B" tags=x,y``, then a
    note; each may be left out. Raises ``UsageError`` for what is no date."""
    details, at = {}, 0
    while match := _DETAIL.match(text, at):
        details[match[1]], at = match[2].strip('"'), match.end()
    try:
        day = date.fromisoformat(details["date"]) if "date" in details else None
    except ValueError:
        raise UsageError(f"{details['date'][:40]!r} is not a date", remedy="Write it like date=2025-01-31.") from None
    tags = tuple(t for t in details["tags"].split(",") if t) if "tags" in details else None
    return replace(
        correction, day=day, tags=tags, counterparty=details.get("vendor"), note=" ".join(text[at:].split()) or None
    )


def read_correction(data: Mapping[str, Any]) -> Correction:
    """The inverse of ``Correction.to_data``. Raises ``UsageError`` for anything else."""
    try:
        day, tags = data["day"], data["tags"]
        return Correction(
            data["account"],
            tuple((int(account), Decimal(amount)) for account, amount in data["lines"]),
            date.fromisoformat(day) if day else None,
            data["counterparty"],
            None if tags is None else tuple(tags),
            data["note"],
            bool(data["mixed"]),
        )
    except (KeyError, TypeError, ValueError, InvalidOperation):
        raise UsageError(
            "that is not readable as a correction", remedy="Correct it again: cleared queue correct."
        ) from None


class CorrectionResult(Struct, frozen=True):
    """``posted``: the entries that were added; ``legs``: all legs the entry should have had."""

    entry: Entry
    posted: tuple[Entry, ...]
    amended: tuple[str, ...]
    """The columns that were changed where they stand."""
    legs: tuple[Leg, ...]
    reclassified: bool
    """Whether the accounts or amounts are others now: what the agent should have known."""


class ShownEntry(Struct, frozen=True):
    """An entry as a person is shown it before deciding about it. ``legs``: as they stand after its corrections."""

    entry_id: str
    legs: tuple[Leg, ...]
    is_corrected: bool
    digest: str


def read_shown_entry(books: Books, entry_id: str) -> ShownEntry:
    """Raises ``PrimitiveError`` for none."""
    entry = books.get_entry(entry_id)
    return describe_shown(entry, effective_legs(books, entry))


def describe_shown(entry: Entry, legs: tuple[Leg, ...]) -> ShownEntry:
    """An entry as it is shown. ``legs``: as they stand after its corrections."""
    standing = [[leg.account_id, str(leg.amount)] for leg in legs]
    return ShownEntry(entry.entry_id, legs, legs != entry.legs, digest_shown([entry_to_json(entry), standing]))


def refuse_changed_entry(books: Books, entry: Entry) -> None:
    """Raises ``PolicyError`` where a person was shown it, and it is not as it was."""
    refuse_changed_record(entry.entry_id, entry.description, lambda: read_shown_entry(books, entry.entry_id).digest)


def decidable_entry(context: Context, entry_id: str) -> Entry:
    """An entry that can be decided about. Raises ``PrimitiveError`` for none, ``PolicyError`` for a voided one."""
    entry = books_of(context).books.get_entry(entry_id)
    if entry.status == "voided":
        successor = find_successor(books_of(context).books, entry.entry_id)
        raise PolicyError(
            f"{entry.entry_id} is voided",
            place=Place(field="entry_id"),
            remedy=f"Decide about {successor}, which took its place." if successor else "No entry took its place.",
        )
    return entry


def find_successor(books: Books, entry_id: str) -> str:
    """The entry that stands in the place of one that was voided: it was posted again as another one, or is back since
    a decision was undone. Empty where there is none."""
    seen, waiting = {entry_id}, [entry_id]
    while waiting:
        each = waiting.pop()
        links = (i for mark in (REPLACES, RESTORES) for i in books.chains.find_linked(each, mark))
        later = [books.get_entry(i) for i in links if i not in seen]
        if standing := [entry.entry_id for entry in later if entry.status != "voided"]:
            return standing[-1]
        seen.update(entry.entry_id for entry in later)  # tags that were written by hand may lead round in a circle
        waiting += [entry.entry_id for entry in later]
    return ""


def non_bank_legs(context: Context, legs: Iterable[Leg]) -> list[Leg]:
    """The legs that are not of a bank's account."""
    banks = set(books_of(context).ledger_accounts.values())
    return [each for each in legs if each.account_id not in banks]


def correct_entry(context: Context, entry_id: str, correction: Correction, by: str) -> CorrectionResult:
    """Stage the correction of an entry. A note is of what is posted, or of the entry where nothing is.

    Raises ``UsageError`` where it changes nothing, or where it is not clear which leg it changes, ``PrimitiveError``
    for accounts and dates that cannot be posted to, ``PolicyError`` for a voided entry.
    """
    entry = decidable_entry(context, entry_id)
    refuse_changed_entry(books_of(context).books, entry)
    before = effective_legs(books_of(context).books, entry)
    after = _corrected_legs(context, entry, before, correction)
    changed = _sum_by_account(before) != _sum_by_account(after)
    moved = correction.day is not None and correction.day != entry.date
    note = None if changed or moved else correction.note
    texts = list_amendments(entry, correction.counterparty, correction.tags, note)
    if not changed and not moved and not texts:
        waits = entry.status == "pending-review"
        remedy = "Confirm it: cleared queue approve." if waits else f"See it: cleared why {entry.entry_id}."
        raise UsageError(f"{entry.entry_id} is like that already", remedy=remedy)
    banks = set(books_of(context).ledger_accounts.values())
    same_bank = {a: v for a, v in _sum_by_account(before).items() if a in banks} == {
        a: v for a, v in _sum_by_account(after).items() if a in banks
    }
    has_bank = any(each.account_id in banks for each in entry.legs)
    entry = stage_amendments(books_of(context).books, entry, texts)
    posted: tuple[Entry, ...] = ()
    if changed and not moved and same_bank and has_bank:
        posted = _post_reclassification(context, entry, after, correction, by)
    elif changed or moved:
        posted = repost_entry(context, entry, after, correction, by)
    elif entry.status == "pending-review":  # who corrects it has decided about it
        books_of(context).books.set_status(entry.entry_id, "user-corrected")
    return CorrectionResult(entry, posted, tuple(texts), after, changed)


def _corrected_legs(context: Context, entry: Entry, before: Sequence[Leg], correction: Correction) -> tuple[Leg, ...]:
    changeable = non_bank_legs(context, before)
    unchanged = [each for each in before if each not in changeable]
    if correction.account is not None and correction.lines:
        raise UsageError("give either an account or lines", remedy="--account N, or --line ACCOUNT=AMOUNT for each.")
    if correction.account is not None:
        if len(changeable) != 1:
            raise UsageError(
                f"{entry.entry_id} has {len(changeable)} legs that are not of a bank; which one is meant?",
                remedy="Give all of them: --line ACCOUNT=AMOUNT, money in as negative.",
            )
        old = changeable[0]
        _refuse_own_bank(correction.account, {each.account_id for each in unchanged})
        return (*unchanged, Leg(correction.account, old.debit, old.credit))
    if correction.lines:
        lines = checked_lines(context, correction, {each.account_id for each in unchanged})
        given = money.total([amount for _, amount in lines])
        due = -money.total([each.amount for each in unchanged])
        refuse_odd_parts(due, lines, is_meant=correction.mixed)
        if given != due:
            raise PrimitiveError(
                f"their sum is {money.format_amount(given)}, and must be {money.format_amount(due)}",
                place=Place(field="lines"),
                remedy="Money in is negative. cleared why ENTRY shows its legs.",
            )
        return (*unchanged, *(make_leg(account, amount) for account, amount in lines))
    return tuple(before)


def checked_lines(
    context: Context, correction: Correction, bank_accounts: Collection[int]
) -> tuple[tuple[int, Decimal], ...]:
    """The lines as given. ``bank_accounts``: those that the entry itself moves.

    Raises ``UsageError`` for an amount that no entry can have, and for the entry's own bank account.
    """
    bounds = books_of(context).books.bounds
    for account, amount in correction.lines:
        _refuse_own_bank(account, bank_accounts)
        if fault := find_amount_fault(amount, bounds):
            raise UsageError(
                f"{account}={str(amount)[:40]} {fault}",
                remedy=f"Not zero, and at most {bounds.places} decimals: --line 5060=12.50.",
            )
    return correction.lines


def _refuse_own_bank(account: int, bank_accounts: Collection[int]) -> None:
    if account in bank_accounts:
        raise UsageError(
            f"{account} is the bank account of this entry itself",
            remedy="Name where its money went; between your own accounts that is the clearing account, 1090.",
        )


def _post_reclassification(
    context: Context, entry: Entry, after: Sequence[Leg], correction: Correction, by: str
) -> tuple[Entry, ...]:
    """One entry that takes back what was wrong and posts what is right; the bank's legs are in neither.

    A correction that stands is taken back: one at a time counts, so that on every day the entry is what was said of it.
    """
    books = books_of(context).books
    earlier = [each.entry_id for each in find_corrections(books, entry)]
    reversals = [books.void_entry(entry_id, f"replaced by {by}")[1] for entry_id in reversed(earlier)]
    books.set_status(entry.entry_id, "user-corrected")
    old, new = _sum_by_account(non_bank_legs(context, entry.legs)), _sum_by_account(non_bank_legs(context, after))
    moved = {a: new.get(a, ZERO) - old.get(a, ZERO) for a in (*old, *(a for a in new if a not in old))}
    legs = [make_leg(account, amount) for account, amount in moved.items() if amount]
    if not legs:  # it is again what was posted at first
        return tuple(reversals)
    legs.sort(key=lambda each: each.debit == 0)
    day = books.date_change([entry.entry_id])
    replaced = (f"{REPLACES}{entry_id}" for entry_id in earlier)
    tags = [f"{CORRECTS}{entry.entry_id}", *replaced, *date_tags(day, entry.date)]
    added = books.add_entry(
        day,
        f"Correct {entry.entry_id}: {entry.description}"[:2000],
        legs,
        status="user-corrected",
        counterparty=entry.counterparty,
        confidence="1.00",
        evidence=f"corrected by {by}",
        tags=";".join(tags),
        notes=correction.note or "",
    )
    return (*reversals, added)


def repost_entry(
    context: Context, entry: Entry, legs: Sequence[Leg], correction: Correction, by: str
) -> tuple[Entry, ...]:
    """Void the entry and its corrections, and post it again for the same bank line: ``(reversals…, the new entry)``."""
    reversals = void_with_corrections(context, entry, f"replaced by {by}")
    books = books_of(context).books
    day = books.date_change([entry.entry_id], correction.day or reversals[-1].date)
    tags = [t for t in entry.tags.split(";") if t and (not t.startswith("@") or t.startswith(KIND))]
    tags += [f"{REPLACES}{entry.entry_id}", *date_tags(day, correction.day or entry.date)]
    added, _ = post_entry(
        books,
        books_of(context).bank,
        books_of(context).ledger_accounts,
        day,
        entry.description,
        legs,
        reference=entry.reference,
        status="user-corrected",
        counterparty=entry.counterparty,
        confidence="1.00",
        evidence=f"corrected by {by}",
        tags=";".join(tags),
        notes=entry.notes if correction.note is None else correction.note,
    )
    return (*reversals, added)


def void_with_corrections(context: Context, entry: Entry, reason: str, not_before: date | None = None) -> list[Entry]:
    """Void an entry and its corrections, and return the reversals. Its bank lines are open again, without a card.
    ``not_before``: see ``corrections.void_with_corrections``."""
    voided = corrections.void_with_corrections(books_of(context).books, entry, reason, not_before)
    for line in unmatch_entries(books_of(context).bank, voided, reason):
        books_of(context).bank.new_outcomes.pop(line.line_id, None)
    return [reversal for _, reversal in voided]


def posted_line(context: Context, entry: Entry) -> BankLine | None:
    """The bank line the entry posts, if it does."""
    if not entry.reference or not books_of(context).bank.posted_amount(entry.reference):
        return None
    line = books_of(context).bank.find_line(entry.reference)
    return line[1] if line else None


def _sum_by_account(legs: Iterable[Leg]) -> Mapping[int, Decimal]:
    totals: Counter[int] = Counter()
    for each in legs:
        totals[each.account_id] += each.amount  # type: ignore[assignment]
    return {account: Decimal(amount) for account, amount in totals.items() if amount}
