"""One journal entry and its legs: how they are named and written, what they may be at most, and an entry as plain data.

The journal's 14 columns are the published format: one row per leg, one file per month.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from functools import cache, lru_cache
from string import ascii_lowercase
from typing import Any, Final

from msgspec import Struct

from cleared.base import money
from cleared.base.csv_text import format_field, format_record
from cleared.books.ledger.chart import OPENING_BALANCES

HEADER: Final = (
    "entry_id",
    "date",
    "account_id",
    "description",
    "debit",
    "credit",
    "counterparty",
    "reference",
    "confidence",
    "status",
    "evidence",
    "receipt_hash",
    "tags",
    "notes",
)
OPTIONAL: Final = ("currency", "amount_fc")
HEADER_LINE: Final = format_record(HEADER)

STATUSES: Final = (
    "auto-confirmed",
    "pending-review",
    "user-confirmed",
    "user-corrected",
    "voided",
    "bootstrap-confirmed",
)
# After the commit the status may change, towards a person's word; what a script confirmed may be asked about again. By
# a decision also what is AMENDABLE.
TRANSITIONS: Final = {
    "pending-review": frozenset({"auto-confirmed", "user-confirmed", "user-corrected", "voided"}),
    "auto-confirmed": frozenset({"user-confirmed", "user-corrected", "voided", "pending-review"}),
    "bootstrap-confirmed": frozenset({"user-confirmed", "user-corrected", "voided"}),
    "user-confirmed": frozenset({"user-corrected", "voided"}),
    "user-corrected": frozenset({"voided"}),
    "voided": frozenset[str](),
}
MOVED_IN: Final = "bootstrap-confirmed"
"""The status of opening balances, and of entries that books had before they were moved in."""
HUMAN_STATUSES: Final = frozenset({"user-confirmed", "user-corrected", MOVED_IN})
"""Only a person's decision sets these; a script cannot."""

KIND: Final = "@kind="
"""How the host's tags begin that say what an entry is for: opening, closing, adjusting."""
OPENING: Final = f"{KIND}opening"
"""The host's tag of an entry that posts what an account began with, and of what reverses it."""
BY_FILES: Final = "the first balance in the bank's files"
"""The evidence of an opening balance that no person said."""
CLOSING: Final = f"{KIND}closing"
"""The host's tag of an entry that moves the result of a year into equity, and of what reverses it; no income statement
counts it."""
AMENDED: Final = "@amended"
"""The host's tag of an entry of which a person has changed what is ``AMENDABLE``, after it was posted."""
AMENDABLE: Final = ("counterparty", "tags", "notes")
"""What a decision may change of a committed entry, in a closed period too: it moves no money."""
ZERO: Final = Decimal(0)
_LASTING: Final = ("entry_id", "date", "description", "legs", "reference")
"""What never changes of an entry once it is committed."""
ABOUT: Final = re.compile(r"(?P<act>Void|Correct) (?P<entry>[0-9-]+): ")
"""How the description of an entry begins that is about another one; the words of that follow."""
_ENTRY_ID = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])-([0-9]{3,9})([a-z]{0,3})", re.ASCII)


class Leg(Struct, frozen=True, gc=False):
    """One posting: exactly one of ``debit`` and ``credit`` is not zero."""

    account_id: int
    debit: Decimal
    credit: Decimal

    @property
    def amount(self) -> Decimal:
        """Debit minus credit."""
        return self.debit - self.credit


class Entry(Struct, frozen=True, gc=False):
    """One balanced entry. ``entry_id`` is ``YYYY-MM-NNN``; its legs are that plus ``a``, ``b`` …

    A struct that is not looked through for garbage, as books have many: none of its values can hold it.
    """

    entry_id: str
    date: date
    description: str
    legs: tuple[Leg, ...]
    status: str = "pending-review"
    counterparty: str = ""
    reference: str = ""
    confidence: str = "0.00"
    evidence: str = ""
    receipt_hash: str = ""
    tags: str = ""
    notes: str = ""

    @property
    def month(self) -> tuple[int, int]:
        return int(self.entry_id[:4]), int(self.entry_id[5:7])

    @property
    def number(self) -> int:
        return int(self.entry_id[8:])

    @property
    def amount(self) -> Decimal:
        """The sum of its debits."""
        debits = [leg.debit for leg in self.legs if leg.debit]
        return debits[0] if len(debits) == 1 else money.total(debits)

    @property
    def is_opening(self) -> bool:
        """Whether it posts what an account began with, told by its account: one that a person wrote has no tag."""
        return any(leg.account_id == OPENING_BALANCES for leg in self.legs)

    def is_same_posting(self, other: Entry | None) -> bool:
        """Whether another one is this entry at another time: what may change in it is not compared. Its id alone tells
        nothing, for git may have taken the entry back, and then its number is given again."""
        return other is not None and all(getattr(self, name) == getattr(other, name) for name in _LASTING)

    def digest_posting(self, *, with_day: bool = True) -> str:
        """What tells it from others that have its number, or had it: the same that ``is_same_posting`` compares, but
        for numbers, as a sync may give others. ``with_day``: also from what is the same on another day."""
        legs = [(leg.account_id, str(leg.amount.normalize())) for leg in self.legs]
        day, words = self.date.isoformat() if with_day else "", ABOUT.sub(r"\g<act>: ", self.description, count=1)
        said = json.dumps([day, words, self.reference, *legs])  # the same in each version of Python
        return hashlib.sha256(said.encode("ascii")).hexdigest()[:16]

    def to_csv(self, places: int) -> str:
        """The entry as CSV text, a row a leg."""
        quantum = money.quantum(places)
        day, description = self.date.isoformat(), format_field(self.description)
        tail = format_record(
            (
                self.counterparty,
                self.reference,
                self.confidence,
                self.status,
                self.evidence,
                self.receipt_hash,
                self.tags,
                self.notes,
            )
        )
        out, before, text = [], None, ""
        for i, leg in enumerate(self.legs):
            amount = leg.debit or leg.credit
            if amount is not before:  # mostly two legs have one
                text = format(amount if amount.same_quantum(quantum) else amount.quantize(quantum), "f")
                before = amount
            debit, credit = (text, "") if leg.debit else ("", text)
            out.append(f"{self.entry_id}{leg_suffix(i)},{day},{leg.account_id},{description},{debit},{credit},{tail}")
        return "".join(out)


def list_plain_tags(tags: str) -> list[str]:
    """The tags that people and files may set: those of the host are the host's."""
    return [tag for tag in tags.split(";") if tag and not tag.startswith("@")]


@cache
def leg_suffix(index: int) -> str:
    """a … z, aa, ab …: the name of the leg with this 0-based index."""
    text = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        text = chr(97 + rest) + text
    return text


def format_entry_id(year: int, month: int, number: int) -> str:
    return f"{year:04d}-{month:02d}-{number:03d}"


def parse_entry_id(text: str) -> tuple[int, int, int, str] | None:
    """``(year, month, number, leg suffix)`` of an entry or leg id, or None where it is not one."""
    match = _ENTRY_ID.fullmatch(text)
    if not match or int(match[1]) < 1:
        return None
    return int(match[1]), int(match[2]), int(match[3]), match[4]


def entry_of_leg(leg_id: str) -> str:
    """The id of the entry that a leg is of."""
    return leg_id.rstrip(ascii_lowercase)


class Bounds(Struct, frozen=True):
    """Beyond these a value is taken for a mistake."""

    places: int = 2
    max_amount: Decimal = Decimal(10) ** 12
    min_date: date = date(1970, 1, 1)
    max_date: date = date(2199, 12, 31)
    max_text_bytes: int = 10_240


def find_amount_fault(amount: Decimal | None, bounds: Bounds) -> str:
    """What is wrong with an amount that a person gave; empty where an entry can have it."""
    if amount is None or not amount.is_finite() or not amount:
        return "is no amount of money"
    if abs(amount) > bounds.max_amount:
        return f"is larger than {bounds.max_amount}, the most that an amount may be"
    return "" if amount == round(amount, bounds.places) else "is no amount of money"


def entry_to_json(entry: Entry) -> dict[str, Any]:
    """An entry for people and ``--json``: numbers as their digits."""
    return entry_dict(entry, money.format_amount)


@lru_cache(maxsize=1_000)
def parse_number(text: str) -> Decimal:
    """A number as a journal has it, such as a confidence; zero where it is none."""
    try:
        return Decimal(text or "0")
    except ArithmeticError:
        return ZERO


def entry_dict(entry: Entry, number: Callable[[Decimal], Any]) -> dict[str, Any]:
    """An entry with its numbers as ``number`` makes them."""
    return {
        "entry_id": entry.entry_id,
        "date": entry.date.isoformat(),
        "description": entry.description,
        "amount": number(entry.amount),
        "status": entry.status,
        "counterparty": entry.counterparty,
        "reference": entry.reference,
        "confidence": number(parse_number(entry.confidence)),
        "evidence": entry.evidence,
        "tags": entry.tags.split(";") if entry.tags else [],
        "notes": entry.notes,
        "lines": [
            {
                "leg_id": entry.entry_id + leg_suffix(i),
                "account_id": leg.account_id,
                # The empty side has the places of the other: 0.00, not 0.
                "debit": number(leg.debit or leg.credit * 0),
                "credit": number(leg.credit or leg.debit * 0),
            }
            for i, leg in enumerate(entry.legs)
        ],
    }
