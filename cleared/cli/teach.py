"""``cleared teach``: what a vendor's lines always are."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from cleared.base.terminal import count_noun, print_json, print_line, print_message
from cleared.cli.completion import complete_accounts, complete_agents
from cleared.cli.options import JsonOption, WorkspaceOption, open_host

if TYPE_CHECKING:
    from cleared.books.teaching.vendor_teaching import Lesson


def teach_vendor(
    words: Annotated[
        str, typer.Argument(metavar="WORDS", help="Whole words of the bank's text, such as 'BLUE BOTTLE'.")
    ],
    account: Annotated[
        int, typer.Argument(metavar="ACCOUNT", autocompletion=complete_accounts, help="Where its lines always go.")
    ],
    vendor: Annotated[str, typer.Option("--vendor", metavar="NAME", help="Who that is (default: the words).")] = "",
    agent: Annotated[
        str,
        typer.Option(
            "--agent", metavar="NAME", autocompletion=complete_agents, help="Whose table, where several have one."
        ),
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Approve it without asking, where a key would do.")] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Teach an agent a vendor: its lines always go to this account.

    Shows every past line with these words, and what the change would have done on your own books. Enter approves it.
    It is left as a card where reviewers decide, where more would change than that, and without a terminal.
    """
    from cleared.books.teaching.vendor_teaching import propose_vendor
    from cleared.changes.decisions.shown_cards import expecting
    from cleared.cli.proposal_output import note_edited
    from cleared.gate.proposals.approval import approve_proposal

    host = open_host(workspace)
    lesson = propose_vendor(host, words, account, vendor=vendor, agent=agent)
    if not json:
        _print_lesson(lesson)
    approves = not lesson.doubts and (yes or (not json and _asks_and_agrees()))
    outcome = None
    if approves:
        with expecting({lesson.proposal.folder: lesson.proposal.digest_shown()}):
            outcome = approve_proposal(host, lesson.proposal.folder, lesson.proposal.id)
    commit = outcome.commit if outcome is not None else None
    for path in outcome.edited if outcome is not None else ():
        note_edited(path)
    if json:
        print_json(_lesson_data(lesson, commit))
    elif commit is not None:
        print_line(f"{lesson.agent} knows {lesson.row.vendor} from now on ({commit[:10]}).")
        _print_waiting(lesson)
    else:
        number = lesson.proposal.id
        print_line(f"{number} waits as a card: cleared agent approve {number}, or reject {number} --reason …")


def _asks_and_agrees() -> bool:
    """Whether somebody at a terminal presses Enter."""
    if not sys.stdin.isatty():
        return False
    sys.stderr.write("Enter approves it, anything else leaves it as a card: ")
    sys.stderr.flush()
    return sys.stdin.readline() == "\n"


def _print_lesson(lesson: Lesson) -> None:
    from cleared.base.terminal import escape_text
    from cleared.books.teaching.vendor_teaching import describe_lines

    words = escape_text(lesson.row.words)
    count = count_noun(len(lesson.lines), "past line has", "past lines have")
    print_line(f"{count} {words}:" if lesson.lines else f"No past line has {words}.")
    for line in describe_lines(lesson):
        print_line(f"  {escape_text(line)}")
    print_line(lesson.difference)
    for doubt in lesson.doubts:
        print_message(f"! {escape_text(doubt)}")


def _print_waiting(lesson: Lesson) -> None:
    """What to say to have the entries that wait already put right, too: nothing of the past changes by itself."""
    from cleared.base.terminal import escape_text

    waiting = [entry_id for line in lesson.lines for entry_id in line.waiting]
    others = [i for line in lesson.lines if line.accounts != str(lesson.row.account) for i in line.waiting]
    if others:
        print_line(
            f"Still to decide, in review or: cleared queue correct {' '.join(others)} --account {lesson.row.account} "
            f"--counterparty {escape_text(shlex.quote(lesson.row.vendor))}"
        )
    elif waiting:
        print_line(f"Still to decide, in review or: cleared queue approve {' '.join(waiting)}")


def _lesson_data(lesson: Lesson, commit: str | None) -> dict[str, object]:
    return {
        "words": lesson.row.words,
        "vendor": lesson.row.vendor,
        "account_id": lesson.row.account,
        "agent": lesson.agent,
        "proposal": lesson.proposal.id,
        "difference": lesson.difference,
        "lines": [
            {
                "date": line.day.isoformat(),
                "amount": str(line.amount),
                "description": line.description,
                "accounts": line.accounts,
                "waiting": list(line.waiting),
            }
            for line in lesson.lines
        ],
        "doubts": list(lesson.doubts),
        "commit": commit,
    }
