"""What the bank says an account held, against the books: through which day they agree, and what explains a difference.

The books are taken by the bank's days: a leg that posts a bank line counts on the line's day, any other on its entry's.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from cleared.deadline import check_deadline
from cleared.ledger.bank_lines import BankLine
from cleared.ledger.entry import ZERO, Entry
from cleared.ledger.staged_bank_lines import BankBook
from cleared.light_dataclass import dataclass
from cleared.schema import money

MAX_ROWS: Final = 5_000
"""Rows among which one or two are looked for."""
MAX_ROWS_OF_THREE: Final = 60
MAX_ANSWERS: Final = 10


@dataclass(frozen=True, slots=True)
class StatedBalance:
    """What the bank said an account held at the end of a day."""

    day: date
    amount: Decimal


@dataclass(frozen=True, slots=True)
class BalanceBreak:
    """Between the end of one day and of another the balance moves by more than the lines that are known."""

    after: date
    through: date
    missing: Decimal


@dataclass(frozen=True, slots=True)
class OpenRow:
    """A row that may explain a difference. ``effect``: how the books' balance moves if it is put right."""

    id: str
    day: date
    amount: Decimal
    text: str
    fault: str
    """``missing``: the bank has it, the books do not; ``not of the bank``: the books have it, no line of the bank;
    ``doubled``: the books have two of it."""
    effect: Decimal


@dataclass(frozen=True, slots=True)
class Explanation:
    """Rows that together make up the difference, and how."""

    reason: str
    rows: tuple[OpenRow, ...]


@dataclass(slots=True)
class AccountFacts:
    """One account's bank lines, stated balances and postings."""

    stated: list[StatedBalance]
    breaks: list[BalanceBreak]
    unposted: list[BankLine]
    legs: list[tuple[date, Decimal, Entry, str]]
    """(day of the bank, amount, entry, id of the posted bank line or empty), in time."""
    has_lines: bool = False

    def balance_on(self, day: date) -> Decimal:
        """What the books say the account held at the end of a day."""
        return money.total([amount for on, amount, _, _ in self.legs if on <= day])

    def find_unbooked_opening(self) -> StatedBalance | None:
        """What the account held the day before its first row, by the bank's first balance, if nothing has booked it."""
        if not self.stated or not self.legs or self.stated[0].day < self.legs[0][0]:
            return None
        first = self.stated[0]
        waiting = money.total([line.amount for line in self.unposted if line.posted_date <= first.day])
        held = first.amount - self.balance_on(first.day) - waiting
        begins = min([self.legs[0][0], *(line.posted_date for line in self.unposted)])
        return StatedBalance(begins - timedelta(days=1), held) if held else None


@dataclass(frozen=True, slots=True)
class Completeness:
    """Through which day books and bank agree; ``differs``: the first stated balance after it that they do not meet."""

    through: date | None
    differs: StatedBalance | None = None
    difference: Decimal = ZERO


@dataclass(slots=True)
class Reconciliation:
    """The books against a stated balance. ``difference``: the bank's balance less the books'."""

    day: date
    stated: Decimal
    booked: Decimal
    since: date | None
    """The last day before on which they agreed."""
    breaks: list[BalanceBreak] = field(default_factory=list)
    explanations: list[Explanation] = field(default_factory=list)
    gave_up: str = ""
    """Why not all was looked at; empty where it was."""
    opening: StatedBalance | None = None
    """What the account held before its first row, where that is the whole difference."""

    @property
    def difference(self) -> Decimal:
        return self.stated - self.booked


def read_account_facts(
    postings: Iterable[tuple[str, Decimal, Entry]], bank: BankBook, bank_accounts: Iterable[str], account: int = 0
) -> AccountFacts:
    """What is known of one account. ``postings``: all legs on it (leg id, amount, entry). ``bank_accounts``: those
    whose money is in it; balances in their files count where it is one. ``account``: its number; what a person has
    reconciled it with counts where no file says a balance of that day."""
    names = list(bank_accounts)
    lines = [line for name in names for line in bank.scan_account_lines(name)]
    posted = [line for line in lines if line.state == "posted"]
    day_of, line_of = {}, {}
    by_id = {line.line_id: line for line in lines}
    for line_id, pairs in check_deadline(bank.matches.items()):
        if line_id in by_id:
            for leg_id, _ in pairs:
                day_of[leg_id], line_of[leg_id] = by_id[line_id].posted_date, line_id
    legs = [
        (day_of.get(leg_id, entry.date), amount, entry, line_of.get(leg_id, "")) for leg_id, amount, entry in postings
    ]
    legs.sort(key=lambda each: (each[0], each[2].month, each[2].number))
    by_files = _list_stated(posted, bank, names) if len(names) == 1 else []
    by_persons = [StatedBalance(each.day, each.amount) for each in bank.agreed_balances if each.account == account]
    known_days = {each.day for each in by_files}
    stated = [*by_files, *(each for each in by_persons if each.day not in known_days)]
    stated.sort(key=lambda each: each.day)
    unposted = [line for line in posted if bank.posted_amount(line.line_id) != line.amount]
    return AccountFacts(stated, list(_find_breaks(by_files, posted)), unposted, legs, bool(lines))


def _list_stated(lines: Sequence[BankLine], bank: BankBook, names: Sequence[str]) -> list[StatedBalance]:
    """The balances at the ends of days, by the running balance and the files' own; the newest file counts."""
    ends: dict[date, Decimal] = {}
    by_file: dict[str, list[BankLine]] = defaultdict(list)
    for line in lines:
        by_file[line.file_sha256].append(line)
    for in_file in by_file.values():
        for day, of_day in itertools.groupby(_in_time(in_file), key=lambda line: line.posted_date):
            balance = list(of_day)[-1].balance_after
            if balance is not None:
                ends[day] = balance
    for record in bank.imports:
        if record.account in names and record.closing_balance and record.last_date:
            ends[date.fromisoformat(record.last_date)] = Decimal(record.closing_balance)
    return [StatedBalance(day, ends[day]) for day in sorted(ends)]


def _in_time(lines: list[BankLine]) -> list[BankLine]:
    """The lines of one file, oldest first: files have them in either direction."""
    rows = sorted(lines, key=lambda line: line.row)
    if rows[0].posted_date != rows[-1].posted_date:
        newest_first = rows[0].posted_date > rows[-1].posted_date
    else:
        newest_first = _count_breaks(rows) > _count_breaks(rows[::-1])
    return sorted(rows[::-1] if newest_first else rows, key=lambda line: line.posted_date)


def _count_breaks(rows: Sequence[BankLine]) -> int:
    return sum(
        a.balance_after is not None and b.balance_after is not None and a.balance_after + b.amount != b.balance_after
        for a, b in itertools.pairwise(rows)
    )


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
    booked, at = ZERO, 0
    for stated in facts.stated:
        while at < len(facts.legs) and facts.legs[at][0] <= stated.day:
            booked += facts.legs[at][1]
            at += 1
        if booked == stated.amount:
            through, differs = stated.day, None
        elif differs is None:
            differs = stated, stated.amount - booked
    return Completeness(through, *(differs or ()))


def reconcile_account(facts: AccountFacts, day: date, stated: Decimal) -> Reconciliation:
    """Compare the books with a stated balance; where they differ, look for what explains it.

    First jumps of the bank's own running balance, then the smallest set of rows: one, two, one on the wrong side,
    swapped digits, three. Only rows since the last day that agrees; several answers are all given, none is chosen.
    """
    booked = facts.balance_on(day)
    known = Completeness(None)
    if facts.stated:
        before = [each for each in facts.stated if each.day < day]
        known = find_completeness(AccountFacts(before, [], [], facts.legs))
    result = Reconciliation(day, stated, booked, known.through)
    if not result.difference:
        return result
    opening = facts.find_unbooked_opening() if known.through is None else None
    if opening is not None and opening.amount == result.difference:
        result.opening = opening
        return result
    since = known.through or date.min
    result.breaks = [each for each in facts.breaks if each.through > since and each.after < day]
    rows = _list_open_rows(facts, since, day)
    if len(rows) > MAX_ROWS:
        result.gave_up = f"{len(rows)} rows since {known.through or 'the beginning'} are too many to look for pairs"
        result.explanations = list(_explain_by_one(rows, result.difference))[:MAX_ANSWERS]
        return result
    for search in (_explain_by_one, _explain_by_two, _explain_by_side, _explain_by_digits):
        result.explanations = list(itertools.islice(search(rows, result.difference), MAX_ANSWERS))
        if result.explanations:
            return result
    if len(rows) <= MAX_ROWS_OF_THREE:
        result.explanations = list(itertools.islice(_explain_by_three(rows, result.difference), MAX_ANSWERS))
    else:
        result.gave_up = f"{len(rows)} rows are too many to look for three that belong together"
    return result


def _list_open_rows(facts: AccountFacts, since: date, day: date) -> list[OpenRow]:
    """The rows that may be wrong: lines that are not posted, and what is posted."""
    rows = [
        OpenRow(line.line_id, line.posted_date, line.amount, line.description, "missing", line.amount)
        for line in facts.unposted
        if since < line.posted_date <= day
    ]
    seen: dict[tuple[date, Decimal], int] = defaultdict(int)
    for on, amount, entry, line_id in facts.legs:
        if since < on <= day and entry.status != "voided":
            seen[(on, amount)] += 1
            fault = "doubled" if seen[(on, amount)] > 1 else "not of the bank" if not line_id else ""
            if not line_id or fault == "doubled":
                rows.append(OpenRow(entry.entry_id, on, amount, entry.description, fault, -amount))
            else:
                rows.append(OpenRow(entry.entry_id, on, amount, entry.description, "posted", -amount))
    return rows


_REASONS: Final[Mapping[str, str]] = {
    "missing": "the bank has it, the books do not",
    "not of the bank": "the books have it, no line of the bank does",
    "doubled": "the books have two of it",
    "posted": "as if it were booked twice, or not by the bank",
}


def _explain_by_one(rows: Sequence[OpenRow], difference: Decimal) -> Iterator[Explanation]:
    for fault, reason in _REASONS.items():  # the likely faults first
        alike = [Explanation(reason, (row,)) for row in rows if row.fault == fault and row.effect == difference]
        if alike:
            yield from alike
            return


def _explain_by_two(rows: Sequence[OpenRow], difference: Decimal) -> Iterator[Explanation]:
    at: dict[Decimal, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        at[row.effect].append(number)
    suspects = [number for number, row in enumerate(rows) if row.fault != "posted"]
    for number in suspects or range(len(rows)):
        for other in at.get(difference - rows[number].effect, ()):
            if other != number and (other > number or rows[other].fault == "posted"):
                yield Explanation("two that belong to it", (rows[number], rows[other]))


def _explain_by_side(rows: Sequence[OpenRow], difference: Decimal) -> Iterator[Explanation]:
    for row in rows:
        if row.fault != "missing" and 2 * row.effect == difference:
            yield Explanation("booked on the wrong side", (row,))


def _explain_by_digits(rows: Sequence[OpenRow], difference: Decimal) -> Iterator[Explanation]:
    """Two neighbouring digits that were swapped: the difference is a multiple of nine."""
    for row in rows:
        right = row.amount + difference
        if row.fault != "missing" and _are_swapped(str(abs(row.amount)), str(abs(right))) and right * row.amount > 0:
            yield Explanation(f"two digits swapped: the bank has {money.format_amount(right)}", (row,))


def _are_swapped(a: str, b: str) -> bool:
    if len(a) != len(b):
        return False
    places = [i for i in range(len(a)) if a[i] != b[i]]
    if len(places) != 2:
        return False
    i, j = places
    return a[i] == b[j] and a[j] == b[i] and (j == i + 1 or (j == i + 2 and a[i + 1] == "."))


def _explain_by_three(rows: Sequence[OpenRow], difference: Decimal) -> Iterator[Explanation]:
    for three in itertools.combinations(rows, 3):
        if three[0].effect + three[1].effect + three[2].effect == difference:
            yield Explanation("three that belong to it", three)
