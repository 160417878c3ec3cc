"""``accounts_*``: the chart of accounts."""

# Without annotations from __future__: each type would be a text, compiled when what a primitive takes is read.

from cleared.base.errors import Place, PrimitiveError
from cleared.books.ledger.chart import TYPES, Account
from cleared.books.primitives.book_shapes import AccountInfo
from cleared.books.staged_books import books_of
from cleared.primitives.context import Context
from cleared.primitives.registry.primitive import Effect, primitive
from cleared.primitives.registry.vocabulary import AccountId, Line


@primitive(effect=Effect.READ, grant="accounts.read")
def accounts_list(ctx: Context) -> list[AccountInfo]:
    """All accounts, in the order of the chart."""
    return [describe_account(a) for a in books_of(ctx).books.chart.accounts.values()]


@primitive(effect=Effect.READ, grant="accounts.read")
def accounts_get(ctx: Context, account_id: AccountId) -> AccountInfo:
    """One account; refused where there is none."""
    account = books_of(ctx).books.chart.find_account(account_id)
    if account is None:
        message, remedy = books_of(ctx).books.chart.why_not_postable(account_id, ctx.today) or ("", "")
        raise PrimitiveError(message, place=Place(field="account_id"), remedy=remedy)
    return describe_account(account)


@primitive(effect=Effect.READ, grant="accounts.read")
def accounts_exists(ctx: Context, account_id: AccountId) -> bool:
    """Whether there is such an account."""
    return books_of(ctx).books.chart.find_account(account_id) is not None


@primitive(effect=Effect.READ, grant="accounts.read")
def accounts_by_type(ctx: Context, account_type: Line) -> list[AccountInfo]:
    """The accounts of a type: asset, liability, equity, revenue or expense."""
    if account_type not in TYPES:
        raise PrimitiveError(
            f"{account_type!r} is not an account type",
            place=Place(field="account_type"),
            remedy=f"Use one of {', '.join(TYPES)}.",
        )
    return [describe_account(a) for a in books_of(ctx).books.chart.accounts.values() if a.account_type == account_type]


def describe_account(account: Account) -> AccountInfo:
    """An account as scripts and ``--json`` see it."""
    return {
        "account_id": account.account_id,
        "account_name": account.account_name,
        "account_type": account.account_type,
        "parent_id": account.parent_id,
        "tax_line": account.tax_line,
        "description": account.description,
        "status": account.status,
    }
