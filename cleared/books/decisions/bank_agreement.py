"""Whether the books hold what the bank says: against a statement's balance, and through which day they are complete."""

from __future__ import annotations

import hashlib
import json
from datetime import date
from decimal import Decimal
from typing import Any, Final

from cleared.base import money
from cleared.base.errors import ClearedError, Place, UsageError
from cleared.base.json_values import to_json
from cleared.books.decisions.reconciling import iter_legs, read_facts
from cleared.books.index.journal_index import JournalIndex, open_index
from cleared.books.ledger.agreed_balances import AGREED
from cleared.books.ledger.reconciliation import (
    OpenRow,
    Reconciliation,
    find_completeness,
    read_account_facts,
    reconcile_account,
)
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.queries import open_committed_books
from cleared.books.staged_books import journal_bounds
from cleared.changes.host import Host
from cleared.domains.domain import Standing
from cleared.git import Snapshot
from cleared.workspace.sealed_files import SealedFiles, digest_sources

_COMPLETENESS: Final = "completeness"
_SOURCES: Final = ("base", "books/decisions", "books/index", "books/ledger", "workspace")
"""The folders of the program that decide what is in the sealed file."""


def read_reconciliation(host: Host, account: int, day: date, balance: str) -> dict[str, Any]:
    """The books against what a statement says; amounts as digits. ``difference`` is ``0`` where they agree.

    Raises ``UsageError`` for an account that is no bank account's, and for what is no amount of money.
    """
    stated = parse_balance(host, balance)
    names = [bank.id for bank in host.config.bank_accounts if bank.ledger_account == account]
    if not names:
        known = ", ".join(sorted({str(bank.ledger_account) for bank in host.config.bank_accounts}))
        raise UsageError(
            f"{account} is no bank account",
            place=Place(field="account"),
            remedy=f"Those of config.yaml (bank_accounts) are: {known or 'none yet'}.",
        )
    with open_committed_books(host) as (_, snapshot, books, bank):
        info = books.chart.find_account(account)
        index = open_index(host.layout, snapshot, host.decimal_places)
        found = reconcile_account(read_facts(host, index, bank, account), day, stated)
    return {
        "account_id": account,
        "account_name": info.account_name if info else "",
        **_reconciliation_data(found, is_shared=len(names) > 1),
    }


def parse_balance(host: Host, text: str) -> Decimal:
    """The amount that was typed. Raises ``UsageError`` for what is no amount of money."""
    places = journal_bounds(host.config).places
    amount = money.read_typed(text, places)
    if amount is None or abs(amount) > journal_bounds(host.config).max_amount:
        raise UsageError(
            f"{text[:40]!r} is no amount of money",
            place=Place(field="balance"),
            remedy=f"Write it like 48722.95, with at most {places} decimals.",
        )
    return amount


def _reconciliation_data(found: Reconciliation, *, is_shared: bool) -> dict[str, Any]:
    return {
        "date": found.day.isoformat(),
        "stated": to_json(found.stated),
        "booked": to_json(found.booked),
        "in_transit": [
            {
                "id": line.line_id,
                "date": line.posted_date.isoformat(),
                "amount": to_json(part),
                "booked": sorted({day.isoformat() for day, _ in line.parts}),
            }
            for line, part in found.in_transit
        ],
        "difference": to_json(found.difference) if found.difference else "0",
        "since": found.since.isoformat() if found.since else None,
        "gaps": [
            {"after": gap.after.isoformat(), "through": gap.through.isoformat(), "missing": to_json(gap.missing)}
            for gap in found.breaks
        ],
        "explanations": [
            {"reason": each.reason, "rows": [_row_data(row) for row in each.rows]} for each in found.explanations
        ],
        "gave_up": found.gave_up,
        "opening": {
            "date": found.opening.day.isoformat(),
            "balance": to_json(found.opening.amount),
            "shared": is_shared,
        }
        if found.opening
        else None,
    }


def _row_data(row: OpenRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "date": row.day.isoformat(),
        "amount": to_json(row.amount),
        "text": row.text,
        "fault": row.fault,
    }


def read_completeness(host: Host) -> list[dict[str, Any]]:
    """Each bank account: through which day books and bank agree to the cent, and where they first do not.

    ``through`` is None where they never did, or no file states a balance. Worked out once for the same files.
    """
    with open_committed_books(host) as (_, snapshot, _books, bank):
        index = open_index(host.layout, snapshot, host.decimal_places)
        files = SealedFiles(host.layout.state_dir, digest_sources(*_SOURCES))
        made_of = _describe_facts(host, snapshot, index)
        known = files.read(_COMPLETENESS)
        if known is not None:
            known_of, kept_rows = json.loads(known)
            if known_of == made_of:
                return list(kept_rows)
        rows = _find_completeness(host, index, bank)
        files.write(_COMPLETENESS, json.dumps([made_of, rows]).encode())
        return rows


def _describe_facts(host: Host, snapshot: Snapshot, index: JournalIndex) -> str:
    """A digest of all that completeness follows from: months, facts of the bank, bank accounts."""
    months = sorted([*key, blob] for key, blob in index.blobs.items())
    accounts = [[a.id, a.name, a.ledger_account] for a in host.config.bank_accounts]
    bank = snapshot.find_entry(host.layout.bank_root)
    facts = [months, bank.oid if bank is not None else None, accounts, host.decimal_places]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _find_completeness(host: Host, index: JournalIndex, bank: BankBook) -> list[dict[str, Any]]:
    rows = []
    for account in host.config.bank_accounts:
        number = account.ledger_account
        shares = sum(a.ledger_account == number for a in host.config.bank_accounts) > 1
        facts = read_account_facts(iter_legs(index, number), bank, [account.id], number, is_shared=shares)
        found = find_completeness(facts)
        opening = facts.find_unbooked_opening() if found.through is None and not shares else None
        agreed = [each for each in bank.agreed_balances if each.account == number and each.state == AGREED]
        in_transit = facts.timing.list_in_transit(number, found.through) if found.through else []
        rows.append(
            {
                "account": account.id,
                "name": account.name or account.id,
                "account_id": account.ledger_account,
                "through": found.through.isoformat() if found.through else None,
                "differs_on": found.differs.day.isoformat() if found.differs else None,
                "difference": to_json(found.difference) if found.differs else None,
                "in_transit": to_json(money.total([part for _, part in in_transit])) if in_transit else None,
                "known": bool(facts.stated),
                "imported": facts.has_lines,
                "opening": {"date": opening.day.isoformat(), "balance": to_json(opening.amount)} if opening else None,
                "reconciled": {"date": agreed[-1].day.isoformat(), "by": agreed[-1].by} if agreed else None,
            }
        )
    return rows


def list_completeness(host: Host) -> list[dict[str, Any]]:
    """The same; none where the books cannot be read, which other commands say."""
    try:
        return read_completeness(host)
    except ClearedError:
        return []


def describe_completeness(account: dict[str, Any]) -> str:
    """One row of ``read_completeness`` in words; texts in it are not escaped."""
    if not account["imported"]:
        return f"{account['name']}: nothing imported yet"
    if not account["known"]:
        how = f"cleared reconcile {account['account_id']} --date … --balance …"
        return f"{account['name']}: its files state no balance ({how})"
    through = f"complete to the cent through {account['through']}" if account["through"] else "not complete"
    if account["reconciled"]:
        through += f", reconciled through {account['reconciled']['date']} by {account['reconciled']['by']}"
    if account["in_transit"]:
        through += f" ({account['in_transit']} of it is in transit: booked on other days)"
    if account["opening"]:
        through += f"; its opening balance of {account['opening']['balance']} is not booked (cleared journal open)"
    elif account["differs_on"] is not None:
        through += f"; on {account['differs_on']} {account['difference']} is missing"
    return f"{account['name']}: {through}"


def read_standing(host: Host) -> Standing:
    """Through which day each bank account with lines is complete."""
    accounts = [account for account in read_completeness(host) if account["imported"]]
    return Standing("Bank accounts:", [describe_completeness(account) for account in accounts], accounts)
