"""Which of several equal rows of a file is which: told apart by the running balance, where lines of them are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cleared.books.ledger.bank_lines import BankLine, identify_rows, make_line_id
from cleared.books.ledger.bank_row import BankRow


def identify_by_balance(
    account: str, rows: Sequence[BankRow], find_known: Callable[[BankRow, str], BankLine | None]
) -> list[tuple[BankRow, int, str]]:
    """Each row with its occurrence and line id, in file order.

    Equal rows count in file order, but a file that begins in between would take one for another: the row with the
    balance of a line that is known is this line. ``find_known``: the line of an id, if there is one.
    """
    identified = identify_rows(account, rows)
    for places in _group_equal_rows(account, identified):
        identities = [identified[at][1:] for at in places]
        free, left = list(places), []
        for identity in identities:
            known = find_known(rows[places[0]], identity[1])
            balance = known.balance_after if known is not None else None
            same = next((at for at in free if balance is not None and rows[at].balance == balance), None)
            if same is None:
                left.append(identity)
            else:
                free.remove(same)
                identified[same] = (rows[same], *identity)
        for at, identity in zip(free, left, strict=True):
            identified[at] = (rows[at], *identity)
    return identified


def _group_equal_rows(account: str, identified: Sequence[tuple[BankRow, int, str]]) -> list[list[int]]:
    """The places of rows that are equal but for the balance which they state, in file order."""
    groups: dict[str, list[int]] = {}
    for at, (row, occurrence, _) in enumerate(identified):
        if occurrence > 1 and row.balance is not None:
            groups.setdefault(make_line_id(account, row, 1), []).append(at)
    firsts = {line_id: at for at, (_, _, line_id) in enumerate(identified) if line_id in groups} if groups else {}
    return [[firsts[first], *others] for first, others in groups.items()]
