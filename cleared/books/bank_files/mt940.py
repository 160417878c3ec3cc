"""MT940, SWIFT's customer statement: lines that begin with ``:61:`` and the like.

``D`` and ``RC`` (a credit taken back) are money out. The entry date has no year: it is the one nearest the value date.
Each statement must have its closing balance; without one the file was cut off.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from decimal import Decimal

from msgspec import Struct

from cleared.base import money
from cleared.base.clock import check_deadline
from cleared.base.errors import Place
from cleared.books.bank_files.base import BuiltInFormat, Faults, FieldError, ImportFileError, Sample, quote_text
from cleared.books.bank_files.cell_values import choose_encoding, list_account_hints, read_amount
from cleared.books.bank_files.csv_table import split_lines, too_many_rows_error
from cleared.books.ledger.bank_row import Balance, BankRow, ParsedFile, Statement

_TAG = re.compile(r":([0-9]{2}[A-Z]?|NS):", re.ASCII)
_MARKS = tuple(
    re.compile(p, re.ASCII | re.MULTILINE) for p in (r"^(?:\{.*)?:20:", "^:25:", r"^:(?:60[FM]|61|34F|28C?|62[FM]):")
)
"""What a statement begins with, in this order."""
_ENTRY = re.compile(
    r"([0-9]{6})([0-9]{4}|    )?(R?[CD])([A-Z])?([0-9]{1,15}(?:,[0-9]{0,9})?)([A-Z][A-Z0-9 ]{3})(.*)", re.ASCII
)
_BALANCE = re.compile(r"([CD])([0-9]{6})([A-Z]{3})([0-9]{1,15}(?:,[0-9]{0,9})?)\s*", re.ASCII)
_FIELD = re.compile(r"\?([0-9]{2})", re.ASCII)
_WRAPPED = 65
"""The longest line of ``:86:``; one of that length goes on without a blank."""


class _Entry(Struct):
    line: int
    head: str
    more: list[str] = []
    purpose: list[str] = []
    extra: list[str] = []


class _Account(Struct):
    line: int
    account: str = ""
    opening: str = ""
    closing: str = ""
    interim: bool = False
    entries: list[_Entry] = []


class Mt940(BuiltInFormat):
    """SWIFT MT940. A file may hold several statements and accounts."""

    name = "mt940"

    def find_encoding(self, data: bytes) -> str:
        """UTF-8 where it is that, else Windows'; the format itself knows only ASCII."""
        chosen = choose_encoding(data, "cp1252")
        try:
            data.decode(chosen)
        except UnicodeDecodeError:
            return "latin-1"
        return chosen

    def identify(self, sample: Sample) -> bool:
        text, at = sample.text.replace("\r", "\n"), 0
        for mark in _MARKS:
            match = mark.search(text, at)
            if match is None:
                return False
            at = match.end()
        return True

    def parse(self, text: str, places: int) -> ParsedFile:
        accounts = self._read_accounts(text)
        if not accounts:
            raise ImportFileError("there is no statement in it", remedy="Download the account's MT940 file")
        faults = Faults()
        statements = [_make_statement(account, places, faults) for account in accounts]
        if faults:
            raise faults.error()
        return ParsedFile.of_statements(self.name, statements)

    def _read_accounts(self, text: str) -> list[_Account]:
        accounts: list[_Account] = []
        entry: _Entry | None = None
        target: list[str] | None = None
        count = 0
        for number, raw in enumerate(check_deadline(split_lines(text)), 1):
            line = raw.rstrip("\r\n")
            if line.startswith("{") and ":20:" in line:  # the envelope, with the first tag on its line
                line = line[line.index(":20:") :]
            match = _TAG.match(line)
            if match is None:
                if target is not None and line.strip() not in ("-", "-}", ""):
                    target.append(line)
                continue
            tag, value = match[1], line[match.end() :]
            target = None
            if tag == "20":
                accounts.append(_Account(number))
                entry = None
            elif not accounts:
                continue
            elif tag == "61":
                count += 1
                if self.max_rows is not None and count > self.max_rows:
                    raise too_many_rows_error(self.max_rows, number)
                entry = _Entry(number, value)
                accounts[-1].entries.append(entry)
                target = entry.more
            elif tag in ("86", "NS") and entry is not None:
                target = entry.purpose if tag == "86" else entry.extra
                target.append(value)
            else:
                entry = None
                _read_head(accounts[-1], tag, value)
        return accounts


def _read_head(account: _Account, tag: str, value: str) -> None:
    if tag == "25":
        account.account = value.strip()
    elif tag in ("60F", "60M"):
        account.opening = account.opening or value
    elif tag in ("62F", "62M"):
        account.closing = value
    elif tag in ("34F", "13D", "13"):
        account.interim = True


def _make_statement(account: _Account, places: int, faults: Faults) -> Statement:
    if account.interim and not account.closing:
        raise ImportFileError(
            "this is an interim report (MT942) without balances, whose lines may still change",
            place=Place(line=account.line),
            remedy="Import the statement (MT940) of that day instead",
        )
    currency = opening = closing = None
    try:
        if not account.closing:
            raise FieldError("the statement has no closing balance: the file is truncated", ":62F:")
        closing, currency = _read_balance(account.closing, ":62F:")
        if account.opening:
            opening, begun = _read_balance(account.opening, ":60F:")
            if begun != currency:
                raise FieldError(f"the opening balance is in {begun}, the closing balance in {currency}", ":62F:")
    except FieldError as error:
        faults.add(account.line, error.reason, error.field)
    places = money.currency_exponent(currency) if currency else places
    rows = []
    for entry in account.entries:
        try:
            rows.append(_make_row(entry, places))
        except FieldError as error:
            faults.add(entry.line, error.reason, error.field)
    return Statement(
        tuple(rows),
        account.account,
        "",
        currency,
        opening,
        closing,
        list_account_hints(_ways_of_writing(account.account, currency or "")),
    )


def _ways_of_writing(account: str, currency: str) -> list[str]:
    """As it stands, without the bank before the slash, and without the currency of the balances behind it."""
    ways = [account, account.rpartition("/")[2]]
    return [*ways, *(way.removesuffix(currency).strip() for way in ways if currency)]


def _read_balance(text: str, field: str) -> tuple[Balance, str]:
    match = _BALANCE.fullmatch(text)
    if match is None:
        raise FieldError(f"{quote_text(text)} is not a balance such as C250131EUR1000,00", field)
    try:
        places = money.currency_exponent(match[3])
    except ValueError as error:
        raise FieldError(str(error), field) from None
    amount = read_amount(match[4], places, field)
    return Balance(_signed(amount, match[1]), _read_day(match[2])), match[3]


def _signed(amount: Decimal, mark: str) -> Decimal:
    return amount.copy_negate() if amount and mark in ("D", "RC") else amount


def _read_day(text: str) -> date | None:
    """YYMMDD; None for a day that there is not."""
    try:
        year = int(text[:2])
        return date(year + (2000 if year < 80 else 1900), int(text[2:4]), int(text[4:6]))
    except ValueError:
        return None


def _make_row(entry: _Entry, places: int) -> BankRow:
    match = _ENTRY.fullmatch(entry.head.rstrip())
    if match is None:
        raise FieldError(f"{quote_text(entry.head)} is not a line such as 2501020102D100,00NMSCNONREF", ":61:")
    value_day, entry_day, mark, _, amount, kind, reference = match.groups()
    reference = reference.partition("//")[2].strip()
    return BankRow(
        row=entry.line,
        posted_date=_find_posted_day(value_day, (entry_day or "").strip()),
        description=_describe_entry(entry),
        amount=_signed(read_amount(amount, places, ":61:"), mark),
        type=kind.strip(),
        bank_id="" if reference.upper() == "NONREF" else reference,
    )


def _find_posted_day(value_text: str, entry_text: str) -> date:
    """The entry date, MMDD, in the year nearest the value date; the value date where there is none."""
    value_day = _read_day(value_text)
    if not entry_text:
        if value_day is None:
            raise FieldError(f"{quote_text(value_text)} is not a day of the calendar", ":61:")
        return value_day
    near = value_day
    day_before = int(value_text[4:6])
    while near is None and day_before > 28:  # some banks count thirty days in every month
        day_before -= 1
        near = _read_day(f"{value_text[:4]}{day_before:02d}")
    if near is None:
        raise FieldError(f"{quote_text(value_text)} is not a day of the calendar", ":61:")
    candidates = []
    for year in (near.year - 1, near.year, near.year + 1):
        try:
            candidates.append(date(year, int(entry_text[:2]), int(entry_text[2:])))
        except ValueError:
            continue
    if not candidates:
        raise FieldError(f"{quote_text(entry_text)} is not a day of the calendar", ":61:")
    return min(candidates, key=lambda day: abs(day - near) if near else timedelta(0))


def _describe_entry(entry: _Entry) -> str:
    """What it is for and the other party, from the bank's subfields; else the lines as they are."""
    text = _join_lines(entry.purpose).strip()
    fields = _FIELD.split(text)
    if len(fields) > 2 and re.fullmatch(r"\s*[0-9]{0,3}", fields[0]):
        pairs = list(zip(fields[1::2], fields[2::2], strict=True))
        purpose = "".join(value for code, value in pairs if "20" <= code <= "29" or "60" <= code <= "63").strip()
        party = "".join(value for code, value in pairs if code in ("32", "33")).strip()
        told = " ".join(filter(None, (purpose, party)))
        return told or next((value.strip() for code, value in pairs if code == "00"), "")
    return text or _join_lines(entry.more).strip() or _join_lines(entry.extra).strip()


def _join_lines(lines: list[str]) -> str:
    """The text of wrapped lines. Where the bank has subfields they go on in the middle of a word."""
    if any(_FIELD.search(line) for line in lines):
        return "".join(lines)
    out = ""
    for line in lines:
        out += line if len(line) >= _WRAPPED else f"{line.strip()} "
    return out
