"""Opening the bank lines of voided entries again."""

from __future__ import annotations

from collections.abc import Iterable

from cleared.base.clock import check_deadline
from cleared.books.ledger.bank_lines import BankLine
from cleared.books.ledger.entry import Entry, leg_suffix
from cleared.books.ledger.staged_bank_lines import BankBook


def unmatch_entries(
    bank: BankBook, voided: Iterable[tuple[Entry, Entry]], reason: str, outcome: str = "voided"
) -> list[BankLine]:
    """Open the lines of voided entries again, each given with its reversal: they are matched to that, too, and set
    aside as ``outcome``. Returns them."""
    legs = {
        entry.entry_id + leg_suffix(i): reversal.entry_id + leg_suffix(i)
        for entry, reversal in voided
        for i in range(len(entry.legs))
    }
    freed = []
    for line_id, pairs in check_deadline(list(bank.matches.items())):
        mine = [(leg_id, amount) for leg_id, amount in pairs if leg_id in legs]
        for leg_id, amount in mine:
            bank.stage_match(line_id, legs[leg_id], -amount)
        if mine:
            resolved = bank.find_line(line_id)
            if resolved:
                freed.append(resolved[1])
            bank.set_line_aside(line_id, outcome, reason)
    return freed
