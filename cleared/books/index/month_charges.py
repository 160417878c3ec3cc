"""What was charged to a bank account in a past month, without reading the month's lines again.

A run looks at months of charges (``import_findings``): at the few of a payee that came right before a new one, and at
whether the payee was there before. So of each month that is over, a sealed file of ``.cleared/books/`` has the first
and the newest charges of each payee. Its name has the git ids of the lines and of what posts them, so it is of this
very state or not found.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from cleared.books.index.month_memory import index_files
from cleared.books.ledger.bank_lines import BankLine
from cleared.books.ledger.booked_lines import clean_payee
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.changes.record_sources import CommittedSource

PAYEE_LENGTH: Final = 200
ORDER: Final = attrgetter("posted_date", "row", "line_id")
"""Of charges, oldest first."""
NEWEST: Final = 3
"""Of a payee, so many are looked at before a charge that is new."""
_KIND: Final = ".charges"
_SPARE_FILES: Final = 64
"""Of other accounts and months, and of states that are over."""


class Charge(Struct, frozen=True):
    """What is asked of a bank line that took money: of thousands, whole lines would take longer than all the rest."""

    line_id: str
    posted_date: date
    amount: Decimal
    description: str
    row: int


def select_charges(lines: Iterable[BankLine]) -> Iterator[tuple[str, BankLine]]:
    """Of the charges of one month, the first and the newest of each payee, with the payee."""
    by_payee: dict[str, list[BankLine]] = {}
    for line in sorted(lines, key=ORDER):
        by_payee.setdefault(clean_payee(line.description)[:PAYEE_LENGTH], []).append(line)
    for payee, charges in by_payee.items():
        for line in (*charges[:-NEWEST][:1], *charges[-NEWEST:]):
            yield payee, line


class PastCharges:
    """The charges of past months, as the books of a commit have them. ``state_dir``: the workspace's ``.cleared/``."""

    def __init__(self, bank: BankBook, state_dir: Path) -> None:
        self._bank = bank
        self._files = index_files(state_dir)
        self.payees: dict[str, str] = {}
        """Description → payee, of the lines that were given."""
        self._month_of: dict[str, str] = {}

    def note_lines(self, line_ids: Iterable[str]) -> None:
        """What these of the lines that were given are matched to will be asked for: it is read for their months."""
        for line_id in line_ids:
            if line_id in self._month_of:
                self._bank.note_lines(self._month_of[line_id], [line_id])

    def iter_charges(self, account: str, months: list[str]) -> Iterator[Charge]:
        """The lines of these months that took money and are posted whole: of each payee and month the first one and the
        newest."""
        names = {month: self._name_file(account, month) for month in months}
        for month, name in names.items():
            data = self._files.read(name) if name else None
            charges: Any = json.loads(data) if data is not None else self._list_charges(account, month)
            if data is None and name:
                self._files.write(name, json.dumps(charges, ensure_ascii=False).encode("utf-8", "surrogatepass"))
                self._files.remove_others([*names.values()], (_KIND,), _SPARE_FILES)
            for payee, line_id, day, amount, text, row in charges:
                self.payees[text] = payee
                self._month_of[line_id] = month
                yield Charge(line_id, date.fromisoformat(day), Decimal(amount), text, row)

    def _list_charges(self, account: str, month: str) -> list[list[str | int]]:
        charges = (
            line
            for line in self._bank.read_month(account, month).values()
            if line.state == "posted"
            and line.amount < 0
            and self._bank.posted_amount(line.line_id) == line.amount
            and line.line_id not in self._bank.new_lines  # one that this run brings anew, and the commit has not
        )
        return [
            [payee, line.line_id, line.posted_date.isoformat(), str(line.amount), line.description, line.row]
            for payee, line in select_charges(charges)
        ]

    def _name_file(self, account: str, month: str) -> str:
        """Empty where these are not the lines of a commit as they are: the draft posts one that is recorded already."""
        bank, source = self._bank, self._bank.source
        if not isinstance(source, CommittedSource) or any(i not in bank.new_lines for i, _, _ in bank.new_matches):
            return ""
        paths = [
            bank.paths.bank_path(account, month),
            bank.paths.month_path(bank.paths.matches, month),
            bank.paths.matches,
        ]
        ids = [source.snapshot.find_blob_id(path) or "" for path in paths]
        return f"{month}-{hashlib.sha256(json.dumps([NEWEST, account, *ids]).encode()).hexdigest()[:40]}{_KIND}"
