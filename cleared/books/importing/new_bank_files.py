"""A bank's file that is new to the books: the format that it has or a description of its columns, and its account."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.errors import UsageError
from cleared.books.bank_files import ImportFileError
from cleared.books.bank_files.account_matching import resolve_account
from cleared.books.bank_files.csv_guess import guess_profile
from cleared.books.bank_files.csv_presets import load_presets
from cleared.books.bank_files.file_reading import detect_format, read_file
from cleared.books.bank_files.plugins import BUILT_IN
from cleared.books.bank_ledger_accounts import find_fault
from cleared.books.importing.bank_setup import AccountChoices, BankSetup, plan_accounts
from cleared.books.ledger.bank_row import ParsedFile
from cleared.books.ledger.book_paths import locate_books
from cleared.books.queries import read_accounts
from cleared.changes.host import Host
from cleared.workspace.settings.bank_section import CsvProfile
from cleared.workspace.settings.editing import set_value
from cleared.workspace.settings.entry_editing import add_bank_account, add_profile
from cleared.workspace.settings.model import Config
from cleared.workspace.settings.setting_keys import setting_fields


class Understanding(Struct, frozen=True):
    """``config`` has the new ``profile``, if it takes one. ``parsed`` is None while there are ``questions``: option of
    ``cleared bank add`` → what has to be known."""

    config: Config
    profile: CsvProfile | None = None
    parsed: ParsedFile | None = None
    questions: dict[str, str] = {}
    guessed: Mapping[str, Any] = {}
    """What the new profile would have, as far as it is known."""


def understand_file(
    config: Config, places: int, name: str, data: bytes, known: Mapping[str, Any], profile: str, *, is_card: bool
) -> Understanding:
    """The file by a known format; where that fits none, or something is ``known``, by a new profile of that name.

    Raises ``ImportFileError`` where it is no table of transactions, and where its rows cannot be read.
    """
    is_described = any(known.values()) or known.get("pending") is not None
    if not is_described:
        try:
            detect_format(name, data, config)
        except ImportFileError:
            is_described = True
    if not is_described:
        return Understanding(config, parsed=read_file(name, data, config, places))
    try:
        guess = guess_profile(data, known, is_card=is_card, base=config.business.currency)
    except ImportFileError as error:
        raise error.of_file(name) from None
    if guess.questions:
        return Understanding(config, questions=guess.questions, guessed=guess.values)
    made = guess.make_profile(profile)
    profiles = {**config.import_.profiles, profile: made}
    config = replace(config, import_=replace(config.import_, profiles=profiles))
    return Understanding(config, made, read_file(name, data, config, places, profile), guessed=guess.values)


def choose_profile_name(config: Config, wanted: str | None, file_name: str) -> str:
    """A name for a new profile: the wanted one, else the file's; with a number where that is taken."""
    base = wanted or re.sub(r"[^a-z0-9]+", "_", PurePath(file_name).stem.lower()).strip("_")[:30] or "bank"
    taken = {*BUILT_IN, *load_presets(), *config.import_.profiles, *config.import_.plugins}
    return next(n for n in (base, *(f"{base}_{i}" for i in range(2, 1000))) if n not in taken)


def plan_file(host: Host, name: str, parsed: ParsedFile, config: Config, choices: AccountChoices) -> BankSetup:
    """The bank accounts that the file takes, beside those of ``config``. Raises ``UsageError`` for choices that cannot
    be."""
    ids = {account.id for account in config.bank_accounts}
    if choices.existing is not None and choices.existing not in ids:
        raise UsageError(f"there is no bank account {choices.existing!r}", remedy=f"Known: {', '.join(sorted(ids))}.")
    if choices.id is not None and choices.id in ids:
        if _is_set_up(name, parsed, config, choices):  # the command was killed before the import
            return BankSetup()
        raise UsageError(f"there is a bank account {choices.id!r} already", remedy="Is it that one? --account ID.")
    root = host.root / locate_books(host.layout).bank_root
    chart = {row["account_id"]: row for row in read_accounts(host)}
    if choices.ledger_account is not None:
        _refuse_ledger_account(config, chart.get(choices.ledger_account), choices.ledger_account)
    return plan_accounts(name, parsed, config, choices, lambda account_id: (root / account_id).is_dir(), chart.keys())


def _refuse_ledger_account(config: Config, known: Mapping[str, Any] | None, number: int) -> None:
    """Raises ``UsageError`` where a bank account cannot have this account of the books: of two banks on one account
    neither agrees with its statement. ``known``: the
    account, if the chart has it."""
    if known is not None and (fault := find_fault(number, known["account_name"], known["account_type"])):
        raise UsageError(
            fault,
            remedy="Take the number of an asset or a liability that is one, or of none that is there: it is made then.",
        )
    for other in config.bank_accounts:
        if other.ledger_account == number:
            raise UsageError(
                f"account {number} is the bank account’s {other.name or other.id}",
                remedy=f"Take another number. Or, if the file is of that bank account: --account {other.id}.",
            )


def _is_set_up(name: str, parsed: ParsedFile, config: Config, choices: AccountChoices) -> bool:
    """Whether the file goes to the account that these choices describe, as things are."""
    try:
        accounts = [resolve_account(name, parsed, config, statement) for statement in parsed.statements]
    except ImportFileError:
        return False
    return bool(accounts) and all(
        (each.id, choices.name or each.name, choices.type or each.type, choices.ledger_account or each.ledger_account)
        == (choices.id, each.name, each.type, each.ledger_account)
        for each in accounts
    )


def write_setup(text: str, profile: CsvProfile | None, setup: BankSetup) -> str:
    """The text of ``config.yaml`` with profile and accounts. Raises ``ClearedError`` where that cannot be written."""
    if profile is not None:
        text = add_profile(text, profile.name, _list_values(profile))
    for entry in setup.new:
        text = add_bank_account(text, entry)
    for key, value in setup.changes.items():
        text = set_value(text, key, value)
    return text


def _list_values(profile: CsvProfile) -> dict[str, Any]:
    """What differs from a profile's defaults."""
    values: dict[str, Any] = {"columns": dict(profile.columns)}
    for name, field in setting_fields(CsvProfile).items():
        value = getattr(profile, field.attribute)
        if not field.required and value != field.default:
            values[name] = value
    values.setdefault("date_format", profile.date_format)
    return values
