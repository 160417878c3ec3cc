"""What the bank says an account held, against the books: through which day they agree, and what explains a difference.

The balance is the ledger's. Lines that it has on another day than the bank are named beside it (``BankTiming``).
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from cleared.base import money
from cleared.books.ledger.agreed_balances import AGREED, BankTiming, BookedLine
from cleared.books.ledger.bank_lines import BankLine
from cleared.books.ledger.chains import REVERSES
from cleared.books.ledger.chart import OPENING_BALANCES
from cleared.books.ledger.day_balances import DayBalances
from cleared.books.ledger.entry import ZERO, Entry
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.stated_balances import StatedBalance, find_stated_beginning, list_stated_balances

MAX_ROWS: Final = 5_000
"""Rows among which one or two are looked for."""
MAX_ROWS_OF_THREE: Final = 60
MAX_ANSWERS: Final = 10


class BalanceBreak(Struct, frozen=True):
    """Between the end of one day and of another the balance moves by more than the lines that are known."""

    after: date
    through: date
    missing: Decimal
    opening: str = ""
    """The opening balance with which it begins, which may be wrong instead."""


class OpenRow(Struct, frozen=True):
    """A row that may explain a difference. ``effect``: how the books' balance moves if it is put right."""

    id: str
    day: date
    amount: Decimal
    text: str
    fault: str
    """``missing``: the bank has it, the books do not; ``not of the bank``: the books have it, no line of the bank;
    ``doubled``: the books have two of it."""
    effect: Decimal


class Explanation(Struct, frozen=True):
    """Rows that together make up the difference, and how."""

    reason: str
    rows: tuple[OpenRow, ...]


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

    def find_foreign_row(self) -> BankLine | None:
        """A line in another currency that waits, where the bank's first balance has in it what that moved."""
        first = self.began or (self.stated[0] if self.stated else None)
        return next((line for line in self.foreign if first is not None and line.posted_date <= first.day), None)

    def list_openings(self) -> list[tuple[Decimal, Entry]]:
        """The entries that stand for what the account began with, in time; each with what it posts to the account."""
        standing = ((amount, e) for amount, e, line in self.legs if not line and e.status != "voided")
        return [
            (amount, e)
            for amount, e in standing
            if REVERSES not in e.tags and any(leg.account_id == OPENING_BALANCES for leg in e.legs)
        ]

    def find_unbooked_opening(self) -> StatedBalance | None:
        """What the account held the day before its first row, by the bank's first balance, if nothing has booked it.

        Where an opening balance stands before the first row, what the bank has more or less are rows that never came.
        """
        first_row = min((e.date for _, e, line in self.legs if line and e.status != "voided"), default=date.max)
        if any(e.date <= first_row for _, e in self.list_openings()):
            return None
        standing = (e.date for _, e, _ in self.legs if e.status != "voided" and REVERSES not in e.tags)
        begins = min(standing, default=self.legs[0][1].date if self.legs else date.max)
        if not self.stated or self.stated[0].day < begins:
            return None
        if self.find_foreign_row() is not None:
            return None
        first = self.began or self.stated[0]
        held = self.compare(first) - self.absent(first.day)
        begins = min([begins, *(line.posted_date for line in self.unposted)])
        return StatedBalance(begins - timedelta(days=1), held) if held else None


class Completeness(Struct, frozen=True):
    """Through which day books and bank agree; ``differs``: the first stated balance after it that they do not meet."""

    through: date | None
    differs: StatedBalance | None = None
    difference: Decimal = ZERO


class Reconciliation(Struct):
    """The books against a stated balance. ``difference``: the bank's balance less the books', beside what is in
    transit."""

    day: date
    stated: Decimal
    booked: Decimal
    in_transit: list[tuple[BookedLine, Decimal]]
    """Lines that the books have on another day, each with what the bank has of it by then and the books have not."""
    since: date | None
    """The last day before on which they agreed."""
    breaks: list[BalanceBreak] = []
    explanations: list[Explanation] = []
    gave_up: str = ""
    """Why not all was looked at; empty where it was."""
    opening: StatedBalance | None = None
    """What the account held before its first row, where that is the whole difference."""
    instead_of: tuple[str, ...] = ()
    """The opening balances that it takes the place of: rows before them came later."""

    @property
    def difference(self) -> Decimal:
        return self.stated - self.booked - money.total([part for _, part in self.in_transit])


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
            account, BookedLine(line.line_id, line.posted_date, line.amount, tuple(parts), is_ignored)
        )
    by_files = list_stated_balances(posted, bank, names[0], account) if len(names) == 1 else []
    agreed = () if is_shared else (x for x in bank.agreed_balances if x.account == account and x.state == AGREED)
    known_days = {each.day for each in by_files}
    by_persons = [StatedBalance(each.day, each.amount) for each in agreed if each.day not in known_days]
    facts.stated = sorted([*by_files, *by_persons], key=lambda each: each.day)
    facts.began = find_stated_beginning(posted, bank, names[0]) if len(names) == 1 else None
    facts.breaks = list(_find_breaks(by_files, posted))
    facts.foreign = [x for x in lines if x.state == "foreign" and x.amount and not bank.is_ignored(x.line_id)]
    facts.unposted = [line for line in posted if bank.posted_amount(line.line_id) != line.amount]
    return facts


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


def reconcile_account(facts: AccountFacts, day: date, stated: Decimal) -> Reconciliation:
    """Compare the books with a stated balance; where they differ, look for what explains it.

    First jumps of the bank's own running balance, then the smallest set of rows: one, two, one on the wrong side,
    swapped digits, three. Only rows since the last day that agrees; several answers are all given, none is chosen.
    """
    before = [each for each in facts.stated if each.day < day]
    known = find_completeness(replace(facts, stated=before))
    in_transit = facts.timing.list_in_transit(facts.account, day)
    result = Reconciliation(day, stated, facts.balance_on(day), in_transit, known.through)
    if not result.difference:
        return result
    opening = facts.find_unbooked_opening() if known.through is None else None
    if opening is not None:
        late = [(amount, e) for amount, e in facts.list_openings() if e.date <= day]
        if opening.amount - money.total([amount for amount, _ in late]) == result.difference:
            result.opening, result.instead_of = opening, tuple(e.entry_id for _, e in late)
            return result
    since = known.through or date.min
    result.breaks = [each for each in facts.breaks if each.through > since and each.after < day]
    begun = _find_break_after_opening(facts, day) if known.through is None and opening is None else None
    if begun is not None:
        result.breaks.insert(0, begun)
        if begun.missing == result.difference:
            return result
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


def _find_break_after_opening(facts: AccountFacts, through: date) -> BalanceBreak | None:
    """What never came between the opening balance of an account that has no other one to book, and the bank's first
    balance after it."""
    begun = next((e for _, e in facts.list_openings()), None)
    stated = next((each for each in facts.stated if begun and begun.date <= each.day <= through), None)
    if begun is None or stated is None:
        return None
    missing = facts.compare(stated) - (facts.absent(stated.day) - facts.absent(begun.date))
    return BalanceBreak(begun.date, stated.day, missing, begun.entry_id) if missing else None


def _list_open_rows(facts: AccountFacts, since: date, day: date) -> list[OpenRow]:
    """The rows that may be wrong: lines that are not posted, and what is posted."""
    texts = {line.line_id: line.description for line in facts.unposted}
    rows = [
        OpenRow(line.line_id, line.posted_date, part, texts[line.line_id], "missing", part)
        for _, line in facts.timing.lines
        if line.line_id in texts and (part := line.find_open_part(day) - line.find_open_part(since))
    ]
    too_much = {line.line_id: line for line in facts.timing.list_overbooked(facts.account, day)}
    for line_id, booked in too_much.items():
        last = [entry for _, entry, of in facts.legs if of == line_id and entry.date <= day][-1]
        effect = booked.amount - booked.sum_booked(day)
        rows.append(OpenRow(last.entry_id, last.date, -effect, last.description, "doubled", effect))
    seen: dict[tuple[date, Decimal], int] = defaultdict(int)
    for amount, entry, line_id in facts.legs:
        on = entry.date
        if since < on <= day and entry.status != "voided" and line_id not in too_much:
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
