"""``cleared bank …``: accounts at banks, and what their files mean."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from cleared.base.errors import UsageError
from cleared.base.safe_files import read_stable
from cleared.base.terminal import print_json, print_message, print_table
from cleared.books.bank_files.preview import describe_file
from cleared.books.decisions.bank_adding import add_bank_accounts, refuse_unreadable
from cleared.books.importing.bank_setup import AccountChoices, BankSetup
from cleared.books.importing.handed_files import copy_to_drop_folder, sort_files
from cleared.books.importing.new_bank_files import choose_profile_name, plan_file, understand_file, write_setup
from cleared.books.ledger.bank_row import ParsedFile
from cleared.changes.host import Host
from cleared.cli.bank_files import import_handed_files, refuse_altered_files
from cleared.cli.command_groups import new_group
from cleared.cli.options import JsonOption, WorkspaceOption, open_host, open_host_once
from cleared.workspace.settings.bank_section import PENDING_WORDS, CsvProfile
from cleared.workspace.settings.model import Config

app = new_group()


class BankAccountType(StrEnum):
    """What the account is at the bank."""

    checking = "checking"
    savings = "savings"
    credit_card = "credit_card"
    processor = "processor"
    other = "other"


class Sign(StrEnum):
    """How money out is written."""

    as_is = "as_is"
    inverted = "inverted"


class Fee(StrEnum):
    """What a column of fees is beside the amounts."""

    within = "within"
    on_top = "on_top"


@app.command("list")
def list_bank_accounts(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """List the bank accounts of the configuration."""
    config = open_host(workspace).config
    rows = [
        {
            "id": a.id,
            "name": a.name,
            "type": a.type,
            "ledger_account": a.ledger_account,
            "format": ", ".join(a.formats) or None,
            "currency": a.currency or config.business.currency,
            "number": a.match.account or a.match.iban or a.match.last4,
        }
        for a in config.bank_accounts
    ]
    if json:
        print_json(rows)
        return
    headings = ["id", "name", "type", "ledger_account", "format", "currency", "number"]
    print_table(
        [h.replace("_", " ") for h in headings],
        ([r[h] for h in headings] for r in rows),
        wrap=["name"],
        empty="There are none. Add one: cleared bank add FILE",
    )


@app.command("add")
def add_bank(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file that the bank gave: OFX, CAMT, MT940, QIF, CSV.")
    ],
    account: Annotated[
        str | None, typer.Option("--account", metavar="ID", help="It is of this bank account, which is there already.")
    ] = None,
    id_: Annotated[str | None, typer.Option("--id", metavar="ID", help="What the new bank account is called.")] = None,
    name: Annotated[str | None, typer.Option("--name", help="Its name for people.")] = None,
    type_: Annotated[BankAccountType | None, typer.Option("--type", help="What it is at the bank.")] = None,
    ledger_account: Annotated[
        int | None,
        typer.Option("--ledger-account", metavar="NUMBER", help="Its account in the books; made if missing."),
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option("--column", metavar="FIELD=NAME", help="What a column means: date=Datum.")
    ] = None,
    date_format: Annotated[
        str | None, typer.Option("--date-format", metavar="FORMAT", help="Such as %d.%m.%Y.")
    ] = None,
    decimal: Annotated[str | None, typer.Option("--decimal", metavar="MARK", help="The decimal mark: . or ,")] = None,
    sign: Annotated[Sign | None, typer.Option("--sign", help="inverted: money out is written as positive.")] = None,
    fee: Annotated[Fee | None, typer.Option("--fee", help="on_top: taken beside the amount, not in it.")] = None,
    delimiter: Annotated[str | None, typer.Option("--delimiter", metavar="CHAR", help="Between the fields.")] = None,
    encoding: Annotated[str | None, typer.Option("--encoding", help="Such as cp1252.")] = None,
    skip_lines: Annotated[
        int | None, typer.Option("--skip-lines", metavar="N", help="How many lines stand above the column heads.")
    ] = None,
    pending: Annotated[
        str | None,
        typer.Option(
            "--pending", metavar="WORD,…", help="What the column of states says of rows not posted yet; or none."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="The rows are right as they are shown.")] = False,
    run: Annotated[bool, typer.Option("--run/--no-run", help="Import the file, too.")] = True,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Tell cleared about a bank account by one of its files: understand it, write config.yaml, import it.

    What the file does not say is asked; without a terminal, options answer. Five rows are shown as they are understood.
    """
    known = {
        "columns": _parse_columns(column or []),
        "date_format": date_format,
        "decimal": decimal,
        "delimiter": delimiter,
        "sign": sign.value if sign else None,
        "fee": fee.value if fee else None,
        "encoding": encoding,
        "skip_lines": skip_lines,
        "pending": None if pending is None else _parse_words(pending),
    }
    host = open_host_once(workspace, json=json)
    data = _read_file(host, file)
    kind = type_ or next((each.type for each in host.config.bank_accounts if each.id == account), None)
    is_card = kind == BankAccountType.credit_card
    config, profile, parsed = _understand_file(host, file, data, known, id_, is_card=is_card)
    choices = AccountChoices(id_, name, type_.value if type_ else None, ledger_account, account)
    setup = plan_file(host, file.name, parsed, config, choices)
    edit = partial(write_setup, profile=profile, setup=setup)
    if profile is not None or setup.changes:
        refuse_unreadable(host, file, edit)
    _show_plan(file.name, parsed, profile, setup)
    if sys.stdin.isatty() and not yes and not json and not typer.confirm("Is that right?", err=True):
        print_message("Nothing was written. Correct it with options: cleared bank add --help")
        raise typer.Exit(1)
    said_once = host.command_key
    if profile is not None or setup.account_ids:
        host.command_key = "" if run else said_once  # it is done once its last commit is made
        _write_setup(host, edit, setup, parsed.format)
    _import_file(workspace, said_once, file, run=run, json=json)


def _import_file(workspace: Path | None, command_key: str, file: Path, *, run: bool, json: bool) -> None:
    """Import the file, where that is wanted, with the configuration as it is now."""
    host = open_host(workspace)
    host.command_key = command_key
    handed, left = sort_files([file], host.config, host.decimal_places)
    names = copy_to_drop_folder(host.root, host.layout.import_dir, handed) if run else []
    import_handed_files(host, handed if run else handed[:0], names, left, run=run, json=json, needs_files=run)


def _parse_columns(pairs: list[str]) -> dict[str, str]:
    columns = {}
    for pair in pairs:
        field, separator, name = pair.partition("=")
        if not separator or not name.strip():
            raise typer.BadParameter(f"{pair!r} is not FIELD=NAME", param_hint="--column")
        columns[field.strip()] = name.strip()
    return columns


def _parse_words(text: str) -> tuple[str, ...]:
    """Words between commas; none for ``none``."""
    words = tuple(word for each in text.split(",") if (word := each.strip()))
    return () if words == ("none",) else words


def _read_file(host: Host, file: Path) -> bytes:
    refuse_altered_files(host, [file])
    data, _ = read_stable(file.resolve(), host.config.import_.max_bytes, shown=str(file))
    return data


def _understand_file(
    host: Host, file: Path, data: bytes, known: dict[str, Any], id_: str | None, *, is_card: bool
) -> tuple[Config, CsvProfile | None, ParsedFile]:
    """The file by a known format; else by a new profile. Raises ``UsageError`` for what nobody has answered."""
    name = choose_profile_name(host.config, id_, file.name)
    while True:
        found = understand_file(host.config, host.decimal_places, file.name, data, known, name, is_card=is_card)
        if found.parsed is not None:
            return found.config, found.profile, found.parsed
        _answer_questions(found.questions, known)


def _answer_questions(questions: dict[str, str], known: dict[str, Any]) -> None:
    """Ask a person; without one, refuse."""
    if not sys.stdin.isatty():
        raise UsageError(
            "the file does not say everything: " + " ".join(questions.values()), remedy="Say it with these options."
        )
    for option, question in questions.items():
        answer = typer.prompt(question, err=True).strip()
        if option == "--column":
            known["columns"] |= _parse_columns([answer])
        elif option == "--pending":
            known["pending"] = _parse_words(answer.removeprefix(option))
        else:
            known[option.removeprefix("--").replace("-", "_")] = answer.removeprefix(option).strip()


def _show_plan(name: str, parsed: ParsedFile, profile: CsvProfile | None, setup: BankSetup) -> None:
    """Five rows of each statement, and what will be written; on stderr, as a question is."""
    shown = describe_file(parsed)
    for note in [*(_describe_states(profile) if profile is not None else ()), *shown["notes"]]:
        print_message(f"{name}: {note}")
    for statement in shown["statements"]:
        number = f", account {statement['account']}" if statement["account"] else ""
        print_message(f"{name}: {shown['format']}{number}, {len(statement['rows'])} rows; as understood:")
        rows = _choose_rows(statement["rows"])
        keys = ["date", "amount", "description", "bank_id"]
        keys[2:2] = ["currency"] if len({row["currency"] for row in statement["rows"]}) > 1 else []
        keys += ["state"] if any(row["state"] != "posted" for row in rows) else []
        print_table(
            [key.replace("_", " ") for key in keys],
            ([row[key] for key in keys] for row in rows),
            wrap=["description"],
            empty="It has no rows.",
            file=sys.stderr,
        )
    for entry in setup.new:
        told = {**entry, **{f"match {key}": value for key, value in entry.get("match", {}).items()}}
        told.pop("match", None)
        print_message("new bank account: " + ", ".join(f"{key} {value}" for key, value in told.items()))
    for key, value in setup.changes.items():
        print_message(f"{key}: {value}")


def _choose_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Five of them, among them one that is pending and one in another currency than the first, if there are any."""
    odd = [next((row for row in rows if row["state"] == "pending"), None)]
    odd.append(next((row for row in rows if row["currency"] != rows[0]["currency"]), None))
    further = [row for row in odd if row is not None and row not in rows[:5]]
    return [*rows[: 5 - len(further)], *further]


def _describe_states(profile: CsvProfile) -> Iterator[str]:
    """What a new profile takes the column of states to mean; nothing where it has none."""
    if (column := profile.columns.get("state")) is not None:
        posted = " or ".join(profile.posted) or "anything else"
        usual = profile.pending == PENDING_WORDS
        pending = "a word such as Pending or Vorgemerkt" if usual else " or ".join(profile.pending) or "nothing"
        yield f"the column {column} says whether a row counts: {posted} is posted, {pending} is not yet"


def _write_setup(host: Host, edit: Callable[[str], str], setup: BankSetup, format: str) -> None:
    """Write config.yaml, and say so."""
    outcome = add_bank_accounts(host, edit, setup, format)
    where = f" ({outcome.commit[:10]})" if outcome.commit and not outcome.is_uncommitted else "; not committed"
    print_message(f"config.yaml: {', '.join(setup.account_ids) or format}{where}")
