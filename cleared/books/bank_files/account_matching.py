"""Which bank account a file belongs to: by format and ``match``, never by guess."""

from __future__ import annotations

import re
from collections.abc import Collection

from cleared.base.errors import Place
from cleared.books.bank_files.base import ImportFileError, quote_text
from cleared.books.bank_files.plugins import BUILT_IN, NAME_READERS, load_format
from cleared.books.ledger.bank_row import ParsedFile, Statement
from cleared.workspace.settings.bank_section import BankAccount
from cleared.workspace.settings.model import Config

_IBAN = r"[a-z]{2}[0-9]{2}[a-z0-9]{11,30}"
_BANK_AND_NUMBER = r"([a-z0-9]{4,12})/([0-9]{1,18})(?:[a-z]{3})?"
_PLAIN = r"(?a)[A-Za-z][A-Za-z0-9_/-]*"
_CARD = "credit_card"
# YAML 1.1 reads these as something other than text.
_YAML_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def lies_in(name: str, folder: str | None) -> bool:
    """Whether the file ``name`` (relative to ``import/``) lies in ``folder`` or beneath; None: anywhere."""
    return folder is None or f"{_folder_of(name)}/".startswith(f"{folder.strip('/')}/")


def resolve_accounts(name: str, parsed: ParsedFile, config: Config) -> list[tuple[BankAccount, tuple[Statement, ...]]]:
    """Each bank account that the file is about, with its statements, in the file's order.

    Raises ``ImportFileError`` where one of them is unknown or ambiguous, or where statements of two numbers would go
    to one account: the whole file is refused then.
    """
    grouped: dict[str, tuple[BankAccount, list[Statement]]] = {}
    for statement in parsed.statements:
        account = resolve_account(name, parsed, config, statement)
        statements = grouped.setdefault(account.id, (account, []))[1]
        numbers = {(s.bank, s.account) for s in (*statements, statement)}
        if len(numbers) > 1:
            shown = " and ".join(sorted(quote_text("/".join(filter(None, pair))) for pair in numbers))
            raise ImportFileError(
                f"the file has the accounts {shown}, and the bank account {account.id} fits them both",
                place=Place(file=name, field="bank_accounts"),
                remedy="Give each a bank account of its own, with its number: cleared bank add FILE",
            )
        statements.append(statement)
    return [(account, tuple(statements)) for account, statements in grouped.values()]


def resolve_account(name: str, parsed: ParsedFile, config: Config, statement: Statement | None = None) -> BankAccount:
    """The bank account that a statement (default: the first) of the file ``name`` (relative to ``import/``) belongs to.

    An account is out where its ``format`` is another, unless the statement has the account's own number; or where one
    of its ``match`` keys does not agree. A file that says nothing of its last four digits or its IBAN does not agree
    with them. Accounts whose match keys agree come before accounts without any. Of several left, those of another
    currency than the file states are out. Raises ``ImportFileError`` if not exactly one is left; its remedy has the
    line to add.
    """
    statement = statement or parsed.statements[0]
    hints = _collect_hints(name, parsed.format, statement)
    reasons = {a.id: _find_mismatch(a, name, parsed, hints) for a in config.bank_accounts}
    fitting = [a for a in config.bank_accounts if reasons[a.id] is None]
    matched = [a for a in fitting if _has_match_keys(a)] or fitting
    numbered = [a for a in matched if a.match.account is not None]
    if len(matched) > 1 and "account" in hints and numbered:
        matched = numbered
    stated = {statement.currency} if statement.currency else {row.currency for row in statement.rows if row.currency}
    if len(matched) > 1 and stated:
        base = config.business.currency
        matched = [a for a in matched if {a.currency or base} == stated] or matched
    if len(matched) == 1:
        return matched[0]
    place = Place(file=name, field="bank_accounts")
    if matched:
        ids = " and ".join(a.id for a in matched)
        raise ImportFileError(
            f"the bank accounts {ids} both fit this {parsed.format} file"
            if len(matched) == 2
            else f"the bank accounts {ids} all fit this {parsed.format} file",
            place=place,
            remedy=_suggest_difference(name, matched, hints),
        )
    kind = _find_kind(parsed, hints)
    near = [
        a.id
        for a in config.bank_accounts
        if a.type == kind
        and reasons[a.id] == _describe_format(a)
        and not ("account" in hints and (a.match.account or a.match.iban))
    ]
    known = f"If it is of {near[0]}, which is there: cleared bank add FILE --account {near[0]}. Else a" if near else "A"
    out = "; ".join(f"{account}: {reason}" for account, reason in reasons.items())
    number = f" about the account {quote_text(statement.account)}" if statement.account else ""
    raise ImportFileError(
        f"no bank account fits this {parsed.format} file{number}" + (f" ({out})" if out else ""),
        place=place,
        remedy=f"{known}dd its account: cleared bank add FILE; or under bank_accounts in config.yaml:  - "
        f"{_suggest_account(name, parsed, hints, config)}",
    )


def _folder_of(name: str) -> str:
    return name.rpartition("/")[0]


def _collect_hints(name: str, format: str, statement: Statement) -> dict[str, list[str]]:
    hints: dict[str, list[str]] = {}
    for key, value in statement.hints:
        hints.setdefault(key, []).append(value)
    if "last4" not in hints:
        for find_last4 in NAME_READERS:
            if last4 := find_last4(name.rpartition("/")[2], format):
                hints["last4"] = [last4]
    return hints


def _has_match_keys(account: BankAccount) -> bool:
    match = account.match
    return any(key is not None for key in (match.folder, match.last4, match.iban, match.account, match.header))


def _compact_number(number: str) -> str:
    return "".join(number.split()).casefold()


def is_number_of(own: str, stated: Collection[str]) -> bool:
    """Whether one of the numbers that a file states (each without spaces, in small letters) is this one, or its IBAN's
    bank code and account number, as MT940 has them (``:25:``, with the currency after it)."""
    number = _compact_number(own)
    if number in stated:
        return True
    if not re.fullmatch(_IBAN, number):
        return False
    parts = (match for each in stated if (match := re.fullmatch(_BANK_AND_NUMBER, each)))
    return any(number[4:] == part[1] + part[2].zfill(len(number) - 4 - len(part[1])) for part in parts)


def _compact_iban(iban: str) -> str:
    return "".join(iban.split()).upper()


def _find_mismatch(account: BankAccount, name: str, parsed: ParsedFile, hints: dict[str, list[str]]) -> str | None:
    """Why the file is not this account's; None: nothing speaks against it."""
    match = account.match
    numbers = {_compact_number(number) for number in hints.get("account", ())}
    own = [number for number in (match.account, match.iban) if number is not None]
    is_named = any(is_number_of(number, numbers) for number in own)
    if account.formats and parsed.format not in account.formats and not is_named:
        return _describe_format(account)
    stated = hints.get("type", [account.type])[0]
    if not is_named and match.folder is None and (stated == _CARD) != (account.type == _CARD):
        return f"it is of type {account.type}, the file says {stated}"
    if match.account is not None and not is_named and (numbers or account.format is None):
        in_file = hints["account"][0] if numbers else "nothing"
        return f"its account is {match.account}, the file says {in_file}"
    if not lies_in(name, match.folder):
        return f"its folder is import/{(match.folder or '').strip('/')}/"
    if match.last4 is not None and match.last4 not in hints.get("last4", ()):
        in_file = " and ".join(hints.get("last4", ())) or "nothing"
        return f"its last4 is {match.last4}, the file says {in_file}"
    if match.iban is not None and _compact_iban(match.iban) not in map(_compact_iban, hints.get("iban", ())):
        in_file = " and ".join(hints.get("iban", ())) or "nothing"
        return f"its iban is {_compact_iban(match.iban)}, the file says {in_file}"
    if match.header is not None:
        folded = match.header.casefold()
        if not any(folded in text.casefold() for text in hints.get("header", ())):
            return f"its header text {match.header!r} is not above the columns"
    return None


def _describe_format(account: BankAccount) -> str:
    return f"its format{' is' if len(account.formats) == 1 else 's are'} {' and '.join(account.formats)}"


def _find_kind(parsed: ParsedFile, hints: dict[str, list[str]]) -> str:
    return str(hints.get("type", [find_account_type(parsed.format)])[0])


def _format_yaml_text(value: str) -> str:
    """A YAML flow scalar: plain only where nothing can read it as anything but text."""
    if re.fullmatch(_PLAIN, value) and value.lower() not in _YAML_WORDS:
        return value
    return _format_json_text(value)


def _format_json_text(value: str) -> str:
    import json  # late: only a refusal needs it

    return json.dumps(value)


def _suggest_match(name: str, hints: dict[str, list[str]]) -> str:
    for key in ("iban", "account", "last4"):
        if len(hints.get(key, ())) == 1 or (key == "account" and hints.get(key)):
            return f"match: {{{key}: {_format_json_text(hints[key][0])}}}"
    folder = _folder_of(name)
    return f"match: {{folder: {_format_yaml_text(folder)}}}" if folder else ""


def _suggest_difference(name: str, accounts: list[BankAccount], hints: dict[str, list[str]]) -> str:
    line = _suggest_match(name, hints)
    if line and not any(_has_match_keys(a) for a in accounts):
        return f"Add to the one it belongs to, under bank_accounts in config.yaml: `{line}`"
    account = accounts[0].id
    return (
        f"Give each a folder under bank_accounts in config.yaml, e.g. "
        f"`match: {{folder: {_format_yaml_text(account)}}}` for {account}, and put its files into import/{account}/"
    )


def find_account_type(format: str) -> str:
    """The ``type:`` of accounts that have files of a format; checking where the format does not say."""
    from cleared.books.bank_files.csv_presets import load_presets  # late: only a refusal and a new account need it

    found = load_format(format) if format in BUILT_IN else load_presets().get(format)
    return str(getattr(found, "account_type", "checking"))


def name_bank(format: str) -> str:
    """The bank whose files have this format, such as N26; empty for formats of many banks."""
    from cleared.books.bank_files.csv_presets import load_presets

    preset = load_presets().get(format)
    return preset.title.split(",")[0] if preset is not None else ""


def suggest_ledger_account(type: str, config: Config, chart: Collection[int] = ()) -> int:
    """A number in the books for another bank account of this type: the one that every chart has for it, else one that
    is free. ``chart``: the numbers that there are; without them likely ones are taken."""
    first = {"credit_card": 2010, "processor": 1050, "savings": 1020}.get(type, 1010)
    used = {a.ledger_account for a in config.bank_accounts}
    if first not in used:
        return first
    others = range(first + 1, first + 1000) if chart else range(first + 10, first + 1000)
    return next(n for n in others if n not in used and n not in chart)


def _suggest_account(name: str, parsed: ParsedFile, hints: dict[str, list[str]], config: Config) -> str:
    """The YAML of an account that this file would fit, in one line."""
    taken = {a.id for a in config.bank_accounts}
    base = re.sub(r"[^a-z0-9_-]+", "_", parsed.format.lower()).strip("_") or "bank"
    ids = [base, *(f"{base}_{n}" for n in range(2, len(taken) + 3))]
    account = next(i for i in ids if i not in taken)
    kind = _find_kind(parsed, hints)
    number = suggest_ledger_account(kind, config)
    keys = [
        f"id: {_format_yaml_text(account)}",
        f"type: {kind}",
        f"ledger_account: {number}",
        f"format: {_format_yaml_text(parsed.format)}",
    ]
    if line := _suggest_match(name, hints):
        keys.append(line)
    return "{" + ", ".join(keys) + "}"
