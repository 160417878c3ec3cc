"""``cleared reconcile``: the books against a balance of the bank."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from cleared.cli.completion import complete_accounts
from cleared.cli.options import JsonOption, WorkspaceOption, open_host, parse_day
from cleared.terminal import escape_text, print_json, print_line, print_message


def reconcile_with_bank(
    account: Annotated[
        int, typer.Argument(metavar="ACCOUNT", autocompletion=complete_accounts, help="The bank account's number.")
    ],
    date: Annotated[str, typer.Option("--date", metavar="DATE", help="The statement's last day.")],
    balance: Annotated[
        str, typer.Option("--balance", metavar="AMOUNT", help="What it says the account holds; owed is negative.")
    ],
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Compare the books with a statement's balance, and name what explains a difference. Changes nothing.

    First gaps in the bank's own running balance, then the smallest set of rows that makes up the difference: missing,
    doubled, on the wrong side, with swapped digits. Exits 1 where they differ.
    """
    from cleared.review.bank_agreement import read_reconciliation

    data = read_reconciliation(open_host(workspace), account, parse_day(date), balance)
    if json:
        print_json(data)
    else:
        _print_reconciliation(data)
    if data["difference"] != "0":
        sys.stdout.flush()
        raise typer.Exit(1)


def _print_reconciliation(data: dict[str, Any]) -> None:
    name = f"{data['account_id']} {data['account_name']}"
    if data["difference"] == "0":
        print_line(f"{name} agrees with the bank on {data['date']}: {data['stated']}.")
        return
    print_line(f"{name} on {data['date']}: the bank has {data['stated']}, the books {data['booked']}.")
    since = f" They agreed on {data['since']}." if data["since"] else ""
    print_line(f"The difference is {data['difference']}.{since}")
    for gap in data["gaps"]:
        print_line(f"Between {gap['after']} and {gap['through']} lines of {gap['missing']} in all never came.")
    several = len(data["explanations"]) > 1
    for answer in data["explanations"]:
        print_line(f"{'Perhaps' if several else 'It is explained by'} ({answer['reason']}):")
        for row in answer["rows"]:
            print_line(f"  {row['date']}  {row['amount']}  {row['id']}  {escape_text(row['text'])}")
    if not data["explanations"]:
        print_line("No set of rows explains it.")
    if data["gave_up"]:
        print_message(f"Not all was looked at: {data['gave_up']}.")
