"""What books have to say of a consultant's year that is over, read from their files alone."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Final, NamedTuple

from bench.consultant import CORRECTED_LATE, OPENED, YEAR, Consultant

OPENING_EQUITY: Final = 3900
_ABOUT: Final = re.compile(r"^(?:[A-Z][a-z]+ \d{4}-\d\d-\d+: )+")
"""What stands before the text of an entry that corrects or reverses another."""
Balances = dict[tuple[int, str], Decimal]
"""Account and month → what it holds at the end of that."""


class PostedLeg(NamedTuple):
    """One row of a journal."""

    day: date
    account: int
    text: str
    amount: Decimal
    status: str


def read_legs(root: Path) -> Iterator[PostedLeg]:
    """All rows of all journals."""
    for path in sorted((root / "books").glob("*/*/journal*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                amount = Decimal(row["debit"] or 0) - Decimal(row["credit"] or 0)
                text = _ABOUT.sub("", row["description"])
                yield PostedLeg(date.fromisoformat(row["date"]), int(row["account_id"]), text, amount, row["status"])


def true_balances(consultant: Consultant) -> Balances:
    """By what the consultant knows of each line."""
    sums: dict[int, Decimal] = defaultdict(Decimal)
    opened = {bank: OPENED[bank] for bank in consultant.banks}
    for bank, amount in opened.items():
        sums[bank] += amount
        sums[OPENING_EQUITY] -= amount
    found: Balances = {}
    for month in consultant.months:
        for line in month.lines:
            if line.twin_of is None:
                sums[line.bank] += line.amount
                for account, amount in line.parts:
                    sums[account] += amount
        if month.number == CORRECTED_LATE:
            for line in consultant.lines:
                if line.later is not None:
                    sums[line.parts[0][0]] -= line.parts[0][1]
                    sums[line.later] += line.parts[0][1]
        found |= {(account, f"{YEAR}-{month.number:02}"): amount for account, amount in sums.items() if amount}
    return found


def booked_balances(root: Path, months: int) -> Balances:
    """By the journals."""
    found: Balances = {}
    legs = list(read_legs(root))
    for number in range(1, months + 1):
        sums: dict[int, Decimal] = defaultdict(Decimal)
        for leg in legs:
            if (leg.day.year, leg.day.month) <= (YEAR, number):
                sums[leg.account] += leg.amount
        found |= {(account, f"{YEAR}-{number:02}"): amount for account, amount in sums.items() if amount}
    return found


def find_faults(root: Path, consultant: Consultant) -> list[str]:
    """Balances that are not true, and bank lines that are not in the books once."""
    faults = []
    true, booked = true_balances(consultant), booked_balances(root, len(consultant.months))
    for key in sorted({*true, *booked}):
        if true.get(key, 0) != booked.get(key, 0):
            faults.append(f"{key[0]} at the end of {key[1]}: true {true.get(key, 0)}, booked {booked.get(key, 0)}")
    lines: dict[tuple[int, date, str], Decimal] = defaultdict(Decimal)
    for line in consultant.lines:
        lines[line.bank, line.day, line.text] += line.amount if line.twin_of is None else 0
    legs: dict[tuple[int, date, str], Decimal] = defaultdict(Decimal)
    for leg in read_legs(root):
        if leg.account in consultant.banks and not leg.text.startswith("Opening balance"):
            legs[leg.account, leg.day, leg.text] += leg.amount
        if leg.status == "pending-review":
            faults.append(f"waits: {leg}")
    for place in sorted({*lines, *legs}):
        if lines.get(place, 0) != legs.get(place, 0):
            faults.append(f"{place}: the bank says {lines.get(place, 0)}, the books {legs.get(place, 0)}")
    return faults
