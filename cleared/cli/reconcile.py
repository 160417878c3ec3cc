"""``cleared reconcile``: the books against a balance of the bank."""

from __future__ import annotations

import sys
from datetime import date as Day
from decimal import Decimal
from typing import Annotated, Any

import typer

from cleared.base.money import format_amount
from cleared.base.terminal import count_noun, escape_text, print_json, print_line, print_message
from cleared.books.decisions.bank_agreement import parse_balance, read_reconciliation
from cleared.books.decisions.reconciling import record_agreement, withdraw_agreement
from cleared.books.ledger.chart import OPENING_BALANCES
from cleared.changes.host import Host
from cleared.cli.completion import complete_accounts
from cleared.cli.options import JsonOption, WorkspaceOption, open_host, parse_day, warn_of_doubt


def reconcile_with_bank(
    account: Annotated[
        int, typer.Argument(metavar="ACCOUNT", autocompletion=complete_accounts, help="The bank account's number.")
    ],
    date: Annotated[str, typer.Option("--date", metavar="DATE", help="The statement's last day.")],
    balance: Annotated[
        str, typer.Option("--balance", metavar="AMOUNT", help="What it says the account holds; owed is negative.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only compare; record nothing.")] = False,
    withdraw: Annotated[
        str | None, typer.Option("--withdraw", metavar="REASON", help="Take back that it was reconciled on that day.")
    ] = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Compare the books with a statement's balance: record it where they agree, else name what explains the difference.

    First gaps in the bank's own running balance, then the smallest set of rows that makes up the difference: missing,
    doubled, on the wrong side, with swapped digits. Exits 1 where they differ. What agrees is committed, shown by
    cleared status, and checked by cleared check from then on.
    """
    day, host = parse_day(date), open_host(workspace)
    if withdraw is not None:
        _withdraw_agreement(host, account, day, withdraw, json=json)
        return
    if not balance:
        raise typer.BadParameter("give the statement's balance", param_hint="--balance")
    warn_of_doubt(host)
    data = read_reconciliation(host, account, day, balance)
    if data["difference"] == "0" and not dry_run:
        data["commit"] = record_agreement(host, account, day, parse_balance(host, balance))
    if json:
        print_json(data)
    else:
        _print_reconciliation(data)
    if data["difference"] != "0":
        sys.stdout.flush()
        raise typer.Exit(1)


def _withdraw_agreement(host: Host, account: int, day: Day, reason: str, *, json: bool) -> None:
    commit = withdraw_agreement(host, account, day, reason)
    if json:
        print_json({"account_id": account, "date": day.isoformat(), "commit": commit})
    else:
        print_line(f"{account} of {day} is not reconciled any more ({commit[:10]}).")


def _print_reconciliation(data: dict[str, Any]) -> None:
    name = f"{data['account_id']} {data['account_name']}"
    if data["difference"] == "0":
        recorded = f" ({data['commit'][:10]})" if data.get("commit") else ""
        print_line(f"{name} agrees with the bank on {data['date']}: {data['stated']}{recorded}.")
        _print_transit(data)
        return
    print_line(f"{name} on {data['date']}: the bank has {data['stated']}, the books {data['booked']}.")
    _print_transit(data)
    since = f" They agreed on {data['since']}." if data["since"] else ""
    print_line(f"The difference is {data['difference']}.{since}")
    if data["opening"]:
        held, day, account = data["opening"]["balance"], data["opening"]["date"], data["account_id"]
        other = held[1:] if held.startswith("-") else f"-{held}"
        if late := data["opening"]["instead_of"]:
            print_line(f"Its opening balance, {', '.join(late)}, is posted after the first row of the bank.")
            print_line(f"Before that row, on {day}, the account held {held}. To book this instead:")
            for entry in late:
                print_line(f'  cleared journal void {entry} --reason "older rows came"')
        else:
            print_line(
                f"That is what the account held before its first row, on {day}, and no entry has it. To book it:"
            )
        by_hand = f'cleared journal add {day} "Opening balance" {account}={held} {OPENING_BALANCES}={other}'
        print_line(f"  {by_hand if data['opening']['shared'] else 'cleared journal open'}")
        return
    is_turned = Decimal(data["stated"]) == -Decimal(data["booked"])
    if is_turned:
        print_line(
            f"It may be the same amount with the other sign. What is owed is negative: --balance {data['booked']}"
        )
    for card in data["asked"]:
        print_line(f"{card['why']} (cleared queue show {card['id']}):")
        print_line(f"  {escape_text(card['title'])}")
    for card in data["foreign"]:
        print_line(
            f"The bank's balance has in it what a row in another currency cost (cleared queue show {card['id']}):"
        )
        print_line(f"  {escape_text(card['title'])}")
    for gap in data["gaps"]:
        wrong = f", or the opening balance {gap['opening']} is wrong" if gap["opening"] else ""
        print_line(f"Between {gap['after']} and {gap['through']} lines of {gap['missing']} in all never came{wrong}.")
    several = is_turned or len(data["explanations"]) > 1
    for answer in data["explanations"]:
        print_line(f"{'Perhaps' if several else 'It is explained by'} ({answer['reason']}):")
        for row in answer["rows"]:
            print_line(f"  {row['date']}  {row['amount']}  {row['id']}  {escape_text(row['text'])}")
        if [row["fault"] for row in answer["rows"]] in (["posted"], ["doubled"]):
            print_line(
                "Where the bank has corrected it or has it once, take it out, and its row, whose card that opens:"
            )
            print_line(f"  cleared journal void {answer['rows'][0]['id']} --reason …")
            print_line("  cleared queue answer CARD ignore")
    if not data["explanations"] and not any(gap["opening"] for gap in data["gaps"]):
        print_line("No set of rows explains it.")
    if data["gave_up"]:
        print_message(f"Not all was looked at: {data['gave_up']}.")


def _print_transit(data: dict[str, Any]) -> None:
    lines = data["in_transit"]
    if lines:
        amount = format_amount(sum((Decimal(line["amount"]) for line in lines), Decimal(0)))
        where = "that is booked on another day" if len(lines) == 1 else "that are booked on other days"
        print_line(
            f"The books have {data['booked']}: {amount} of it is in transit, "
            f"in {count_noun(len(lines), 'line')} {where}."
        )
