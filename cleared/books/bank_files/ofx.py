"""OFX 1 (SGML), OFX 2 (XML) and QFX, which is OFX with Intuit's own tags.

Read as tags and the text behind each: closing tags of values may be missing, as OFX 1 allows. Aggregates must be
closed, and the file must end in ``</OFX>``: otherwise it was cut off. Days are those the bank wrote; its time zone
moves none of them to another day.
"""

from __future__ import annotations

import re

from msgspec import Struct

from cleared.base.clock import check_deadline
from cleared.base.errors import Place
from cleared.books.bank_files.base import BuiltInFormat, Faults, FieldError, ImportFileError, Sample, quote_text
from cleared.books.bank_files.cell_values import (
    choose_encoding,
    find_places,
    list_account_hints,
    read_amount,
    read_currency,
    read_packed_date,
)
from cleared.books.bank_files.csv_table import too_many_rows_error
from cleared.books.ledger.bank_row import Balance, BankRow, ParsedFile, Statement

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9._]*)>([^<]*(?:<(?!/?[A-Za-z][A-Za-z0-9._]*>)[^<]*)*)", re.ASCII)
_HEADER = re.compile(r"\s*(?:<\?xml|<\?OFX|OFXHEADER\s*:|<OFX>)", re.ASCII | re.IGNORECASE)
_ROOT = re.compile(r"<OFX>", re.ASCII | re.IGNORECASE)
_XML_HEADER = re.compile(r"\s*<\?")
_SGML_MARKUP = re.compile(r"<!--|<!\[CDATA\[")
_XML_MARKUP = re.compile(r"<!--|<!\[CDATA\[|<\?(?!xml|OFX)", re.IGNORECASE)
_MARKUP_ENDS = {
    "<!--": ("-->", "a comment"),
    "<![CDATA[": ("]]>", "a section of character data"),
    "<?": ("?>", "a processing instruction"),
}
_HIDDEN_LINE = "\0"
_ENTITY = re.compile(r"&(?:(amp|lt|gt|quot|apos|nbsp)|#([0-9]{1,7})|#[xX]([0-9A-Fa-f]{1,6}));", re.ASCII)
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'", "nbsp": " "}
_CHARSET = re.compile(rb"CHARSET\s*:\s*([A-Za-z0-9._-]+)", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""", re.IGNORECASE)
_CHECK_NUMBER = re.compile(r"[0-9]{1,12}", re.ASCII)
_INVESTMENT = "INVSTMTRS"
_STATEMENTS = ("STMTRS", "CCSTMTRS")
_AGGREGATES = frozenset(
    {
        "OFX",
        *_STATEMENTS,
        "BANKACCTFROM",
        "CCACCTFROM",
        "BANKTRANLIST",
        "STMTTRN",
        "LEDGERBAL",
        "AVAILBAL",
        "CURRENCY",
        "ORIGCURRENCY",
        "BANKACCTTO",
        "CCACCTTO",
        "PAYEE",
        "STATUS",
        "SONRS",
        "BANKTRANLISTP",
        "STMTTRNP",
        "BALLIST",
        "BAL",
        "IMAGEDATA",
    }
)
"""Tags that hold others. Those that are not named here say nothing that is wanted, and are passed through."""


class _Account(Struct):
    """What has been read of one statement."""

    kind: str
    values: dict[str, str] = {}
    """AGGREGATE.TAG → text; the first one wins."""
    rows: list[BankRow] = []
    currency: str | None = None


class Ofx(BuiltInFormat):
    """Open Financial Exchange. One file may hold several accounts, banks' and cards'."""

    name = "ofx"
    numbers_rows = True

    def find_encoding(self, data: bytes) -> str:
        """As the header says, unless the text is UTF-8."""
        head = data[:2048]
        declared = _XML_ENCODING.search(head) or _CHARSET.search(head)
        name = declared[1].decode("ascii") if declared else "cp1252"
        return choose_encoding(data, f"cp{name}" if name.isdigit() else "cp1252" if name.upper() == "NONE" else name)

    def identify(self, sample: Sample) -> bool:
        text = sample.text
        return _HEADER.match(text) is not None and _ROOT.search(text) is not None

    def parse(self, text: str, places: int) -> ParsedFile:
        text = _mask_markup(text)
        _refuse_declarations(text)
        root = _ROOT.search(text)
        if root is None:
            raise ImportFileError("there is no <OFX> in it", remedy="Download the file again, as OFX or QFX")
        reader = _Reader(text, places, self.max_rows)
        for match in check_deadline(_TAG.finditer(text, root.start())):
            reader.read_tag(match)
        return reader.finish(self.name)


def _mask_markup(text: str) -> str:
    """The text without comments and an XML file's processing instructions, which say nothing, and with character data
    as text in which XML's signs are escaped. A line end that falls away with them stands as NUL, so that lines count
    as before: decoded text has no other.

    Raises ``ImportFileError`` where one of them is never closed.
    """
    opens = _XML_MARKUP if _XML_HEADER.match(text) else _SGML_MARKUP
    pieces, at = [], 0
    while (match := opens.search(text, at)) is not None:
        closes, what = _MARKUP_ENDS[match.group()]
        end = text.find(closes, match.end())
        if end < 0:
            raise ImportFileError(
                f"{what} opens and is never closed: the file is damaged, or a part of it is missing",
                place=Place(line=_number_line(text, match.start())),
                remedy="Download it again; nothing of it was taken",
            )
        inner = text[match.end() : end]
        is_data = match.group() == "<![CDATA["
        kept = inner.replace("&", "&amp;").replace("<", "&lt;") if is_data else _HIDDEN_LINE * inner.count("\n")
        pieces += [text[at : match.start()], kept]
        at = end + len(closes)
    return "".join([*pieces, text[at:]]) if pieces else text


def _number_line(text: str, at: int) -> int:
    """The 1-based line of a place in masked text."""
    return text.count("\n", 0, at) + text.count(_HIDDEN_LINE, 0, at) + 1


def _refuse_declarations(text: str) -> None:
    """A document type is no part of OFX; it is how XML is made to swell."""
    at = re.search(r"<!(?:DOCTYPE|ENTITY)", text, re.IGNORECASE)
    if at is not None:
        raise ImportFileError(
            "the file has a document type declaration, which no bank writes",
            place=Place(line=_number_line(text, at.start())),
            remedy="Download it from the bank again",
        )


class _Reader:
    """The statements of one file, tag after tag."""

    def __init__(self, text: str, places: int, max_rows: int | None) -> None:
        self.text = text
        self.places = places
        self.max_rows = max_rows
        self.open: list[str] = []
        self.accounts: list[_Account] = []
        self.transaction: dict[str, str] | None = None
        self.started = 0
        self.count = 0
        self.faults = Faults()
        self.failure = ""
        """What the bank answered instead of a statement."""
        self.status: dict[str, str] = {}
        self.has_ended = False

    def read_tag(self, match: re.Match[str]) -> None:
        closing, tag, value = match[1], match[2].upper(), match[3].replace(_HIDDEN_LINE, "").strip()
        if tag == _INVESTMENT:
            raise ImportFileError(
                "this is an investment statement; only bank and card statements can be imported",
                place=Place(line=_number_line(self.text, match.start())),
                remedy="Download the cash account's transactions",
            )
        if closing:
            self._close_tag(tag, match)
        elif tag in _AGGREGATES:
            self._open_aggregate(tag, match)
        elif value:
            self._read_value(tag, _unescape(value))

    def _open_aggregate(self, tag: str, match: re.Match[str]) -> None:
        if tag in self.open:
            raise self._cut_off(f"<{tag}> opens before the one before it is closed", match)
        self.open.append(tag)
        if tag in _STATEMENTS:
            self.accounts.append(_Account(tag))
        elif tag == "STMTTRN":
            self.transaction, self.started = {}, match.start()
        elif tag == "STATUS":
            self.status = {}

    def _close_tag(self, tag: str, match: re.Match[str]) -> None:
        if tag not in _AGGREGATES:
            return
        if not self.open or self.open[-1] != tag:
            inside = f", inside <{self.open[-1]}>" if self.open else ""
            raise self._cut_off(f"</{tag}> closes what is not open{inside}", match)
        self.open.pop()
        if tag == "STMTTRN" and self.transaction is not None:
            self._take_transaction(self.transaction)
            self.transaction = None
        elif tag == "STATUS" and self.status.get("SEVERITY", "").upper() == "ERROR":
            words = (self.status.get("CODE", ""), self.status.get("MESSAGE", ""))
            self.failure = self.failure or ": ".join(word for word in words if word)
        elif tag == "OFX":
            self.has_ended = True

    def _cut_off(self, reason: str, match: re.Match[str]) -> ImportFileError:
        return ImportFileError(
            f"{reason}: the file is damaged, or a part of it is missing",
            place=Place(line=_number_line(self.text, match.start())),
            remedy="Download it again; nothing of it was taken",
        )

    def _read_value(self, tag: str, value: str) -> None:
        inner = self.open[-1] if self.open else ""
        if self.transaction is not None:
            self.transaction.setdefault(tag if inner == "STMTTRN" else f"{inner}.{tag}", value)
        elif inner == "STATUS":
            self.status.setdefault(tag, value)
        elif self.accounts and (inner in _STATEMENTS or any(kind in self.open for kind in _STATEMENTS)):
            account = self.accounts[-1]
            account.values.setdefault(f"{inner}.{tag}", value)
            if tag == "CURDEF" and inner in _STATEMENTS:
                try:
                    account.currency = read_currency(value, "CURDEF")
                except FieldError as error:
                    self.faults.add(0, f"CURDEF: {error.reason}")

    def _take_transaction(self, values: dict[str, str]) -> None:
        if "STMTTRNP" in self.open or not self.accounts:
            return
        self.count += 1
        if self.max_rows is not None and self.count > self.max_rows:
            raise too_many_rows_error(self.max_rows)
        account = self.accounts[-1]
        places = find_places(account.currency, self.places)
        try:
            account.rows.append(_make_row(self.count, values, places))
        except FieldError as error:
            line = _number_line(self.text, self.started) if len(self.faults.kept) < 20 else 0
            self.faults.add(line, f"transaction {self.count}: {error.reason}", error.field)

    def finish(self, name: str) -> ParsedFile:
        if not self.has_ended:
            raise ImportFileError(
                "the file is truncated: it does not end in </OFX>",
                place=Place(line=_number_line(self.text, len(self.text))),
                remedy="Download it again; nothing of it was taken",
            )
        if not self.accounts and self.failure:
            raise ImportFileError(
                f"the bank answered with an error instead of a statement: {quote_text(self.failure, 200)}",
                remedy="Download the statement again",
            )
        if not self.accounts:
            raise ImportFileError("there is no statement in it", remedy="Download the account's transactions")
        statements = []
        for number, account in enumerate(self.accounts, 1):
            try:
                statements.append(_make_statement(account, self.places))
            except FieldError as error:
                self.faults.add(0, f"statement {number} ({error.field}): {error.reason}")
        if self.faults:
            raise self.faults.error()
        return ParsedFile.of_statements(name, statements)


def _unescape(value: str) -> str:
    if "&" not in value:
        return value

    def replace(match: re.Match[str]) -> str:
        if match[1]:
            return _ENTITIES[match[1]]
        code = int(match[2]) if match[2] else int(match[3], 16)
        return chr(code) if 32 <= code < 0x110000 and not 0xD800 <= code < 0xE000 else " "

    return _ENTITY.sub(replace, value)


def _make_row(number: int, values: dict[str, str], places: int) -> BankRow:
    bought = values.get("DTUSER")
    balance = values.get("ACCTBAL")
    corrected = values.get("CORRECTFITID", "")
    currency = read_currency(values.get("CURRENCY.CURSYM", ""), "CURSYM")
    places = find_places(currency, places)
    return BankRow(
        row=number,
        posted_date=read_packed_date(values.get("DTPOSTED", ""), "DTPOSTED"),
        description=_describe(values),
        amount=read_amount(values.get("TRNAMT", ""), places, "TRNAMT"),
        type=values.get("TRNTYPE", ""),
        transaction_date=read_packed_date(bought, "DTUSER") if bought else None,
        currency=currency,
        bank_id=values.get("FITID", ""),
        balance=read_amount(balance, places, "ACCTBAL") if balance else None,
        corrects=corrected,
    )


def _describe(values: dict[str, str]) -> str:
    """The text of a transaction; a check's with its number. Where the bank gives no id, the text is the line's
    identity: then the number stays away, so that lines of earlier imports are known again."""
    text = _join_description(values.get("NAME") or values.get("PAYEE.NAME", ""), values.get("MEMO", ""))
    number = values.get("CHECKNUM", "").lstrip("0")
    if values.get("TRNTYPE", "").upper() != "CHECK" or not values.get("FITID") or not _CHECK_NUMBER.fullmatch(number):
        return text
    return text if re.search(rf"(?<![0-9])0*{number}(?![0-9])", text) else f"{text} {number}".lstrip()


def _join_description(name: str, memo: str) -> str:
    """Name and memo; one of them where the other repeats it. Names are cut at 32 characters, the memo goes on."""
    if not memo or memo == name:
        return name
    return memo if not name or memo.startswith(name) else f"{name} {memo}"


def _make_statement(account: _Account, places: int) -> Statement:
    values = account.values
    source = "BANKACCTFROM" if account.kind == "STMTRS" else "CCACCTFROM"
    number, bank = values.get(f"{source}.ACCTID", ""), values.get(f"{source}.BANKID", "")
    closing = None
    if text := values.get("LEDGERBAL.BALAMT", ""):
        places = find_places(account.currency, places)
        day = values.get("LEDGERBAL.DTASOF", "")
        closing = Balance(read_amount(text, places, "BALAMT"), read_packed_date(day, "DTASOF") if day else None)
    savings = values.get(f"{source}.ACCTTYPE", "").upper() in ("SAVINGS", "MONEYMRKT", "CD")
    kind = "credit_card" if account.kind == "CCSTMTRS" else "savings" if savings else "checking"
    start, end = (values.get(f"BANKTRANLIST.{tag}", "") for tag in ("DTSTART", "DTEND"))
    return Statement(
        first_day=read_packed_date(start, "DTSTART") if start else None,
        last_day=read_packed_date(end, "DTEND") if end else None,
        rows=tuple(account.rows),
        account=number,
        bank=bank,
        currency=account.currency,
        closing=closing,
        hints=(*list_account_hints([number], bank), ("type", kind)),
    )
