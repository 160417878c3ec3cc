"""Posting with a reference: the entry that names a bank line is matched to it, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from cleared.base import money
from cleared.base.errors import Place, PrimitiveError
from cleared.books.ledger.bank_lines import BankLine
from cleared.books.ledger.chains import REPLACES, REVERSES, date_tags, list_links
from cleared.books.ledger.entry import ZERO, Entry, Leg, parse_entry_id
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.staged_journal import Books


def post_entry(
    books: Books,
    bank: BankBook,
    ledger_accounts: Mapping[str, int],
    day: date,
    description: str,
    legs: Sequence[Leg],
    *,
    reference: str = "",
    field: str = "lines",
    **rest: str,
) -> tuple[Entry, bool]:
    """Stage an entry; ``(entry, duplicate)``.

    Where ``reference`` names a bank line that is posted already, nothing is staged and the existing entry is
    returned with ``duplicate`` true. Otherwise the legs on the line's ledger account are matched to the line. A line
    that was posted before is dated by ``Books.date_change``, and the entry stands in the place of the voided one.
    Raises ``PrimitiveError`` where such a leg is missing or moves more than is left of the line.
    """
    resolved = bank.resolve_reference(reference) if reference else None
    if resolved is None:
        return books.add_entry(day, description, legs, field=field, reference=reference, **rest), False
    account, line = resolved
    is_matched = bool(bank.list_matches(line.line_id))  # nearly no line is
    posted = bank.posted_amount(line.line_id) if is_matched else ZERO
    if posted and posted == line.amount:
        return _find_posting_entry(books, bank, line), True
    ledger_account = ledger_accounts.get(account)
    if ledger_account is None:
        raise _reference_error(
            f"the line belongs to the bank account {account!r}, which config.yaml no longer has",
            f"Put it back under bank_accounts (id: {account}).",
        )
    moved = money.total([leg.amount for leg in legs if leg.account_id == ledger_account])
    left = money.total([line.amount, -posted]) if posted else line.amount
    if moved == 0:
        on = ", ".join(str(leg.account_id) for leg in legs)
        raise _reference_error(
            f"the line is of {account} (account {ledger_account}), but the entry posts to {on} only",
            f'Post one leg to {ledger_account}: txn["ledger_account"] holds it.',
        )
    if moved != left and ((moved > 0) != (left > 0) or abs(moved) > abs(left)):
        raise _reference_error(
            f"the bank moved {line.amount} on {ledger_account} ({left} not yet posted), the entry moves {moved}",
            "Money in is a debit of the bank's account, money out a credit; the parts must sum to the line.",
        )
    if description == line.description:  # one text in memory: a run posts very many
        description = line.description
    if is_matched and (before := bank.list_entry_ids(line.line_id)):
        meant, day = day, books.date_change(before, day)
        rest["tags"] = ";".join(filter(None, [rest.get("tags", ""), *date_tags(day, meant)]))
        if not list_links(rest["tags"]):
            rest["tags"] = ";".join(filter(None, [rest["tags"], *_name_predecessor(books, before)]))
    entry = books.add_entry(day, description, legs, field=field, reference=line.line_id, **rest)
    bank.match_entry(line, ledger_account, entry)
    return entry, False


def _name_predecessor(books: Books, entry_ids: Sequence[str]) -> list[str]:
    """The tag that names the newest of these entries that was voided; none where all of them stand."""
    for entry_id in reversed(entry_ids):
        entry = books.find_entry(entry_id)
        if entry is not None and entry.status == "voided" and REVERSES not in entry.tags:
            return [f"{REPLACES}{entry_id}"]
    return []


def _find_posting_entry(books: Books, bank: BankBook, line: BankLine) -> Entry:
    """The newest entry that posts the line."""
    for leg_id, _ in reversed(bank.list_matches(line.line_id)):
        parts = parse_entry_id(leg_id)
        entry = books.find_entry(leg_id) if parts else None
        if entry is not None and entry.status != "voided":
            return entry
    raise _reference_error(
        f"the line {line.line_id} is matched to an entry that is not in the journal",
        "Run cleared check: the books were damaged by hand.",
    )


def _reference_error(message: str, remedy: str) -> PrimitiveError:
    return PrimitiveError(message, place=Place(field="reference"), remedy=remedy)
