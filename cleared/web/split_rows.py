"""The rows of a split in a form: an account and an amount each, of which one may leave the amount out."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal
from typing import Final
from urllib.parse import quote, unquote

from cleared.base import money
from cleared.base.errors import UsageError
from cleared.base.short_text import parse_count
from cleared.books.decisions.bank_agreement import parse_balance
from cleared.books.ledger.chart import Account, Chart
from cleared.changes.host import Host
from cleared.web.page import PageRequest

_SHOWN: Final = 3
"""Rows that are shown at first; more are asked for."""
_MOST: Final = 60


def list_typed_parts(page: PageRequest) -> list[tuple[str, str]]:
    """Account and amount of each row that was filled in: of the form, else of the address that leads back to it."""
    form = page.form
    typed = list(zip(form.get_all("part_account"), form.get_all("part_amount"), strict=False))
    if not typed:
        parts = page.read_query("parts")[:2_000].split(",")[:_MOST]
        typed = [(unquote(account), unquote(amount)) for account, _, amount in (part.partition("=") for part in parts)]
    return [(account.strip(), amount.strip()) for account, amount in typed if account.strip() or amount.strip()]


def read_split(page: PageRequest, host: Host, whole: Decimal) -> tuple[tuple[int, Decimal], ...]:
    """The rows as the parts of ``whole``: amounts without a sign go its way, and one left out takes what is left.

    Raises ``UsageError`` where a row lacks its account, or they do not add up.
    """
    sign = Decimal(-1 if whole < 0 else 1)
    lines: list[tuple[int, Decimal | None]] = []
    for account, amount in list_typed_parts(page):
        number = parse_count(account, 10)
        if number is None:
            raise UsageError(f"{amount[:40]} has no account yet", remedy="Choose one of the list.")
        lines.append((number, parse_balance(host, amount, "amount") * sign if amount else None))
    if len(lines) < 2:
        raise UsageError("a split has two accounts or more", remedy="Choose them, with the amount of each.")
    left = whole - money.total([value for _, value in lines if value is not None])
    if sum(value is None for _, value in lines) > 1:
        raise UsageError("two amounts are missing", remedy=f"{money.format_amount(abs(left))} is left to place.")
    if left and all(value is not None for _, value in lines):
        side = "left to place" if left * sign > 0 else "too much"
        raise UsageError(f"{money.format_amount(abs(left))} is {side}", remedy="Correct the amounts.")
    return tuple((number, left if value is None else value) for number, value in lines)


def write_parts(parts: Collection[tuple[str, str]]) -> str:
    """The rows as an address carries them, so that a refused form is filled in as it was."""
    return ",".join(f"{quote(account)}={quote(amount)}" for account, amount in parts)


def count_rows(page: PageRequest) -> int:
    """How many rows the form has."""
    asked = parse_count(page.read_query("rows"), 3) or _SHOWN
    return min(max(asked, len(list_typed_parts(page)) + 1, _SHOWN), _MOST)


def list_choices(chart: Chart, banks: Collection[int]) -> list[Account]:
    """The accounts that a part may go to: open ones that are no heading and no bank's."""
    left_out = {*chart.parents, *banks}
    return [each for each in chart.accounts.values() if each.status != "closed" and each.account_id not in left_out]
