"""What the bank says an account held, against the books: through which day they agree, and what explains a difference.

See ``account_facts`` for what is compared.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Final

from msgspec import Struct

from cleared.base import money
from cleared.books.ledger.account_facts import AccountFacts, BalanceBreak
from cleared.books.ledger.agreed_balances import MatchedLine
from cleared.books.ledger.stated_balances import StatedBalance

MAX_ROWS: Final = 5_000
"""Rows among which one or two are looked for."""
MAX_ROWS_OF_THREE: Final = 60
MAX_ANSWERS: Final = 10


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


class Reconciliation(Struct):
    """The books against a stated balance. ``difference``: the bank's balance less the books', beside what is in
    transit."""

    day: date
    stated: Decimal
    booked: Decimal
    in_transit: list[tuple[MatchedLine, Decimal]]
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


def reconcile_account(facts: AccountFacts, day: date, stated: Decimal) -> Reconciliation:
    """Compare the books with a stated balance; where they differ, look for what explains it.

    First jumps of the bank's own running balance, then the smallest set of rows: one, two, one on the wrong side,
    swapped digits, three. Only rows since the last day that agrees; several answers are all given, none is chosen.
    """
    agreed = facts.find_agreed(day)
    in_transit = sorted(
        facts.timing.list_in_transit(facts.account, day), key=lambda x: (x[0].posted_date, x[0].line_id)
    )
    result = Reconciliation(day, stated, facts.balance_on(day), in_transit, agreed)
    if not result.difference:
        return result
    opening = facts.find_unbooked_opening() if agreed is None else None
    if opening is not None:
        late = [(amount, e) for amount, e in facts.list_openings() if e.date <= day]
        if opening.amount - money.total([amount for amount, _ in late]) == result.difference:
            result.opening, result.instead_of = opening, tuple(e.entry_id for _, e in late)
            return result
    since = agreed or date.min
    result.breaks = [each for each in facts.breaks if each.through > since and each.after < day]
    rows = _list_open_rows(facts, since, day)
    begun = _find_break_after_opening(facts, day) if agreed is None and opening is None else None
    if begun is not None and not _is_plain_fault(rows, result.difference):
        result.breaks.insert(0, begun)
        if begun.missing == result.difference:
            return result
    if len(rows) > MAX_ROWS:
        result.gave_up = f"{len(rows)} rows since {agreed or 'the beginning'} are too many to look for pairs"
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
    twins = {entry.entry_id for _, entry in facts.list_twins(of_posted=True)}
    for amount, entry, line_id in facts.legs:
        on = entry.date
        if since < on <= day and entry.status != "voided" and line_id not in too_much:
            seen[(on, amount)] += 1
            is_second = seen[(on, amount)] > 1 or entry.entry_id in twins
            fault = "doubled" if is_second else "not of the bank" if not line_id else ""
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


def _is_plain_fault(rows: Sequence[OpenRow], difference: Decimal) -> bool:
    """Whether one row that is booked twice, or that waits, is the difference."""
    return any(row.effect == difference and row.fault in ("doubled", "missing") for row in rows)


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
