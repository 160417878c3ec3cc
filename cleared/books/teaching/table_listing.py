"""What agents were taught: the rows of their tables, with how often each counted for a past bank line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from cleared.books.ledger.bank_lines import BankLine
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.staged_books import ledger_accounts, open_books
from cleared.books.teaching.table_scripts import list_table_scripts
from cleared.books.teaching.vendor_table import VendorRow, read_confidence
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.git import Snapshot
from cleared.runs.approved_scripts import Scripts
from cleared.workspace.sealed_files import SealedFiles, digest_sources

_NAME: Final = "rule-uses"
_SOURCES: Final = ("base", "books/ledger", "books/teaching", "workspace")
"""The folders of the program that decide what is in the sealed file."""


class Rule(Protocol):
    """What a script books some bank lines by: a row of a table, a branch."""

    def fits(self, description: str, amount: Decimal, bank: int, /) -> bool:
        """Whether it is about a bank line."""


class RowUse(Struct):
    """How often a row is the first of its table that fits a past bank line."""

    lines: int = 0
    last: date | None = None
    fitted: date | None = None
    """The newest line that it fits, also where another row comes first."""


def count_uses(rows: Sequence[Rule], bank: BankBook, bank_accounts: Mapping[str, int]) -> list[RowUse]:
    """How often each row, or branch, counts for the lines of the bank. ``bank_accounts``: name → account in the
    books."""
    uses = [RowUse() for _ in rows]
    for number, line in iter_lines(bank, bank_accounts):
        is_first = True
        for row, use in zip(rows, uses, strict=True):
            if row.fits(line.description, line.amount, number):
                use.fitted = max(use.fitted or line.posted_date, line.posted_date)
                if is_first:
                    use.lines += 1
                    use.last = max(use.last or line.posted_date, line.posted_date)
                is_first = False
    return uses


def iter_lines(bank: BankBook, bank_accounts: Mapping[str, int]) -> Iterator[tuple[int, BankLine]]:
    """All lines of the bank, each behind its account in the books."""
    for account in bank.list_accounts():
        for line in bank.scan_account_lines(account):
            yield bank_accounts.get(account, 0), line


class TaughtRow(Struct, frozen=True):
    """A row of an agent's table. ``confidence``: how sure what it books is."""

    agent: str
    row: VendorRow
    confidence: float
    use: RowUse

    def to_data(self) -> dict[str, Any]:
        """It as plain data."""
        return {
            "agent": self.agent,
            "words": self.row.words,
            "vendor": self.row.vendor,
            "account_id": self.row.account,
            "only": self.row.limits.describe(),
            "confidence": self.confidence,
            "lines": self.use.lines,
            "last": self.use.last.isoformat() if self.use.last is not None else None,
        }


def list_taught_rows(host: Host, agent: str = "") -> list[TaughtRow]:
    """The rows of all agents' tables, or of one's, in the order in which they count."""
    with host.open_last_commit() as snapshot:
        tables = {each.agent: each.table.rows for each in list_table_scripts(Scripts(host, snapshot), agent)}
        uses = _count_uses_once(host, snapshot, [[row for row, _ in rows] for rows in tables.values()])
    return [
        TaughtRow(name, row, read_confidence(node), use)
        for (name, rows), of_table in zip(tables.items(), uses, strict=True)
        for (row, node), use in zip(rows, of_table, strict=True)
    ]


class _Kept(Struct, frozen=True):
    """How often the rows of some tables count. ``made_of``: a digest of all that it follows from."""

    made_of: str
    uses: list[list[RowUse]]


def _count_uses_once(host: Host, snapshot: Snapshot, tables: Sequence[Sequence[VendorRow]]) -> list[list[RowUse]]:
    """How often each row of each table counts; worked out once for the same rows and bank lines."""
    _, bank = open_books(host.layout, CommittedSource(snapshot))
    banks = ledger_accounts(host.config)
    paths = sorted(path for account in bank.list_accounts() for _, path in bank.list_month_files(account))
    lines = [[path, snapshot.find_blob_id(path)] for path in paths]
    facts = [msgspec.to_builtins(tables), lines, sorted(bank.released_line_ids), sorted(banks.items())]
    made_of = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    files = SealedFiles(host.layout.state_dir, digest_sources(*_SOURCES))
    data = files.read(_NAME)
    kept = msgspec.json.decode(data, type=_Kept) if data is not None else None
    if kept is None or kept.made_of != made_of:
        kept = _Kept(made_of, [count_uses(rows, bank, banks) for rows in tables])
        files.write(_NAME, msgspec.json.encode(kept))
    return kept.uses


def list_rows(host: Host, agent: str = "") -> list[dict[str, Any]]:
    """The same as plain data."""
    return [each.to_data() for each in list_taught_rows(host, agent)]
