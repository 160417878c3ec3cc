"""``cleared bank …``: accounts at banks, and what their files mean."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cleared.cli.command_groups import new_group
from cleared.cli.options import JsonOption, WorkspaceOption, open_host
from cleared.terminal import print_message, print_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleared.changes.host import Host
    from cleared.config.bank_section import CsvProfile
    from cleared.config.model import Config
    from cleared.importing.bank_setup import AccountChoices, BankSetup
    from cleared.schema.bank_row import ParsedFile

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


@app.command("list")
def list_bank_accounts(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """List the bank accounts of the configuration."""
    from cleared.terminal import print_json

    config = open_host(workspace).config
    rows = [
        {"id": a.id, "name": a.name, "type": a.type, "ledger_account": a.ledger_account,
         "format": ", ".join(a.formats) or None,
         "currency": a.currency or config.business.currency, "number": a.match.account or a.match.iban or a.match.last4}
        for a in config.bank_accounts
    ]  # fmt: skip
    if json:
        print_json(rows)
        return
    headings = ["id", "name", "type", "ledger_account", "format", "currency", "number"]
    print_table([h.replace("_", " ") for h in headings], ([r[h] for h in headings] for r in rows), wrap=["name"],
                empty="There are none. Add one: cleared bank add FILE")  # fmt: skip


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
    delimiter: Annotated[str | None, typer.Option("--delimiter", metavar="CHAR", help="Between the fields.")] = None,
    encoding: Annotated[str | None, typer.Option("--encoding", help="Such as cp1252.")] = None,
    skip_lines: Annotated[
        int | None, typer.Option("--skip-lines", metavar="N", help="How many lines stand above the column heads.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="The rows are right as they are shown.")] = False,
    run: Annotated[bool, typer.Option("--run/--no-run", help="Import the file, too.")] = True,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Tell cleared about a bank account by one of its files: understand it, write config.yaml, import it.

    What the file does not say is asked; without a terminal, options answer. Five rows are shown as they are understood.
    """
    from cleared.importing.bank_setup import AccountChoices

    known = {
        "columns": _parse_columns(column or []), "date_format": date_format, "decimal": decimal, "delimiter": delimiter,
        "sign": sign.value if sign else None, "encoding": encoding, "skip_lines": skip_lines,
    }  # fmt: skip
    host = open_host(workspace)
    data = _read_file(host, file)
    kind = type_ or next((each.type for each in host.config.bank_accounts if each.id == account), None)
    config, profile, parsed = _understand_file(
        host, file, data, known, _profile_name(host, id_, file), is_card=kind == BankAccountType.credit_card
    )
    choices = AccountChoices(id_, name, type_.value if type_ else None, ledger_account, account)
    setup = _plan_accounts(host, file.name, parsed, config, choices)
    edit = _prepare_edit(profile, setup)
    if profile is not None or setup.changes:
        _refuse_unreadable(host, file, edit)
    _show_plan(host, file.name, parsed, setup)
    if sys.stdin.isatty() and not yes and not json and not typer.confirm("Is that right?", err=True):
        print_message("Nothing was written. Correct it with options: cleared bank add --help")
        raise typer.Exit(1)
    if profile is not None or setup.account_ids:
        _write_setup(host, edit, setup, parsed.format)
    from cleared.cli.bank_files import import_handed_files
    from cleared.importing.handed_files import copy_to_drop_folder, sort_files

    host = open_host(workspace)
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


def _read_file(host: Host, file: Path) -> bytes:
    from cleared.safe_files import read_stable

    data, _ = read_stable(file.resolve(), host.config.import_.max_bytes, shown=str(file))
    return data


def _profile_name(host: Host, id_: str | None, file: Path) -> str:
    """A name for a new profile: the account's, else the file's."""
    import re

    from cleared.importers.csv_presets import load_presets
    from cleared.importers.plugins import BUILT_IN

    base = id_ or re.sub(r"[^a-z0-9]+", "_", file.stem.lower()).strip("_")[:30] or "bank"
    taken = {*BUILT_IN, *load_presets(), *host.config.import_.profiles, *host.config.import_.plugins}
    return next(n for n in (base, *(f"{base}_{i}" for i in range(2, 1000))) if n not in taken)


def _understand_file(
    host: Host, file: Path, data: bytes, known: dict[str, Any], name: str, *, is_card: bool
) -> tuple[Config, CsvProfile | None, ParsedFile]:
    """The file by a known format; else by a new profile. Raises ``UsageError`` for what nobody has answered."""
    from dataclasses import replace

    from cleared.importers import ImportFileError, detect_format, read_file
    from cleared.importers.csv_guess import guess_profile

    is_described = any(known.values())
    if not is_described:
        try:
            detect_format(file.name, data, host.config)
        except ImportFileError:
            is_described = True
    if not is_described:
        return host.config, None, read_file(file.name, data, host.config, host.decimal_places)
    while True:
        try:
            guess = guess_profile(data, known, is_card=is_card)
        except ImportFileError as error:
            raise error.of_file(file.name) from None
        if not guess.questions:
            break
        _answer_questions(guess.questions, known)
    profile = guess.make_profile(name)
    profiles = {**host.config.import_.profiles, name: profile}
    config = replace(host.config, import_=replace(host.config.import_, profiles=profiles))
    return config, profile, read_file(file.name, data, config, host.decimal_places, name)


def _answer_questions(questions: dict[str, str], known: dict[str, Any]) -> None:
    """Ask a person; without one, refuse."""
    from cleared.errors import UsageError

    if not sys.stdin.isatty():
        raise UsageError(
            "the file does not say everything: " + " ".join(questions.values()), remedy="Say it with these options."
        )
    for option, question in questions.items():
        answer = typer.prompt(question, err=True).strip()
        if option == "--column":
            known["columns"] |= _parse_columns([answer])
        else:
            known[option.removeprefix("--").replace("-", "_")] = answer.removeprefix(option).strip()


def _plan_accounts(host: Host, name: str, parsed: ParsedFile, config: Config, choices: AccountChoices) -> BankSetup:
    from cleared.errors import UsageError
    from cleared.importing.bank_setup import plan_accounts
    from cleared.queries import read_accounts

    ids = {account.id for account in config.bank_accounts}
    if choices.existing is not None and choices.existing not in ids:
        raise UsageError(f"there is no bank account {choices.existing!r}", remedy=f"Known: {', '.join(sorted(ids))}.")
    if choices.id is not None and choices.id in ids:
        raise UsageError(f"there is a bank account {choices.id!r} already", remedy="Is it that one? --account ID.")
    root = host.root / host.layout.books_dir / "bank"
    chart = {row["account_id"] for row in read_accounts(host)}
    return plan_accounts(name, parsed, config, choices, lambda account_id: (root / account_id).is_dir(), chart)


def _show_plan(host: Host, name: str, parsed: ParsedFile, setup: BankSetup) -> None:
    """Five rows of each statement, and what will be written; on stderr, as a question is."""
    from cleared.importers.preview import describe_file

    shown = describe_file(parsed)
    for statement in shown["statements"]:
        number = f", account {statement['account']}" if statement["account"] else ""
        print_message(f"{name}: {shown['format']}{number}, {len(statement['rows'])} rows; as understood:")
        rows = statement["rows"][:5]
        print_table(
            ["date", "amount", "description", "bank id"],
            ([r["date"], r["amount"], r["description"], r["bank_id"]] for r in rows),
            wrap=["description"], empty="It has no rows.", file=sys.stderr,
        )  # fmt: skip
    for entry in setup.new:
        told = {**entry, **{f"match {key}": value for key, value in entry.get("match", {}).items()}}
        told.pop("match", None)
        print_message("new bank account: " + ", ".join(f"{key} {value}" for key, value in told.items()))
    for key, value in setup.changes.items():
        print_message(f"{key}: {value}")


def _prepare_edit(profile: CsvProfile | None, setup: BankSetup) -> Callable[[str], str]:
    """What writes profile and accounts into the text of config.yaml."""
    from cleared.config.editing import set_value
    from cleared.config.entry_editing import add_bank_account, add_profile

    def edit(text: str) -> str:
        if profile is not None:
            text = add_profile(text, profile.name, _profile_values(profile))
        for entry in setup.new:
            text = add_bank_account(text, entry)
        for key, value in setup.changes.items():
            text = set_value(text, key, value)
        return text

    return edit


def _refuse_unreadable(host: Host, file: Path, edit: Callable[[str], str]) -> None:
    """Raises ``UsageError`` where the file could not be imported with what would be written, such as a second
    description of the same columns."""
    from cleared.config.loading import load_config
    from cleared.errors import UsageError
    from cleared.importing.handed_files import sort_files

    text = (host.root / host.layout.config_file).read_text(encoding="utf-8-sig")
    config = load_config(edit(text))
    for left in sort_files([file], config, host.decimal_places)[1]:
        ids = ", ".join(account.id for account in host.config.bank_accounts)
        raise UsageError(
            f"nothing was written, since with that {left.source.name} could not be imported: {left.error.message}",
            remedy=f"Is it of a bank account that is there already? --account ID ({ids}) describes its files anew. For "
            "another account at the same bank leave out what describes the columns.",
        )


def _write_setup(host: Host, edit: Callable[[str], str], setup: BankSetup, format: str) -> None:
    """Write config.yaml, and accounts of the books that are missing into the chart."""
    from cleared.changes import commit_messages
    from cleared.decisions.account_changes import add_account
    from cleared.importing.bank_setup import LIABILITIES
    from cleared.proposals.setting_changes import add_settings
    from cleared.queries import read_accounts

    numbers = {row["account_id"] for row in read_accounts(host)}
    for entry in setup.new:
        number = int(entry["ledger_account"])
        if number not in numbers:
            title = str(entry.get("name") or entry["id"]).replace("_", " ")
            add_account(host, number, title[:1].upper() + title[1:],
                        "liability" if entry["type"] in LIABILITIES else "asset")  # fmt: skip

    outcome = add_settings(host, edit, commit_messages.bank_added(setup.account_ids or [format], format))
    where = f" ({outcome.commit[:10]})" if outcome.commit and not outcome.is_uncommitted else "; not committed"
    print_message(f"config.yaml: {', '.join(setup.account_ids) or format}{where}")


def _profile_values(profile: CsvProfile) -> dict[str, Any]:
    """What differs from a profile's defaults."""
    import dataclasses

    values: dict[str, Any] = {"columns": dict(profile.columns)}
    for each in dataclasses.fields(profile):
        value = getattr(profile, each.name)
        if each.name not in ("name", "columns") and value != each.default:
            values[each.name] = value
    values.setdefault("date_format", profile.date_format)
    return values
