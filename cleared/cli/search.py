"""``cleared search``: entries by text, amount, account and days."""

from __future__ import annotations

from typing import Annotated

import typer

from cleared.base.terminal import print_json_list
from cleared.books.index.entry_selection import AmountRange, find_months, parse_amounts
from cleared.books.index.journal_index import EntryFilter
from cleared.cli.journal import print_months
from cleared.cli.options import AccountOption, JsonOption, WorkspaceOption, parse_day
from cleared.cli.quick_books import open_journal


def search_entries(
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="In description, counterparty, reference, evidence or notes.")
    ] = "",
    amount: Annotated[
        str | None, typer.Option("--amount", metavar="FROM..TO", help="Such as 4..8, 100.., ..5 or 4.50.")
    ] = None,
    start: Annotated[str | None, typer.Option("--from", metavar="DATE", help="Not before this day.")] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="DATE", help="Up to and including this day.")] = None,
    account: AccountOption = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Find entries of which all that is given holds. Upper and lower case are the same."""
    amounts = parse_amounts(amount) if amount else AmountRange()
    if not (text or amount or start or end or account is not None):
        raise typer.BadParameter("say what to find: a text, --amount, --from, --to or --account")
    wanted = EntryFilter(
        start=parse_day(start) if start else None,
        end=parse_day(end) if end else None,
        account=account,
        text=text or None,
    )
    with open_journal(workspace) as index:
        if json:
            print_json_list(d for entries, at in find_months(index, wanted, amounts) for d in entries.list_dicts(at))
        else:
            print_months(lambda: find_months(index, wanted, amounts))
