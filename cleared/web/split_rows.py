"""The rows of a split in a form: an account and an amount each, of which one may leave the amount out."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final
from urllib.parse import quote, unquote

from cleared.base.short_text import parse_count
from cleared.books.ledger.chart import Account, Chart
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
