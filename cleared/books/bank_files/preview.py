"""What is understood of a bank file, for a person or a program to look at before anything is imported."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from cleared.base import money
from cleared.books.ledger.bank_row import BankRow, ParsedFile, Statement


def describe_file(parsed: ParsedFile) -> dict[str, Any]:
    """``{format, notes, statements: [{account, bank, currency, opening, closing, rows}]}``, amounts as exact texts."""
    statements = [describe_statement(each) for each in parsed.statements]
    return {"format": parsed.format, "notes": list_notes(parsed), "statements": statements}


def list_notes(parsed: ParsedFile) -> list[str]:
    """What a person should know beside the rows: lines that were passed over, and rows that will not be posted."""
    states = [row.state for statement in parsed.statements for row in statement.rows]
    if not (pending := states.count("pending")):
        return [*parsed.notes]
    are = "1 row is" if pending == 1 else f"{pending} rows are"
    return [*parsed.notes, f"{are} pending, of {len(states)}: recorded, and posted only when the bank has"]


def describe_statement(statement: Statement) -> dict[str, Any]:
    """One of them."""
    stated = {row.currency for row in statement.rows}
    return {
        "account": statement.account or None,
        "bank": statement.bank,
        "currency": statement.currency or (stated.pop() if len(stated) == 1 else None),
        "opening": _amount_text(statement.opening.amount if statement.opening else None),
        "closing": _amount_text(statement.closing.amount if statement.closing else None),
        "rows": [_describe_row(row) for row in statement.rows],
    }


def _describe_row(row: BankRow) -> dict[str, Any]:
    return {
        "date": row.posted_date.isoformat(),
        "amount": money.format_amount(row.amount),
        "description": row.description,
        "bank_id": row.bank_id,
        "type": row.type,
        "transaction_date": row.transaction_date.isoformat() if row.transaction_date else None,
        "currency": row.currency,
        "balance": _amount_text(row.balance),
        "fee": _amount_text(row.fee),
        "state": row.state,
        "row": row.row,
    }


def _amount_text(amount: Decimal | None) -> str | None:
    return money.format_amount(amount) if amount is not None else None
