"""Whether the books hold what the bank says: against a statement's balance, and through which day they are complete."""

from __future__ import annotations

from contextlib import suppress
from datetime import date
from decimal import Decimal
from typing import Any

from cleared.base import money
from cleared.base.errors import ClearedError, Place, UsageError, WorkspaceError
from cleared.base.json_values import to_json
from cleared.books.decisions.bank_standing import read_account_rows, read_facts_at
from cleared.books.import_cards import WHY, list_account_cards
from cleared.books.index.journal_index import open_index
from cleared.books.ledger.entry import find_amount_fault
from cleared.books.ledger.reconciliation import (
    OpenRow,
    Reconciliation,
    reconcile_account,
)
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.stated_balances import StatedBalance
from cleared.books.queries import open_committed_books
from cleared.books.staged_books import journal_bounds, ledger_accounts
from cleared.cards.card import Card
from cleared.changes.committed_cards import read_cards
from cleared.changes.host import Host
from cleared.domains.domain import Standing
from cleared.git import Snapshot


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
        facts = read_facts_at(host, index, bank, account, StatedBalance(day, stated))
        found = reconcile_account(facts, day, stated)
        cards = _list_cards(host, snapshot, bank, account, found.since, day) if found.difference else []
    return {
        "account_id": account,
        "account_name": info.account_name if info else "",
        "asked": [{"id": card.id, "title": card.title, "why": WHY[card.kind]} for card in cards if card.kind in WHY],
        "foreign": [{"id": card.id, "title": card.title} for card in cards if card.details.get("currency")],
        **_reconciliation_data(found, is_shared=len(names) > 1),
    }


def _list_cards(
    host: Host, snapshot: Snapshot, bank: BankBook, account: int, since: date | None, day: date
) -> list[Card]:
    numbers = ledger_accounts(host.config)
    return list_account_cards(read_cards(host, snapshot), bank, numbers, account, since, day)


def parse_balance(host: Host, text: str, field: str = "balance") -> Decimal:
    """The amount that was typed into a field. Raises ``UsageError`` for what is no amount of money."""
    bounds = journal_bounds(host.config)
    amount = money.read_typed(text, bounds.places)
    fault = "" if amount == 0 else find_amount_fault(amount, bounds)
    if amount is None or fault:
        raise UsageError(
            f"{text[:40]!r} {fault}",
            place=Place(field=field),
            remedy=f"Write it like 48722.95, with at most {bounds.places} decimals.",
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
            {
                "after": gap.after.isoformat(),
                "through": gap.through.isoformat(),
                "missing": to_json(gap.missing),
                "opening": gap.opening or None,
            }
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
            "instead_of": list(found.instead_of),
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

    ``through`` is None where they never did, or no file states a balance. ``asked``: the ids of open cards about rows
    up to the day on which they differ.
    """
    with open_committed_books(host) as (_, snapshot, _books, bank):
        rows = read_account_rows(host, snapshot, bank)
        return [{**row, "asked": _list_asked(host, snapshot, bank, row)} for row in rows]


def _list_asked(host: Host, snapshot: Snapshot, bank: BankBook, row: dict[str, Any]) -> list[str]:
    if row["differs_on"] is None:
        return []
    with suppress(WorkspaceError):  # that the queue cannot be read is told of elsewhere
        day = date.fromisoformat(row["differs_on"])
        since = date.fromisoformat(row["through"]) if row["through"] else None
        return [card.id for card in _list_cards(host, snapshot, bank, row["account_id"], since, day)]
    return []


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
        through += f"; its opening balance of {account['opening']['balance']} is not booked"
        if late := account["opening"]["instead_of"]:
            through += f", {', '.join(late)} is posted after its first row (cleared journal void {late[0]}, then"
            through += " cleared journal open)"
        else:
            through += " (cleared journal open)"
    elif account["differs_on"] is not None:
        through += f"; on {account['differs_on']} {account['difference']} is missing"
        if asked := account["asked"]:
            ask = "a card asks" if len(asked) == 1 else f"{len(asked)} cards ask"
            through += f", while {ask} about rows of the bank (cleared queue show {asked[0]})"
    return f"{account['name']}: {through}"


def read_standing(host: Host) -> Standing:
    """Through which day each bank account with lines is complete."""
    accounts = [account for account in read_completeness(host) if account["imported"]]
    return Standing("Bank accounts:", [describe_completeness(account) for account in accounts], accounts)
