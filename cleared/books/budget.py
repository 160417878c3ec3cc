"""What a header allows a run to do to the books at most: how many entries, how much in all, on which accounts."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from cleared.base import money
from cleared.books.staged_books import books_of
from cleared.primitives.context import Context, budget_error
from cleared.sandbox.header import HeaderKey
from cleared.sandbox.header_values import integer_reader, read_integers, read_money


def list_header_keys() -> list[HeaderKey]:
    """The keys of the books."""
    return [
        HeaderKey("max_entries", integer_reader(0, 10**9), lambda most: f"at most {most} entries a run"),
        HeaderKey("max_total", read_money, lambda most: f"at most {most} in all a run"),
        HeaderKey("accounts", read_integers, _describe_accounts),
    ]


def charge_entry(ctx: Context, amount: Decimal, accounts: Iterable[int]) -> None:
    """Count an entry that was staged. Raises ``PrimitiveError`` where it is one too many, or a cent."""
    spent, bounds = books_of(ctx).spent, ctx.permissions.header_values
    spent.entries += 1
    spent.total = money.total([spent.total, amount])
    entries, total, allowed = (bounds.get(key) for key in ("max_entries", "max_total", "accounts"))
    if entries is not None and spent.entries > entries:
        raise budget_error("max_entries", f"{spent.entries} entries", entries)
    if total is not None and spent.total > total:
        raise budget_error("max_total", f"a total of {spent.total}", total)
    outside = next((each for each in accounts if allowed is not None and each not in allowed), None)
    if allowed is not None and outside is not None:
        raise budget_error("accounts", f"account {outside}", ", ".join(map(str, allowed)))


def _describe_accounts(accounts: tuple[int, ...]) -> str:
    *most, last = map(str, accounts)
    return f"only the accounts {', '.join(most)} and {last}" if most else f"only the accounts {last}"
