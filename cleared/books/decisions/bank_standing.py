"""How bank accounts stand: through which day each is complete, and what it held before its first row.

Both follow from the account's bank lines and from what the journal posts to it. They are worked out again when one of
these has changed, which no confirmation or other account of an entry does: through which day it is complete from its
newest months, where these tell.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from cleared.base import money
from cleared.base.json_values import to_json
from cleared.books.index.journal_index import EntryFilter, JournalIndex, open_index
from cleared.books.index.past_lines import PastLines
from cleared.books.ledger.account_facts import AccountFacts, add_reconciled, find_completeness, read_account_facts
from cleared.books.ledger.agreed_balances import AGREED, AgreedBalance
from cleared.books.ledger.book_paths import begin_month, locate_books
from cleared.books.ledger.chains import REVERSES
from cleared.books.ledger.day_balances import DayBalances
from cleared.books.ledger.entry import BY_FILES, Entry
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.stated_balances import StatedBalance, find_day_before, list_stated_balances
from cleared.books.staged_books import ledger_accounts
from cleared.changes.host import Host
from cleared.git import Snapshot
from cleared.workspace.sealed_files import SealedFiles, digest_sources
from cleared.workspace.settings.bank_section import BankAccount

_COMPLETENESS: Final = "completeness"
_OPENINGS: Final = "openings"
_SOURCES: Final = ("base", "books/decisions", "books/index", "books/ledger", "workspace")
"""The folders of the program that decide what is in the sealed files."""
_SPANS: Final = (1, 2, 12)
"""So many of the newest months are looked at before all are."""
T = TypeVar("T")


class Opening(NamedTuple):
    """What an account held at the end of a day, and who says so. ``account``: of a bank, by its id."""

    account: str
    day: date
    balance: Decimal
    evidence: str


class _Kept(Struct, Generic[T], frozen=True):
    """``made_of``: a digest of all that the answer follows from; ``months``: blob of a month of the journal → digest of
    what it posts to bank accounts."""

    answer: T
    made_of: str
    months: dict[str, str]


def read_account_rows(host: Host, snapshot: Snapshot, bank: BankBook) -> list[dict[str, Any]]:
    """A row for each bank account of a commit: through which day it is complete. Worked out once for the same lines and
    postings."""

    def make(index: JournalIndex) -> list[dict[str, Any]]:
        past, rows = PastLines(bank, host.layout.state_dir), []
        reconciled = {each.account: each for each in bank.list_agreed_balances() if each.state == AGREED}
        for account, is_shared in _list_accounts(host):
            last = reconciled.get(account.ledger_account)
            facts = _find_newest(index, bank, past, account, is_shared=is_shared, is_reconciled=last is not None)
            facts = facts or _read_facts(index, bank, account, is_shared=is_shared)
            rows.append(_describe_account(account, facts, last, is_shared=is_shared))
        return rows

    return _read_once(host, snapshot, _COMPLETENESS, _Kept[list[dict[str, Any]]], make)


def read_openings(host: Host, snapshot: Snapshot, bank: BankBook) -> list[Opening]:
    """What the bank accounts of a commit held before their first row, as far as that is known, posted or not. Worked
    out once for the same lines and postings."""
    return _read_once(host, snapshot, _OPENINGS, _Kept[list[Opening]], lambda index: list_openings(host, index, bank))


def _read_once(host: Host, snapshot: Snapshot, name: str, kind: type[_Kept[T]], make: Callable[[JournalIndex], T]) -> T:
    """What is kept under a name where it is of these lines and postings; else what ``make`` gives is kept."""
    index = open_index(host.layout, snapshot, host.decimal_places, stays_open=host.reads_again)
    files = SealedFiles(host.layout.state_dir, digest_sources(*_SOURCES))
    data = files.read(name)
    kept = msgspec.json.decode(data, type=kind) if data is not None else None
    banks = {account.ledger_account for account in host.config.bank_accounts}
    months = _digest_months(index, banks, kept.months if kept is not None else {})
    made_of = _digest_facts(host, snapshot, months.values())
    if kept is not None and (made_of, months) == (kept.made_of, kept.months):
        return kept.answer
    answer = kept.answer if kept is not None and made_of == kept.made_of else make(index)
    files.write(name, msgspec.json.encode(_Kept(answer, made_of, months)))
    return answer


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


def list_openings(host: Host, index: JournalIndex, bank: BankBook) -> list[Opening]:
    """The same from the files themselves."""
    found = iter_bank_facts(host, index, bank)
    return [
        opening
        for account, facts, is_shared in found
        for opening in _find_opening(account, facts, host.decimal_places, is_shared=is_shared)
    ]


def iter_bank_facts(
    host: Host, index: JournalIndex, bank: BankBook
) -> Iterator[tuple[BankAccount, AccountFacts, bool]]:
    """What is known of each bank account, and whether others share its account of the ledger."""
    for account, is_shared in _list_accounts(host):
        yield account, _read_facts(index, bank, account, is_shared=is_shared), is_shared


def read_facts(host: Host, index: JournalIndex, bank: BankBook, account: int) -> AccountFacts:
    """What is known of an account of the ledger that bank accounts use."""
    names = [name for name, number in ledger_accounts(host.config).items() if number == account]
    return read_account_facts(iter_legs(index, account), bank, names, account)


def read_facts_at(host: Host, index: JournalIndex, bank: BankBook, account: int, stated: StatedBalance) -> AccountFacts:
    """The same for who compares a stated balance: where the books have that, and the newest months up to its day tell
    when they last had one before, of these and later ones alone."""
    past = PastLines(bank, host.layout.state_dir)
    match [each for each, _ in _list_accounts(host) if each.ledger_account == account]:
        case [only]:
            months = [month for month in past.list_months(only.id) if month <= stated.day.isoformat()[:7]]
            for span in _SPANS:
                if span < len(months):
                    facts = _read_since(index, bank, past, only, begin_month(months[-span]), is_shared=False)
                    if facts is not None and not facts.compare(stated) and facts.find_agreed(stated.day) is not None:
                        return facts
    return read_facts(host, index, bank, account)


def iter_incomplete(
    host: Host, index: JournalIndex, bank: BankBook
) -> Iterator[tuple[BankAccount, AccountFacts, bool]]:
    """As ``iter_bank_facts``, of the accounts that are not known to hold the bank's last balance, to the cent."""
    past = PastLines(bank, host.layout.state_dir)
    for account, is_shared in _list_accounts(host):
        facts = _find_newest(index, bank, past, account, is_shared=is_shared, is_reconciled=True)
        found = find_completeness(facts) if facts is not None and not is_shared else None
        if found is None or found.through is None or found.differs is not None:
            yield account, _read_facts(index, bank, account, is_shared=is_shared), is_shared


def iter_legs(index: JournalIndex, account: int) -> Iterator[tuple[str, Decimal, Entry]]:
    """Every leg on an account: its id, its amount (debit minus credit), its entry."""
    for posting in index.iter_postings(EntryFilter(account=account)):
        yield posting.leg_id, posting.debit - posting.credit, posting.entry


def _list_accounts(host: Host) -> list[tuple[BankAccount, bool]]:
    """The bank accounts, and whether others share its account of the ledger."""
    accounts = host.config.bank_accounts
    users = Counter(account.ledger_account for account in accounts)
    return [(account, users[account.ledger_account] > 1) for account in accounts]


def _read_facts(index: JournalIndex, bank: BankBook, account: BankAccount, *, is_shared: bool) -> AccountFacts:
    number = account.ledger_account
    return read_account_facts(iter_legs(index, number), bank, [account.id], number, is_shared=is_shared)


def _find_newest(
    index: JournalIndex,
    bank: BankBook,
    past: PastLines,
    account: BankAccount,
    *,
    is_shared: bool,
    is_reconciled: bool,
) -> AccountFacts | None:
    """What is known of the newest months of an account, so many as tell through which day it is complete; nothing where
    no balance of it is known. None where only all months tell."""
    known = past.list_months(account.id)
    months = list(known)
    says_files = any(each.has_balances for each in known.values()) or any(
        record.closing_balance for record in bank.imports if record.account == account.id
    )
    if not says_files and (is_shared or not is_reconciled):
        has_lines = any(each.has_lines for each in known.values())
        return AccountFacts(account.ledger_account, DayBalances(), has_lines=has_lines)
    for span in _SPANS:
        if span < len(months):
            first = begin_month(months[-span])
            facts = _read_since(index, bank, past, account, first, is_shared=is_shared)
            if facts is not None and find_completeness(facts).through is not None:
                return facts
    return None


def _read_since(
    index: JournalIndex, bank: BankBook, past: PastLines, account: BankAccount, first: date, *, is_shared: bool
) -> AccountFacts | None:
    """What is known of an account from the first day of a month on: its balances, and what files say of the ends of
    days. None where it is not on record since when a file of these days is."""
    number, name = account.ledger_account, account.id
    facts = AccountFacts(number, index.day_balances({number}, since=first), has_lines=True)
    legs = index.iter_postings(EntryFilter(account=number, start=first))
    day_of = {leg.leg_id: leg.entry.date for leg in legs}
    past.time_lines(facts.timing, name, number, (first, date.max), day_of.get)
    lines = list(bank.scan_account_lines(name, since=first))
    begins = {record.file_sha256: record.first_date[:7] for record in bank.imports if record.account == name}
    try:
        whole = min([first, *(begin_month(begins.get(file, "")) for file in {line.file_sha256 for line in lines})])
    except ValueError:
        return None
    if whole < first:
        lines = list(bank.scan_account_lines(name, since=whole))
    posted = [line for line in lines if line.state == "posted"]
    by_files = list_stated_balances(posted, bank, name, number, first)
    facts.stated = by_files if is_shared else add_reconciled(by_files, bank, number, first)
    return facts


def _describe_account(
    account: BankAccount, facts: AccountFacts, reconciled: AgreedBalance | None, *, is_shared: bool
) -> dict[str, Any]:
    """``reconciled``: the balance of the last day that a person compared."""
    number, found = account.ledger_account, find_completeness(facts)
    opening = facts.find_unbooked_opening() if found.through is None and not is_shared else None
    late = [entry.entry_id for _, entry in facts.list_openings()] if opening else []
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
        "reconciled": {"date": reconciled.day.isoformat(), "by": reconciled.by} if reconciled else None,
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
    return Opening(account.id, find_day_before(first), balance - booked, evidence)
