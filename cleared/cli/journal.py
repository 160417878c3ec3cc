"""``cleared journal …``"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TextIO

import typer

from cleared.base import money
from cleared.base.terminal import (
    count_noun,
    escape_text,
    print_batches,
    print_json,
    print_json_list,
    print_line,
    print_message,
    print_table,
)
from cleared.books.index.entry_selection import make_filter
from cleared.books.index.month_facts import MonthEntries
from cleared.books.ledger.chart import OPENING_BALANCES
from cleared.books.ledger.entry import STATUSES
from cleared.cli.command_groups import new_group
from cleared.cli.completion import complete_accounts
from cleared.cli.options import (
    AccountOption,
    JsonOption,
    LegArguments,
    MapOption,
    MonthOption,
    ReasonOption,
    WorkspaceOption,
    open_host,
    open_host_once,
    parse_day,
    parse_leg,
)
from cleared.cli.quick_books import open_journal, read_balances

app = new_group()
_COLUMNS: Final = ("entry", "date", "amount", "accounts", "status", "description")
_RIGHT: Final = ("amount",)
_WRAP: Final = ("description", "accounts")


@app.command("list")
def list_entries(
    month: MonthOption = None,
    status: Annotated[str | None, typer.Option("--status", help="Only entries of this status.")] = None,
    account: AccountOption = None,
    text: Annotated[str | None, typer.Option("--text", help="Only entries that hold this text.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=0, help="Only the newest so many.")] = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """List entries in the order of their ids."""
    if status is not None and status not in STATUSES:
        raise typer.BadParameter(f"{status!r} is not one of {', '.join(STATUSES)}", param_hint="--status")
    wanted = make_filter(month, status, account, text)
    with open_journal(workspace) as index:
        if json:
            print_json_list(index.iter_dicts(wanted, limit=limit))
        else:
            print_months(lambda: index.iter_months(wanted, limit))


def print_months(read_months: Callable[[], Iterable[tuple[MonthEntries, list[int]]]]) -> None:
    """As ``print_entries``, of many entries."""

    def read_batches() -> Iterator[Sequence[Sequence[str]]]:
        for entries, places in read_months():
            amounts, debited, credited = entries.list_postings(places)
            accounts = [f"{debit:>{width}} ← {credit}" for debit, credit in zip(debited, credited, strict=True)]
            ids, dates, statuses, descriptions = (
                entries.list_texts(name, places) for name in ("entry_id", "date", "status", "description")
            )
            yield ids, dates, amounts, accounts, statuses, descriptions

    width = max((len(debit) for e, places in read_months() for debit in e.list_postings(places)[1]), default=0)
    print_batches(_COLUMNS, read_batches, right=_RIGHT, wrap=_WRAP, empty="No entries.")


def print_entries(entries: list[dict[str, Any]], file: TextIO) -> None:
    """Entries as lines a person reads: id, date, amount, debit ← credit, status, description."""

    def account_ids(entry: dict[str, Any], side: str) -> str:
        return "+".join(str(leg["account_id"]) for leg in entry["lines"] if float(leg[side]) > 0)

    debits = [account_ids(e, "debit") for e in entries]
    width = max(map(len, debits), default=0)
    print_table(
        _COLUMNS,
        (
            (
                e["entry_id"],
                e["date"],
                e["amount"],
                f"{debit:>{width}} ← {account_ids(e, 'credit')}",
                e["status"],
                e["description"],
            )
            for e, debit in zip(entries, debits, strict=True)
        ),
        right=_RIGHT,
        wrap=_WRAP,
        heading=False,
        empty="No entries.",
        file=file,
    )


@app.command("void")
def void_journal_entry(
    entry_id: Annotated[str, typer.Argument(metavar="ENTRY", help="An entry's id (or one of its legs').")],
    reason: ReasonOption,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Void an entry: a reversing entry is posted, the original stays. A bank line it posted is open again."""
    from cleared.books.decisions.entry_voiding import void_entry

    original, reversal, commit = void_entry(open_host(workspace), entry_id, reason)
    if json:
        print_json({"entry_id": original, "reversal": reversal, "commit": commit})
    else:
        print_line(f"{original} is voided by {reversal} ({commit[:10]}).")


@app.command("add")
def add_journal_entry(
    date: Annotated[str, typer.Argument(metavar="DATE", help="Its day, such as 2025-03-31.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What it is, such as Depreciation.")],
    lines: LegArguments,
    counterparty: Annotated[str, typer.Option("--counterparty", metavar="NAME", help="With whom.")] = "",
    tag: Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="A word to find it by.")] = None,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Why; kept with it.")] = "",
    key: Annotated[
        str, typer.Option("--key", metavar="KEY", help="Post it once, however often this is said with this key.")
    ] = "",
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Post an entry that you write yourself, in one commit: a positive amount is a debit, a negative one a credit.

    The amounts sum to zero. What a bank's file will bring needs no such entry. cleared queue undo takes it back. A
    script gives each entry a --key: the same command again then only says that it is there; with anything else in it,
    it is refused.
    """
    from cleared.books.decisions.hand_posting import add_entry_by_hand, list_bank_accounts_of

    host, legs = open_host(workspace) if key else open_host_once(workspace, json=json), [parse_leg(x) for x in lines]
    posted = add_entry_by_hand(
        host, parse_day(date), text, legs, counterparty=counterparty, tags=tag or (), note=note, key=key
    )
    entry = posted.entry
    if json:
        print_json({"entry_id": entry.entry_id, "commit": posted.commit, "is_new": posted.is_new})
    else:
        what = "is posted" if posted.is_new else "is there already"
        amount = entry.amount.quantize(money.quantum(host.decimal_places))
        print_line(f"{entry.entry_id} {what}: {money.format_amount(amount)} ({posted.commit[:10]}).")
    if not posted.is_new or any(account == OPENING_BALANCES for account, _ in legs):  # no bank reports those as a line
        return
    for bank in list_bank_accounts_of(host, legs):
        print_message(
            f"It moves the bank account {bank}: if a file of the bank has this line, it will be posted a second time."
        )


@app.command("adjust")
def take_adjusting_entries(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV: date, description, account, debit, credit.")],
    map_file: MapOption = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Take adjusting entries that your accountant sent back: each waits as a card, and is posted when you approve it.

    Rows of one date and description are one entry, until they balance; a column entry says it, too. The same entry
    again makes no second card.
    """
    from cleared.books.exports.migration.adjustments import queue_adjustments

    proposed, commit = queue_adjustments(open_host(workspace), file, map_file)
    if json:
        print_json({"cards": proposed.cards, "known": proposed.known, "commit": commit})
        return
    if proposed.known:
        print_message(f"{count_noun(len(proposed.known), 'entry', 'entries')} came before: {', '.join(proposed.known)}")
    if commit:
        made = count_noun(len(proposed.cards), "adjusting entry", "adjusting entries")
        print_line(f"{made} for review ({commit[:10]}).")
        print_message(f"Next: cleared review, or cleared queue approve {' '.join(proposed.cards[:5])}")


@app.command("open")
def post_opening_balances(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Post what bank accounts held before their first row, each once, against 3900 Opening balances.

    As config.yaml says (bank_accounts: … opening:), else as the balances in the bank's files say.
    """
    from cleared.books.decisions.opening_balances import post_opening_balances

    entries, commit = post_opening_balances(open_host(workspace))
    if json:
        print_json({"entries": [entry.entry_id for entry in entries], "commit": commit})
        return
    for entry in entries:
        held = entry.legs[0].amount
        print_line(f"{entry.entry_id}  {entry.date}  {held}  {escape_text(entry.description)} ({entry.evidence})")
    print_line(f"{count_noun(len(entries), 'opening balance')} posted ({commit[:10]}).")


@app.command("balance")
def show_balances(
    account: Annotated[
        int | None, typer.Argument(metavar="ACCOUNT", autocompletion=complete_accounts, help="Only this account.")
    ] = None,
    month: MonthOption = None,
    as_of: Annotated[str | None, typer.Option("--as-of", metavar="DATE", help="Up to and including this day.")] = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the trial balance: debits minus credits of each account. It sums to zero."""
    from decimal import Decimal

    accounts = read_balances(workspace, account, month, as_of)
    if json:
        print_json(accounts)
        return
    rows = [(r["account_id"], r["account_name"], r["account_type"], r["balance"]) for r in accounts]
    if account is None and rows:
        rows.append(("", "sum", "", str(sum(Decimal(r["balance"]) for r in accounts))))
    print_table(
        ["account", "name", "type", "balance"],
        rows,
        right=["balance"],
        wrap=["name"],
        empty="Nothing has been posted yet.",
    )
