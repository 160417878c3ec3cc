"""CAMT.053 and CAMT.052 (ISO 20022, versions 1 to 8 and on): bank statements and intraday reports as XML.

A line is an ``Ntry``; the ``TxDtls`` in it are what the bank put together in one booking. ``CdtDbtInd`` is the side,
also of a reversal. Anything but ``BOOK`` is pending: recorded, never posted. No document type is accepted, so no entity
is ever expanded, and nothing is fetched.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from msgspec import Struct

from cleared.base.errors import Place
from cleared.books.bank_files.base import BuiltInFormat, Faults, FieldError, ImportFileError, Sample, quote_text
from cleared.books.bank_files.cell_values import (
    choose_encoding,
    find_places,
    list_account_hints,
    read_amount,
    read_currency,
)
from cleared.books.bank_files.csv_table import too_many_rows_error
from cleared.books.ledger.bank_row import Balance, BankRow, ParsedFile, Statement

_ROOT = re.compile(r"<(?:[A-Za-z0-9_.-]+:)?BkToCstmr(Stmt|AcctRpt|DbtCdtNtfctn)[\s>/]", re.ASCII)
_NAMESPACE = re.compile(r"urn:iso:std:iso:20022:tech:xsd:camt\.05[234]\.", re.ASCII)
_XML_ENCODING = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""", re.IGNORECASE)
_STATEMENTS = ("Stmt", "Rpt")
_OPENING = ("OPBD", "PRCD")
_DOWNLOAD_AGAIN = "Download it from the bank again; nothing of it was taken"
_MAX_DEPTH = 60
_NO_REFERENCE = frozenset({"", "NOTPROVIDED", "NONREF"})

Values = dict[str, list[str]]
"""Path below the element → its texts, in order. Of an amount also ``…@Ccy``."""


class _Account(Struct):
    """What has been read of one statement."""

    values: Values = {}
    balances: list[Values] = []
    entries: list[tuple[int, Values]] = []
    """(line of the file, values)"""


class Camt(BuiltInFormat):
    """ISO 20022 account statements (053) and reports (052). One file may hold several accounts."""

    name = "camt"
    numbers_rows = True

    def find_encoding(self, data: bytes) -> str:
        """As the XML declaration says, unless the text is UTF-8."""
        declared = _XML_ENCODING.search(data[:2048])
        return choose_encoding(data, declared[1].decode("ascii") if declared else "utf-8")

    def identify(self, sample: Sample) -> bool:
        text = sample.text
        return text.lstrip()[:1] == "<" and (_ROOT.search(text) is not None or _NAMESPACE.search(text) is not None)

    def parse(self, text: str, places: int) -> ParsedFile:
        accounts = _Reader(self.max_rows).read_document(text)
        if not accounts:
            raise ImportFileError("there is no statement in it", remedy="Download the account's CAMT.053 file")
        faults, statements, count = Faults(), [], 0
        for account in accounts:
            statements.append(_make_statement(account, places, count, faults))
            count += len(account.entries)
        if faults:
            raise faults.error()
        return ParsedFile.of_statements(self.name, statements)


class _Reader:
    """Takes apart one document, element by element."""

    def __init__(self, max_rows: int | None) -> None:
        self.max_rows = max_rows
        self.path: list[str] = []
        self.accounts: list[_Account] = []
        self.count = 0
        self.inner: tuple[int, Values] | None = None
        """The entry or balance that is open: how deep it lies, and its values."""
        self.text: list[str] = []
        self.currency = ""
        self.parser: Any = None

    def read_document(self, text: str) -> list[_Account]:
        from xml.parsers import expat  # late: only for such files

        # The text is decoded already: whatever the declaration says, these bytes are UTF-8.
        self.parser = parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse_document_type
        parser.StartElementHandler = self._open_element
        parser.EndElementHandler = self._close_element
        parser.CharacterDataHandler = self._read_text
        try:
            parser.Parse(text.encode("utf-8"), True)
        except expat.ExpatError as error:
            reason = expat.errors.messages.get(error.code, "not XML")
            cut = reason in ("no element found", "unclosed token")
            raise ImportFileError(
                f"the file is {'truncated' if cut else 'damaged'}: {reason}",
                place=Place(line=error.lineno),
                remedy=_DOWNLOAD_AGAIN,
            ) from None
        return self.accounts

    def _refuse_document_type(self, *_: object) -> None:
        raise ImportFileError(
            "the file has a document type declaration, which no bank writes",
            place=Place(line=self.parser.CurrentLineNumber),
            remedy=_DOWNLOAD_AGAIN,
        )

    def _open_element(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(":")[2]
        self.path.append(tag)
        self.text.clear()
        if len(self.path) > _MAX_DEPTH:
            raise ImportFileError(
                f"its elements are nested more than {_MAX_DEPTH} deep",
                place=Place(line=self.parser.CurrentLineNumber),
                remedy=_DOWNLOAD_AGAIN,
            )
        depth = len(self.path)
        if tag == "BkToCstmrDbtCdtNtfctn":
            raise ImportFileError(
                "this is a CAMT.054 notification, which repeats what the statement (CAMT.053) has",
                remedy="Import the CAMT.053 file of the same days",
            )
        if depth == 3 and tag in _STATEMENTS:
            self.accounts.append(_Account())
        elif depth == 4 and self.accounts and self.path[2] in _STATEMENTS and tag in ("Ntry", "Bal"):
            self.inner = (depth, {})
            if tag == "Ntry":
                self.count += 1
                if self.max_rows is not None and self.count > self.max_rows:
                    raise too_many_rows_error(self.max_rows)
                self.accounts[-1].entries.append((self.parser.CurrentLineNumber, self.inner[1]))
            else:
                self.accounts[-1].balances.append(self.inner[1])
        self.currency = attributes.get("Ccy", "") if tag == "Amt" else ""

    def _read_text(self, text: str) -> None:
        self.text.append(text)

    def _close_element(self, name: str) -> None:
        depth = len(self.path)
        value = "".join(self.text).strip()
        self.text.clear()
        if self.inner is not None:
            start, values = self.inner
            if depth == start:
                self.inner = None
            elif value:
                self._keep_value(values, start, value)
        elif value and self.accounts and depth > 3 and self.path[2] in _STATEMENTS:
            self._keep_value(self.accounts[-1].values, 3, value)
        self.path.pop()

    def _keep_value(self, values: Values, start: int, value: str) -> None:
        path = "/".join(self.path[start:])
        values.setdefault(path, []).append(value)
        if self.currency and self.path[-1] == "Amt":
            values.setdefault(f"{path}@Ccy", []).append(self.currency)


def _first(values: Values, *paths: str) -> str:
    return next((values[path][0] for path in paths if path in values), "")


def _make_statement(account: _Account, places: int, count: int, faults: Faults) -> Statement:
    values = account.values
    number = _first(values, "Acct/Id/IBAN", "Acct/Id/Othr/Id", "Acct/Id/PrtryAcct/Id", "Acct/Id/BBAN")
    bank = _first(
        values, "Acct/Svcr/FinInstnId/BICFI", "Acct/Svcr/FinInstnId/BIC", "Acct/Svcr/FinInstnId/ClrSysMmbId/MmbId"
    )
    codes = [_first(values, "Acct/Ccy"), *(_first(v, "Amt@Ccy") for _, v in account.entries[:1])]
    codes += [_first(v, "Amt@Ccy") for v in account.balances[:1]]
    rows: list[BankRow] = []
    currency = opening = closing = None
    try:
        currency = read_currency(next(filter(None, codes), ""), "Ccy")
        places = find_places(currency, places)
        found = {_first(v, "Tp/CdOrPrtry/Cd"): v for v in reversed(account.balances)}
        first = next((found[code] for code in _OPENING if code in found), None)
        opening = _read_balance(first, places) if first is not None else None
        closing = _read_balance(found["CLBD"], places) if "CLBD" in found else None
    except FieldError as error:
        faults.add(0, f"statement of {quote_text(number)} ({error.field}): {error.reason}")
    for index, (line, entry) in enumerate(account.entries, count + 1):
        try:
            rows.append(_make_row(index, entry, places))
        except FieldError as error:
            faults.add(line, f"entry {index}: {error.reason}", error.field)
    first_day, last_day = (_first(values, f"FrToDt/{tag}DtTm", f"FrToDt/{tag}Dt") for tag in ("Fr", "To"))
    return Statement(
        tuple(rows),
        number,
        bank,
        currency,
        opening,
        closing,
        list_account_hints([number], bank),
        _read_optional_day(first_day),
        _read_optional_day(last_day),
    )


def _read_balance(values: Values, places: int) -> Balance:
    amount = read_amount(_first(values, "Amt"), places, "Amt")
    negative = _read_side(values) < 0
    day = _read_optional_day(_first(values, "Dt/Dt", "Dt/DtTm"))
    return Balance(amount.copy_negate() if negative and amount else amount, day)


def _read_side(values: Values) -> int:
    side = _first(values, "CdtDbtInd")
    if side not in ("CRDT", "DBIT"):
        raise FieldError(f"{quote_text(side)} is neither CRDT nor DBIT" if side else "there is no side", "CdtDbtInd")
    return 1 if side == "CRDT" else -1


def _read_day(text: str, field: str) -> date:
    """The day as written, whatever the time zone behind it."""
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        reason = f"{quote_text(text)} does not begin with a date written YYYY-MM-DD" if text else "there is no date"
        raise FieldError(reason, field) from None


def _read_optional_day(text: str) -> date | None:
    try:
        return _read_day(text, "")
    except FieldError:
        return None


def _make_row(number: int, values: Values, places: int) -> BankRow:
    currency = read_currency(_first(values, "Amt@Ccy"), "Ccy")
    amount = read_amount(_first(values, "Amt"), find_places(currency, places), "Amt")
    side = _read_side(values)
    if amount < 0:
        raise FieldError(f"a negative amount ({amount}) can mean two things", "Amt")
    booked = _first(values, "BookgDt/Dt", "BookgDt/DtTm", "ValDt/Dt", "ValDt/DtTm")
    status = _first(values, "Sts", "Sts/Cd", "Sts/Prtry") or "BOOK"
    reference = _first(values, "AcctSvcrRef")
    if reference.upper() in _NO_REFERENCE:
        reference = ""
    domain = [_first(values, f"BkTxCd/Domn/{path}") for path in ("Cd", "Fmly/Cd", "Fmly/SubFmlyCd")]
    return BankRow(
        row=number,
        posted_date=_read_day(booked, "BookgDt"),
        description=_describe_entry(values, side, has_id=bool(reference)),
        amount=amount.copy_negate() if side < 0 and amount else amount,
        type="-".join(filter(None, domain)) or _first(values, "BkTxCd/Prtry/Cd"),
        currency=currency,
        bank_id=reference,
        state="posted" if status == "BOOK" else "pending",
    )


def _describe_entry(values: Values, side: int, *, has_id: bool) -> str:
    """The other party and what it is for, without the name where that repeats it; where the bank put several together,
    its own words for that. Without an id the text is the line's identity, and stays as it always was."""
    details, extra = "NtryDtls/TxDtls", _first(values, "AddtlNtryInf")
    other = "Cdtr" if side < 0 else "Dbtr"
    names = values.get(f"{details}/RltdPties/{other}/Nm") or values.get(f"{details}/RltdPties/{other}/Pty/Nm") or []
    purposes = values.get(f"{details}/RmtInf/Ustrd") or values.get(f"{details}/RmtInf/Strd/CdtrRefInf/Ref") or []
    if len(names) > 1 and extra:
        return extra
    if has_id and names and purposes and purposes[0].casefold().startswith(names[0].casefold()):
        names = names[1:]
    return " ".join(dict.fromkeys([*names, *purposes])) or extra or _first(values, f"{details}/AddtlTxInf")
