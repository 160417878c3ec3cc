"""The journal as exports need it, month by month: entries with signed amounts, and what is to be kept of each.

Nothing is rounded and nothing left out. An entry that does not balance to the smallest unit is refused, since hledger
would take it within a tolerance.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

from msgspec import Struct

from cleared.base import money
from cleared.base.errors import Place, WorkspaceError
from cleared.books.decisions.bank_standing import iter_legs
from cleared.books.index.journal_index import EntryFilter, JournalIndex
from cleared.books.index.month_facts import MonthEntries
from cleared.books.ledger.account_facts import read_account_facts
from cleared.books.ledger.agreed_balances import AgreementCheck
from cleared.books.ledger.chains import REVERSES
from cleared.books.ledger.chart import OPENING_BALANCES, Account
from cleared.books.ledger.entry import OPENING
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.staged_journal import Books

_HOST_TAG: Final = re.compile(r"@([a-z][a-z0-9_]{0,30})=(.*)", re.DOTALL)


class ExportedEntry(NamedTuple):
    """One entry as it is written."""

    entry_id: str
    day: str
    description: str
    counterparty: str
    is_pending: bool
    legs: Sequence[tuple[int, str]]
    """Account and amount; a credit is negative."""
    facts: Sequence[tuple[str, str]]
    """Name and value of what else is kept of it: status, reference, links, tags, notes."""


class StatementBalance(NamedTuple):
    """A balance of the bank that the books once agreed with, as an assertion about the books."""

    account_id: int
    day: date
    amount: Decimal
    """What the books have to hold at the end of the day."""
    stated: Decimal
    """What the bank said; another amount where lines are booked on other days than the bank's, or wait."""


class ExportedBooks(Struct):
    """What is exported, and what was noticed meanwhile."""

    index: JournalIndex
    books: Books
    title: str
    currency: str
    commit: str
    bank_accounts: dict[str, int]
    """Id of a bank account → its account in the books."""
    opened: set[int] = set()
    """Accounts that begin with an opening balance: those of the configuration, and those of entries read so far."""
    count: int = 0
    """Entries read so far."""
    checks: list[AgreementCheck] | None = None

    def list_accounts(self) -> list[Account]:
        """The accounts in the order of the chart."""
        return list(self.books.chart.accounts.values())

    def iter_months(self) -> Iterator[tuple[tuple[int, int], Iterator[ExportedEntry]]]:
        """Each month with its entries, to be read in this order."""
        for key, places in self.index.find_places(EntryFilter()):
            yield key, self._iter_entries(self.index.month_entries(key), places)

    def _iter_entries(self, entries: MonthEntries, places: Sequence[int]) -> Iterator[ExportedEntry]:
        columns = [
            entries.list_texts(name, places)
            for name in (
                "entry_id",
                "date",
                "description",
                "counterparty",
                "status",
                "tags",
                "reference",
                "receipt_hash",
                "notes",
            )
        ]
        rows = zip(*columns, entries.list_movements(places), strict=True)
        for entry_id, day, description, counterparty, status, tags, reference, receipt, notes, legs in rows:
            if not (len(legs) == 2 and legs[0][1] == legs[1][1][1:]) and money.total([Decimal(a) for _, a in legs]):
                raise WorkspaceError(
                    f"entry {entry_id} does not balance, so nothing was exported",
                    place=Place(field=entry_id),
                    remedy="Run cleared check: the books were damaged by hand.",
                )
            facts = [] if status in ("auto-confirmed", "user-confirmed") else [("status", status)]
            if tags:
                facts += _list_tag_facts(tags)
            accounts = {account for account, _ in legs}
            if status != "voided" and OPENING_BALANCES in accounts and REVERSES not in tags:
                # Of a whole trial balance (cleared start-from): what it has no entry of, held nothing.
                is_whole = OPENING in tags.split(";") and not reference
                self.opened.update(self.bank_accounts.values() if is_whole else accounts)
            facts += [
                (name, text)
                for name, text in (("reference", reference), ("receipt", receipt), ("notes", notes))
                if text
            ]
            self.count += 1
            yield ExportedEntry(entry_id, day, description, counterparty, status == "pending-review", legs, facts)

    def find_statement_balances(self) -> dict[tuple[int, int], list[StatementBalance]]:
        """Month → the balances of the bank that the books once agreed with, in the order of days.

        Each is there, also where the books do not agree with it any more: the export then fails as ``cleared journal
        check`` does. What the books never met is no assertion: ``cleared reconcile`` says why.
        """
        balances: dict[tuple[int, int], list[StatementBalance]] = defaultdict(list)
        for check in self._list_agreement_checks():
            for each in check.agreed:
                expected = check.expected_balance(each)
                balances[each.day.year, each.day.month].append(
                    StatementBalance(each.account, each.day, expected, each.amount)
                )
        for month in balances.values():
            month.sort(key=lambda each: (each.day, each.account_id))
        return balances

    def _list_agreement_checks(self) -> list[AgreementCheck]:
        """Each account that once agreed with its bank, against what that said; read once."""
        if self.checks is None:
            bank = BankBook(self.books.source, self.books.paths)
            agreed = bank.list_agreed_balances()
            self.checks = []
            for account in sorted({each.account for each in agreed}):
                names = [name for name, number in self.bank_accounts.items() if number == account]
                facts = read_account_facts(iter_legs(self.index, account), bank, names, account)
                of_account = [each for each in agreed if each.account == account]
                self.checks.append(AgreementCheck(of_account, facts.balances, facts.timing))
        return self.checks

    def list_warnings(self) -> list[str]:
        """What makes totals of the export differ from reality; known once all entries were read."""
        begun = set(self.opened)
        if not begun.issuperset(self.bank_accounts.values()):  # what meets the bank's balance has its beginning
            begun |= {each.account_id for month in self.find_statement_balances().values() for each in month}
        missing = [f"{name} ({account})" for name, account in self.bank_accounts.items() if account not in begun]
        broken = [v for check in self._list_agreement_checks() for v in check.list_violations()]
        warnings = [f"{v.message}, so hledger and beancount refuse the export. {v.remedy}" for v in broken]
        if not missing or not self.count:
            return warnings
        return [
            *warnings,
            f"There is no opening balance of {', '.join(missing)}: balances are those since the first entry, and a "
            "balance sheet is wrong by what was there before. cleared start-from or cleared journal open posts it.",
        ]


def _list_tag_facts(tags: str) -> list[tuple[str, str]]:
    """Links of the host by their names; the other tags together."""
    facts, others = [], []
    for tag in tags.split(";"):
        match = _HOST_TAG.fullmatch(tag)
        if match is not None:
            facts.append((match[1].replace("_", "-"), match[2]))
        elif tag:
            others.append(tag)
    return [*facts, *([("tags", ";".join(others))] if others else [])]
