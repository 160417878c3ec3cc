"""``cleared queue …``: what needs a human, and deciding about it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from cleared.base.terminal import escape_text, print_fields, print_json, print_line, print_message, print_table
from cleared.cards.age import count_overdue
from cleared.cards.open_cards import read_open_cards
from cleared.cli.command_groups import new_group
from cleared.cli.completion import complete_accounts, complete_cards, complete_cards_and_entries
from cleared.cli.options import (
    JsonOption,
    LegArguments,
    ReasonOption,
    WorkspaceOption,
    chosen_workspace,
    open_host,
    open_host_once,
    parse_day,
    parse_leg,
    read_clock,
)
from cleared.workspace.location import find_workspace

if TYPE_CHECKING:
    from cleared.review.record_review import DecisionResult

app = new_group()
_MAX_IDS: Final = 20
"""Ids of entries or cards that one line shows."""


class CardStatus(StrEnum):
    """Cards by what became of them."""

    open = "open"
    resolved = "resolved"
    all = "all"


@app.command("list")
def show_cards(
    status: Annotated[CardStatus, typer.Option("--status", help="Which cards.")] = CardStatus.open,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """List the cards, oldest first. A card is a question that waits for a person."""
    if json:
        from cleared.review.queue_cards import read_cards

        print_json(read_cards(open_host(workspace), status.value))
        return
    cards = read_open_cards(find_workspace(chosen_workspace(workspace))) if status is CardStatus.open else None
    if cards is None:
        from cleared.review.card_list import list_cards

        cards = list_cards(open_host(workspace), status.value)
    late = count_overdue(cards.times, read_clock().now(), cards.remind_after) if status is CardStatus.open else 0
    if late:
        print_message(f"{late} of them {'waits' if late == 1 else 'wait'} for {cards.remind_after} or longer.")
    print_table(
        ["card", "kind", "entry", "since", "title"],
        zip(cards.ids, cards.kinds, cards.entries, [time[:10] for time in cards.times], cards.titles, strict=True),
        wrap=["title", "since", "kind"],
        empty="Nothing waits for you.",
    )


@app.command("show")
def show_card(
    card: Annotated[
        str,
        typer.Argument(
            metavar="CARD", autocompletion=complete_cards, help="Its id, the beginning of it, or its entry's id."
        ),
    ],
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show a card: what is asked, and everything known about it."""
    from cleared.cli.proposal_output import print_sections
    from cleared.gate.proposals.shown_proposal import read_shown_proposal
    from cleared.review.branch_text import read_branch_sections
    from cleared.review.card_details import card_fields, detail_tables
    from cleared.review.explanation import read_successor
    from cleared.review.queue_cards import read_card
    from cleared.review.suggested_choices import list_suggestions

    host = open_host(workspace)
    data = read_card(host, card)
    data["suggestions"] = list_suggestions(host, data["id"]) if data["status"] == "open" else []
    data["replaced_by"] = read_successor(host, data["entry_id"]) if data["status"] != "open" else None
    if json:
        print_json(data)
        return
    folder = str(data["details"].pop("proposal", "")) if data["details"].pop("says", None) else ""
    print_fields([*card_fields(data), *(("suggested", f"{s['label']}: {s['evidence']}") for s in data["suggestions"])])
    if folder:
        print_sections([part for part in read_shown_proposal(host, folder).card if not part.is_code])
    for section in (*detail_tables(data["details"]), *read_branch_sections(host, data["details"])):
        print_line(f"{section.title}:")
        if section.rows:
            print_table(list(section.columns), section.rows, wrap=list(section.columns)[:0:-1], empty="")
        for line in section.lines:
            print_line(f"  {escape_text(line)}")


CardIds = Annotated[
    list[str],
    typer.Argument(
        metavar="ID…",
        autocompletion=complete_cards_and_entries,
        help="Cards (the beginning of the id will do) or entries.",
    ),
]


NoteOption = Annotated[str | None, typer.Option("--note", metavar="TEXT", help="Why; kept with the correction.")]
MixedOption = Annotated[
    bool, typer.Option("--mixed", help="Amounts of both signs are meant, such as wages less the tax withheld.")
]


def split_entry(
    entry: Annotated[
        str,
        typer.Argument(
            metavar="ENTRY",
            autocompletion=complete_cards_and_entries,
            help="An entry, or the card of a held bank line.",
        ),
    ],
    lines: LegArguments,
    counterparty: Annotated[str | None, typer.Option("--counterparty", metavar="NAME", help="Who it was.")] = None,
    note: NoteOption = None,
    mixed: MixedOption = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Split an entry over several accounts: they take the place of all its accounts but the bank's.

    The amounts sum to what the bank moved: positive for money out, negative for money in; none is larger than that or
    of the other sign, unless --mixed says so. Nothing is edited: a correcting entry is posted, in one commit; in a
    closed month, on the first open day.
    """
    from cleared.books.decisions.entry_correction import Correction
    from cleared.review.correction_tests import correct_and_record

    parts = tuple(parse_leg(text) for text in lines)
    correction = Correction(lines=parts, counterparty=counterparty, note=note, mixed=mixed)
    _print_decision(correct_and_record(open_host(workspace), [entry], correction), json, "Split")


class RejectOutcome(StrEnum):
    """What a bank line is whose entry is rejected."""

    duplicate = "duplicate"
    personal = "personal"
    suspense = "suspense"


@app.command("approve")
def approve_entries(ids: CardIds, json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Confirm entries as they are: one commit for all of them."""
    from cleared.review.card_decisions import confirm_records

    _print_decision(confirm_records(open_host(workspace), ids), json, "Confirmed")


@app.command("correct")
def correct_booked_entries(
    ids: CardIds,
    account: Annotated[
        int | None,
        typer.Option(
            "--account",
            metavar="N",
            autocompletion=complete_accounts,
            help="Instead of the only account that is not the bank's.",
        ),
    ] = None,
    line: Annotated[
        list[str] | None,
        typer.Option("--line", metavar="ACCOUNT=AMOUNT", help="All legs but the bank's; money in as negative."),
    ] = None,
    date: Annotated[str | None, typer.Option("--date", metavar="YYYY-MM-DD", help="Another date.")] = None,
    counterparty: Annotated[str | None, typer.Option("--counterparty", metavar="NAME")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="Instead of its tags.")] = None,
    note: NoteOption = None,
    mixed: MixedOption = False,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="COLUMN=VALUE", help="Of a row of a table: another value.")
    ] = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Say what entries should have been, in one commit. No figure is edited: a correcting entry is posted.

    A payee, tags and a note are changed where they stand, in a closed month too. A held bank line is
    posted as said. A row of a table gets the values of --set. The correction becomes a test of the agent that made it,
    and cleared improve learns from it.
    """
    from cleared.books.decisions.entry_correction import Correction
    from cleared.records.row_correction import parse_values
    from cleared.review.correction_tests import correct_and_record

    entry_options = (account, line, date, counterparty, tag, note, mixed or None)
    if set_ and any(each is not None for each in entry_options):
        raise typer.BadParameter("--set is about a row of a table, and goes without the options about entries")
    correction = Correction(
        account,
        tuple(parse_leg(text, "--line") for text in line or ()),
        parse_day(date) if date else None,
        counterparty,
        tuple(tag) if tag is not None else None,
        note,
        mixed,
    )
    result = correct_and_record(open_host(workspace), ids, parse_values(set_) if set_ else correction)
    _print_decision(result, json, "Corrected")
    if result.similar_cards and not json:
        ids = result.similar_cards
        print_message(f"{len(ids)} more like it wait: cleared queue correct {' '.join(ids[:20])} …")


@app.command("reject")
def reject_entries(
    ids: CardIds,
    reason: ReasonOption = "",
    outcome: Annotated[
        RejectOutcome | None, typer.Option("--outcome", help="What the bank line is then, where the entry posts one.")
    ] = None,
    of: Annotated[str | None, typer.Option("--of", metavar="ENTRY", help="With duplicate: of which entry.")] = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Say that entries should not stand; they are voided, or booked as personal."""
    from cleared.review.card_decisions import reject_cards as do

    host = open_host_once(workspace, json=json)
    _print_decision(do(host, ids, reason, outcome.value if outcome else None, of), json, "Rejected")


@app.command("answer")
def answer_question(
    card: Annotated[
        str, typer.Argument(metavar="CARD", autocompletion=complete_cards, help="A card that is not about an entry.")
    ],
    choice: Annotated[str, typer.Argument(metavar="CHOICE", help="Such as seen; cleared queue show tells which.")],
    without: Annotated[
        list[str] | None,
        typer.Option("--without", metavar="PATH", help="With merge: a file of the branch to leave out. Repeatable."),
    ] = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Answer a card: seen, ignore, different …"""
    from cleared.cli.agent import print_run
    from cleared.review.questions import answer_and_resume

    decision, result = answer_and_resume(open_host(workspace), card, choice, without or ())
    if json:
        print_json({**_decision_data(decision), "run": result.to_json_object() if result else None})
    else:
        _print_decision(decision, json, "Answered")
    if result is not None:
        print_run(result, json=json, quiet=json)


@app.command("skip")
def skip_waiting_cards(ids: CardIds, json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Put cards behind all others; they wait still."""
    from cleared.review.card_decisions import skip_cards as do

    _print_decision(do(open_host_once(workspace, json=json), ids), json, "Skipped")


@app.command("agree")
def agree_with_reviewer(ids: CardIds, json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Decide the same as another reviewer has, where it takes two (thresholds.two_person)."""
    from cleared.review.correction_tests import agree_and_record

    _print_decision(agree_and_record(open_host(workspace), ids), json, "Agreed")


@app.command("reviewers")
def list_reviewers(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Show who may decide, and your own public key, which is made where there is none yet."""
    from cleared.review.reviewer_list import list_reviewers

    people = list_reviewers(open_host(workspace))
    if json:
        print_json(people)
        return
    if not people["reviewers"]:
        print_line("Nobody is named: whoever sits at the keyboard may decide.")
    else:
        rows = [(r["name"], r["key"], r["role"], "you" if r["you"] else "") for r in people["reviewers"]]
        print_table(["name", "key", "role", ""], rows, wrap=["key"], empty="")
    if people["two_person"]:
        print_line(f"From {people['two_person']} on it takes two of them.")
    print_line(f"Your key: {people['key']}")


@app.command("undo")
def undo_decision(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would take back.")] = False,
    older: Annotated[
        bool, typer.Option("--older", help="Leave what came since beside the books, as a setting, or went by git.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Take it back without being asked.")] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Take back the last act, whatever it was: a decision about the books, a card put off, an approval of a script.

    It names the act, and asks first where there is a terminal. An act that it does not take back is named, with the
    command that does; so is one that git took back. Nothing older is taken back instead. Can be repeated. Refused where
    it was pushed already, and where a period was closed since.
    """
    from cleared.review.undo import undo_decision as do

    host = open_host(workspace) if dry_run else open_host_once(workspace, json=json)
    asks = sys.stdin.isatty() and not yes and not json
    named = do(host, dry_run=True, older=older) if dry_run or asks else None
    if named is not None:
        print_message("\n".join(named.messages)) if not json else _print_decision(named, json, "Taken back")
    if dry_run or (asks and not typer.confirm("Take it back?", err=True)):
        return
    _print_decision(do(host, act=named.act if named is not None else None, older=older), json, "Taken back")


@app.command("expire")
def expire_questions(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Act on scripts' questions that nobody answered in time, as each script said, and go on with answered runs."""
    from cleared.cli.agent import print_run
    from cleared.review.questions import settle_due_questions

    host = open_host(workspace)
    ended = settle_due_questions(host, host.clock.now())
    if json:
        print_json(ended.data())
    else:
        rows = [
            *((c, f"takes {choice}") for c, choice in ended.answered.items()),
            *((c, "rejected") for c in ended.rejected),
            *((c, "still waits") for c in ended.escalated),
        ]
        print_table(["card", "no answer in time"], rows, empty="No question's time has come.")
    for line in ended.messages:
        print_message(line)
    failed: list[int] = []
    for result in ended.runs:
        try:
            print_run(result, json=json, quiet=json)
        except typer.Exit as end:  # the others are shown too
            failed.append(end.exit_code)
    if failed:
        raise typer.Exit(failed[0])


def _decision_data(result: DecisionResult) -> dict[str, Any]:
    return {
        "commit": result.commit,
        "cards": result.cards,
        "entries": result.records,
        "posted": result.added,
        "siblings": result.similar_cards,
        "case": result.test_path,
        "agreed": result.agreed,
        "said": result.messages,
    }


def _list_ids(ids: Sequence[str]) -> str:
    """The ids; of very many only the first and the last: ``--json`` has them all."""
    if len(ids) <= _MAX_IDS:
        return ", ".join(ids)
    return f"{', '.join(ids[: _MAX_IDS - 1])} … {ids[-1]} ({len(ids)} in all)"


def _print_decision(result: DecisionResult, json: bool, verb: str) -> None:
    if json:
        print_json(_decision_data(result))
        return
    about = result.records or result.cards
    posted = f", posted {_list_ids(result.added)}" if result.added else ""
    if about or not result.agreed:
        where = f" ({result.commit[:10]})" if result.commit else ", as it was before; nothing is committed"
        print_line(f"{verb}: {_list_ids(about) or 'the last decision'}{posted}{where}")
    if result.agreed:
        print_line(f"Recorded, as the first of two: {', '.join(result.agreed)} ({result.commit[:10]})")
    for line in result.messages:
        print_message(line)
