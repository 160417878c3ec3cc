"""What is known of one account of a bank: its lines, the balances that the bank says, and what the books have of it.

The balance is the ledger's. Lines that it has on another day than the bank are named beside it (``BankTiming``).
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal

from msgspec import Struct, field
from msgspec.structs import replace

from cleared.base import money
from cleared.books.ledger.agreed_balances import AGREED, BankTiming, MatchedLine
from cleared.books.ledger.bank_lines import BankLine
from cleared.books.ledger.chains import REVERSES
from cleared.books.ledger.day_balances import DayBalances
from cleared.books.ledger.entry import ZERO, Entry
from cleared.books.ledger.staged_bank_lines import NEAR_DAYS, BankBook
from cleared.books.ledger.stated_balances import (
    StatedBalance,
    find_day_before,
    find_stated_beginning,
    list_stated_balances,
)


class BalanceBreak(Struct, frozen=True):
    """Between the end of one day and of another the balance moves by more than the lines that are known."""

    after: date
    through: date
    missing: Decimal
    opening: str = ""
    """The opening balance with which it begins, which may be wrong instead."""


class AccountFacts(Struct):
    """One account's bank lines, stated balances and postings."""

    account: int
    balances: DayBalances
    stated: list[StatedBalance] = []
    began: StatedBalance | None = None
    """What the bank says that it began with, where the first of ``stated`` has rows that are missing."""
    breaks: list[BalanceBreak] = []
    unposted: list[BankLine] = []
    foreign: list[BankLine] = []
    """Lines in another currency that wait: what each moved is known to the bank alone."""
    legs: list[tuple[Decimal, Entry, str]] = []
    """(amount, entry, id of the posted bank line or empty), in time."""
    timing: BankTiming = field(default_factory=BankTiming)
    has_lines: bool = False
    first_line: date | None = None
    """The day of the first line that the bank has posted."""

    def balance_on(self, day: date) -> Decimal:
        """What the books say the account held at the end of a day."""
        return self.balances.balance_on(self.account, day)

    def in_transit(self, day: date) -> Decimal:
        """What the bank has by the end of a day and the books have on another one."""
        return self.timing.in_transit(self.account, day)

    def absent(self, day: date) -> Decimal:
        """What the bank has by the end of a day that waits, or that somebody has set aside."""
        return self.timing.waiting(self.account, day) + self.timing.ignored(self.account, day)

    def compare(self, stated: StatedBalance) -> Decimal:
        """What the bank has more than the books, beside what is in transit; zero where they agree."""
        return stated.amount - self.balance_on(stated.day) - self.in_transit(stated.day)

    def find_agreed(self, before: date) -> date | None:
        """The last day before one on which the books met the bank's balance."""
        return find_completeness(replace(self, stated=[each for each in self.stated if each.day < before])).through

    def find_foreign_row(self) -> BankLine | None:
        """A line in another currency that waits, where the bank's first balance has in it what that moved."""
        first = self.began or (self.stated[0] if self.stated else None)
        return next((line for line in self.foreign if first is not None and line.posted_date <= first.day), None)

    def list_openings(self) -> list[tuple[Decimal, Entry]]:
        """The entries that stand for what the account began with, in time; each with what it posts to the account."""
        standing = ((amount, e) for amount, e, line in self.legs if not line and e.status != "voided")
        return [(amount, e) for amount, e in standing if REVERSES not in e.tags and e.is_opening]

    def find_unbooked_opening(self) -> StatedBalance | None:
        """What the account held the day before its first row, by the bank's first balance, if nothing has booked it.

        Where an opening balance stands before the first row, what the bank has more or less are rows that never came.
        """
        first_row = min((e.date for _, e, line in self.legs if line and e.status != "voided"), default=date.max)
        if any(e.date <= first_row for _, e in self.list_openings()):
            return None
        standing = (e.date for _, e, _ in self.legs if e.status != "voided" and REVERSES not in e.tags)
        begins = min(standing, default=self.legs[0][1].date if self.legs else date.max)
        # A decision may have moved the first row to a later day, or taken it out: the bank has it where it had it.
        begins = min(begins, self.first_line or begins)
        if not self.stated or self.stated[0].day < begins:
            return None
        if self.find_foreign_row() is not None:
            return None
        first = self.began or self.stated[0]
        # The bank moved once what stands in the books twice: it does not say what the account held before.
        twins = money.total([amount for amount, entry in self.list_twins() if entry.date <= first.day])
        held = self.compare(first) - self.absent(first.day) + twins
        begins = min([begins, *(line.posted_date for line in self.unposted)])
        return StatedBalance(find_day_before(begins), held) if held else None

    def list_twins(self, *, of_posted: bool = False) -> list[tuple[Decimal, Entry]]:
        """What is booked by hand beside a line of the bank that looks like it, each with what it posts to the account.
        ``of_posted``: beside a line that is posted, too."""
        days: dict[Decimal, list[date]] = defaultdict(list)
        for amount, entry, line in self.legs:
            if line and entry.status != "voided":
                days[amount].append(entry.date)
        for unposted in [] if of_posted else self.unposted:
            days[unposted.amount].append(unposted.posted_date)
        for each in days.values():
            each.sort()
        twins = []
        for amount, entry, line in self.legs:
            if line or amount not in days or entry.status == "voided" or REVERSES in entry.tags or entry.is_opening:
                continue
            at = bisect_left(days[amount], entry.date - timedelta(days=min(NEAR_DAYS, (entry.date - date.min).days)))
            if at < len(days[amount]) and (days[amount][at] - entry.date).days <= NEAR_DAYS:
                del days[amount][at]
                twins.append((amount, entry))
        return twins


class Completeness(Struct, frozen=True):
    """Through which day books and bank agree; ``differs``: the first stated balance after it that they do not meet."""

    through: date | None
    differs: StatedBalance | None = None
    difference: Decimal = ZERO


def read_account_facts(
    postings: Iterable[tuple[str, Decimal, Entry]],
    bank: BankBook,
    bank_accounts: Iterable[str],
    account: int,
    *,
    is_shared: bool = False,
) -> AccountFacts:
    """What is known of one account. ``postings``: all legs on it (leg id, amount, entry). ``bank_accounts``: those
    whose money is in it; balances in their files count where it is one. ``account``: its number; what a person has
    reconciled it with counts where no file says a balance of that day, unless others share it (``is_shared``)."""
    names = list(bank_accounts)
    lines = [line for name in names for line in bank.scan_account_lines(name)]
    posted = [line for line in lines if line.state == "posted"]
    matches = bank.matches
    line_of = {leg_id: line.line_id for line in lines for leg_id, _ in matches.get(line.line_id, ())}
    facts = AccountFacts(account, DayBalances(), has_lines=bool(lines))
    day_of: dict[str, date] = {}
    for leg_id, amount, entry in postings:
        facts.balances.add_movement(account, entry.date, amount)
        facts.legs.append((amount, entry, line_of.get(leg_id, "")))
        day_of[leg_id] = entry.date
    facts.legs.sort(key=lambda each: (each[1].date, each[1].month, each[1].number))
    for line in posted:
        parts = ((day_of[leg_id], part) for leg_id, part in matches.get(line.line_id, ()) if leg_id in day_of)
        is_ignored = bank.is_ignored(line.line_id)
        facts.timing.add_line(
            account, MatchedLine(line.line_id, line.posted_date, line.amount, tuple(parts), is_ignored)
        )
    by_files = list_stated_balances(posted, bank, names[0], account) if len(names) == 1 else []
    facts.first_line = min((line.posted_date for line in posted), default=None)
    facts.stated = by_files if is_shared else add_reconciled(by_files, bank, account)
    has_foreign = any(line.state == "foreign" and line.amount for line in lines)
    facts.began = find_stated_beginning(posted, bank, names[0], has_foreign=has_foreign) if len(names) == 1 else None
    facts.breaks = list(_find_breaks(by_files, posted))
    facts.foreign = [x for x in lines if x.state == "foreign" and x.amount and not bank.is_ignored(x.line_id)]
    facts.unposted = [line for line in posted if bank.posted_amount(line.line_id) != line.amount]
    return facts


def add_reconciled(
    by_files: Sequence[StatedBalance], bank: BankBook, account: int, since: date = date.min
) -> list[StatedBalance]:
    """The balances that files say, in time, with what persons have reconciled an account with on other days. ``since``:
    only of this day and later ones."""
    known_days = {each.day for each in by_files}
    agreed = (x for x in bank.list_agreed_balances(since) if (x.account, x.state) == (account, AGREED))
    by_persons = [StatedBalance(each.day, each.amount) for each in agreed if each.day not in known_days]
    return sorted([*by_files, *by_persons], key=lambda each: each.day)


def _find_breaks(stated: Sequence[StatedBalance], lines: Iterable[BankLine]) -> Iterator[BalanceBreak]:
    moved: dict[date, Decimal] = defaultdict(lambda: ZERO)
    for line in lines:
        moved[line.posted_date] += line.amount
    days = sorted(moved)
    at = 0
    for before, after in itertools.pairwise(stated):
        while at < len(days) and days[at] <= before.day:
            at += 1
        known, end = ZERO, at
        while end < len(days) and days[end] <= after.day:
            known += moved[days[end]]
            end += 1
        missing = after.amount - before.amount - known
        if missing:
            yield BalanceBreak(before.day, after.day, missing)


def find_completeness(facts: AccountFacts) -> Completeness:
    """Through which day the books meet the bank's balances to the cent."""
    through: date | None = None
    differs: tuple[StatedBalance, Decimal] | None = None
    for stated in facts.stated:
        difference = facts.compare(stated)
        if not difference:
            through, differs = stated.day, None
        elif differs is None:
            differs = stated, difference
    return Completeness(through, *(differs or ()))


def list_missing(facts: AccountFacts, through: date, *, is_shared: bool = False) -> Iterator[BalanceBreak]:
    """What ``find_completeness`` says is missing of the time up to a day: between which days, and how much.

    An opening balance that is not booked is another matter, and so are lines that wait, and lines that somebody has set
    aside. Of an account that several banks share only what is missing between the balances of one is known.
    """
    breaks = [each for each in facts.breaks if each.after <= through]
    if is_shared:
        yield from breaks
        return
    complete, known, set_aside = find_completeness(facts).through, ZERO, ZERO
    if complete is not None:
        known = -facts.timing.waiting(facts.account, complete)
        set_aside = facts.timing.ignored(facts.account, complete)
    elif (opening := facts.find_unbooked_opening()) is not None:
        known = opening.amount
    after = complete or date.min
    for stated in facts.stated:
        if stated.day <= after:
            continue
        # What went missing between the last balance of the period and the next may be of the period if the bank has it.
        if stated.day > through and not any(each.after <= through < each.through for each in breaks):
            return
        difference = facts.compare(stated) - facts.timing.waiting(facts.account, stated.day)
        ignored = facts.timing.ignored(facts.account, stated.day)
        if difference - known not in (ZERO, ignored - set_aside):
            yield BalanceBreak(after, stated.day, difference - known)
        if stated.day > through:
            return
        after, known, set_aside = stated.day, difference, ignored
