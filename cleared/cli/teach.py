"""``cleared teach``: what a vendor's lines always are."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Final

import typer

from cleared.base import money
from cleared.base.errors import Place, UsageError
from cleared.base.money import currency_exponent
from cleared.base.short_text import list_first, parse_count
from cleared.base.terminal import count_noun, escape_text, print_json, print_line, print_message, print_table
from cleared.books.teaching.matched_lines import describe_matches, is_like, list_matches
from cleared.books.teaching.row_limits import RowLimits, is_part
from cleared.books.teaching.table_listing import list_rows
from cleared.books.teaching.vendor_teaching import Lesson, propose_removal, propose_vendor
from cleared.changes.decisions.shown_cards import expecting
from cleared.changes.host import Host
from cleared.cli.completion import complete_accounts, complete_agents
from cleared.cli.options import JsonOption, WorkspaceOption, open_host
from cleared.cli.proposal_output import note_edited
from cleared.gate.proposals.approval import approve_proposal

_MAX_COMMANDS: Final = 20
"""Commands that are shown to put waiting entries right."""


def teach_vendor(
    words: Annotated[
        str | None, typer.Argument(metavar="WORDS", help="Whole words of the bank's text, such as 'BLUE BOTTLE'.")
    ] = None,
    goes_to: Annotated[
        int | None,
        typer.Argument(metavar="ACCOUNT", autocompletion=complete_accounts, help="Where its lines always go."),
    ] = None,
    out: Annotated[bool, typer.Option("--out", help="Only its money out.")] = False,
    into: Annotated[bool, typer.Option("--in", help="Only its money in.")] = False,
    account: Annotated[
        int | None,
        typer.Option(
            "--account", metavar="N", autocompletion=complete_accounts, help="Only lines of this bank account."
        ),
    ] = None,
    least: Annotated[str | None, typer.Option("--min", metavar="AMOUNT", help="Only from this amount on.")] = None,
    most: Annotated[str | None, typer.Option("--max", metavar="AMOUNT", help="Only up to this amount.")] = None,
    split: Annotated[
        list[str] | None,
        typer.Option(
            "--split", metavar="N=PART", help="So much to account N, as 20.00 or 40%; the rest to ACCOUNT. Repeatable."
        ),
    ] = None,
    vendor: Annotated[str, typer.Option("--vendor", metavar="NAME", help="Who that is (default: the words).")] = "",
    agent: Annotated[
        str,
        typer.Option(
            "--agent", metavar="NAME", autocompletion=complete_agents, help="Whose table, where several have one."
        ),
    ] = "",
    lists: Annotated[bool, typer.Option("--list", help="Show what is taught, and how often each row counted.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take the row of these words out again.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Approve it without asking, where a key would do.")] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Teach an agent a vendor: its lines always go to this account.

    Shows every past line that the row is about, first those that it would have booked otherwise, and what the change
    would have done on your own books. Enter approves it. It is left as a card where reviewers decide, where more would
    change than that, and without a terminal. The most special row counts: of more words, then of fewer lines.
    """
    host = open_host(workspace)
    if lists:
        _list_rows(host, agent, json)
        return
    if words is None or (goes_to is None) != remove:
        raise UsageError(
            "a row has words, and an account where it is taught",
            remedy="cleared teach WORDS ACCOUNT, teach WORDS --remove, or teach --list.",
        )
    limits = _read_limits(host, out, into, account, least, most, split or ())
    if goes_to is None:
        lesson = propose_removal(host, words, limits=limits if limits else None, agent=agent)
    else:
        lesson = propose_vendor(host, words, goes_to, limits=limits, vendor=vendor, agent=agent)
    if not json:
        _print_lesson(lesson)
    approves = not lesson.doubts and (yes or (not json and _asks_and_agrees()))
    commit = _approve(host, lesson) if approves else None
    if json:
        print_json(_lesson_data(lesson, commit))
    elif commit is not None:
        _print_done(lesson, commit)
    else:
        number = lesson.proposal.id
        print_line(f"{number} waits as a card: cleared agent approve {number}, or reject {number} --reason …")


def _read_limits(
    host: Host, out: bool, into: bool, bank: int | None, least: str | None, most: str | None, split: Sequence[str]
) -> RowLimits:
    if out and into:
        raise UsageError("--out and --in together are all lines", remedy="Leave both out.")
    parts = []
    for text in split:
        number, _, part = text.partition("=")
        if parse_count(number, 10) is None or not is_part(part):
            raise UsageError(
                f"{text[:60]!r} is no part",
                place=Place(field="--split"),
                remedy="Write ACCOUNT=AMOUNT or ACCOUNT=SHARE%, such as 5150=20.00 or 3200=40%.",
            )
        parts.append((int(number), part))
    places = currency_exponent(host.config.business.currency)
    return RowLimits(
        "out" if out else "in" if into else "",
        bank,
        _read_amount(least, "--min", places),
        _read_amount(most, "--max", places),
        tuple(parts),
    )


def _read_amount(text: str | None, option: str, places: int) -> Decimal | None:
    if text is None:
        return None
    try:
        amount = money.decode(text, places)
    except ValueError as error:
        raise UsageError(str(error), place=Place(field=option), remedy="Write it like 12.50.") from None
    if amount < 0:
        raise UsageError(
            f"{text} is less than nothing",
            place=Place(field=option),
            remedy="Leave the sign out: --out or --in say it.",
        )
    return amount


def _approve(host: Host, lesson: Lesson) -> str | None:
    """The commit that makes it live."""
    with expecting({lesson.proposal.folder: lesson.shown}):
        outcome = approve_proposal(host, lesson.proposal.folder, lesson.proposal.id)
    for path in outcome.edited:
        note_edited(path)
    return outcome.commit


def _asks_and_agrees() -> bool:
    """Whether somebody at a terminal presses Enter."""
    if not sys.stdin.isatty():
        return False
    sys.stderr.write("Enter approves it, anything else leaves it as a card: ")
    sys.stderr.flush()
    return sys.stdin.readline() == "\n"


def _list_rows(host: Host, agent: str, json: bool) -> None:
    rows = list_rows(host, agent)
    if json:
        print_json(rows)
        return
    print_table(
        ["agent", "words", "vendor", "account", "only", "sure", "lines", "last"],
        [
            [
                row["agent"],
                row["words"],
                row["vendor"],
                str(row["account_id"]),
                row["only"],
                f"{row['confidence']:.2f}",
                str(row["lines"]),
                row["last"] or "never",
            ]
            for row in rows
        ],
        wrap=["only", "vendor", "words"],
        empty="Nothing is taught.",
    )


def _print_lesson(lesson: Lesson) -> None:
    words = escape_text(lesson.row.words)
    only = lesson.row.limits.scope.describe()
    about = f"{words} ({only})" if only else words
    count = count_noun(len(lesson.lines), "past line has", "past lines have")
    print_line(f"{count} {about}:" if lesson.lines else f"No past line has {about}.")
    for line in list_matches(lesson.lines):
        print_line(f"  {escape_text(line)}")
    if (past := describe_matches(lesson.lines)) and not lesson.is_removal:
        print_line(past)
    print_line(lesson.difference)
    for doubt in lesson.doubts:
        print_message(f"! {escape_text(doubt)}")


def _print_done(lesson: Lesson, commit: str) -> None:
    verb = "forgets" if lesson.is_removal else "knows"
    print_line(f"{lesson.agent} {verb} {lesson.row.vendor} from now on ({commit[:10]}).")
    if not lesson.is_removal:
        _print_waiting(lesson)


def _print_waiting(lesson: Lesson) -> None:
    """What to say to have the entries that wait already put right, too: nothing of the past changes by itself."""
    commands = _list_commands(lesson)
    if len(commands) == 1:
        print_line(f"Still to decide, in review or: {commands[0]}")
    elif commands:
        print_line("Still to decide, in review or:")
        for command in commands[:_MAX_COMMANDS]:
            print_line(f"  {command}")
    more = len(commands) - _MAX_COMMANDS
    if more > 0:
        print_line(f"  … and {more} more")
    if left := [each for line in lesson.lines for each in line.waiting if not each.taught]:
        print_line(f"Still to decide, in review: {list_first([each.entry_id for each in left], 5)}")


def _list_commands(lesson: Lesson) -> list[str]:
    """The commands that make of the waiting entries what was taught."""
    account, payee = lesson.row.account, f"--counterparty {escape_text(shlex.quote(lesson.row.vendor))}"
    waiting = [each for line in lesson.lines for each in line.waiting if each.taught]
    right, plain, splits = list[str](), list[str](), list[str]()
    for each in waiting:
        if is_like(each.parts, each.taught, with_amounts=len(each.taught) > 1):
            right.append(each.entry_id)
        elif len(each.taught) == len(each.parts) == 1:
            plain.append(each.entry_id)
        else:
            parts = " ".join(f"{number}={money.format_amount(amount)}" for number, amount in each.taught)
            splits.append(f"cleared split {each.entry_id} {parts} {payee}")
    commands = [f"cleared queue correct {' '.join(plain)} --account {account} {payee}"] if plain else []
    commands += splits
    return [*commands, f"cleared queue approve {' '.join(right)}"] if right else commands


def _lesson_data(lesson: Lesson, commit: str | None) -> dict[str, object]:
    return {
        "words": lesson.row.words,
        "vendor": lesson.row.vendor,
        "account_id": lesson.row.account,
        "only": lesson.row.limits.describe(),
        "removed": lesson.is_removal,
        "agent": lesson.agent,
        "proposal": lesson.proposal.id,
        "difference": lesson.difference,
        "lines": [
            {
                "date": line.day.isoformat(),
                "amount": str(line.amount),
                "description": line.description,
                "accounts": line.accounts,
                "otherwise": line.is_otherwise,
                "fits": bool(line.taught),
                "waiting": [each.entry_id for each in line.waiting],
            }
            for line in lesson.lines
        ],
        "doubts": list(lesson.doubts),
        "commit": commit,
    }
