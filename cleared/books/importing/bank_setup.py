"""What has to be written into the configuration so that a person's bank file can be imported."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgspec import Struct

from cleared.base.errors import UsageError
from cleared.books.bank_files import ImportFileError
from cleared.books.bank_files.account_matching import (
    find_account_type,
    is_number_of,
    name_bank,
    resolve_account,
    suggest_ledger_account,
)
from cleared.books.ledger.bank_row import ParsedFile, Statement
from cleared.workspace.settings.bank_section import BankAccount
from cleared.workspace.settings.model import Config

LIABILITIES = frozenset({"credit_card"})

_KIND_NAMES = {
    "checking": "Checking account",
    "savings": "Savings account",
    "credit_card": "Credit card",
    "processor": "Payment processor",
}


class AccountChoices(Struct, frozen=True):
    """What a person has said of the new account; None: nothing."""

    id: str | None = None
    name: str | None = None
    type: str | None = None
    ledger_account: int | None = None
    existing: str | None = None
    """The id of a bank account that is there, and that the file is of."""


class BankSetup(Struct):
    """``new``: entries for ``bank_accounts``; ``changes``: dotted key → value of existing ones, None for no value."""

    new: list[dict[str, Any]] = []
    changes: dict[str, str | None] = {}

    @property
    def account_ids(self) -> list[str]:
        """Of the accounts that are added or changed."""
        changed = [key.split(".")[1] for key in self.changes]
        return list(dict.fromkeys([*(str(entry["id"]) for entry in self.new), *changed]))


def plan_accounts(
    name: str,
    parsed: ParsedFile,
    config: Config,
    choices: AccountChoices,
    has_lines: Callable[[str], bool],
    chart: Collection[int],
) -> BankSetup:
    """The bank accounts that the file needs beside those that it fits. ``has_lines``: whether files of an account were
    imported before; one without any, and without ``match``, is taken for the file's own. ``chart``: the numbers of the
    accounts in the books."""
    setup = BankSetup()
    taken = {account.id for account in config.bank_accounts}
    used = {account.ledger_account for account in config.bank_accounts}
    done: set[tuple[str, str]] = set()
    for statement in parsed.statements:
        number = (statement.bank, statement.account)
        if number in done:
            continue
        done.add(number)
        if choices.existing is None and _fits_already(name, parsed, config, statement):
            continue
        kind = choices.type or _stated_type(statement) or find_account_type(parsed.format)
        free = _find_free_account(config, kind, has_lines, setup, choices)
        if free is not None:
            setup.changes |= _adopt_account(free, parsed, statement, config, has_lines(free.id))
            continue
        entry = _describe_account(parsed, statement, config, kind, choices, taken, {*chart, *used}, used)
        taken.add(str(entry["id"]))
        used.add(int(entry["ledger_account"]))
        setup.new.append(entry)
    return setup


def _fits_already(name: str, parsed: ParsedFile, config: Config, statement: Statement) -> bool:
    """Whether an account fits that is surely the statement's: one with ``match``, or whose format was declared."""
    try:
        account = resolve_account(name, parsed, config, statement)
    except ImportFileError:
        return False
    named = account.match.account is not None or account.match.iban is not None or account.match.last4 is not None
    return named or not statement.account or len(parsed.statements) == 1


def _stated_type(statement: Statement) -> str | None:
    return next((value for key, value in statement.hints if key == "type"), None)


def _find_free_account(
    config: Config, kind: str, has_lines: Callable[[str], bool], setup: BankSetup, choices: AccountChoices
) -> BankAccount | None:
    if choices.existing is not None:
        return next((a for a in config.bank_accounts if a.id == choices.existing), None)
    if choices.id is not None or choices.ledger_account is not None:
        return None
    for account in config.bank_accounts:
        match = account.match
        keys = (match.folder, match.last4, match.iban, match.account, match.header)
        free = account.type == kind and all(key is None for key in keys) and account.id not in setup.account_ids
        if free and not has_lines(account.id):
            return account
    return None


def _adopt_account(
    account: BankAccount, parsed: ParsedFile, statement: Statement, config: Config, has_files: bool
) -> dict[str, str | None]:
    """Its number where the statement has one (its ``format`` then still says which CSV it has), else the format, and
    the IBAN that the file names; a further format where it has files of another, which the new description does not
    replace.

    Raises ``UsageError`` where it has files already, by another number: those to come would be refused.
    """
    known = account.match.account
    if statement.account:
        if known is not None and is_number_of(known, {"".join(statement.account.split()).casefold()}):
            return {}
        if has_files and known is not None:
            raise UsageError(
                f"the bank account {account.id} is known by the number {known}, and {parsed.format} names it "
                f"{statement.account}: with that number, its other files would be refused",
                remedy="Download its files in one format. Or, if the number is a new one: cleared config set "
                f"bank_accounts.{account.id}.match.account {statement.account}",
            )
        return {f"bank_accounts.{account.id}.match.account": statement.account}
    match, iban = account.match, dict(statement.hints).get("iban")
    is_known = has_files or any((match.folder, match.last4, match.iban, known, match.header))
    if iban and not is_known:  # else the files of the bank's other accounts would be taken for its own
        named: dict[str, str | None] = {f"bank_accounts.{account.id}.match.iban": iban}
        return named if parsed.format in account.formats else named | {_format_key(account): parsed.format}
    if parsed.format in account.formats:
        return {}
    is_described_anew = {account.main_format, parsed.format} <= config.import_.profiles.keys()
    if has_files and account.main_format is not None and not is_described_anew:
        more = ", ".join([*account.other_formats, parsed.format])
        return {f"bank_accounts.{account.id}.other_formats": more}
    return {_format_key(account): parsed.format}


def _format_key(account: BankAccount) -> str:
    return f"bank_accounts.{account.id}.format"


def _describe_account(
    parsed: ParsedFile,
    statement: Statement,
    config: Config,
    kind: str,
    choices: AccountChoices,
    taken: Collection[str],
    chart: Collection[int],
    used: Collection[int],
) -> dict[str, Any]:
    """The entry of ``bank_accounts``. ``taken``: the ids that there are, ``used``: the accounts of the books that bank
    accounts use, those of the same file among them."""
    digits = re.sub(r"[^0-9]", "", statement.account)[-4:]
    bank = name_bank(parsed.format)
    base = re.sub(r"[^a-z0-9]+", "_", bank.lower()) or {"credit_card": "card"}.get(kind, kind)
    ids = [base, f"{base}_{digits}" if digits else base, *(f"{base}_{n}" for n in range(2, len(taken) + 3))]
    account_id = choices.id or next(i for i in ids if i not in taken)
    ledger = choices.ledger_account or suggest_ledger_account(kind, config, chart)
    if choices.ledger_account is None and ledger in used:  # by another account of this file
        ledger = next(n for n in itertools.count(ledger + 1) if n not in chart)
    entry: dict[str, Any] = {"id": account_id}
    entry["name"] = choices.name or bank or f"{_KIND_NAMES.get(kind, kind)} {digits}".rstrip()
    entry |= {"type": kind, "ledger_account": ledger, "format": parsed.format}
    if (currency := _find_currency(statement, config.business.currency)) != config.business.currency:
        entry["currency"] = currency
    if kind == "credit_card":
        entry["date_basis"] = "transaction"
    match = _describe_match(parsed, statement, config, account_id)
    if match:
        entry["match"] = match
    return entry


def _find_currency(statement: Statement, base: str) -> str:
    """What the account is in: what its statement says, else most of its rows. ``base``: what the books are in."""
    rows = Counter(row.currency or base for row in statement.rows)
    return statement.currency or max([base, *rows], key=lambda each: rows[each])


def _describe_match(parsed: ParsedFile, statement: Statement, config: Config, account_id: str) -> Mapping[str, str]:
    """How its files are told from those of other accounts; a folder of its own where they say nothing."""
    if statement.account:
        return {"account": statement.account}
    others = [a for a in config.bank_accounts if a.main_format in (None, parsed.format)]
    hints = dict(statement.hints)
    for key in ("iban", "last4"):
        if key in hints:
            return {key: hints[key]}
    return {"folder": account_id} if others else {}
