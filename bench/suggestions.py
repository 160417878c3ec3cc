"""What suggestions cost, and how often those that are sure are right: on generated books, predicted, then learned."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from decimal import Decimal

from bench.measure import Result
from bench.pace import judge_time, take_paced, time_act
from cleared.books.ledger.all_booked_lines import AllBookedLines
from cleared.books.ledger.categoriser import Categoriser
from cleared.books.ledger.entry import ZERO, Entry, Leg
from cleared.books.ledger.grouped_items import GroupedItems
from cleared.books.ledger.standing_entries import list_standing_entries

ENTRIES = 10_000
WRONG = 0.065
"""Share of decisions that are wrong."""
SURE = Decimal("0.95")
_PART = 100
"""Decisions that are grouped together, as those of a month."""


def _books(count: int, wrong: float) -> list[tuple[Entry, int]]:
    """Decided entries with the account that would be right: 300 vendors, of which a tenth go to one of two accounts."""
    numbers = random.Random(14)
    syllables = ["BA", "CO", "DU", "FEL", "GRI", "HAN", "KLE", "LOM", "MIR", "NOR", "PAX", "QUI", "ROS", "SOL", "TAN"]
    names = sorted({" ".join("".join(numbers.choices(syllables, k=2)) for _ in range(2)) for _ in range(300)})
    homes = {name: numbers.sample(range(5010, 5200, 10), 2) for name in names}
    two = set(names[::10])
    made = []
    for n in range(count):
        name = numbers.choices(names, weights=[1 / (1 + k % 60) for k in range(len(names))])[0]
        right = homes[name][numbers.random() < 0.3] if name in two else homes[name][0]
        account = numbers.randrange(5010, 5200, 10) if numbers.random() < wrong else right
        amount = Decimal(numbers.randrange(100, 90_000)) / 100
        legs = (Leg(account, amount, ZERO), Leg(1010, ZERO, amount))
        day = date(2024, 1, 1) + timedelta(days=n * 700 // count)
        text = f"{name} #{numbers.randrange(10_000):04d}"
        made.append((Entry(f"{day:%Y-%m}-{n + 1:05d}", day, text, legs, "user-confirmed"), right))
    return made


def _learn(entries: Iterable[Entry], *more_banks: int) -> Categoriser:
    return Categoriser(AllBookedLines.join(list_standing_entries(entries), {1010, *more_banks}))


def _group(entries: Iterable[Entry]) -> GroupedItems[Entry]:
    """The decisions of a part of the books, as those of a month are kept."""
    return GroupedItems({each.entry_id: each for each in list_standing_entries(entries)})


def train(quick: bool) -> Result:
    """Learning 10,000 entries, the target is a second."""
    entries = [entry for entry, _ in _books(ENTRIES, 0.0)]
    return _timed(f"learn {ENTRIES:,} decisions", lambda: _learn(entries), 1.0, 1, quick)


def suggest(quick: bool) -> Result:
    """One suggestion after 10,000 decisions, over all their texts; the target is a millisecond."""
    entries = [entry for entry, _ in _books(ENTRIES, 0.0)]
    learned = _learn(entries)
    asked = [f"{entry.description} {'NEW' if n % 4 == 0 else ''}" for n, entry in enumerate(entries[:1_000])]

    def ask() -> None:
        for text in asked:
            learned.suggest(text, Decimal(-5))

    return _timed("one suggestion", ask, 0.001, len(asked), quick)


def _timed(name: str, act: Callable[[], object], most: float, parts: int, quick: bool) -> Result:
    return judge_time(name, take_paced(lambda: time_act(act) / parts, 2 if quick else 7), most)


def calibration(quick: bool) -> Result:
    """Of suggestions with 0.95 or more, how many were right: held out, with 6.5 % of the decisions wrong.

    The lower bound of Wilson's interval (95 %) must reach 0.95, over at least 300 suggestions.
    """
    sure = right = 0
    parts: list[GroupedItems[Entry]] = []
    newest: list[Entry] = []
    for entry, truth in _books(ENTRIES // 2 if quick else ENTRIES, WRONG):
        found = Categoriser(AllBookedLines([*parts, _group(newest)], [1010])).suggest(entry.description, Decimal(-1))
        if found is not None and found.confidence >= SURE:
            sure, right = sure + 1, right + (found.account == truth)
        newest.append(entry)
        if len(newest) == _PART:
            parts.append(_group(newest))
            newest = []
    low = wilson_lower_bound(right, sure)
    measured = f"{right} of {sure} right, at least {low:.3f}"
    return Result("suggestions with ≥ 0.95", measured, "—", None, "≥ 0.950, 300 or more", low >= 0.95 and sure >= 300)


def recognition(quick: bool) -> Result:
    """Transfers, refunds, monthly charges and loan payments among other lines, that no person had decided before."""
    numbers = random.Random(15)
    known = [entry for entry, _ in _books(ENTRIES // 10 if quick else ENTRIES // 2, 0.0)]
    asked: list[tuple[str, Decimal, date, int]] = []
    for n in range(40 if quick else 200):
        amount = Decimal(numbers.randrange(1_000, 90_000)) / 100
        day = date(2024, 1, 1) + timedelta(days=numbers.randrange(600))
        bought, shop = day + timedelta(days=numbers.randrange(1, 30)), f"{_letters(n)} STORE"
        known.append(_made(f"t{n}", day, "FROM CHECKING", 2 * amount + 1000, 1020, 4010, "pending-review"))
        asked.append(("TO SAVINGS", -2 * amount - 1000, day - timedelta(days=numbers.randrange(4)), 1090))
        known.append(_made(f"r{n}", day, f"{shop} {n}", -amount, 1010, 5060, "auto-confirmed"))
        asked.append((f"{shop} REFUND", amount, bought, 5060))
        rent = -amount - 1
        known.append(_made(f"m{n}", day, f"{_letters(n)} GYM", rent, 1010, 5100, "auto-confirmed"))
        asked.append((f"{_letters(n)} GYM EAST", rent, day + timedelta(days=numbers.randrange(28, 32)), 5100))
        legs = (Leg(2500, -rent - 1, ZERO), Leg(5150, Decimal(1), ZERO), Leg(1010, ZERO, -rent))
        known.append(Entry(f"l{n}", day, f"{_letters(n)} BANK LOAN", legs, "user-corrected"))
        asked.append((f"{_letters(n)} BANK LOAN", rent, day + timedelta(days=31), 2500))
    learned = _learn(known, 1020)
    answers = [(learned.suggest(text, amount, day=day, bank=1010), where) for text, amount, day, where in asked]
    given = [(found.account, where) for found, where in answers if found is not None]
    right = sum(account == where for account, where in given)
    measured = f"{right} of {len(given)} right, {len(asked)} asked"
    met = right >= 0.95 * len(given) and len(given) >= 0.9 * len(asked)
    return Result("transfers, refunds, monthly, loans", measured, "—", None, "≥ 0.95 right of ≥ 0.9", met)


def _letters(number: int) -> str:
    """A word of its own for each number."""
    return "".join(chr(ord("A") + int(digit)) for digit in f"{number:04d}")


def _made(entry_id: str, day: date, text: str, amount: Decimal, bank: int, account: int, status: str) -> Entry:
    sides = (bank, account) if amount > 0 else (account, bank)
    legs = (Leg(sides[0], abs(amount), ZERO), Leg(sides[1], ZERO, abs(amount)))
    return Entry(entry_id, day, text, legs, status)


def wilson_lower_bound(right: int, count: int, z: float = 1.96) -> float:
    """The lower end of Wilson's interval of a share."""
    if not count:
        return 0.0
    share = right / count
    middle = share + z * z / (2 * count)
    spread = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return (middle - spread) / (1 + z * z / count)
