"""Balances of the bank that the books agreed with: when a person reconciled, or when the closing balance of a file was
met.

    <books>/bank/reconciliations-YYYY-MM.csv   those of the days of a month
    <books>/bank/reconciliations.csv           the same of all months: what earlier versions wrote; it is read, too

Append-only: the last row of an account and day counts. What was agreed has to hold from then on.

An entry may be dated by the day of a purchase, or on the first day after a closed period: then the books and the bank
differ between the two days by that line, and both are right (``BankTiming``). A line that the books have more than
once, or with the other sign, is no matter of days: nothing is allowed for it, so that the balance differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.base import money
from cleared.base.csv_text import format_record
from cleared.base.errors import Place
from cleared.base.file_source import FileSource
from cleared.books.ledger.bank_lines import damage_error, read_rows
from cleared.books.ledger.book_paths import BookPaths
from cleared.books.ledger.day_balances import DayBalances
from cleared.books.ledger.entry import ZERO
from cleared.domains.record_audit import Violation

HEADER: Final = ("account_id", "date", "balance", "state", "by", "at", "reason")
AGREED, MET, WITHDRAWN, LAPSED = "agreed", "met", "withdrawn", "lapsed"


class AgreedBalance(Struct, frozen=True):
    """What an account of the ledger held at the end of a day, by the bank and by the books.

    ``state``: ``agreed`` by a person; ``met``: a file's closing balance, ``by`` names the file; ``withdrawn`` by a
    person, with a ``reason``; ``lapsed``: an import of that time was undone, so it may be met again.
    """

    account: int
    day: date
    amount: Decimal
    by: str
    at: str
    state: str = AGREED
    reason: str = ""
    file: str = ""
    """Where it is on record."""

    @property
    def stands(self) -> bool:
        return self.state in (AGREED, MET)

    def to_csv(self) -> str:
        return format_record(
            (
                str(self.account),
                self.day.isoformat(),
                money.format_amount(self.amount),
                self.state,
                self.by,
                self.at,
                self.reason,
            )
        )


def read_agreed_balances(
    source: FileSource, paths: BookPaths, since: date = date.min, through: date = date.max
) -> list[AgreedBalance]:
    """The last of each account and day, in that order, of these days; those that do not stand too. Raises
    ``WorkspaceError`` with the damaged line."""
    first, last = since.isoformat()[:7], through.isoformat()[:7]
    latest: dict[tuple[int, date], AgreedBalance] = {}
    for month, path in paths.list_month_files(source, paths.reconciliations):
        if not month or first <= month <= last:
            latest |= {(each.account, each.day): each for each in parse_agreed_balances(source.read(path), path)}
    return [latest[key] for key in sorted(latest) if since <= key[1] <= through]


def parse_agreed_balances(data: bytes | None, file: str) -> list[AgreedBalance]:
    """The same of one file."""
    latest: dict[tuple[int, date], AgreedBalance] = {}
    for line, r in read_rows(data, file, HEADER):
        try:
            made = AgreedBalance(int(r[0]), date.fromisoformat(r[1]), Decimal(r[2]), r[4], r[5], r[3], r[6], file)
        except (ValueError, InvalidOperation):
            made = None
        if made is None or made.state not in (AGREED, MET, WITHDRAWN, LAPSED) or not made.amount.is_finite():
            raise damage_error(file, line, "a reconciliation is not readable")
        latest[(made.account, made.day)] = made
    return sorted(latest.values(), key=lambda each: (each.account, each.day))


ListAsked = Callable[[int, date | None, date], Sequence[str]]
_MOST_ASKED: Final = 3


class AgreementCheck(Struct, eq=False):
    """Says where the books do not agree any more with what they once agreed with.

    ``balances``: all that the books have; ``timing``: what of the banks' lines they have on another day, or not yet.
    ``list_asked``: of an account, since the day on which it agreed last and up to a day: why it may not hold what the
    bank says, each with the open card that asks.
    """

    agreed: Sequence[AgreedBalance]
    balances: DayBalances
    timing: BankTiming
    list_asked: ListAsked = lambda account, since, day: ()

    def expected_balance(self, agreed: AgreedBalance) -> Decimal:
        """What the books hold on the day if they still agree.

        The bank's balance, without what is in transit. Of a balance that a file brought, also without lines that wait
        in the queue, and lines that are ignored; or with the one or the other, where the books meet it so: a row that
        the bank wrote twice is no part of its balance.
        """
        expected = agreed.amount - self.timing.in_transit(agreed.account, agreed.day)
        if agreed.state == AGREED:
            return expected
        waiting = self.timing.waiting(agreed.account, agreed.day)
        ignored = self.timing.ignored(agreed.account, agreed.day)
        booked = self.balances.balance_on(agreed.account, agreed.day)
        without = (waiting + ignored, waiting, ignored, ZERO)
        return next((expected - part for part in without if expected - part == booked), expected - waiting - ignored)

    def is_met(self, agreed: AgreedBalance) -> bool:
        """Whether the books meet what a file says, so that it has to hold from now on: with all lines that wait, each
        of which the file has, too."""
        expected = self.expected_balance(replace(agreed, state=AGREED)) - self.timing.waiting(
            agreed.account, agreed.day
        )
        booked = self.balances.balance_on(agreed.account, agreed.day)
        return booked in (expected, expected - self.timing.ignored(agreed.account, agreed.day))

    def list_violations(self) -> list[Violation]:
        """A violation for each balance that does not hold any more; of one cause that lasts, the first day."""
        violations = []
        before: dict[int, Decimal] = {}
        held: dict[int, date] = {}
        for each in self.agreed:
            difference = self.balances.balance_on(each.account, each.day) - self.expected_balance(each)
            if difference != before.get(each.account, ZERO):
                before[each.account] = difference
                if difference:
                    violations.append(self._describe_break(each, held.get(each.account)))
            if not difference:
                held[each.account] = each.day
        return violations

    def _describe_break(self, agreed: AgreedBalance, since: date | None) -> Violation:
        account, day, stated = agreed.account, agreed.day, money.format_amount(agreed.amount)
        how = (
            f"was reconciled on {day} by {agreed.by}" if agreed.state == AGREED else f"agreed on {day} with {agreed.by}"
        )
        booked, expected = self.balances.balance_on(account, day), self.expected_balance(agreed)
        elsewhere = money.format_amount(agreed.amount - expected)
        due = f"; {elsewhere} of it waits or is booked on other days: {money.format_amount(expected)} without that"
        asked = "".join(f"{why}. " for why in self.list_asked(account, since, day)[:_MOST_ASKED])
        return Violation(
            "reconciled",
            f"{account} {how} ({stated}{due if expected != agreed.amount else ''}); "
            f"the books have {money.format_amount(booked)} now",
            f"{asked}{'Else find' if asked else 'Find'} what changed (cleared reconcile {account} --date {day} "
            f"--balance {stated} --dry-run) and put it right, or withdraw it: cleared reconcile {account} --date {day} "
            "--withdraw REASON.",
            Place(agreed.file),
        )


class MatchedLine(Struct, frozen=True):
    """A bank line, and what the books have of it. ``parts``: (entry's date, amount) of each leg that was ever matched
    to it, those of voided entries and of reversals too. ``is_ignored``: somebody said that it is not to be booked."""

    line_id: str
    posted_date: date
    amount: Decimal
    parts: tuple[tuple[date, Decimal], ...]
    is_ignored: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the books have all of it in the end."""
        return self.sum_booked(None) == self.amount

    @property
    def is_timely(self) -> bool:
        """Whether the books have all of it on the bank's day, at once."""
        return len(self.parts) == 1 and self.parts[0] == (self.posted_date, self.amount)

    def sum_booked(self, day: date | None) -> Decimal:
        """How much of it the books have by the end of a day; None: in the end."""
        return money.total([amount for on, amount in self.parts if day is None or on <= day])

    def is_overbooked(self, day: date) -> bool:
        """Whether the books have more of it than the bank says, or with the other sign."""
        booked = self.sum_booked(day)
        return booked != 0 and ((booked > 0) != (self.amount > 0) or abs(booked) > abs(self.amount))

    def find_open_part(self, day: date) -> Decimal:
        """What the bank has of it by then and the books have not; negative where it is the other way round."""
        if self.is_overbooked(day):
            return ZERO
        return (self.amount if self.posted_date <= day else ZERO) - self.sum_booked(day)

    def find_part_in_transit(self, day: date) -> Decimal:
        """The part of that which the books have on another day. Of a line that is not to be booked it is what they had
        and took back later: as the row that counts now, or as its month was closed."""
        if self.is_whole:
            return self.find_open_part(day)
        is_taken_back = self.is_ignored and not self.sum_booked(None) and not self.is_overbooked(day)
        return -self.sum_booked(day) if is_taken_back else ZERO


class BankTiming:
    """What stands between the balances of bank and books on any day, by the account of the books."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, MatchedLine]] = []
        """(account, line) of those that the books do not have whole on the bank's day."""
        self._in_transit = DayBalances()
        self._waiting = DayBalances()
        self._ignored = DayBalances()

    def add_line(self, account: int, line: MatchedLine) -> None:
        """Count one line of a bank."""
        if line.is_timely:
            return
        self.lines.append((account, line))
        kind = self._ignored if line.is_ignored else self._waiting
        before = moved = ZERO
        for day in sorted({line.posted_date, *(day for day, _ in line.parts)}):
            part = line.find_part_in_transit(day)
            left = line.find_open_part(day) - part
            for balances, change in ((self._in_transit, part - moved), (kind, left - before)):
                if change:
                    balances.add_movement(account, day, change)
            before, moved = left, part

    def add_open(self, account: int, day: date, waiting: Decimal, ignored: Decimal) -> None:
        """Count lines of which the books lack these sums from a day on."""
        self._waiting.add_movement(account, day, waiting)
        self._ignored.add_movement(account, day, ignored)

    def in_transit(self, account: int, day: date) -> Decimal:
        """Of lines that the books have on another day, or had: what the bank has by then and the books have not."""
        return self._in_transit.balance_on(account, day)

    def waiting(self, account: int, day: date) -> Decimal:
        """The same of lines that are not in the books: held or voided, each with its reason on record."""
        return self._waiting.balance_on(account, day)

    def ignored(self, account: int, day: date) -> Decimal:
        """The same of lines that are not to be booked. The bank's balance may have them, or they are one that it wrote
        twice."""
        return self._ignored.balance_on(account, day)

    def list_in_transit(self, account: int, day: date) -> list[tuple[MatchedLine, Decimal]]:
        """The lines behind ``in_transit``, each with its part."""
        parts = ((line, line.find_part_in_transit(day)) for of, line in self.lines if of == account)
        return [(line, part) for line, part in parts if part]

    def list_overbooked(self, account: int, day: date) -> Iterable[MatchedLine]:
        """The lines of which the books have too much on a day."""
        return (line for of, line in self.lines if of == account and line.is_overbooked(day))
