"""``cleared accounts …``: the chart of accounts."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from cleared.base.terminal import print_json, print_line, print_table
from cleared.books.decisions.account_changes import add_account, close_account, rename_account, reopen_account
from cleared.books.queries import read_accounts
from cleared.cli.command_groups import new_group
from cleared.cli.completion import complete_accounts
from cleared.cli.options import AccountArgument, JsonOption, WorkspaceOption, open_host, parse_day, remember_workspace

app = new_group(bare=True)


class AccountType(StrEnum):
    """What an account is; it decides which of debit and credit makes it grow."""

    asset = "asset"
    liability = "liability"
    equity = "equity"
    revenue = "revenue"
    expense = "expense"


@app.callback()
def list_by_default(context: typer.Context, json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Without a command: list."""
    if context.invoked_subcommand is None:
        list_accounts(json, workspace)
    elif json:
        raise typer.BadParameter("write it after the command", param_hint="--json")
    elif workspace is not None:
        remember_workspace(workspace)


@app.command("list")
def list_accounts(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """List all accounts."""
    accounts = read_accounts(open_host(workspace))
    if json:
        print_json(accounts)
        return
    print_table(
        ["account", "name", "type", "tax line", "status"],
        ((a["account_id"], a["account_name"], a["account_type"], a["tax_line"], a["status"]) for a in accounts),
        wrap=["tax line", "name"],
        empty="The chart of accounts is empty.",
    )


@app.command("add")
def add_account_to_chart(
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="Its number, such as 5080; it never changes.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called, such as 'Bank fees'.")],
    type_: Annotated[AccountType, typer.Option("--type", help="What it is; it does not follow from the number.")],
    parent: Annotated[
        int | None,
        typer.Option(
            "--parent",
            metavar="N",
            autocompletion=complete_accounts,
            help="The account it stands below, which is a heading then.",
        ),
    ] = None,
    tax_line: Annotated[
        str, typer.Option("--tax-line", metavar="KEY", help="Its line of the tax form, such as sched_c.advertising.")
    ] = "",
    description: Annotated[str, typer.Option("--description", metavar="TEXT", help="What belongs there.")] = "",
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Add an account to the chart, in one commit.

    Refused where the number is taken, and where the parent is closed or has entries of its own.
    """
    commit = add_account(
        open_host(workspace), number, name, type_.value, parent=parent, tax_line=tax_line, description=description
    )
    _print_change(number, f"{name} is account {number} now", commit, json)


@app.command("rename")
def rename_account_in_chart(
    number: AccountArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called from now on.")],
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Give an account another name, in one commit; its number and its entries stay."""
    commit = rename_account(open_host(workspace), number, name)
    _print_change(number, f"Account {number} is called {name} now", commit, json)


@app.command("close")
def close_account_in_chart(
    number: AccountArgument,
    on: Annotated[
        str | None, typer.Option("--on", metavar="DATE", help="The first day without new entries (default: today).")
    ] = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Take no new entry into an account from a day on, in one commit. It stays in the chart, and so do its entries.

    Refused where it has a balance (of income and expenses: in that year), where entries are dated after that day, and
    where a bank account, an agent or an account below it uses it.
    """
    commit = close_account(open_host(workspace), number, parse_day(on) if on else None)
    _print_change(number, f"Account {number} is closed", commit, json)


@app.command("reopen")
def reopen_account_in_chart(
    number: AccountArgument, json: JsonOption = False, workspace: WorkspaceOption = None
) -> None:
    """Let a closed account take entries again, in one commit."""
    commit = reopen_account(open_host(workspace), number)
    _print_change(number, f"Account {number} is open again", commit, json)


def _print_change(number: int, text: str, commit: str, json: bool) -> None:
    if json:
        print_json({"account_id": number, "commit": commit})
    else:
        print_line(f"{text} ({commit[:10]}).")
