"""Moving books in: opening balances or whole history, in one commit, or nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import asdict

from cleared.base import money
from cleared.base.errors import Place, PolicyError, PrimitiveError, UsageError
from cleared.base.terminal import count_noun
from cleared.books.bank_files.base import Faults
from cleared.books.decisions import book_subjects
from cleared.books.exports.migration.account_mapping import UNKNOWN_NUMBER, UNKNOWN_TYPE, AccountMapping, map_accounts
from cleared.books.exports.migration.source_books import SourceBooks, SourceEntry
from cleared.books.exports.migration.source_reading import read_account_map, read_source
from cleared.books.ledger.chains import REVERSES
from cleared.books.ledger.chart import OPENING_BALANCES, TYPES
from cleared.books.ledger.corrections import make_leg
from cleared.books.ledger.entry import MOVED_IN, OPENING, Entry, Leg, list_plain_tags
from cleared.books.ledger.staged_journal import Books
from cleared.books.queries import open_committed_books
from cleared.books.staged_books import books_of, ledger_accounts
from cleared.changes.decisions.decision_context import (
    UNDO_TRAILER,
    Decision,
    DecisionContext,
    commit_decision,
    require_commit,
)
from cleared.changes.host import Host
from cleared.primitives.registry.vocabulary import VALUE_TYPES
from cleared.trust.person_only import refuse_in_job

MAX_SHOWN: Final = 20


class PlannedEntry(Struct, frozen=True):
    """An entry as it will be posted."""

    line: int
    day: date
    description: str
    legs: tuple[Leg, ...]
    counterparty: str = ""
    reference: str = ""
    tags: str = ""
    notes: str = ""


class MovePlan(Struct):
    """What a file would become."""

    file: str
    format: str
    entries: list[PlannedEntry] = []
    openings: int = 0
    """How many of them are opening balances; they come first."""
    accounts: AccountMapping = field(default_factory=AccountMapping)
    notes: list[str] = []
    """What was read over, and what to take care of."""
    refusal: PolicyError | None = None
    """Why these books, as they are now, would not take it."""

    @property
    def days(self) -> tuple[date, date] | None:
        """The first and the last day."""
        days = [entry.day for entry in self.entries]
        return (min(days), max(days)) if days else None

    def sum_accounts(self) -> dict[int, Decimal]:
        """The trial balance of what would be posted."""
        sums: dict[int, list[Decimal]] = {}
        for entry in self.entries:
            for leg in entry.legs:
                sums.setdefault(leg.account_id, []).append(leg.amount)
        return {account: money.total(amounts) for account, amounts in sorted(sums.items())}


def read_move_plan(
    host: Host, path: Path, *, first_day: date | None = None, map_file: Path | None = None, format: str | None = None
) -> MovePlan:
    """What a file would become. ``first_day``: of the books here; what is before it becomes opening balances.

    Raises ``ImportFileError`` for what is not understood, naming the lines; ``UsageError`` for a trial balance without
    ``first_day``.
    """
    source = read_source(host, path, format)
    given = read_account_map(map_file)
    if source.balances and first_day is None:
        raise UsageError(
            "a trial balance has no day",
            place=Place(field="--from"),
            remedy="Say the first day of your books here: --from 2025-01-01. The balances are those of the day before.",
        )
    with open_committed_books(host) as (_, _snapshot, books, _bank):
        plan = MovePlan(str(path), source.format, accounts=map_accounts(source, books.chart, given))
        if not plan.accounts.unknown:
            plan.entries += _plan_openings(host, source, plan.accounts.numbers, first_day)
            plan.openings = len(plan.entries)
            later = [entry for entry in source.entries if first_day is None or entry.day >= first_day]
            plan.entries += _plan_history(later, plan.accounts.numbers)
            _refuse_bad_texts(host, plan)
        plan.refusal = _find_present_entries(books, plan)
    plan.notes += [f"read over: {n} {what}" for what, n in sorted(source.left_out.items())]
    plan.notes += _list_bank_notes(host, plan)
    return plan


def require_known_accounts(file: str, accounts: AccountMapping) -> None:
    """Raises ``PolicyError`` where an account of the file is not in the chart, with what would add each."""
    unknown = accounts.unknown
    if unknown:
        shown = "; ".join(f"{u.account[:80]} (line {u.line}: {u.reason})" for u in unknown[:MAX_SHOWN])
        more = f"; and {len(unknown) - MAX_SHOWN} more" if len(unknown) > MAX_SHOWN else ""
        commands = ", ".join(u.command for u in unknown[:MAX_SHOWN])
        if UNKNOWN_TYPE in commands:
            commands += f" ({UNKNOWN_TYPE} is one of {', '.join(TYPES)}; {UNKNOWN_NUMBER} one that is free)"
        raise PolicyError(
            f"{count_noun(len(unknown), 'account')} of the file cannot be placed: {shown}{more}",
            place=Place(file),
            remedy=f"Name the number of each in a file, ACCOUNT,NUMBER on a line: --map FILE. Or add them: {commands}",
        )


def start_books_from(host: Host, plan: MovePlan) -> tuple[list[str], str]:
    """Post what was planned; ``(entry ids, commit)``.

    Raises ``PolicyError`` where the books have entries up to the last of these days already, where accounts are
    unknown, or nothing is to be posted; ``ImportFileError`` with the lines that no entry can be made of.
    """
    refuse_in_job()
    require_known_accounts(plan.file, plan.accounts)
    if plan.days is None:
        raise PolicyError("there is nothing to post", place=Place(plan.file), remedy="Look with --preview.")
    ids: list[str] = []

    def stage_entries(decision_context: DecisionContext) -> Decision:
        context = decision_context.context
        if (refusal := _find_present_entries(books_of(context).books, plan)) is not None:
            raise refusal
        faults = Faults()
        for planned in plan.entries:
            try:
                entry = books_of(context).books.add_entry(
                    planned.day,
                    planned.description,
                    planned.legs,
                    status=MOVED_IN,
                    confidence="1.00",
                    counterparty=planned.counterparty,
                    reference=planned.reference,
                    tags=planned.tags,
                    evidence=f"{Path(plan.file).name}, line {planned.line}",
                    notes=planned.notes,
                )
                ids.append(entry.entry_id)
            except PrimitiveError as error:
                faults.add(planned.line, f"{error.message}. {error.remedy or ''}".rstrip())
        if faults:
            raise faults.error().of_file(plan.file)
        name = "".join(c for c in Path(plan.file).name if c.isprintable())[:80]
        context.log_action("start_from", f"{count_noun(len(ids), 'entry', 'entries')} from {name} ({plan.format})")
        subject = book_subjects.books_moved_in(len(ids) - plan.openings, plan.openings, name)
        return Decision(subject, trailers=((UNDO_TRAILER, ids[0]),), subject=("start-from", name))

    return ids, require_commit(commit_decision(host, "start-from", stage_entries, collects=[ids]))


def describe_plan(plan: MovePlan) -> dict[str, Any]:
    """A plan as plain data."""
    days = plan.days
    return {
        "file": plan.file,
        "format": plan.format,
        "openings": plan.openings,
        "entries": len(plan.entries) - plan.openings,
        "first": days[0].isoformat() if days else None,
        "last": days[1].isoformat() if days else None,
        "accounts": [{"account": name, "number": number} for name, number in plan.accounts.numbers.items()],
        "unknown": [asdict(unknown) for unknown in plan.accounts.unknown],
        "trial_balance": [
            {"account_id": account, "balance": money.format_amount(amount)}
            for account, amount in plan.sum_accounts().items()
        ],
        "notes": plan.notes,
        "refusal": plan.refusal.message if plan.refusal is not None else None,
    }


def _plan_openings(
    host: Host, source: SourceBooks, numbers: Mapping[str, int], first_day: date | None
) -> Iterator[PlannedEntry]:
    """An entry for each account that has a balance on the day before, against opening balances."""
    if first_day is None:
        return
    sums: dict[int, tuple[int, list[Decimal]]] = {}
    for row in source.balances:
        sums.setdefault(numbers[row.account], (row.line, []))[1].append(row.amount)
    for entry in source.entries:
        for posting in entry.postings if entry.day < first_day else ():
            sums.setdefault(numbers[posting.account], (entry.line, []))[1].append(posting.amount)
    banks = {number: bank for bank, number in ledger_accounts(host.config).items()}
    for account, (line, amounts) in sorted(sums.items()):
        amount = money.total(amounts)
        if amount and account != OPENING_BALANCES:
            legs = make_leg(account, amount), make_leg(OPENING_BALANCES, -amount)
            reference = f"opening:{banks[account]}" if account in banks else ""
            yield PlannedEntry(
                line,
                first_day - timedelta(days=1),
                f"Opening balance of {account}",
                legs,
                reference=reference,
                tags=OPENING,
            )


def _plan_history(entries: Iterable[SourceEntry], numbers: Mapping[str, int]) -> Iterator[PlannedEntry]:
    for entry in entries:
        legs = tuple(make_leg(numbers[p.account], p.amount) for p in entry.postings if p.amount)
        if legs:
            tags = ";".join(filter(None, [f"@kind={entry.kind}" if entry.kind else "", *list_plain_tags(entry.tags)]))
            yield PlannedEntry(
                entry.line, entry.day, entry.description, legs, entry.counterparty, tags=tags, notes=entry.notes
            )


def _refuse_bad_texts(host: Host, plan: MovePlan) -> None:
    """Raises ``ImportFileError`` for texts that no entry can have; takes secrets out of the others."""
    decode, faults = VALUE_TYPES["Text"].decode, Faults()
    for n, entry in enumerate(plan.entries):
        try:
            texts = [decode(t, host.env) for t in (entry.description, entry.counterparty, entry.tags, entry.notes)]
        except ValueError as error:
            faults.add(entry.line, str(error))
            continue
        if texts != [entry.description, entry.counterparty, entry.tags, entry.notes]:
            plan.entries[n] = PlannedEntry(
                entry.line, entry.day, texts[0], entry.legs, texts[1], entry.reference, *texts[2:]
            )
    if faults:
        raise faults.error().of_file(plan.file)


def _list_bank_notes(host: Host, plan: MovePlan) -> list[str]:
    banks = {number: bank for bank, number in ledger_accounts(host.config).items()}
    moved = {leg.account_id for entry in plan.entries[plan.openings :] for leg in entry.legs if leg.account_id in banks}
    if not moved or plan.days is None:
        return []
    names = ", ".join(sorted(banks[account] for account in moved))
    return [
        f"these entries move {names}: import files of the bank only from {plan.days[1] + timedelta(days=1)} on, as "
        "earlier lines would be posted a second time"
    ]


def _find_present_entries(books: Books, plan: MovePlan) -> PolicyError | None:
    """Why the books do not take the plan: they have entries up to its last day, or an opening balance of one of its
    accounts later. Voided ones count for nothing, such as those of an earlier try that was taken back."""
    if plan.days is None:
        return None
    last, accounts = plan.days[1], plan.sum_accounts().keys() - {OPENING_BALANCES}
    present: list[Entry] = []
    for year, month in books.list_months():
        for entry in books.iter_entries(year, month):
            if entry.status == "voided":
                continue
            if entry.date <= last:
                present.append(entry)
            elif REVERSES not in entry.tags and (doubled := _find_opened(entry, accounts)):
                return PolicyError(
                    f"{entry.entry_id} of {entry.date} posts what account {doubled} began with already, and this file "
                    "brings the same",
                    remedy=f"Take it back first: cleared journal void {entry.entry_id} --reason …",
                )
    if not present:
        return None
    return PolicyError(
        f"the books have {count_noun(len(present), 'entry', 'entries')} up to {last} already, the first is "
        f"{present[0].entry_id} {present[0].description[:60]}",
        remedy="What is posted twice counts twice. Take a --from before them, void them, or make a new workspace.",
    )


def _find_opened(entry: Entry, accounts: Collection[int]) -> int | None:
    """Which of these accounts an entry posts against opening balances; None where it posts none."""
    posted = [leg.account_id for leg in entry.legs] if entry.is_opening else []
    return next((each for each in posted if each in accounts), None)
