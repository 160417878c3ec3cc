"""What an import shows beside its rows, as cards in the run's own commit: monthly charges that did not come, came twice
or cost a fifth more; entries that look like two sides of one transfer; and receipts that came before their entry.

Each is asked once: the card's id follows from what it is about, in every clone. What somebody answered with "stop" is
not asked for that payee again. It never stops an import.

A series is one payee on one bank account, charged about once a month at least three times in a row. Everything else is
left alone: nobody wants to hear of a second coffee.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Final

from msgspec import Struct

from cleared.base.clock import check_deadline
from cleared.books.card_kinds import RECURRING, TRANSFER
from cleared.books.decisions.receipt_proposals import propose_kept_receipts
from cleared.books.entry_cards import choose_key, mark_postings
from cleared.books.index.month_charges import NEWEST, ORDER, PAYEE_LENGTH, Charge, PastCharges
from cleared.books.ledger.bank_lines import BankLine
from cleared.books.ledger.booked_lines import TEXT_LENGTH, clean_payee
from cleared.books.ledger.entry import Entry
from cleared.books.ledger.staged_journal import Books
from cleared.books.ledger.transfers import CLEARING_ACCOUNT, MAX_DAYS, TransferPair, find_sides, find_transfers
from cleared.books.staged_books import StagedBooks, books_of
from cleared.books.transfer_cards import refused_transfers
from cleared.cards.card import card_id
from cleared.primitives.context import Context

Charged = Charge | BankLine
"""A bank line that took money."""
MAX_CARDS: Final = 20
"""Of one run."""
STOP: Final = "stop"
_WHAT: Final = {
    "missing": "{payee} did not come: it was due about {due}, the last was {last.amount} on {last.posted_date}",
    "doubled": "{payee} was charged twice: {new.amount} on {last.posted_date} and on {new.posted_date}",
    "dearer": "{payee} costs more: {new.amount} on {new.posted_date}, {last.amount} before",
}


def stage_findings(context: Context) -> None:
    """Stage a card for each finding about the accounts that the run has imported."""
    room, draft = MAX_CARDS, books_of(context)
    stopped = {
        card.details.get("series")
        for card in context.cards.committed_cards.list_kind(RECURRING.name)
        if card.resolution == STOP
    }
    for account in sorted({record.account for record in draft.bank.new_imports}):
        for finding in _find_recurring(draft, account):
            if room and finding.series not in stopped and _is_decided(draft, finding):
                room -= _stage_recurring(context, account, finding)
    for pair in _find_pairs(context, draft):
        if room:
            room -= _stage_transfer(context, pair)
    propose_kept_receipts(context)
    if not room:
        context.log_action("import_findings", f"more than {MAX_CARDS} things were odd; the others are left out")


def _find_recurring(draft: StagedBooks, account: str) -> Iterator[RecurringFinding]:
    bank = draft.bank
    new = {line_id: line for line_id, (owner, line) in bank.new_lines.items() if owner == account}
    days = [line.posted_date for line in new.values() if line.state == "posted"]
    ends = [date.fromisoformat(r.last_date) for r in bank.imports if r.account == account and r.last_date]
    if not days:
        return
    through = max([*days, *ends])
    earlier = [r.last_date for r in bank.imports if r.account == account and r.last_date and r not in bank.new_imports]
    seen = date.fromisoformat(max(earlier)) if earlier else date.min
    history = min(HISTORY, through - min(*days, seen) + _LATE)
    since, first = through - min(history, through - date.min), min(days)
    past = [m for m, _ in bank.list_month_files(account) if since.isoformat()[:7] <= m < first.isoformat()[:7]]
    charges = PastCharges(bank, draft.layout.state_dir) if past else None
    before = charges.iter_charges(account, past) if charges is not None else ()
    committed = (line for line in bank.scan_account_lines(account, since=max(since, first)) if line.line_id not in new)
    both = (line for line in (*committed, *new.values()) if line.state == "posted")
    recent = [line for line in both if bank.posted_amount(line.line_id) == line.amount]
    lines, payees = [*before, *recent], charges.payees if charges is not None else {}
    for finding in find_recurring(account, lines, set(new), through, payees):
        if charges is not None:
            charges.note_lines(line.line_id for line in finding.lines)
        yield finding


def _is_decided(draft: StagedBooks, finding: RecurringFinding) -> bool:
    """Whether the charges before are more than guesses that wait for a person."""
    decided = 0
    before = finding.lines if finding.what == "missing" else finding.lines[:-1]
    for line in before:
        legs = [leg_id for leg_id, amount in draft.bank.list_matches(line.line_id) if amount]
        entry = draft.books.find_entry(legs[-1]) if legs else None
        decided += entry is not None and entry.status not in ("pending-review", "voided")
    return decided >= len(before) - 1


def _stage_recurring(context: Context, account: str, finding: RecurringFinding) -> int:
    new, last = finding.lines[-1], finding.lines[-1 if finding.what == "missing" else -2]
    title = _WHAT[finding.what].format(payee=finding.payee[:80], due=finding.due, last=last, new=new)
    key = (finding.what, finding.series, finding.about)
    if card_id(RECURRING.name, *key) in context.cards.committed_cards:
        return 0
    context.stage_card(
        RECURRING.name,
        key,
        f"{account}: {title}"[:300],
        what=finding.what,
        series=finding.series,
        account=account,
        expected=finding.due.isoformat() if finding.due else None,
        rows=[_row_data(line) for line in finding.lines],
    )
    return 1


def _row_data(line: Charged) -> dict[str, str]:
    return {"date": str(line.posted_date), "amount": str(line.amount), "text": line.description[:200]}


def _find_pairs(context: Context, draft: StagedBooks) -> list[TransferPair]:
    books, banks = draft.books, set(draft.ledger_accounts.values())
    if len(banks) < 2 or books.chart.find_account(CLEARING_ACCOUNT) is None:
        return []
    staged = {e.entry_id for each in books.staged.values() for e in each}
    pairs = find_transfers(find_sides(_recent_entries(books), banks)).proposed
    refused = {
        (clean_payee(out), clean_payee(into))
        for out, into in refused_transfers(context.cards.committed_cards.list_kind(TRANSFER.name))
    }
    return [
        pair
        for pair in pairs
        if not staged.isdisjoint((pair.out.entry_id, pair.into.entry_id))
        and (clean_payee(pair.out.text[:TEXT_LENGTH]), clean_payee(pair.into.text[:TEXT_LENGTH])) not in refused
    ]


def _recent_entries(books: Books) -> Iterable[Entry]:
    """The entries of the months that the run posts into, and of those around them."""
    days = [entry.date for each in books.staged.values() for entry in each]
    if not days:
        return []
    span = timedelta(days=3 * MAX_DAYS)
    first, last = min(days) - min(span, min(days) - date.min), max(days) + min(span, date.max - max(days))
    months = [m for m in books.list_months() if (first.year, first.month) <= m <= (last.year, last.month)]
    months = sorted({*months, *books.staged})
    return (entry for month in months for entry in books.iter_entries(*month))


def _stage_transfer(context: Context, pair: TransferPair) -> int:
    ids = (pair.out.entry_id, pair.into.entry_id)
    entries = [books_of(context).books.get_entry(each) for each in ids]
    key = choose_key(context.cards, TRANSFER.name, ids, entries, again=False)
    if card_id(TRANSFER.name, *key) in context.cards.committed_cards:
        return 0
    chart = books_of(context).books.chart
    left, reached = (chart.name_account(side.account) for side in (pair.out, pair.into))
    title = (
        f"{-pair.out.amount} left {left} on {pair.out.day} ({pair.out.text[:60]}) and reached "
        f"{reached} on {pair.into.day} ({pair.into.text[:60]}): one transfer?"
    )
    context.stage_card(
        TRANSFER.name,
        tuple(key),
        title[:300],
        entries=list(ids),
        amount=str(pair.into.amount),
        rows=[
            {
                "entry": s.entry_id,
                "date": str(s.day),
                "account": s.account,
                "amount": str(s.amount),
                "text": s.text[:TEXT_LENGTH],
            }
            for s in (pair.out, pair.into)
        ],
        _postings=mark_postings(entries),
    )
    return 1


HISTORY: Final = timedelta(days=400)
"""How far back charges are looked at."""
_LATE: Final = timedelta(days=150)
"""How far before what is new, where the account was looked at before: whatever that can show has its charges in it."""
MAX_LINES: Final = 20_000
"""Of one account are looked at: the newest."""
_FEWEST: Final = NEWEST
"""Charges that make a series."""
_MONTH: Final = range(25, 37)
"""Days between two charges of a series."""
_GRACE: Final = 7
"""Days after which a charge is late."""
_TWICE: Final = 20
"""Days within which a second charge is one too many."""
_STEADY: Final = Decimal("1.05")
"""How much the charges before may differ for a price to be known."""
_DEARER: Final = Decimal("1.2")


class RecurringFinding(Struct, frozen=True):
    """``what``: ``missing``, ``doubled`` or ``dearer``. ``series`` names the payee on the account, ``about`` the
    occasion: together they are never said twice. ``lines``: the charges before, oldest first, then the new one."""

    what: str
    series: str
    about: str
    payee: str
    lines: tuple[Charged, ...]
    due: date | None = None
    """When a missing charge should have come."""


def find_recurring(
    account: str, lines: Iterable[Charged], new: set[str], through: date, payees: dict[str, str]
) -> Iterator[RecurringFinding]:
    """What is odd about the monthly charges of one bank account. ``lines``: those that are posted; ``new``: ids of
    those that came just now; ``through``: the day up to which the bank has said everything; ``payees``: description →
    payee, as far as they are known."""
    since = through - min(HISTORY, through - date.min)
    known = [line for line in check_deadline(lines) if line.amount < 0 and since <= line.posted_date <= through]
    if len(known) > MAX_LINES:
        known = sorted(known, key=attrgetter("posted_date"), reverse=True)[:MAX_LINES]
    by_payee: dict[str, list[Charged]] = {}
    for line in known:
        text = line.description
        payee = payees.get(text) or payees.setdefault(text, clean_payee(text)[:PAYEE_LENGTH])
        by_payee.setdefault(payee, []).append(line)
    for payee, charges in check_deadline(by_payee.items()):
        if len(charges) >= _FEWEST:
            charges.sort(key=ORDER)
            series = f"{account}:{hashlib.sha256(payee.encode()).hexdigest()[:16]}"
            for finding in _judge_series(series, payee, charges, new, through):
                if finding.due is None or not _came_otherwise(finding, by_payee.values()):
                    yield finding


def _judge_series(
    series: str, payee: str, charges: Sequence[Charged], new: set[str], through: date
) -> Iterator[RecurringFinding]:
    for at in range(_FEWEST, len(charges)):
        line = charges[at]
        if line.line_id not in new or not _is_monthly(before := charges[at - _FEWEST : at]):
            continue
        days = (line.posted_date - before[-1].posted_date).days
        if days < _TWICE and line.amount == before[-1].amount:
            yield RecurringFinding("doubled", series, line.line_id, payee, (*before, line))
        elif days in _MONTH and _is_steady(before) and -line.amount >= _DEARER * -before[-1].amount:
            yield RecurringFinding("dearer", series, line.line_id, payee, (*before, line))
    last = charges[-_FEWEST:]
    if _is_monthly(last):
        due = _add_month(last[-1].posted_date)
        if (through - due).days > _GRACE:
            yield RecurringFinding("missing", series, last[-1].line_id, payee, tuple(last), due)


def _came_otherwise(finding: RecurringFinding, payees: Iterable[Sequence[Charged]]) -> bool:
    """Whether a payee who was never seen before charged the same amount when a charge was missing: banks write a name
    otherwise in another format, or after a change of theirs. Of one with many charges in a month not all are known."""
    last, due = finding.lines[-1], finding.due
    return due is not None and any(
        all(line.posted_date > last.posted_date for line in charges)
        and any(line.amount == last.amount and abs((line.posted_date - due).days) <= _GRACE for line in charges)
        for charges in payees
    )


def _is_monthly(charges: Sequence[Charged]) -> bool:
    days = [(b.posted_date - a.posted_date).days for a, b in itertools.pairwise(charges)]
    return all(each in _MONTH for each in days)


def _is_steady(charges: Sequence[Charged]) -> bool:
    middle = sorted(-line.amount for line in charges)[len(charges) // 2]  # an odd number of them
    return all(middle / _STEADY <= -line.amount <= middle * _STEADY for line in charges)


def _add_month(day: date) -> date:
    """The same day of the next month, or its last."""
    if (day.year, day.month) >= (date.max.year, date.max.month - 1):
        return date.max
    last = (day.replace(day=1) + timedelta(days=62)).replace(day=1) - timedelta(days=1)  # two months have 62 at most
    return last.replace(day=min(day.day, last.day))
