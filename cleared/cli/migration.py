"""``cleared start-from``: books that another program kept."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cleared.base import money
from cleared.base.terminal import count_noun, print_fields, print_json, print_line, print_message, print_table
from cleared.books.exports.migration import moving_in
from cleared.books.exports.migration.moving_in import MovePlan
from cleared.cli.options import JsonOption, MapOption, WorkspaceOption, open_host, parse_day


class SourceFormat(StrEnum):
    """What a file is."""

    trial_balance = "trial-balance"
    hledger = "hledger"
    beancount = "beancount"


def start_books(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A trial balance (CSV), an hledger or beancount file.")],
    first_day: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="DATE", help="First day of your books here; what is before becomes opening balances."
        ),
    ] = None,
    map_file: MapOption = None,
    format: Annotated[
        SourceFormat | None, typer.Option("--format", help="What the file is (default: by its name and content).")
    ] = None,
    preview: Annotated[bool, typer.Option("--preview", help="Show what would be posted; write nothing.")] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Start your books from those of another program: opening balances or whole history, in one commit.

    Opening balances are posted against 3900, on the day before --from; entries from that day on are taken over as they
    are. Without --from a journal is taken over whole. Refused where the books have entries in that time already.
    """
    host = open_host(workspace)
    plan = moving_in.read_move_plan(
        host,
        file,
        first_day=parse_day(first_day) if first_day else None,
        map_file=map_file,
        format=format.value if format is not None else None,
    )
    if preview:
        if json:
            print_json(moving_in.describe_plan(plan))
        else:
            _print_plan(plan)
        if plan.accounts.unknown:
            raise typer.Exit(1)
        if plan.refusal is not None:
            raise typer.Exit(plan.refusal.exit_code)
        return
    ids, commit = moving_in.start_books_from(host, plan)
    if json:
        print_json({**moving_in.describe_plan(plan), "ids": [ids[0], ids[-1]], "commit": commit})
    else:
        print_line(f"Posted {_describe_counts(plan)}: {ids[0]} … {ids[-1]} ({commit[:10]}).")
    for note in plan.notes:
        print_message(f"cleared: {note}")


def _describe_counts(plan: MovePlan) -> str:
    later = len(plan.entries) - plan.openings
    counts = [count_noun(plan.openings, "opening balance")] if plan.openings else []
    counts += [count_noun(later, "entry", "entries")] if later else []
    return " and ".join(counts) or "nothing"


def _print_plan(plan: MovePlan) -> None:
    days = plan.days
    print_fields(
        [
            ("format", plan.format),
            ("would post", _describe_counts(plan)),
            *([("from", days[0]), ("through", days[1])] if days else []),
        ]
    )
    print_table(
        ["account of the file", "number"],
        plan.accounts.numbers.items(),
        wrap=["account of the file"],
        right=["number"],
        empty="No account is placed.",
    )
    if plan.accounts.unknown:
        print_table(
            ["not placed", "line", "why"],
            ((u.account, u.line, u.reason) for u in plan.accounts.unknown),
            wrap=["why", "not placed"],
            right=["line"],
            empty="",
        )
        for unknown in plan.accounts.unknown:
            print_line(unknown.command)
    else:
        print_table(
            ["account", "balance"],
            ((a, money.format_amount(v)) for a, v in plan.sum_accounts().items()),
            right=["balance"],
            empty="It has no balances.",
        )
    if plan.refusal is not None:
        print_message(f"cleared: this would be refused: {plan.refusal.message}. {plan.refusal.remedy}")
    for note in plan.notes:
        print_message(f"cleared: {note}")
