"""Cards about files that a run answers: a file that was refused and was imported or taken since, a gap in the balance
that was filled. A card is answered only where that is certain; all others wait for a person.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from cleared.books.ledger.bank_lines import BankLine
from cleared.books.staged_books import books_of
from cleared.cards.card import Card
from cleared.cards.kinds import BAD_FILE
from cleared.cards.refused_files import hash_lines, list_card_files
from cleared.primitives.context import Context


def find_answers(context: Context, cards: Iterable[Card]) -> Iterator[tuple[str, str]]:
    """The ids of those open cards that are answered by what this run imports or refuses, each with the answer."""
    added = [card for card in context.cards.added.values() if card.kind == BAD_FILE.name]
    refused = {path: card.id for card in added for path in list_card_files(card)}
    imported = books_of(context).imports.list_moves()
    for card in cards if imported or refused else ():
        if card.kind == BAD_FILE.name:
            outcomes = [_describe_outcome(card, path, context, refused) for path in list_card_files(card)]
            if outcomes and all(outcomes):
                yield card.id, "; ".join(dict.fromkeys(outcomes))[:300]
        elif _is_gap_filled(card, context):
            yield card.id, f"the missing rows were imported by {context.run_id}"


def _describe_outcome(card: Card, path: str, context: Context, refused: Mapping[str, str]) -> str:
    """What became of a file that could not be read; empty where that is not certain.

    It is certain where a file of its name or content was imported since, or is refused for another reason; or where
    it is gone, and one was imported that has all of its lines but the one that could not be read.
    """
    if path in refused:
        return f"it is refused for another reason now: {refused[path]}"
    identity = card.details.get("_known_by")
    identity = identity if isinstance(identity, Mapping) else {}
    layout = books_of(context).layout
    folder = f"{layout.import_dir}/"
    for record in books_of(context).bank.imports:
        if record.run[:16] < (card.run_id or "")[:16]:  # run ids begin with their time
            continue
        if f"{folder}{record.name}" == path or record.file_sha256 == identity.get("sha256"):
            return f"it was imported by {record.run}"
    marks = identity.get("lines")
    if not isinstance(marks, list) or len(marks) < 2 or (layout.root / path).exists():
        return ""
    marks_before = {str(mark) for number, mark in enumerate(marks, 1) if number != identity.get("line")}
    for name, file in books_of(context).imports.list_moves().items():
        if marks_before <= set(hash_lines(file.data)):
            return f"it is gone, and all its other lines were imported from {name} by {context.run_id}"
    return ""


def _is_gap_filled(card: Card, context: Context) -> bool:
    """Whether the rows that came later add up to what was missing, in each of the card's gaps."""
    account, gaps = str(card.details.get("account", "")), card.details.get("gaps")
    if not isinstance(gaps, list) or not gaps:
        return False
    records = [r for r in books_of(context).bank.imports if r.account == account]
    last = max((i for i, r in enumerate(records) if r.run == card.run_id), default=len(records))
    later = {r.file_sha256 for r in records[last + 1 :]}
    lines = [line for line in _account_lines(context, account) if line.file_sha256 in later and line.state == "posted"]
    return all(_sums_to_gap(lines, gap) for gap in gaps)


def _account_lines(context: Context, account: str) -> Iterator[BankLine]:
    yield from books_of(context).bank.iter_account_lines(account)
    yield from (line for owner, line in books_of(context).bank.new_lines.values() if owner == account)


def _sums_to_gap(lines: list[BankLine], gap: Mapping[str, Any]) -> bool:
    try:
        first, last = date.fromisoformat(str(gap["after"])), date.fromisoformat(str(gap["before"]))
        missing = Decimal(str(gap["missing"]))
    except (KeyError, TypeError, ValueError, InvalidOperation):
        return False
    amounts = [line.amount for line in lines if first <= line.posted_date <= last]
    return bool(amounts) and sum(amounts, Decimal(0)) == missing
