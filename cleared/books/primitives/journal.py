"""``journal_*``: posting, reading, finding, voiding."""

# Without annotations from __future__: each type would be a text, compiled when what a primitive takes is read.

from collections.abc import Iterator, Sequence
from datetime import date
from datetime import date as Day
from decimal import Decimal
from functools import lru_cache
from typing import Final

from cleared.base.clock import check_deadline
from cleared.base.errors import MAX_FAULTS, Place, PrimitiveError, merge_faults
from cleared.books.ledger.entry import HUMAN_STATUSES, ZERO, Entry, Leg
from cleared.books.ledger.posting import post_entry
from cleared.books.ledger.staged_journal import Books
from cleared.books.primitives import two_person_rule
from cleared.books.primitives.book_shapes import EntryId, EntryRef, EntrySpec, JournalEntry, JournalLine, Status
from cleared.books.primitives.entry_projection import describe_entry, entry_reference
from cleared.books.primitives.voiding import void_with_corrections
from cleared.books.staged_books import LastEntry, books_of, charge_entry
from cleared.primitives.context import Context
from cleared.primitives.registry.primitive import Effect, primitive
from cleared.primitives.registry.vocabulary import (
    AccountId,
    Confidence,
    Date,
    Line,
    PositiveAmount,
    Text,
    Whole,
)

WRITE_GRANT: Final = "journal.write"
READ_GRANT: Final = "journal.read"
_CENT: Final = Decimal("0.01")
_DOUBLE: Final = {"debit_account", "credit_account", "amount"}


@primitive(effect=Effect.STAGE, grant=WRITE_GRANT)
def journal_add_double(
    ctx: Context,
    date: Date,
    description: Text,
    debit_account: AccountId,
    credit_account: AccountId,
    amount: PositiveAmount,
    counterparty: Text | None = None,
    reference: Line | None = None,
    confidence: Confidence = ZERO,
    status: Status = "pending-review",
    evidence: Text | None = None,
) -> EntryRef:
    """Post one entry of two legs; balanced by construction.

    ``amount`` is positive: debit_account receives it, credit_account gives it. ``reference`` of a transaction
    matches the entry to its bank line; a line that is posted already stages nothing and gives the existing entry
    with ``duplicate`` True. Refused: unknown, closed or equal accounts, dates out of bounds or in a closed period,
    amounts finer than the currency.
    """
    legs = [Leg(debit_account, amount, ZERO), Leg(credit_account, ZERO, amount)]
    return _post_entry(ctx, date, description, legs, "amount", counterparty, reference, confidence, status, evidence)


@primitive(effect=Effect.STAGE, grant=WRITE_GRANT)
def journal_add(
    ctx: Context,
    date: Date,
    description: Text,
    lines: list[JournalLine],
    counterparty: Text | None = None,
    reference: Line | None = None,
    confidence: Confidence = ZERO,
    status: Status = "pending-review",
    evidence: Text | None = None,
    tags: list[Line] | None = None,
    notes: Text | None = None,
) -> EntryRef:
    """Post one entry of two or more legs.

    ``lines=[{"account_id": 5020, "debit": 4}, {"account_id": 1010, "credit": 4}]``: debits and credits must be equal.
    ``tags`` may not begin with ``@`` (those are the host's) nor hold ``;``. Otherwise as ``journal_add_double``.
    """
    legs = _read_legs(lines)
    return _post_entry(
        ctx, date, description, legs, "lines", counterparty, reference, confidence, status, evidence, tags, notes
    )


@primitive(effect=Effect.STAGE, grant=WRITE_GRANT)
def journal_add_many(ctx: Context, entries: list[EntrySpec]) -> list[EntryRef]:
    """Post many entries in one call: all of them or, where one is refused, none.

    Each is a dict with the arguments of ``journal_add`` or of ``journal_add_double``. The refusal names the indexes.
    """
    refs: list[EntryRef] = []
    faults: list[PrimitiveError] = []
    for i, spec in enumerate(check_deadline(entries)):
        try:
            refs.append(_post_spec(ctx, spec))
        except PrimitiveError as e:
            field = f"entries[{i}]" + (f".{e.place.field}" if e.place and e.place.field else "")
            faults.append(PrimitiveError(f"{field}: {e.message}", place=Place(field=field), remedy=e.remedy))
            if len(faults) >= MAX_FAULTS:
                break
    if faults:
        raise merge_faults(faults)
    fresh = [r["entry_id"] for r in refs if not r["duplicate"]]
    span = f"{fresh[0]} … {fresh[-1]}" if len(fresh) > 1 else "".join(fresh)
    ctx.log_action("journal_add_many", f"{len(fresh)} entries {span}".strip())
    return refs


def _post_spec(ctx: Context, spec: EntrySpec) -> EntryRef:
    """Post one of many entries, which have one row in the agent log."""
    double = spec.keys() & _DOUBLE
    if ("lines" in spec) == bool(double) or (double and len(double) < 3):
        raise PrimitiveError(
            "give either lines, or debit_account, credit_account and amount",
            place=Place(field="lines"),
            remedy="See journal_add and journal_add_double.",
        )
    if "lines" in spec:
        legs, field = _read_legs(spec["lines"]), "lines"
    else:
        amount, field = spec["amount"], "amount"
        legs = [Leg(spec["debit_account"], amount, ZERO), Leg(spec["credit_account"], ZERO, amount)]
    return _post_entry(
        ctx,
        spec["date"],
        spec["description"],
        legs,
        field,
        spec.get("counterparty"),
        spec.get("reference"),
        spec.get("confidence", ZERO),
        spec.get("status", "pending-review"),
        spec.get("evidence"),
        spec.get("tags"),
        spec.get("notes"),
        log=False,
    )


def _post_entry(
    ctx: Context,
    day: Day,
    description: str,
    legs: Sequence[Leg],
    field: str,
    counterparty: str | None,
    reference: str | None,
    confidence: Decimal,
    status: str,
    evidence: str | None,
    tags: Sequence[str] | None = None,
    notes: str | None = None,
    *,
    log: bool = True,
) -> EntryRef:
    """Post an entry. ``field``: the argument that its legs are of; ``log``: with a row of its own in the agent log."""
    draft = books_of(ctx)
    try:
        _require_two_accounts(legs, field)
        _require_script_status(status)
        both = (
            status == "auto-confirmed"
            and ctx.config.thresholds.two_person is not None
            and two_person_rule.needs_two_people(ctx, two_person_rule.entry_amount(ctx, legs, reference or ""))
        )
        if both:
            status = "pending-review"
        entry, duplicate = post_entry(
            draft.books,
            draft.bank,
            draft.ledger_accounts,
            day,
            description,
            legs,
            reference=reference or "",
            field=field,
            counterparty=counterparty or "",
            confidence=_format_confidence(confidence),
            status=status,
            evidence=evidence or "",
            tags=_join_tags(tags),
            notes=notes or "",
        )
    except PrimitiveError as first:
        raise merge_faults([first, *_list_faults(ctx, day, legs, status, tags, field)]) from None
    if not duplicate:
        charge_entry(ctx, entry)
    if both and not duplicate:
        two_person_rule.stage_confirmation_card(ctx, entry)
    draft.last_entry = LastEntry(None if duplicate else entry.entry_id, duplicate)
    if log and not duplicate:
        ctx.log_action("journal_add", f"{entry.date} {entry.amount} {entry.description}"[:500], entry.entry_id)
    return {"entry_id": entry.entry_id, "date": entry.date.isoformat(), "status": entry.status, "duplicate": duplicate}


def _list_faults(
    ctx: Context, day: Day, legs: Sequence[Leg], status: str, tags: Sequence[str] | None, field: str
) -> Iterator[PrimitiveError]:
    """All that is wrong with an entry."""
    for check in (
        lambda: _require_two_accounts(legs, field),
        lambda: _require_script_status(status),
        lambda: _join_tags(tags),
    ):
        try:
            check()
        except PrimitiveError as fault:
            yield fault
    yield from books_of(ctx).books.find_faults(day, legs, field)


def _require_two_accounts(legs: Sequence[Leg], field: str) -> None:
    if field == "amount" and legs[0].account_id == legs[1].account_id:
        raise PrimitiveError(
            f"debit_account and credit_account are both {legs[0].account_id}",
            place=Place(field="credit_account"),
            remedy="An entry moves an amount from one account to another.",
        )


def _read_legs(lines: Sequence[JournalLine]) -> list[Leg]:
    legs = []
    for i, line in enumerate(lines):
        if ("debit" in line) == ("credit" in line):
            raise PrimitiveError(
                f"lines[{i}] needs exactly one of debit and credit",
                place=Place(field=f"lines[{i}]"),
                remedy='Write {"account_id": 5020, "debit": 4} or {"account_id": 1010, "credit": 4}.',
            )
        legs.append(Leg(line["account_id"], line.get("debit", ZERO), line.get("credit", ZERO)))
    if len(legs) > 500:
        raise PrimitiveError(f"an entry of {len(legs)} lines", place=Place(field="lines"), remedy="At most 500.")
    return legs


@lru_cache(maxsize=1_000)
def _format_confidence(value: Decimal) -> str:
    return format(value.quantize(_CENT) if value == value.quantize(_CENT) else value.normalize(), "f")[:12]


def _join_tags(tags: Sequence[str] | None) -> str:
    for tag in tags or ():
        if not tag or tag.startswith("@") or ";" in tag:
            raise PrimitiveError(
                f"{tag!r} cannot be a tag", place=Place(field="tags"), remedy="No leading @, no semicolon, not empty."
            )
    return ";".join(tags or ())


def _require_script_status(status: str) -> None:
    if status in HUMAN_STATUSES or status == "voided":
        how = "journal_void does that" if status == "voided" else "only a person's decision sets it"
        raise PrimitiveError(
            f"a script cannot set the status {status}: {how}",
            place=Place(field="status"),
            remedy="Use auto-confirmed or pending-review.",
        )


@primitive(effect=Effect.STAGE, grant="journal.void")
def journal_void(ctx: Context, entry_id: EntryId, reason: Text) -> EntryRef:
    """Void an entry, with its corrections: reversing entries are posted, the originals marked ``voided``; all stay.

    The reversal is dated as the last change of the entry, or on the first open day after it. A bank line the
    entry posted is open again: it is held and gets a card. Gives the reversal. Refused: an amount that takes two
    reviewers (``thresholds.two_person``).
    """
    entry = books_of(ctx).books.get_entry(entry_id)
    if two_person_rule.is_change_for_two(ctx, entry):
        raise PrimitiveError(
            f"{entry.entry_id} is of an amount that only two reviewers void",
            place=Place(field="entry_id"),
            remedy="Ask them: queue_add_review(entry_id, …).",
        )
    return void_with_corrections(ctx, entry_id, reason)


@primitive(effect=Effect.STAGE, grant=WRITE_GRANT)
def journal_update_status(ctx: Context, entry_id: EntryId, status: Status) -> EntryRef:
    """Change an entry's status, forwards only: pending-review ⇄ auto-confirmed. The rest is for people.

    What takes two reviewers (``thresholds.two_person``) stays as it is, and gets a card.
    """
    _require_script_status(status)
    earlier = books_of(ctx).books.get_entry(entry_id)
    if status == "auto-confirmed" and two_person_rule.is_change_for_two(ctx, earlier):
        if earlier.status == "pending-review":
            two_person_rule.stage_confirmation_card(ctx, earlier)
        return entry_reference(earlier)
    entry = books_of(ctx).books.set_status(entry_id, status)
    ctx.log_action("journal_update_status", status, entry.entry_id)
    return entry_reference(entry)


@primitive(effect=Effect.READ, grant=READ_GRANT)
def journal_balance(
    ctx: Context,
    account_id: AccountId,
    year: Whole | None = None,
    month: Whole | None = None,
    as_of: Date | None = None,
) -> Decimal:
    """Debits minus credits of an account: ever, in a year or month, or up to and including a day.

    Positive: a debit balance (usual for assets and expenses). Voided entries count: their reversal cancels them.
    """
    if books_of(ctx).books.chart.find_account(account_id) is None:
        why = books_of(ctx).books.chart.why_not_postable(account_id, ctx.today) or ("", "")
        raise PrimitiveError(why[0], place=Place(field="account_id"), remedy=why[1])
    require_month(year, month)
    return books_of(ctx).books.account_balance(account_id, year=year, month=month, as_of=as_of)


@primitive(effect=Effect.READ, grant=READ_GRANT)
def journal_query(
    ctx: Context,
    status: Status | None = None,
    year: Whole | None = None,
    month: Whole | None = None,
    account: AccountId | None = None,
    text: Text | None = None,
    limit: Whole | None = None,
    date_from: Date | None = None,
    date_to: Date | None = None,
) -> list[JournalEntry]:
    """Entries in the order of their ids, staged ones included; every filter given must fit.

    ``text`` is looked for in description, counterparty, reference, evidence and notes, whatever the case. ``limit``
    keeps the newest. ``date_from`` and ``date_to``: the first and the last day, ``YYYY-MM-DD``.
    """
    books = books_of(ctx).books
    found = find_entries(books, status, year, month, account, text, limit, date_from, date_to)
    return [describe_entry(entry) for entry in check_deadline(found)]


def find_entries(
    books: Books,
    status: str | None = None,
    year: int | None = None,
    month: int | None = None,
    account: int | None = None,
    text: str | None = None,
    limit: int | None = None,
    date_from: date | None = None,
    date_to: date | None = None,
) -> list[Entry]:
    """What ``journal_query`` shows; both dates are included."""
    require_month(year, month)
    first, last = date_from or date.min, date_to or date.max
    if limit is not None and limit < 0:
        raise PrimitiveError("limit is negative", place=Place(field="limit"), remedy="Leave it out for all entries.")
    needle = text.casefold() if text else None
    entries = [
        entry
        for key in books.list_months()
        if (year in (None, key[0]) and month in (None, key[1]))
        and (first.year, first.month) <= key <= (last.year, last.month)
        for entry in books.iter_entries(*key)
        if first <= entry.date <= last
        and (status is None or entry.status == status)
        and (account is None or any(leg.account_id == account for leg in entry.legs))
        and (needle is None or needle in _searched_text(entry))
    ]
    if limit is not None:
        entries = entries[max(0, len(entries) - limit) :]
    return entries


def _searched_text(entry: Entry) -> str:
    return "\n".join((entry.description, entry.counterparty, entry.reference, entry.evidence, entry.notes)).casefold()


def require_month(year: int | None, month: int | None) -> None:
    """Raises ``PrimitiveError`` where there is no such month or year."""
    if month is not None and not 1 <= month <= 12:
        raise PrimitiveError(f"there is no month {month}", place=Place(field="month"), remedy="Use 1 to 12.")
    if year is not None and not 1 <= year <= 9999:
        raise PrimitiveError(f"there is no year {year}", place=Place(field="year"), remedy="Use four digits.")
