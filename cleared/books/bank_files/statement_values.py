"""What the statement formats (OFX, CAMT, MT940, QIF) have in common: account hints, amounts, dates, encodings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from decimal import Decimal

from cleared.base import money
from cleared.books.bank_files.base import BOMS, FieldError, quote_text

_AMOUNT = re.compile(r"([+-]?)([0-9]{1,30})?(?:[.,]([0-9]{0,9}))?", re.ASCII)
_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}", re.ASCII)
_DECLARED = re.compile(r"[A-Za-z0-9._-]{1,40}", re.ASCII)


def read_amount(text: str, places: int, field: str) -> Decimal:
    """An amount without grouping, whose decimal mark is a point or a comma. Raises ``FieldError``."""
    stripped = text.strip()
    match = _AMOUNT.fullmatch(stripped)
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
        if _IBAN.fullmatch(iban) and int("".join(str(int(c, 36)) for c in iban[4:] + iban[:4])) % 97 == 1:
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
        return declared if _DECLARED.fullmatch(declared) else "utf-8"
    return "utf-8"
