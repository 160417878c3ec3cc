"""What the books should hold, kept by hand: for each bank line which accounts it is, from which day on.

It knows no journal, no entries and no reversals. The rules that it keeps are those of ``docs/design.md``: a change
takes effect on the day on which the line changed last, or on the day that is meant, whichever is later; on the first
open day after it where that is closed. A correction takes the place of the one before it. What is taken back is as it
was.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal

BANK = 1010
OPENING = Decimal("1000.00")
OPENING_DAY = date(2024, 12, 31)
OPENING_BALANCES = 3900
Legs = dict[int, Decimal]
"""Account → amount (debit minus credit)."""


@dataclass
class TrueLine:
    """One line of the bank, or an entry by hand (``amount`` zero), and what it counts as. ``legs``: without the
    bank's."""

    text: str
    day: date
    amount: Decimal
    posted: Legs | None = None
    """What was posted; None: nothing stands."""
    correction: Legs | None = None
    """What a person said since that it is instead."""
    days: list[tuple[date, Legs | None]] = field(default_factory=list)
    """What it counts as from each of these days on."""
    recorded: bool = False
    """Whether an import that stands has brought it."""

    @property
    def last_day(self) -> date:
        return self.days[-1][0] if self.days else date.min

    @property
    def first_day(self) -> date:
        return min([self.day, *(day for day, _ in self.days)])

    @property
    def legs(self) -> Legs | None:
        return self.correction if self.correction is not None else self.posted

    def count_as(self, day: date, legs: Legs | None) -> None:
        """From a day on, which is none before its last change."""
        assert day >= self.last_day, (self, day)
        kept = [each for each in self.days if each[0] < day]
        before = kept[-1][1] if kept else None
        self.days = kept if before == legs else [*kept, (day, legs)]

    def amount_on(self, day: date) -> Decimal:
        """How much of it the books' bank account holds at the end of a day."""
        states = [legs for begins, legs in self.days if begins <= day]
        return self.amount if states and states[-1] is not None else Decimal(0)

    def list_movements(self) -> Iterable[tuple[date, int, Decimal]]:
        before: Legs = {}
        for day, legs in self.days:
            now = {} if legs is None else {**legs, **({BANK: self.amount} if self.amount else {})}
            for account in {*before, *now}:
                yield day, account, now.get(account, Decimal(0)) - before.get(account, Decimal(0))
            before = now


Kept = dict[str, TrueLine]


@dataclass(eq=False)
class Act:
    """What can be taken back. ``kind``: ``books``, with how its lines were before; ``close``, through ``day``;
    ``import undo``; ``reconcile`` of ``day``; ``approve``, with the vendors known before."""

    kind: str
    before: Kept = field(default_factory=dict)
    day: date = date.min
    vendors: dict[str, int] = field(default_factory=dict)


class TrueBooks:
    """The truth. ``acts``: the newest is last."""

    def __init__(self) -> None:
        self.lines: dict[str, TrueLine] = {}
        """By text, in the order in which the bank posted them."""
        self.closed: date | None = None
        self.acts: list[Act] = []
        self.agreed: dict[date, Decimal] = {}
        """What a person reconciled."""
        self.vendors = {"GITHUB": 5020, "AWS": 5020}

    # -- the bank ---------------------------------------------------------------------------------------------------

    def bank_balance(self, day: date) -> Decimal:
        """What the bank says it holds at the end of a day."""
        return OPENING + sum((each.amount for each in self.lines.values() if each.day <= day), Decimal(0))

    def first_open(self, day: date) -> date:
        return day if self.closed is None or day > self.closed else self.closed + timedelta(days=1)

    def is_closed(self, day: date) -> bool:
        return self.closed is not None and day <= self.closed

    # -- changes ----------------------------------------------------------------------------------------------------

    def remember(self, *texts: str) -> None:
        """A decision about these lines begins."""
        self.acts.append(Act("books", deepcopy({text: self.lines[text] for text in texts if text in self.lines})))

    def import_line(self, line: TrueLine) -> None:
        """As the starter agent posts it; one that is known already is not posted again."""
        if line.recorded:
            return
        known = (account for words, account in self.vendors.items() if words in line.text.split())
        account = next(known, 4010 if line.amount > 0 else 5030)
        line.recorded = True
        self.post(line, {account: -line.amount}, line.day)

    def post(self, line: TrueLine, legs: Legs, day: date) -> None:
        line.posted, line.correction = legs, None
        line.count_as(self.first_open(max(line.last_day, day)), legs)

    def void(self, line: TrueLine) -> date:
        day = self.first_open(line.last_day)
        line.posted = line.correction = None
        line.count_as(day, None)
        return day

    def correct(self, line: TrueLine, legs: Legs) -> None:
        """Where a correction stands, that is taken back first."""
        if line.correction is not None:
            line.count_as(self.first_open(line.last_day), line.posted)
            line.correction = None
        if legs != line.posted:
            line.correction = legs
            line.count_as(self.first_open(line.last_day), legs)

    def repost(self, line: TrueLine, legs: Legs, day: date | None) -> None:
        """Void it and post it with another date, or, without a bank, other accounts."""
        voided = self.void(line)
        self.post(line, legs, day or voided)

    def undo_import(self, lines: list[TrueLine]) -> None:
        for line in lines:
            if line.posted is not None:
                self.void(line)
            line.recorded = False
        first = min((line.day for line in lines), default=date.max)
        self.agreed = {day: amount for day, amount in self.agreed.items() if day < first}
        self.acts.append(Act("import undo"))

    def restore(self, act: Act) -> None:
        """Take a decision back."""
        if act.kind == "approve":
            self.vendors = act.vendors
        for text, before in act.before.items():
            line = self.lines[text]
            line.posted, line.correction, line.days = before.posted, before.correction, before.days

    def next_undo(self, *, older: bool = False) -> tuple[Act | None, str]:
        """What an undo takes back, or why it takes back nothing."""
        for act in reversed(self.acts):
            if act.kind == "close":
                if self.closed is not None and self.closed >= act.day:
                    return None, "close: through"
            elif act.kind == "import undo":
                return None, "void: import of"
            elif act.kind == "reconcile":
                if not older:
                    return None, "reconciled on"
            else:
                return act, ""
        return None, "bootstrap: opening balances"

    # -- what the books should say ----------------------------------------------------------------------------------

    def list_movements(self) -> dict[tuple[date, int], Decimal]:
        """Day and account → what moves: equal to the books' on every day, and so is every balance, result and tax."""
        moved = {(OPENING_DAY, BANK): OPENING, (OPENING_DAY, OPENING_BALANCES): -OPENING}
        for line in self.lines.values():
            for day, account, amount in line.list_movements():
                moved[day, account] = moved.get((day, account), Decimal(0)) + amount
        return {key: amount for key, amount in moved.items() if amount}

    def bank_account(self, day: date) -> Decimal:
        """What the books' bank account holds at the end of a day."""
        return OPENING + sum((each.amount_on(day) for each in self.lines.values()), Decimal(0))

    def difference(self, day: date, stated: Decimal) -> Decimal:
        """Between the bank and the books, beside lines that the books have on another day."""
        transit = sum(
            (
                (each.amount if each.day <= day else Decimal(0)) - each.amount_on(day)
                for each in self.lines.values()
                if each.recorded and each.posted is not None and each.amount
            ),
            Decimal(0),
        )
        return stated - self.bank_account(day) - transit

    def is_agreed(self) -> bool:
        """Whether all that a person reconciled still holds."""
        return not any(self.difference(day, stated) for day, stated in self.agreed.items())
