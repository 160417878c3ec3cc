"""Cells to values: amounts and dates as banks write them, by declared rules only.

Beside it: what the statement formats (OFX, CAMT, MT940, QIF) have in common, and what a cell of an unknown CSV may be.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Final

from msgspec import Struct

from cleared.base import money
from cleared.books.bank_files.base import BOMS, FieldError, quote_text

_SIGNS = {"-": -1, "\u2212": -1, "+": 1}
# A space or an apostrophe is declared in its plain form; files also carry its typographic ones.
_VARIANTS = {" ": " \u00a0\u202f", "'": "'\u2019"}
_SIMPLE = re.compile(r"-?[0-9]{1,30}(?:\.[0-9]{1,9})?", re.ASCII)
_US_DATE = re.compile(r"([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})", re.ASCII)

AmountParser = Callable[[str, int], Decimal]
DateParser = Callable[[str], date]


class AmountStyle(Struct, frozen=True):
    """How a format writes amounts.

    A negative is written with a leading or trailing minus (``-`` or U+2212) or in parentheses; one of them,
    never two. Grouping is accepted only with the declared character and only in threes.
    """

    decimal: str = "."
    thousands: str = ""
    symbols: tuple[str, ...] = ()

    def make_parser(self) -> AmountParser:
        """``(text, places) -> Decimal``, signed as written; raises ``ValueError`` with the reason."""
        point = re.escape(self.decimal)
        whole = "[0-9]+"
        if self.thousands:
            group = f"[{re.escape(_VARIANTS.get(self.thousands, self.thousands))}]"
            whole = f"(?:[0-9]{{1,3}}(?:(?P<g>{group})[0-9]{{3}}(?:(?P=g)[0-9]{{3}})*)?|[0-9]+)"
        number = f"(?a)(?P<whole>{whole})?(?:{point}(?P<fraction>[0-9]+))?"
        symbols = tuple(sorted((s.strip() for s in self.symbols if s.strip()), key=len, reverse=True))
        simple = _SIMPLE if self.decimal == "." else re.compile(r"-?[0-9]{1,30}", re.ASCII)

        def parse(text: str, places: int) -> Decimal:
            if simple.fullmatch(text):
                amount = money.decode(Decimal(text), places)
                return amount or abs(amount)  # nothing has no sign
            sign, body = _strip_sign_and_symbol(text, symbols)
            match = re.fullmatch(number, body) if body else None
            if match is None:
                raise ValueError(self._explain_failure(text, body))
            digits = re.sub(r"[^0-9]", "", match["whole"] or "0")
            exact = money.decode(f"{digits}.{match['fraction'] or '0'}", places)
            return exact.copy_negate() if sign < 0 and exact else abs(exact)

        return parse

    def _explain_failure(self, text: str, body: str) -> str:
        if not body:
            return "there is no amount" if not text.strip() else f"{quote_text(text)} is not an amount"
        unknown = sorted({c for c in body if c not in f"0123456789{self.decimal}{self.thousands}"})
        if self.thousands and not unknown and re.search("[0-9]", body):
            marks = f"by {self.thousands!r} with {self.decimal!r} as decimal mark"
            return f"{quote_text(text)} is not grouped in threes {marks}"
        if len(unknown) == 1 and unknown[0] in ".,' \u00a0\u202f\u2019" and re.search("[0-9]", body):
            return (
                f"{quote_text(text)} has {unknown[0]!r}, which is not declared for this format (decimal mark: "
                f"{self.decimal!r}, thousands: {self.thousands!r})"
            )
        return f"{quote_text(text)} is not an amount such as {'1234.56'.replace('.', self.decimal)}"


def _strip_sign_and_symbol(text: str, symbols: tuple[str, ...]) -> tuple[int, str]:
    """Take one sign and one currency symbol off either end, in any order."""
    body = text.strip()
    sign = 0
    if body.startswith("(") and body.endswith(")"):
        sign, body = -1, body[1:-1].strip()
    symbol = False
    while body:
        if not sign and body[0] in _SIGNS:
            sign, body = _SIGNS[body[0]], body[1:].strip()
        elif not sign and body[-1] in _SIGNS:
            sign, body = _SIGNS[body[-1]], body[:-1].strip()
        elif not symbol and (affix := next((s for s in symbols if body.startswith(s)), None)):
            symbol, body = True, body[len(affix) :].strip()
        elif not symbol and (affix := next((s for s in symbols if body.endswith(s)), None)):
            symbol, body = True, body[: -len(affix)].strip()
        elif not sign and body.startswith("(") and body.endswith(")"):
            sign, body = -1, body[1:-1].strip()
        else:
            break
    return sign or 1, body


@lru_cache(maxsize=1_000)
def parse_us_date(text: str) -> date:
    """A day written ``MM/DD/YYYY``; raises ``ValueError`` with the reason."""
    match = _US_DATE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{quote_text(text)} is not a date written MM/DD/YYYY")
    month, day, year = map(int, match.groups())
    try:
        return date(year, month, day)
    except ValueError:
        raise ValueError(f"{quote_text(text)} is not a day of the calendar (MM/DD/YYYY)") from None


@lru_cache(maxsize=100)
def make_strptime_parser(date_format: str) -> DateParser:
    """A reader of one ``strptime`` format; ``%Y`` takes four digits only, ``%y`` two (69–99 are 19xx).

    Raises ``ValueError`` at once for a format that does not fix year, month and day.
    """
    try:
        for probe in (datetime(2025, 2, 3, 1, 2, 3, tzinfo=UTC), datetime(2031, 12, 31, tzinfo=UTC)):
            if date(*time.strptime(probe.strftime(date_format), date_format)[:3]) != probe.date():
                raise ValueError
    except (ValueError, re.error):
        raise ValueError(f"date_format {date_format!r} does not fix year, month and day") from None

    # Without a separator 2025111 could be two days, so there every digit has to be written.
    packed = re.search(r"%[a-zA-Z]%[a-zA-Z]", date_format) is not None

    def parse(text: str) -> date:
        stripped = text.strip()
        try:
            if any(c.isdigit() and not c.isascii() for c in stripped):
                raise ValueError
            read = time.strptime(stripped, date_format)
            if packed and time.strftime(date_format, read) != stripped:
                raise ValueError
            return date(*read[:3])
        except (ValueError, OverflowError):
            raise ValueError(f"{quote_text(text)} is not a date written {date_format}") from None

    return lru_cache(maxsize=1_000)(parse)


_AMOUNT = r"(?a)([+-]?)([0-9]{1,30})?(?:[.,]([0-9]{0,9}))?"
_IBAN = r"(?a)[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}"
_DECLARED = r"(?a)[A-Za-z0-9._-]{1,40}"


def read_amount(text: str, places: int, field: str) -> Decimal:
    """An amount without grouping, whose decimal mark is a point or a comma. Raises ``FieldError``."""
    stripped = text.strip()
    match = re.fullmatch(_AMOUNT, stripped)
    if match is None or not (match[2] or match[3]):
        reason = f"{quote_text(text)} is not an amount such as -12.50" if stripped else "there is no amount"
        raise FieldError(reason, field)
    try:
        exact = money.decode(f"{match[1]}{match[2] or '0'}.{match[3] or '0'}", places)
    except ValueError as error:
        raise FieldError(str(error), field) from None
    return exact if exact else exact.copy_abs()


def read_packed_date(text: str, field: str) -> date:
    """The day that ``YYYYMMDD…`` begins with, as the bank wrote it: no time zone moves it. Raises ``FieldError``."""
    digits = text.strip()[:8]
    if not text.strip():
        raise FieldError("there is no date", field)
    try:
        if len(digits) != 8 or not (digits.isascii() and digits.isdigit()):
            raise ValueError
        return date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        raise FieldError(f"{quote_text(text)} does not begin with a date written YYYYMMDD", field) from None


def read_currency(text: str, field: str) -> str | None:
    """A currency code; None for an empty text. Raises ``FieldError``."""
    code = text.strip().upper()
    if code and not re.fullmatch(r"[A-Z]{3}", code):
        raise FieldError(f"{quote_text(text)} is not a currency code such as USD", field)
    return code or None


def find_places(currency: str | None, places: int) -> int:
    """The decimals of an amount: its currency's where the file states one, else ``places``."""
    return money.currency_exponent(currency) if currency else places


def list_account_hints(numbers: Iterable[str], bank: str = "") -> tuple[tuple[str, str], ...]:
    """What ``numbers``, ways of writing one account's number, say of it: with the bank, as IBAN, its last digits."""
    hints: list[tuple[str, str]] = []
    for number in numbers:
        compact = "".join(number.split())
        if not compact:
            continue
        hints.append(("account", compact))
        if bank:
            hints.append(("account", f"{bank}/{compact}"))
        if find_valid_iban(compact) == compact:
            hints.append(("iban", compact))
        if re.search(r"[0-9]{4}\Z", compact):
            hints.append(("last4", compact[-4:]))
    return tuple(dict.fromkeys(hints))


def find_valid_iban(text: str) -> str:
    """The IBAN that ``text`` begins with, without spaces; words after it are left off. Empty: there is none.

    ISO 13616: the check digits make the number 1 modulo 97.
    """
    words = text[:100].split()
    while words:
        iban = "".join(words)
        if re.fullmatch(_IBAN, iban) and int("".join(str(int(c, 36)) for c in iban[4:] + iban[:4])) % 97 == 1:
            return iban
        words.pop()
    return ""


def choose_encoding(data: bytes, declared: str) -> str:
    """UTF-8 where the bytes are that (many banks declare another), else what the file declares."""
    if any(data.startswith(mark) for mark, _ in BOMS):
        return "utf-8"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return declared if re.fullmatch(_DECLARED, declared) else "utf-8"
    return "utf-8"


DATE_FORMATS: Final = (
    "%Y-%m-%d",
    "%d.%m.%Y",
    "%d.%m.%y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%m/%d/%y",
    "%d/%m/%y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%Y/%m/%d",
    "%d %b %Y",
    "%b %d, %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
)
NUMBER_STYLES: Final = ((".", ","), (",", "."), (".", "'"), (",", " "), (".", " "))
NAMED_CURRENCY: Final = (
    r"(?<![A-Za-z])(?:AED|AUD|BGN|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|IDR|ILS|INR|ISK|JPY|KRW|MXN|MYR|NOK|NZD|PHP"
    r"|PLN|RON|RSD|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|ZAR)(?![A-Za-z])"
)
"""A code as heads of columns name it, as a pattern: not every three capitals are a currency."""
CURRENCY_MARKS: Final = {"€": "EUR", "£": "GBP"}
"""Marks that stand for one currency; of ``$`` there are many."""
DOLLARS: Final = frozenset({"USD", "CAD", "AUD", "NZD", "SGD", "HKD", "TWD", "MXN", "BRL", "ARS", "CLP", "COP"})
"""Currencies that are written as ``$`` at home."""
AMOUNT_COLUMNS: Final = ("amount", "debit", "credit")
SYMBOLS: Final = ("$", "€", "£", "USD", "EUR", "GBP", "CHF")


def is_transaction(fields: Sequence[str]) -> bool:
    return any(is_date(cell) for cell in fields) and any(is_number(cell) for cell in fields)


def is_number(cell: str) -> bool:
    return any(c.isdigit() for c in cell) and any(_parses(style, cell) for style in _make_styles(SYMBOLS))


def _make_styles(symbols: tuple[str, ...]) -> list[Callable[[str], Decimal]]:
    parsers = [AmountStyle(decimal, thousands, symbols).make_parser() for decimal, thousands in NUMBER_STYLES]
    return [lambda cell, parse=parse: parse(cell, 4) for parse in parsers]  # type: ignore[misc]


def _parses(parse: Callable[[str], object], cell: str) -> bool:
    try:
        parse(cell)
    except ValueError:
        return False
    return True


def take_first_words(cell: str, date_format: str) -> str:
    """The cell without the time that may stand behind the date."""
    words = re.sub(r"(?<=[0-9])T(?=[0-9])", " ", cell).split()
    return " ".join(words[: len(date_format.split())])


def is_date(cell: str) -> bool:
    """Whether it is a date in one of the known forms; a time may stand behind it."""
    return bool(cell.strip()) and any(
        _parses(make_strptime_parser(form), take_first_words(cell, form)) for form in DATE_FORMATS
    )


def are_numbers(column: Iterable[str]) -> bool:
    filled = [cell for cell in column if cell]
    return bool(filled) and all(is_number(cell) for cell in filled) and not all(is_date(c) for c in filled)


def are_dates(column: Iterable[str]) -> bool:
    filled = [cell for cell in column if cell]
    return bool(filled) and all(is_date(cell) for cell in filled)
