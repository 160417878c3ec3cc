"""How bank accounts stand: through which day each is complete, and what it held before its first row.

Both follow from the account's bank lines and from what the journal posts to it. They are worked out again when one of
these has changed, which no confirmation or other account of an entry does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from cleared.base import money
from cleared.base.json_values import to_json
from cleared.books.decisions.reconciling import iter_legs
from cleared.books.index.journal_index import JournalIndex, open_index
from cleared.books.ledger.account_facts import AccountFacts, find_completeness, read_account_facts
from cleared.books.ledger.agreed_balances import AGREED
from cleared.books.ledger.book_paths import locate_books
from cleared.books.ledger.chains import REVERSES
from cleared.books.ledger.entry import BY_FILES
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.changes.host import Host
from cleared.git import Snapshot
from cleared.workspace.sealed_files import SealedFiles, digest_sources
from cleared.workspace.settings.bank_section import BankAccount

_NAME: Final = "completeness"
_SOURCES: Final = ("base", "books/decisions", "books/index", "books/ledger", "workspace")
"""The folders of the program that decide what is in the sealed file."""


class Opening(NamedTuple):
    """What an account held at the end of a day, and who says so. ``account``: of a bank, by its id."""

    account: str
    day: date
    balance: Decimal
    evidence: str


class BankStanding(Struct, frozen=True):
    """``accounts``: a row for each bank account; ``openings``: those that are known, posted or not."""

    accounts: list[dict[str, Any]] = []
    openings: list[Opening] = []


class _Kept(Struct, frozen=True):
    """``made_of``: a digest of all that it follows from; ``months``: blob of a month of the journal → digest of what it
    posts to bank accounts."""

    made_of: str = ""
    months: dict[str, str] = {}
    standing: BankStanding = BankStanding()


def read_bank_standing(host: Host, snapshot: Snapshot, bank: BankBook) -> BankStanding:
    """How the bank accounts of a commit stand. Worked out once for the same lines and postings."""
    index = open_index(host.layout, snapshot, host.decimal_places, stays_open=host.reads_again)
    files = SealedFiles(host.layout.state_dir, digest_sources(*_SOURCES))
    data = files.read(_NAME)
    kept = msgspec.json.decode(data, type=_Kept) if data is not None else _Kept()
    banks = {account.ledger_account for account in host.config.bank_accounts}
    months = _digest_months(index, banks, kept.months)
    made_of = _digest_facts(host, snapshot, months.values())
    if made_of != kept.made_of:
        kept = _Kept(made_of, months, make_bank_standing(host, index, bank))
    elif months == kept.months:
        return kept.standing
    files.write(_NAME, msgspec.json.encode(_Kept(made_of, months, kept.standing)))
    return kept.standing


def _digest_months(index: JournalIndex, banks: Collection[int], known: Mapping[str, str]) -> dict[str, str]:
    """Blob → digest of what the month posts to bank accounts. ``known``: the same of an earlier commit."""
    head = ",".join(map(str, sorted(banks)))
    found = {}
    for key, blob in index.blobs.items():
        name = f"{blob} {head}"
        found[name] = known.get(name) or index.month_entries(key).digest_postings(banks)
    return found


def _digest_facts(host: Host, snapshot: Snapshot, months: Iterable[str]) -> str:
    accounts = [[a.id, a.name, a.ledger_account, str(a.opening)] for a in host.config.bank_accounts]
    bank = snapshot.find_entry(locate_books(host.layout).bank_root)
    facts = [sorted(months), bank.oid if bank is not None else None, accounts, host.decimal_places]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def make_bank_standing(host: Host, index: JournalIndex, bank: BankBook) -> BankStanding:
    """The same from the files themselves."""
    accounts, openings = [], []
    for account, facts, is_shared in iter_bank_facts(host, index, bank):
        accounts.append(_describe_account(account, facts, bank, is_shared=is_shared))
        openings += _find_opening(account, facts, host.decimal_places, is_shared=is_shared)
    return BankStanding(accounts, openings)


def iter_bank_facts(
    host: Host, index: JournalIndex, bank: BankBook
) -> Iterator[tuple[BankAccount, AccountFacts, bool]]:
    """What is known of each bank account, and whether others share its account of the ledger."""
    for account in host.config.bank_accounts:
        number = account.ledger_account
        is_shared = sum(a.ledger_account == number for a in host.config.bank_accounts) > 1
        facts = read_account_facts(iter_legs(index, number), bank, [account.id], number, is_shared=is_shared)
        yield account, facts, is_shared


def _describe_account(account: BankAccount, facts: AccountFacts, bank: BankBook, *, is_shared: bool) -> dict[str, Any]:
    number, found = account.ledger_account, find_completeness(facts)
    opening = facts.find_unbooked_opening() if found.through is None and not is_shared else None
    late = [entry.entry_id for _, entry in facts.list_openings()] if opening else []
    agreed = [each for each in bank.agreed_balances if each.account == number and each.state == AGREED]
    in_transit = facts.timing.list_in_transit(number, found.through) if found.through else []
    return {
        "account": account.id,
        "name": account.name or account.id,
        "account_id": number,
        "through": found.through.isoformat() if found.through else None,
        "differs_on": found.differs.day.isoformat() if found.differs else None,
        "difference": to_json(found.difference) if found.differs else None,
        "in_transit": to_json(money.total([part for _, part in in_transit])) if in_transit else None,
        "known": bool(facts.stated),
        "imported": facts.has_lines,
        "opening": {"date": opening.day.isoformat(), "balance": to_json(opening.amount), "instead_of": late}
        if opening
        else None,
        "reconciled": {"date": agreed[-1].day.isoformat(), "by": agreed[-1].by} if agreed else None,
    }


def _find_opening(account: BankAccount, facts: AccountFacts, places: int, *, is_shared: bool) -> list[Opening]:
    """What the account held before its first row, as ``config.yaml`` says, else its files; of a shared one no file says
    what the whole of it held."""
    if account.opening is not None:
        balance = money.decode(account.opening.balance, places)
        return [_make_opening(account, account.opening.date, balance, facts, is_shared=is_shared)]
    found = facts.find_unbooked_opening() if not is_shared else None
    return [Opening(account.id, found.day, found.amount, BY_FILES)] if found is not None else []


def _make_opening(
    account: BankAccount, day: date, balance: Decimal, facts: AccountFacts, *, is_shared: bool
) -> Opening:
    """What is to be posted, so that the account holds ``balance`` at the end of a day."""
    # Of a shared account only the lines of this bank are known to be in this balance.
    known = [(amount, entry) for amount, entry, line in facts.legs if entry.date <= day and (line or not is_shared)]
    booked = money.total([amount for amount, _ in known]) + facts.in_transit(day)
    first = min((e.date for _, e in known if e.status != "voided" and REVERSES not in e.tags), default=date.max)
    evidence = "config.yaml: bank_accounts.opening"
    if first > day:
        return Opening(account.id, day, balance - booked, evidence)
    evidence += f", {money.format_amount(balance)} on {day} with {money.format_amount(booked)} that was booked before"
    return Opening(account.id, first - timedelta(days=1), balance - booked, evidence)
