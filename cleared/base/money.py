"""Exact money: decoding what a script or file says, rounding never, splitting by largest remainder.

Amounts are ``Decimal`` in units of the currency. How many decimals a currency has is its ISO 4217 exponent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from functools import lru_cache
from typing import Final, NoReturn, cast

from cleared.base.bounds import MAX_DIGITS
from cleared.base.clock import check_deadline

# ISO 4217 minor units; every currency not named here has two.
_NO_DECIMALS = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
_EXPONENTS = {
    **dict.fromkeys(_NO_DECIMALS.split(), 0),
    **dict.fromkeys(["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"], 3),
    **dict.fromkeys(["CLF", "UYW"], 4),
}
_CURRENCY = re.compile(r"[A-Z]{3}")
_PLAIN = re.compile(r"[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?", re.ASCII)
_TYPED = r"[+-]?(?:[0-9]{1,3}(?:[\s’'][0-9]{3})+|[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.([0-9]+))?"
TOO_BIG: Final = 10**MAX_DIGITS
# Enough digits that no sum or product of bounded amounts ever rounds.
_EXACT = Context(prec=80)
_NIL = Decimal(0)
# A float this close to a representable amount is that amount: 0.1 + 0.2 is 0.30, 1.005 is not 1.00.
_FLOAT_SLACK = Decimal("1e-6")


def currency_exponent(currency: str) -> int:
    """Decimal places of an ISO 4217 currency code. Raises ``ValueError`` for what is not a code."""
    if not _CURRENCY.fullmatch(currency):
        raise ValueError(f"{currency!r} is not an ISO 4217 currency code such as USD")
    return _EXPONENTS.get(currency, 2)


_BY_CURRENCY: Final = {"EUR": "\u00a0", "SEK": "\u00a0", "NOK": "\u00a0", "PLN": "\u00a0", "CZK": "\u00a0", "CHF": "’"}


def find_separator(currency: str) -> str:
    """What stands between thousands where a currency is at home; the decimal mark is a point everywhere here."""
    return _BY_CURRENCY.get(currency, ",")


def group_thousands(text: str, separator: str) -> str:
    """An amount as people read it: ``1234567.50`` with the separator between thousands; any other text as it is."""
    if not separator or not _PLAIN.fullmatch(text):
        return text
    whole, point, rest = text.partition(".")
    digits = whole.lstrip("+-")
    return f"{whole[: len(whole) - len(digits)]}{int(digits):,}".replace(",", separator) + point + rest


def read_typed(text: str, places: int) -> Decimal | None:
    """The amount that a person typed or copied: ``-1234.50``, or with separators between thousands; None for anything
    else. ``1.200,00`` and ``1.200`` are none: where they are written they mean a thousand times what a point would."""
    match = re.fullmatch(_TYPED, text.strip()) if len(text) <= MAX_DIGITS else None
    if match is None or len(match[1] or "") > places:
        return None
    if places == 3 and "," in text and "." not in text:  # 1,250 may be one and a quarter
        return None
    amount = Decimal(re.sub(r"[\s’',]", "", match[0])).quantize(quantum(places), context=_EXACT)
    return amount or abs(amount)  # nothing has no sign


@lru_cache(maxsize=8)
def quantum(places: int) -> Decimal:
    """The smallest unit with ``places`` decimals: ``quantum(2)`` is ``Decimal('0.01')``."""
    return Decimal(1).scaleb(-places)


class FinerThanCurrency(ValueError):
    """An amount has more decimal places than its currency."""


def decode(value: object, places: int) -> Decimal:
    """The exact amount that ``value`` means, with ``places`` decimals; any sign.

    ``Decimal``, ``int`` and plain digit strings must be exact already. A ``float`` that differs from an amount
    by no more than binary rounding is taken as meant. Raises ``ValueError`` (NaN, infinities, finer amounts,
    anything else) with a text that names the reason.
    """
    if type(value) is Decimal:
        if value.same_quantum(quantum(places)) and value.adjusted() < MAX_DIGITS:  # so it is finite
            return value
        number = value
    elif type(value) is int:
        return Decimal(value).quantize(quantum(places), context=_EXACT) if abs(value) < TOO_BIG else refuse_digits()
    elif type(value) is float:
        return _from_float(value, places)
    elif isinstance(value, str):
        if not _PLAIN.fullmatch(value):
            raise ValueError(f"{value[:40]!r} is not a plain decimal number such as 12.50")
        number = Decimal(value)
    else:
        raise ValueError(f"a {type(value).__name__} is not an amount")
    if not number.is_finite():
        raise ValueError(f"{number} is not a finite number")
    if number.adjusted() >= MAX_DIGITS:
        refuse_digits()
    if number.same_quantum(quantum(places)):
        return number
    exact = number.quantize(quantum(places), rounding=ROUND_HALF_EVEN, context=_EXACT)
    if exact != number:
        raise FinerThanCurrency(f"{str(number)[:60]} is finer than the currency's {places} decimal places")
    return exact


def require_bounded(number: Decimal) -> Decimal:
    """The number. Raises ``ValueError`` where it is not finite, or takes more than 40 digits on a side of its point:
    1E+120000000 is a few bytes here, and a hundred megabytes once somebody writes it out."""
    if not number.is_finite():
        raise ValueError(f"{str(number)[:40]} is not a finite number")
    if not -MAX_DIGITS <= number.adjusted() < MAX_DIGITS or cast(int, number.as_tuple().exponent) < -MAX_DIGITS:
        refuse_digits()
    return number


def read_amount(text: str) -> Decimal:
    """An amount of a tracked file. Raises ``ValueError`` or ``ArithmeticError`` for what cannot be added, or is larger
    than any money: written out, it would fill the memory."""
    amount = Decimal(text)
    if not amount.is_finite() or not -MAX_DIGITS <= amount.adjusted() < MAX_DIGITS:
        raise ValueError(f"{text[:40]!r} is no amount")
    return amount


def _from_float(value: float, places: int) -> Decimal:
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"{value} is not a finite number")
    if abs(value) * 10**places >= 2**53:
        raise ValueError(f"{value!r} is too large to be exact as a float; pass a Decimal or a string")
    shown = Decimal(repr(value))
    exact = shown.quantize(quantum(places), context=_EXACT)
    if abs(exact - shown) > _FLOAT_SLACK * quantum(places):
        raise FinerThanCurrency(f"{value!r} is finer than the currency's {places} decimal places")
    return exact


def refuse_digits() -> NoReturn:
    """Raises ``ValueError``."""
    raise ValueError(f"the number has more than {MAX_DIGITS} digits: round it")


def format_amount(amount: Decimal) -> str:
    """Plain digits, never an exponent: the one way an amount is written to a file or a screen."""
    return format(amount, "f")


def count_units(amount: Decimal, places: int) -> int:
    """How many of the smallest units an exact amount with at most ``places`` decimals is."""
    return int(_EXACT.scaleb(amount, places))


@lru_cache(maxsize=20_000)
def count_written_units(text: str, places: int) -> int:
    """The same of an amount as a journal has it: the months of a year have many of the same."""
    return count_units(Decimal(text), places)


def from_units(units: int, places: int) -> Decimal:
    """The inverse of ``count_units``, with all its ``places`` decimals."""
    return _EXACT.scaleb(Decimal(units), -places)


def total(amounts: Sequence[Decimal]) -> Decimal:
    """An exact sum, whatever the ambient decimal context."""
    add, result = _EXACT.add, _NIL
    for amount in amounts:
        result = add(result, amount)
    return result


def allocate(amount: Decimal, weights: Sequence[Decimal], places: int) -> list[Decimal]:
    """Split ``amount`` in proportion to ``weights`` so that the parts sum to it exactly.

    Largest remainder method: each part is rounded toward zero, and the units left over go to the largest
    remainders, the earlier part first among equals. Raises ``ValueError`` where a weight is negative or all
    are zero.
    """
    if not weights:
        raise ValueError("there are no weights to split by")
    if any(not w.is_finite() or w < 0 for w in weights):
        raise ValueError("weights must be finite and not negative")
    with localcontext(_EXACT):
        whole = sum(weights, Decimal(0))
        if whole == 0:
            raise ValueError("the weights are all zero")
        units = int((abs(amount) / quantum(places)).to_integral_exact())
        floors: list[int] = []
        remainders: list[tuple[Decimal, int]] = []
        for i, weight in enumerate(check_deadline(weights)):
            share, remainder = divmod(units * weight, whole)
            floors.append(int(share))
            remainders.append((-remainder, i))
        for _, i in sorted(remainders)[: units - sum(floors)]:
            floors[i] += 1
        sign = -1 if amount < 0 else 1
        return [(Decimal(sign * n) * quantum(places)).quantize(quantum(places)) for n in check_deadline(floors)]
